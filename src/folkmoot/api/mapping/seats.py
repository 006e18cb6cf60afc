"""Who takes part in an interaction and which runs they may start: as it is sent, and as it is shown."""

from __future__ import annotations

from folkmoot.api.mapping import bindings
from folkmoot.api.mapping.references import reference, shown
from folkmoot.api.mapping.resources import kept
from folkmoot.domain.definitions import AgentBinding
from folkmoot.domain.routers import CandidateKind
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire

_LATER = ("loom_id", "web_access")


def seat_of(request: wire.InteractionAgentBindingRequest, pointer: str, faults: list[Fault]) -> AgentBinding:
    """A text that is no reference adds a fault."""
    return AgentBinding(
        reference(request.agent, f"{pointer}/agent", faults),
        request.name,
        bindings.bindings_of(request.external_operations_mcp, f"{pointer}/externalOperationsMcp", faults),
        bindings.bindings_of(request.external_operations_open_api, f"{pointer}/externalOperationsOpenApi", faults),
        kept(request, _LATER),
        CandidateKind(request.kind) if request.kind is not None else None,
        request.description,
    )


def seat(binding: AgentBinding) -> wire.InteractionAgentBinding:
    """What was stored before there were routers has no kind, and is an agent."""
    later = binding.later
    return wire.InteractionAgentBinding(
        name=binding.name,
        agent=shown(binding.agent),
        external_operations_mcp=bindings.mcp_bindings(binding.external_operations_mcp),
        external_operations_open_api=bindings.open_api_bindings(binding.external_operations_open_api),
        loom_id=later.get("loomId"),
        web_access=later.get("webAccess"),
        kind="Router" if binding.kind is CandidateKind.ROUTER else "Agent",
        description=binding.description,
    )


def swarm_of(request: wire.InteractionSwarmSettingsRequest | None, faults: list[Fault]) -> SwarmSettings | None:
    """A text that is no reference adds a fault."""
    if request is None:
        return None
    return SwarmSettings(
        interactions=tuple(
            reference(link, f"/swarm/interactions/{index}", faults) for index, link in enumerate(request.interactions)
        ),
        participants=request.participants,
        max_depth=request.max_depth,
        max_concurrent=request.max_concurrent,
        max_total=request.max_total,
    )


def swarm(settings: SwarmSettings | None) -> wire.InteractionSwarmSettings | None:
    if settings is None:
        return None
    return wire.InteractionSwarmSettings(
        interactions=tuple(shown(link) for link in settings.interactions),
        participants=settings.participants,
        max_depth=settings.max_depth,
        max_concurrent=settings.max_concurrent,
        max_total=settings.max_total,
    )
