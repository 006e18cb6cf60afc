"""Proposed answers: read from a call, held against the schema, and written as the run's output will carry them.

Deliberately absent: the vote on one (`voting`).
"""

from __future__ import annotations

import json
from typing import Any

from folkmoot.domain import items
from folkmoot.domain.json_text import Unreadable, read_json
from folkmoot.domain.schemas import compile_schema, parse_arguments
from folkmoot.engine import instructions
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.tools_offered import ARGUMENT_OF_ANSWER

_FREE = '{"type": "string", "minLength": 1}'


def proposed(
    seating: Seating, protocol: Protocol, call: items.ProtocolCall, *, proposer: str
) -> tuple[str, str | None]:
    """The answer that a call gives, and why it does not stand, as a sentence; null where it does."""
    arguments = parse_arguments(call.arguments_json)
    if isinstance(arguments, str):
        return "", f"The arguments of {call.name} do not parse: {arguments}"
    argument = ARGUMENT_OF_ANSWER[call.name]
    faults = compile_schema(_call_schema(argument, is_free=seating.solution_validator is None)).faults(arguments)
    if faults:
        return "", f"The arguments of {call.name} do not fit: {joined(faults)} Call it again with arguments that do."
    value, faults = _fitting(seating, arguments[argument])
    if faults:
        return "", f"The {argument} does not fit its schema: {joined(faults)} Call {call.name} with one that does."
    text = solution_text(seating, value)
    if protocol.is_rejected(seating.answer_key(text), proposer):
        return text, instructions.SAME_ANSWER
    return text, None


def in_words(seating: Seating, text: str) -> tuple[str, str | None]:
    """The answer that stands in plain words, for a manager that gives it so, and why it does not stand; null where it does (B33)."""
    if seating.solution_validator is None:
        return text, None
    value, faults = _fitting(seating, _json_of(text))
    return (
        (solution_text(seating, value), None) if not faults else ("", f"It does not fit its schema: {joined(faults)}")
    )


def _json_of(text: str) -> Any:
    """The value that words are, in a code fence or not; else the words."""
    lines = text.strip().splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    try:
        return read_json("\n".join(lines[1:-1]) if is_fenced else text)
    except Unreadable:
        return text


def _call_schema(argument: str, *, is_free: bool) -> str:
    value = _FREE if is_free else "true"
    return f'{{"type": "object", "additionalProperties": false, "required": ["{argument}"], "properties": {{"{argument}": {value}}}}}'


def joined(faults: tuple[str, ...]) -> str:
    """Faults, of which some are sentences and some are not, as one sentence."""
    return "; ".join(fault.rstrip(".") for fault in faults) + "."


def _fitting(seating: Seating, value: Any) -> tuple[Any, tuple[str, ...]]:
    """The value with its faults. An object that came as text, as some models send it, is read (B33)."""
    validator = seating.solution_validator
    faults = validator.faults(value) if validator is not None else ()
    if validator is not None and faults and isinstance(value, str) and value.strip():
        inner = parse_arguments(value)
        if isinstance(inner, dict) and not validator.faults(inner):
            return inner, ()
    return value, faults


def solution_text(seating: Seating, value: Any) -> str:
    """A solution as the item and the output carry it: JSON text under a schema, else the text itself."""
    if seating.solution_validator is None:
        return str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
