"""The interactions that participants may start, as a run is pinned to them: exact versions, names, and what each is given.

Deliberately absent: what those resolve to; a sub-run's own start does that.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import DataType, DefinitionKind, InteractionVersion, StoredVersion
from folkmoot.domain.schema_reports import shortened
from folkmoot.domain.swarms import DEFAULT_LIMITS, PinnedSwarm, StartableInteraction, SwarmLimits, SwarmSettings
from folkmoot.kernel.errors import Fault
from folkmoot.services import references
from folkmoot.store.database import Reader

Json = Any

_DESCRIPTION_CHARACTERS = 200
_TYPES: dict[DataType, dict[str, Json]] = {
    DataType.STRING: {"type": "string"},
    DataType.NUMBER: {"type": "number"},
    DataType.INTEGER: {"type": "integer"},
    DataType.BOOLEAN: {"type": "boolean"},
    DataType.JSON: {},
    DataType.DATE: {"type": "string", "format": "date"},
}


async def pinned_swarm(
    reader: Reader, tenant_id: UUID, *, settings: SwarmSettings, namespace: str, faults: list[Fault]
) -> PinnedSwarm:
    """What cannot be started adds a fault."""
    found: list[StoredVersion] = []
    for link in settings.interactions:
        stored = await references.enabled(
            reader, tenant_id, kind=DefinitionKind.INTERACTION, reference=link, namespace=namespace
        )
        if isinstance(stored, str):
            faults.append(Fault("", f"Participants could not start an interaction of the swarm. {stored}"))
        else:
            faults += _secret_faults(stored)
            found.append(stored)
    counts = Counter(stored.definition.name for stored in found)
    return PinnedSwarm(
        interactions=tuple(_startable(stored, is_alone=counts[stored.definition.name] == 1) for stored in found),
        participants=settings.participants,
        limits=SwarmLimits(
            settings.max_depth or DEFAULT_LIMITS.max_depth,
            settings.max_concurrent or DEFAULT_LIMITS.max_concurrent,
            settings.max_total or DEFAULT_LIMITS.max_total,
        ),
    )


def _startable(stored: StoredVersion, *, is_alone: bool) -> StartableInteraction:
    """`is_alone`: no other one of the swarm bears its name; else both are told by namespace and name."""
    definition, body = stored.definition, stored.body
    assert isinstance(body, InteractionVersion)
    return StartableInteraction(
        name=definition.name if is_alone else f"{definition.namespace}/{definition.name}",
        namespace=definition.namespace,
        interaction_id=definition.definition_id,
        version=stored.number,
        description=shortened(" ".join(body.prompt.split()), _DESCRIPTION_CHARACTERS),
        inputs_schema=json.dumps(_inputs_schema(body), ensure_ascii=False, separators=(",", ":")),
    )


def _inputs_schema(body: InteractionVersion) -> dict[str, Json]:
    """Of its inputs of prompts and of calls. Secrets are none: no participant chooses one."""
    properties: dict[str, dict[str, Json]] = {}
    required: list[str] = []
    for prompt in body.inputs_prompt:
        properties[prompt.name] = _described(_TYPES[prompt.data_type], prompt.description)
        required += [prompt.name] if prompt.is_required else []
    for bound in body.inputs_connector_binding:  # one name may be an input of prompts and of several calls
        properties.setdefault(bound.name, _described({"type": "string"}, bound.description))
        required += [bound.name] if bound.is_required and bound.default_value is None else []
    return {
        "type": "object",
        "properties": properties,
        "required": list(dict.fromkeys(required)),
        "additionalProperties": False,
    }


def _described(schema: dict[str, Json], description: str | None) -> dict[str, Json]:
    return {**schema, "description": description} if description else schema


def _secret_faults(stored: StoredVersion) -> list[Fault]:
    body = stored.body
    assert isinstance(body, InteractionVersion)
    title = f"{stored.definition.namespace}/{stored.definition.name}"
    return [
        Fault(
            "",
            f"Participants could not start the interaction '{title}': its input '{item.name}' takes a secret, which only people "
            "choose. Give the input a default, or take the interaction out of the swarm.",
        )
        for item in body.inputs_connector_authentication_secret
        if item.is_required and item.default_secret is None
    ]
