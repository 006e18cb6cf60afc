"""A script's rules: checked with the place of each fault, and compiled once into what `scripted` walks at each call.

A script is plain JSON data, so that a run carries its own. Deliberately absent: state (which rule replies depends on the
request alone) and templates (a reply is what the file says).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from folkmoot.domain.model_calls import (
    OURS,
    TOKEN_KINDS,
    FailureClass,
    ModelFailure,
    ModelReply,
    Purpose,
    ReplyCall,
    Usage,
)
from folkmoot.kernel.errors import BadInput, Fault

Json = Any

_WHEN = ("participant", "turn", "call", "offered", "seen", "purpose")
_FAILURES = tuple(kind.value for kind in FailureClass if kind not in OURS)
_PURPOSES = tuple(purpose.value for purpose in Purpose)
_UNIT_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SHORT_SPAN = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[dhms]))+")
_CLOCK_SPAN = re.compile(r"(?:(\d+)\.)?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d{1,7})?)")
_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold (null: anything), and what comes then. `fails_up_to`: the last attempt that a failure meets; null: all.

    `outcome` is made once and handed out again and again, since nothing in it depends on the request.
    """

    participant: str | None
    turn: int | None
    call: int | None
    offered: str | None
    seen: str | None
    purpose: Purpose | None
    outcome: ModelReply | ModelFailure
    delay_seconds: float = 0.0
    fails_up_to: int | None = None


class _JsonLoader(yaml.SafeLoader):
    """YAML without dates, which JSON does not have."""


_JsonLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def parse_script(text: str, file: str) -> Json:
    """The script in a YAML text as plain JSON data. `file` is named in faults, which carry the line.

    Errors: BadInput with a fault for each thing that is wrong.
    """
    loader = _JsonLoader(text)
    try:
        root = loader.get_single_node()
        script = None if root is None else loader.construct_document(root)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        fault = Fault("", f"This is no YAML: {error.problem or error.context or 'it cannot be read'}.", file, line)
        raise BadInput(f"The script cannot be read. {fault}", (fault,)) from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        fault = Fault("", f"This is no YAML: {str(error).splitlines()[0]}.", file)
        raise BadInput(f"The script cannot be read. {fault}", (fault,)) from error
    finally:
        loader.dispose()
    try:
        compile_script(script)
    except BadInput as error:
        faults = tuple(
            Fault(fault.pointer, fault.message, file, _line_of(root, fault.pointer)) for fault in error.faults
        )
        raise BadInput(f"The script has {_count(faults)}: " + " ".join(map(str, faults)), faults) from error
    return script


def compile_script(script: Json) -> tuple[Rule, ...]:
    """The rules of a script, in order. Errors: BadInput with JSON pointers, all faults at once."""
    faults = [Fault(pointer, message) for pointer, message in _faults_of_script(script)]
    if faults:
        raise BadInput(f"The script has {_count(faults)}: " + " ".join(map(str, faults)), tuple(faults))
    return tuple(_compile_rule(number, rule) for number, rule in enumerate(script["rules"], start=1))


def seconds_of(span: Json) -> float | None:
    """Seconds of `50ms`, `1m30s`, `00:01:30` or a number of seconds; null if it is none of these."""
    if isinstance(span, (int, float)) and not isinstance(span, bool):
        return float(span) if 0 <= span < float("inf") else None
    if not isinstance(span, str):
        return None
    if _SHORT_SPAN.fullmatch(span):
        return sum(
            float(count) * _UNIT_SECONDS[unit] for count, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|[dhms])", span)
        )
    clock = _CLOCK_SPAN.fullmatch(span)
    if clock is None:
        return None
    days, hours, minutes, seconds = clock.groups()
    return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def _count(faults: tuple[Fault, ...] | list[Fault]) -> str:
    return "a fault" if len(faults) == 1 else f"{len(faults)} faults"


def _line_of(root: yaml.Node | None, pointer: str) -> int | None:
    """The line (from 1) of the deepest part of `pointer` that the file has; a fault may be about something that is absent."""
    if root is None:
        return None
    node, line = root, root.start_mark.line + 1
    for step in pointer.split("/")[1:]:
        found: yaml.Node | None = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == _unescaped(step):
                    found, line = value, key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and int(step) < len(node.value):
            found = node.value[int(step)]
            line = found.start_mark.line + 1
        if found is None:
            return line
        node = found
    return line


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


# Faults, as (pointer, sentence).

_Faults = Iterator[tuple[str, str]]


