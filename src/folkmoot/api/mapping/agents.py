"""Agents: a request as a version, a stored version as it is shown."""

from __future__ import annotations

import re
from uuid import UUID

from folkmoot.api.mapping import bindings, budgets, looms
from folkmoot.api.mapping.references import reference, refuse, shown
from folkmoot.api.mapping.resources import definition_fields, kept, version_fields
from folkmoot.domain.agent_settings import AgentRunSettings, Comparison, ConsentRule
from folkmoot.domain.definitions import AgentVersion, StoredVersion
from folkmoot.domain.model_calls import Sampling
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire

_LATER = ("web_access", "loom_id", "loom")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def version_of(request: wire.AgentVersionRequest) -> AgentVersion:
    """Raises BadInput where `model` or a specialist is no reference."""
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
        runs=_runs_of(request, faults),
    )
    refuse(faults)
    return made


def _runs_of(request: wire.AgentVersionRequest, faults: list[Fault]) -> AgentRunSettings:
    is_id = request.owner is not None and _UUID.fullmatch(request.owner) is not None
    return AgentRunSettings(
        owner=UUID(request.owner) if is_id else None,
        tool_whitelist=request.tool_whitelist,
        specialists=tuple(
            reference(link, f"/specialists/{index}", faults) for index, link in enumerate(request.specialists)
        ),
        consent_rules=tuple(
            ConsentRule(rule.tool, Comparison(rule.comparison), rule.argument, rule.value)
            for rule in request.consent_rules
        ),
        maximum_iterations=request.maximum_iterations,
        budget=budgets.agent_budget_of(request.agent_budget),
        channel=request.channel,
        consent_time=request.consent_time,
        owner_name=None if is_id else request.owner,
    )


def version(stored: StoredVersion) -> wire.AgentVersion:
    body = stored.body
    assert isinstance(body, AgentVersion)
    later, runs = body.later, body.runs
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
        owner=runs.owner,
        tool_whitelist=runs.tool_whitelist,
        specialists=tuple(shown(link) for link in runs.specialists),
        consent_rules=tuple(
            wire.ConsentRule.model_validate(
                {"tool": rule.tool, "argument": rule.argument, "comparison": rule.comparison.value, "value": rule.value}
            )
            for rule in runs.consent_rules
        ),
        maximum_iterations=runs.maximum_iterations,
        agent_budget=budgets.agent_budget(runs.budget),
        channel=runs.channel,
        consent_time=runs.consent_time,
    )


def agent(stored: StoredVersion, tenant_id: UUID) -> wire.Agent:
    """An agent with its newest version."""
    return wire.Agent(**definition_fields(stored, tenant_id), latest_version=version(stored))
