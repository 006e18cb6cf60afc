"""The inputs that a run is given: whether all are there, none is unknown, and each has its type.

Values are text; numbers, booleans and JSON are JSON text; a secret is its id. Deliberately absent: whether a secret is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from types import MappingProxyType

from folkmoot.domain.definitions import DataType, PromptInput
from folkmoot.domain.json_text import MAX_CHARACTERS, Unreadable, read_json
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.tool_bindings import BindingInput, SecretInput
from folkmoot.kernel.errors import Fault

# RFC 3339; a leap second is no time that Python has, and no date that anybody means.
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def faults_of_inputs(
    inputs: tuple[PromptInput, ...],
    given: Mapping[str, str],
    *,
    secrets: tuple[SecretInput, ...] = (),
    bindings: tuple[BindingInput, ...] = (),
    chooses_secrets: bool = True,
) -> tuple[Fault, ...]:
    """What is wrong with the values given for inputs of prompts, headers and calls. `chooses_secrets`: whoever gives them may name secrets.

    Pointers: `/inputs` for a missing one, else `/inputs/NAME`. One name may be an input of prompts and of several calls.
    """
    names = dict.fromkeys([item.name for item in inputs])
    names |= dict.fromkeys([*(item.name for item in bindings), *(item.name for item in secrets)])
    return tuple(
        dict.fromkeys(
            (
                *_faults(inputs, given, names),
                *_secret_faults(secrets, given, chooses_secrets=chooses_secrets),
                *_call_faults(bindings, given),
            )
        )
    )


def _secret_faults(
    secrets: tuple[SecretInput, ...], given: Mapping[str, str], *, chooses_secrets: bool
) -> Iterator[Fault]:
    for item in secrets:
        value = given.get(item.name)
        if value is not None and not chooses_secrets:
            message = f"The input '{item.name}' takes a secret, and no participant chooses secrets. Leave it out."
            yield Fault(step("/inputs", item.name), message)
        elif value is not None and not _UUID.fullmatch(value):
            message = f"The input '{item.name}' takes a secret's id, and this is none. Never give the secret itself."
            yield Fault(step("/inputs", item.name), message)
        elif value is None and item.is_required and item.default_secret is None:
            yield _missing(item.name, item.description)


def _call_faults(bindings: tuple[BindingInput, ...], given: Mapping[str, str]) -> Iterator[Fault]:
    for bound in bindings:
        value = given.get(bound.name)
        if value is not None and len(value) > MAX_CHARACTERS:
            yield Fault(step("/inputs", bound.name), _too_long(bound.name, value))
        elif value is None and bound.is_required and bound.default_value is None:
            yield _missing(bound.name, bound.description)


def _faults(inputs: tuple[PromptInput, ...], given: Mapping[str, str], names: Mapping[str, None]) -> Iterator[Fault]:
    for name in given:
        if name not in names:
            known = ", ".join(f"'{item}'" for item in list(names)[:40]) or "none"
            message = (
                f"There is no input '{shortened(name, 80)}'; correct the name or leave it out. The inputs: {known}."
            )
            yield Fault(step("/inputs", name), message)
    for item in inputs:
        if item.name in given:
            problem = _problem(item, given[item.name])
            if problem is not None:
                yield Fault(step("/inputs", item.name), problem)
        elif item.is_required:
            yield _missing(item.name, item.description)


def _missing(name: str, description: str | None) -> Fault:
    about = f" ({shortened(description, 100)})" if description else ""
    return Fault("/inputs", f"The required input '{name}'{about} is missing; give it a value.")


def _too_long(name: str, value: str) -> str:
    return f"The input '{name}' has {len(value):,} characters; at most {MAX_CHARACTERS:,} are allowed."


def _problem(item: PromptInput, value: str) -> str | None:
    if len(value) > MAX_CHARACTERS:
        return _too_long(item.name, value)
    is_of_type, example = _TYPES[item.data_type]
    try:
        if is_of_type(value):
            return None
        reason = ""
    except Unreadable as error:
        reason = f" {error}"
    shown = shortened(value, 40)
    return (
        f"The input '{item.name}' is of type {item.data_type}, and '{shown}' is not: write it like {example}.{reason}"
    )


def _is_string(_: str) -> bool:
    return True


def _is_number(text: str) -> bool:
    value = read_json(text)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(text: str) -> bool:
    value = read_json(text)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_boolean(text: str) -> bool:
    return isinstance(read_json(text), bool)


def _is_json(text: str) -> bool:
    read_json(text)
    return True


def _is_date(text: str) -> bool:
    try:
        if _DATE.fullmatch(text):
            date.fromisoformat(text)
            return True
        if _DATE_TIME.fullmatch(text):
            datetime.fromisoformat(text.upper())
            return True
    except ValueError:
        return False
    return False


_TYPES: Mapping[DataType, tuple[Callable[[str], bool], str]] = MappingProxyType(
    {
        DataType.STRING: (_is_string, "any text"),
        DataType.NUMBER: (_is_number, "12.5"),
        DataType.INTEGER: (_is_integer, "12"),
        DataType.BOOLEAN: (_is_boolean, "true or false"),
        DataType.JSON: (_is_json, '{"key": [1, 2]}'),
        DataType.DATE: (_is_date, "2026-10-26 or 2026-10-26T12:00:00Z"),
    }
)
