"""What changes from one version of a definition to the next, field by field, by the names that people know.

Deliberately absent: how differences are printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_settings import AgentBudget, AgentRunSettings
from folkmoot.domain.definitions import Reference, Version
from folkmoot.domain.routers import CandidateKind
from folkmoot.domain.schema_documents import step

Json = Any

SPREAD = ("later", "server", "runs")  # fields whose own fields stand among the others on the wire
UNSAID = CandidateKind.AGENT  # what a link of a participant leads to where nothing else is said
NESTED = {"compactionModel": "contextSettings"}  # fields that stand inside another one on the wire
_RENAMED = {(AgentRunSettings, "budget"): "agentBudget", (AgentBudget, "calls"): "modelCalls"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One field. `pointer` is into the version; null stands for a value that is not there."""

    pointer: str
    before: Json
    after: Json


def differences(before: Version, after: Version) -> tuple[Difference, ...]:
    """The fields that differ, in the order of the version's fields.

    References are told by name; only where nothing else differs, by the id of what bears that name now.
    """
    by_name = tuple(_between("", _plain(before, shown=named), _plain(after, shown=named)))
    return by_name or tuple(_between("", _plain(before, shown=str), _plain(after, shown=str)))


def _between(pointer: str, before: Json, after: Json) -> Iterator[Difference]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            yield from _between(step(pointer, name), before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list):
        for index in range(max(len(before), len(after))):
            pair = (part[index] if index < len(part) else None for part in (before, after))
            yield from _between(step(pointer, index), *pair)
    elif before != after:
        yield Difference(pointer, before, after)


def _plain(value: Any, *, shown: Callable[[Reference], str]) -> Json:
    match value:
        case Reference():
            return shown(value)
        case timedelta():
            return _span(value)
        case Decimal():
            return float(value)
        case Enum():
            return value.value
        case UUID():
            return str(value)
        case Mapping():
            return {str(name): _plain(part, shown=shown) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part, shown=shown) for part in value]
        case _ if is_dataclass(value):
            return _fields(value, shown=shown)
        case _:
            return value


def _fields(value: Any, *, shown: Callable[[Reference], str]) -> dict[str, Json]:
    """Fields by their wire names; what is kept for later parts, and a connector's server, stand among the others, as on the wire."""
    plain: dict[str, Json] = {}
    for field in fields(value):
        whole = getattr(value, field.name)
        part = _plain(whole, shown=shown)
        if part in ([], None) or whole is UNSAID:
            continue  # nothing listed is as if nothing was said
        plain.update(part if field.name in SPREAD else {field_name(type(value), field.name): part})
    for name, place in NESTED.items():
        if name in plain:
            plain[place] = {**plain[place], name: plain.pop(name)}
    return plain


def named(reference: Reference) -> str:
    """As people write it: by name, where it has one."""
    if reference.name is None:
        return str(reference)
    place = f"{reference.namespace}/" if reference.namespace else ""
    return f"{place}{reference.name}" + (f"@{reference.version}" if reference.version else "")


def _span(span: timedelta) -> str:
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    counts = ((span.days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in counts if count) or f"{span.microseconds / 1000:g}ms"


def field_name(of: type, name: str) -> str:
    """The name of a dataclass's field as the wire has it."""
    return _RENAMED.get((of, name)) or wire_name(name)


def wire_name(name: str) -> str:
    """A name in the wire's spelling."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)
