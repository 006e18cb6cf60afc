"""Agents: a request as a version, a stored version as it is shown."""

from __future__ import annotations

from uuid import UUID

from folkmoot.api.mapping import bindings, looms
from folkmoot.api.mapping.references import reference, refuse, shown
from folkmoot.api.mapping.resources import definition_fields, kept, version_fields
from folkmoot.domain.definitions import AgentVersion, StoredVersion
from folkmoot.domain.model_calls import Sampling
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire

_LATER = ("web_access", "loom_id", "loom")


def version_of(request: wire.AgentVersionRequest) -> AgentVersion:
    """Raises BadInput where `model` is no reference."""
    faults: list[Fault] = []
    made = AgentVersion(
        model=reference(request.model, "/model", faults),
        description=request.description,
        prompts=request.prompts,
        settings=Sampling(
            temperature=request.settings.temperature,
            top_p=request.settings.top_p,
            seed=request.settings.seed,
            max_tokens=request.settings.max_tokens,
        ),
        function_tools=request.function_tools,
        external_operations_mcp=bindings.bindings_of(request.external_operations_mcp, "/externalOperationsMcp", faults),
        external_operations_open_api=bindings.bindings_of(
            request.external_operations_open_api, "/externalOperationsOpenApi", faults
        ),
        later=kept(request, _LATER),
    )
    refuse(faults)
    return made


def version(stored: StoredVersion) -> wire.AgentVersion:
    body = stored.body
    assert isinstance(body, AgentVersion)
    later = body.later
    return wire.AgentVersion(
        **version_fields(stored),
        description=body.description,
        prompts=body.prompts,
        model=shown(body.model),
        settings=wire.SamplingSettings(
            temperature=body.settings.temperature,
            top_p=body.settings.top_p,
            seed=body.settings.seed,
            max_tokens=body.settings.max_tokens,
        ),
        function_tools=body.function_tools,
        external_operations_mcp=bindings.mcp_bindings(body.external_operations_mcp),
        external_operations_open_api=bindings.open_api_bindings(body.external_operations_open_api),
        web_access=later.get("webAccess"),
        loom_id=later.get("loomId"),
        loom=looms.shown(later.get("loom")),
    )


def agent(stored: StoredVersion, tenant_id: UUID) -> wire.Agent:
    """An agent with its newest version."""
    return wire.Agent(**definition_fields(stored, tenant_id), latest_version=version(stored))
