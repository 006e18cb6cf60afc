"""Tools for models that have none: every reply is one JSON object whose shape a schema forces, and is read back from there.

A reply is `{"say": text}` or `{tool: arguments}`; the schema has an option for each. The small model could not choose
sensibly among all options, so for it they are narrowed (`narrowed`): it speaks in its first turn, then puts a topic to the
vote once, and from then on proposes answers. What it says, puts, proposes and votes are its own words and choice.
Deliberately absent: any model, and any text that could become part of a reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from folkmoot.domain.model_calls import Entry, ModelRequest, OfferedTool, OwnCall, ReplyCall

Json = Any

SAY = "say"

_AFTER_A_BALLOT = frozenset({"agree", "disagree", "call_vote", "propose_solution"})
_PROTOCOL = _AFTER_A_BALLOT | {"pass", "ask", "answer"}
_MOST_CALLS_IN_A_ROW = 2
_FREE_STRING_CHARACTERS = 300
_FREE_LIST_ITEMS = 8
_SAYING = re.compile(r'\s*\{\s*"say"\s*:\s*"')
_STRING_BODY = re.compile(r'(?:[^"\\]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
_CUT_CALL = re.compile(r'\s*\{\s*"([A-Za-z0-9_-]+)"\s*:\s*(\{.*)', re.DOTALL)
_FENCE = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Options:
    """What a reply may be: a text (of at most `say_characters`) if `may_say`, or a call of one of `tools`."""

    tools: tuple[OfferedTool, ...]
    may_say: bool
    say_characters: int

    @property
    def schema(self) -> Json:
        """JSON Schema of the reply. Free strings and lists get bounds, so that no reply runs on until it is cut."""
        definitions: dict[str, Json] = {}
        choices = []
        if self.may_say:
            choices.append(_single(SAY, {"type": "string", "minLength": 1, "maxLength": self.say_characters}))
        for number, tool in enumerate(self.tools):
            place = f"tool{number}"
            definitions[place] = _moved(_bounded(tool.parameters), f"#/$defs/{place}/")
            choices.append(_single(tool.name, {"$ref": f"#/$defs/{place}"}))
        # Not `oneOf`: the choices exclude each other by their names, and servers know `anyOf` best.
        return {"anyOf": choices, "$defs": definitions}


def all_options(request: ModelRequest, *, say_characters: int) -> Options:
    """Everything that is offered, and a text unless a call is required."""
    return Options(request.offered, not (request.required and request.offered), say_characters)


def narrowed(request: ModelRequest, *, say_characters: int) -> Options:
    """The options that are put to the small model; a subset of what is offered, by the rule at the top of this file."""
    everything = all_options(request, say_characters=say_characters)
    if not everything.may_say:
        return everything
    functions = tuple(tool for tool in request.offered if tool.name not in _PROTOCOL)
    if _calls_in_a_row(request.view, request.view_length) >= _MOST_CALLS_IN_A_ROW:
        functions = ()
    if request.turn <= 1:
        return Options(functions, True, say_characters)
    by_name = {tool.name: tool for tool in request.offered}
    wanted = "propose_solution" if _has_balloted(request) or "call_vote" not in by_name else "call_vote"
    if wanted in by_name:
        return Options((by_name[wanted], *functions), False, say_characters)
    return everything


def read_reply(raw: str) -> tuple[str, tuple[ReplyCall, ...]]:
    """Text and calls of a reply; of one that was cut or is no such object, what can be read without guessing (B33, B43).

    A call that was cut keeps its arguments as they came, which do not parse.
    """
    fenced = _FENCE.fullmatch(raw)
    body = fenced[1] if fenced else raw
    try:
        reply = json.loads(body, strict=False)
    except (ValueError, RecursionError):
        reply = None
    if isinstance(reply, dict) and len(reply) == 1:
        ((name, value),) = reply.items()
        if name == SAY and isinstance(value, str):
            return value, ()
        if isinstance(value, dict):
            return "", (ReplyCall(name, json.dumps(value, ensure_ascii=False)),)
    if _SAYING.match(body):
        return said_so_far(body), ()
    cut = _CUT_CALL.match(body)
    if cut is not None and reply is None:
        return "", (ReplyCall(cut[1], cut[2]),)
    return raw, ()


def said_so_far(raw: str) -> str:
    """The text of a reply that is still coming, as far as it is certain; empty if the reply is a call."""
    opening = _SAYING.match(raw)
    if opening is None:
        return ""
    body = _STRING_BODY.match(raw, opening.end())
    text: str = json.loads(f'"{body[0]}"', strict=False) if body else ""
    # Half of a surrogate pair waits for its other half.
    return text[:-1] if text and "\ud800" <= text[-1] <= "\udbff" else text


def _calls_in_a_row(view: Sequence[Entry], length: int) -> int:
    count = 0
    while count < length and isinstance(view[length - 1 - count], OwnCall):
        count += 1
    return count


def _has_balloted(request: ModelRequest) -> bool:
    view = request.view
    entries = (view[index] for index in range(request.view_length))
    return any(isinstance(entry, OwnCall) and entry.name in _AFTER_A_BALLOT for entry in entries)


def _single(name: str, schema: Json) -> Json:
    return {"type": "object", "properties": {name: schema}, "required": [name], "additionalProperties": False}


def _moved(schema: Json, prefix: str) -> Json:
    """The schema with its local references pointing to where it now lies."""
    if isinstance(schema, dict):
        return {
            key: prefix.rstrip("/") + value[1:]
            if key == "$ref" and isinstance(value, str) and value.startswith("#")
            else _moved(value, prefix)
            for key, value in schema.items()
        }
    return [_moved(item, prefix) for item in schema] if isinstance(schema, list) else schema


def _bounded(schema: Json) -> Json:
    """The schema with bounds where it leaves a string or a list free; narrower than the original, never wider."""
    if isinstance(schema, list):
        return [_bounded(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    bounded = {
        key: value if key in ("enum", "const", "default", "examples") else _bounded(value)
        for key, value in schema.items()
    }
    kind = schema.get("type")
    if kind == "string" and not any(key in schema for key in ("enum", "const", "format", "pattern", "maxLength")):
        bounded["maxLength"] = max(_FREE_STRING_CHARACTERS, _number(schema.get("minLength")))
    if kind == "array" and "maxItems" not in schema:
        bounded["maxItems"] = max(_FREE_LIST_ITEMS, _number(schema.get("minItems")))
    if kind == "object" and "properties" in schema:
        bounded.setdefault("additionalProperties", False)
    return bounded


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
