"""The inputs that a run is given: whether all are there, none is unknown, and each has its type.

Values are text; numbers, booleans and JSON are JSON text. Deliberately absent: inputs of connectors, as yet.
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
from folkmoot.kernel.errors import Fault

# RFC 3339; a leap second is no time that Python has, and no date that anybody means.
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def faults_of_inputs(inputs: tuple[PromptInput, ...], given: Mapping[str, str]) -> tuple[Fault, ...]:
    """What is wrong with the values given for `inputs`. Pointers: `/inputs` for a missing one, else `/inputs/NAME`."""
    return tuple(_faults(inputs, given))


def _faults(inputs: tuple[PromptInput, ...], given: Mapping[str, str]) -> Iterator[Fault]:
    declared = {item.name: item for item in inputs}
    for name in given:
        if name not in declared:
            known = ", ".join(f"'{item}'" for item in list(declared)[:40]) or "none"
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
            about = f" ({shortened(item.description, 100)})" if item.description else ""
            yield Fault("/inputs", f"The required input '{item.name}'{about} is missing; give it a value.")


def _problem(item: PromptInput, value: str) -> str | None:
    if len(value) > MAX_CHARACTERS:
        return f"The input '{item.name}' has {len(value):,} characters; at most {MAX_CHARACTERS:,} are allowed."
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
