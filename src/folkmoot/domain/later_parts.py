"""What this version stores but cannot run yet, field by field, with the part that brings it.

A start that needs such a field is refused, never run without it. Deliberately absent: any effect of these fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.credentials import CredentialStackVersion
from folkmoot.domain.definitions import (
    AgentVersion,
    AiModelVersion,
    InteractionVersion,
    Version,
)
from folkmoot.domain.routers import RouterVersion
from folkmoot.domain.schema_documents import step
from folkmoot.kernel.errors import Fault

Json = Any

_MEMORY = "memory, web and knowledge"

_PARTS = {
    "loom": _MEMORY,
    "loomId": _MEMORY,
    "webAccess": _MEMORY,
}


def later_fields(version: Version) -> tuple[Fault, ...]:
    """A fault for each field that is set and not built yet; pointers are into the version. () if a start can honour it all."""
    match version:
        case InteractionVersion():
            return tuple(_of_interaction(version))
        case AgentVersion():
            return tuple(_of_mapping("", version.later))
        case (
            AiModelVersion()
            | RouterVersion()
            | McpConnectorVersion()
            | OpenApiConnectorVersion()
            | CredentialStackVersion()
            | ChannelVersion()
        ):
            return ()


def _of_interaction(version: InteractionVersion) -> Iterator[Fault]:
    for pointer, binding in version.placed:
        yield from _of_mapping(pointer, binding.later)
    yield from _of_mapping("", version.later)


def _of_mapping(pointer: str, later: Mapping[str, Json]) -> Iterator[Fault]:
    for name, value in later.items():
        if _is_set(value):
            yield _fault(step(pointer, name), _PARTS.get(name))


def _fault(pointer: str, part: str | None) -> Fault:
    name = pointer.rsplit("/", 1)[-1]
    which = f" ({part})" if part else ""
    return Fault(
        pointer, f"'{name}' is stored, but comes to work with a later part{which}. Leave it out to start a run now."
    )


def _is_set(value: Json) -> bool:
    """Whether a value asks for something: not null, false, empty, a switched-off object, or one of such values alone."""
    if isinstance(value, Mapping):
        return value.get("enabled") is not False and any(_is_set(inner) for inner in value.values())
    return not (value is None or value is False or value in ("", [], ()))