def _faults_of_script(script: Json) -> _Faults:
    if not isinstance(script, dict) or not isinstance(script.get("rules"), list):
        yield "", "A script is a mapping with a list 'rules'."
        return
    yield from _unknown_keys("", script, ("rules",))
    try:
        json.dumps(script, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        yield (
            "",
            "A script may hold only what JSON can say: no infinite numbers, no binary data, no part that contains itself.",
        )
        return
    for index, rule in enumerate(script["rules"]):
        yield from _faults_of_rule(f"/rules/{index}", rule)


def _faults_of_rule(at: str, rule: Json) -> _Faults:
    if not isinstance(rule, dict):
        yield at, "A rule is a mapping with 'reply' or 'fail', and perhaps 'when'."
        return
    yield from _unknown_keys(at, rule, ("when", "reply", "fail"))
    if ("reply" in rule) == ("fail" in rule):
        yield at, "A rule has either 'reply' or 'fail'."
    yield from _faults_of_parts(at, rule, "when", _WHEN, {
        "participant": (_is_text, "a participant's name"),
        "turn": (_is_ordinal, "a whole number from 1"),
        "call": (_is_ordinal, "a whole number from 1"),
        "offered": (_is_text, "the name of a tool"),
        "seen": (_is_text, "a text that is not empty"),
        "purpose": (lambda value: value in _PURPOSES, f"one of {', '.join(_PURPOSES)}"),
    })  # fmt: skip
    yield from _faults_of_parts(at, rule, "reply", ("text", "calls", "delay", "usage"), {
        "text": (lambda value: isinstance(value, str), "a text"),
        "calls": (lambda value: isinstance(value, list), "a list of calls"),
        "delay": (_is_span, "a time such as 50ms, 1m30s or 00:01:30"),
        "usage": (lambda value: isinstance(value, dict), "a mapping of token counts"),
    })  # fmt: skip
    yield from _faults_of_parts(at, rule, "fail", ("class", "retryAfter", "times"), {
        "class": (lambda value: value in _FAILURES, f"one of {', '.join(_FAILURES)}"),
        "retryAfter": (_is_span, "a time such as 50ms, 1m30s or 00:01:30"),
        "times": (_is_ordinal, "a whole number from 1"),
    })  # fmt: skip
    if isinstance(rule.get("fail"), dict) and "class" not in rule["fail"]:
        yield f"{at}/fail", f"'class' is missing: one of {', '.join(_FAILURES)}."
    if isinstance(rule.get("reply"), dict):
        yield from _faults_of_reply(f"{at}/reply", rule["reply"])


_Check = tuple[Callable[[Json], bool], str]


def _faults_of_parts(at: str, rule: Json, part: str, known: tuple[str, ...], checks: dict[str, _Check]) -> _Faults:
    value = rule.get(part, {})
    if not isinstance(value, dict):
        yield f"{at}/{part}", f"'{part}' is a mapping of {', '.join(known)}."
        return
    yield from _unknown_keys(f"{at}/{part}", value, known)
    for key, (holds, wanted) in checks.items():
        if key in value and not holds(value[key]):
            yield f"{at}/{part}/{key}", f"'{key}' is {wanted}."


def _faults_of_reply(at: str, reply: dict[str, Json]) -> _Faults:
    calls = reply.get("calls")
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        place = f"{at}/calls/{index}"
        if not isinstance(call, dict) or not _is_text(call.get("name")):
            yield place, "A call is a mapping with 'name' and perhaps 'arguments'."
            continue
        yield from _unknown_keys(place, call, ("name", "arguments"))
        if not isinstance(call.get("arguments", {}), (dict, str)):
            yield f"{place}/arguments", "'arguments' is a mapping, or a text that is sent as it is."
    usage = reply.get("usage")
    if isinstance(usage, dict):
        yield from _unknown_keys(f"{at}/usage", usage, tuple(TOKEN_KINDS))
        for kind, count in usage.items():
            if kind in TOKEN_KINDS and not (isinstance(count, int) and not isinstance(count, bool) and count >= 0):
                yield f"{at}/usage/{_escaped(str(kind))}", f"'{kind}' is a whole number of tokens."


def _unknown_keys(at: str, mapping: dict[Json, Json], known: tuple[str, ...]) -> _Faults:
    for key in mapping:
        if key not in known:
            yield f"{at}/{_escaped(str(key))}", f"There is no field '{key}' here; there are: {', '.join(known)}."


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def _is_ordinal(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_span(value: Json) -> bool:
    return seconds_of(value) is not None


# Compiling; everything below may rely on the checks above.


def _compile_rule(number: int, rule: dict[str, Json]) -> Rule:
    when = rule.get("when", {})
    fail = rule.get("fail")
    outcome = _failure(number, fail) if fail is not None else _reply(rule["reply"])
    purpose = when.get("purpose")
    return Rule(
        participant=when.get("participant"),
        turn=when.get("turn"),
        call=when.get("call"),
        offered=when.get("offered"),
        seen=when.get("seen"),
        purpose=None if purpose is None else Purpose(purpose),
        outcome=outcome,
        delay_seconds=seconds_of(rule.get("reply", {}).get("delay", 0)) or 0.0,
        fails_up_to=None if fail is None else fail.get("times"),
    )


def _failure(number: int, fail: dict[str, Json]) -> ModelFailure:
    failure = FailureClass(fail["class"])
    retry_after = seconds_of(fail["retryAfter"]) if "retryAfter" in fail else None
    return ModelFailure(failure, f"Rule {number} of the script fails this call as {failure.value}.", retry_after)


def _reply(reply: dict[str, Json]) -> ModelReply:
    text = reply.get("text", "")
    calls = tuple(ReplyCall(call["name"], _arguments(call.get("arguments", {}))) for call in reply.get("calls", ()))
    counts = reply.get("usage")
    if counts is None:
        written = len(text) + sum(len(call.name) + len(call.arguments_json) for call in calls)
        usage = Usage(output=-(-written // _CHARACTERS_PER_TOKEN), estimated=True)
    else:
        usage = Usage(**{TOKEN_KINDS[kind]: count for kind, count in counts.items()})
    return ModelReply(text, calls, usage)


def _arguments(arguments: Json) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
