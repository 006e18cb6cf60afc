"""Round-robin interactions: a request as a version, a stored version with all of its fields as it is shown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.api.mapping import bindings, contexts, looms
from folkmoot.api.mapping.budgets import budget, budget_of
from folkmoot.api.mapping.references import reference, refuse, shown
from folkmoot.api.mapping.resources import definition_fields, kept, version_fields
from folkmoot.domain.definitions import (
    AgentBinding,
    ChatMode,
    DataType,
    HumanSettings,
    InteractionVersion,
    PromptInput,
    Reference,
    Rule,
    StoredVersion,
    SystemPromptMode,
)
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire

_LATER = (
    "loom",
    "swarm",
)
_LATER_OF_BINDING = ("loom_id", "web_access")
# Same name, same meaning, same type on both sides.
_SAME = (
    "is_no_action_allowed",
    "is_voting_allowed",
    "is_direct_questioning_allowed",
    "is_solution_proposal_allowed",
    "maximum_no_action_loops",
    "prompt",
    "solution_schema",
    "system_prompts",
    "duration_warning_to_ai",
    "duration_auto_termination",
    "duration_human_timeout",
    "maximum_rounds",
    "credential_stack",
)


def version_of(request: wire.RoundRobinInteractionVersionRequest) -> InteractionVersion:
    """Raises BadInput with a fault for each link that is no reference."""
    faults: list[Fault] = []
    made = InteractionVersion(
        **{name: getattr(request, name) for name in _SAME},
        agents=tuple(_binding_of(binding, f"/agents/{index}", faults) for index, binding in enumerate(request.agents)),
        human_settings=_people_of(request.human_settings),
        external_operations_mcp=bindings.bindings_of(request.external_operations_mcp, "/externalOperationsMcp", faults),
        external_operations_open_api=bindings.bindings_of(
            request.external_operations_open_api, "/externalOperationsOpenApi", faults
        ),
        inputs_connector_authentication_secret=bindings.secret_inputs_of(
            request.inputs_connector_authentication_secret, faults
        ),
        inputs_connector_binding=bindings.binding_inputs_of(request.inputs_connector_binding, faults),
        inputs_prompt=tuple(
            PromptInput(DataType(item.data_type), item.name, item.description, item.is_required)
            for item in request.inputs_prompt
        ),
        system_prompt_mode=SystemPromptMode(request.system_prompt_mode),
        solution_rule=Rule(request.solution_rule),
        vote_rule=Rule(request.vote_rule),
        context_settings=contexts.settings_of(request.context_settings),
        compaction_model=_compaction_model(request.context_settings, faults),
        later=kept(request, _LATER),
        budget=budget_of(request.budget),
    )
    for index, link in enumerate(request.swarm.interactions if request.swarm is not None else ()):
        reference(link, f"/swarm/interactions/{index}", faults)
    refuse(faults)
    return made


def version(stored: StoredVersion) -> wire.RoundRobinInteractionVersion:
    body = stored.body
    assert isinstance(body, InteractionVersion)
    later = body.later
    return wire.RoundRobinInteractionVersion(
        **version_fields(stored),
        **{name: getattr(body, name) for name in _SAME},
        agents=tuple(_binding(binding) for binding in body.agents),
        human_settings=_people(body.human_settings),
        external_operations_mcp=bindings.mcp_bindings(body.external_operations_mcp),
        external_operations_open_api=bindings.open_api_bindings(body.external_operations_open_api),
        inputs_connector_authentication_secret=bindings.secret_inputs(body.inputs_connector_authentication_secret),
        inputs_connector_binding=bindings.binding_inputs(body.inputs_connector_binding),
        inputs_prompt=tuple(
            wire.PromptInput(
                data_type=wire.PromptInputType(item.data_type),
                name=item.name,
                description=item.description,
                is_required=item.is_required,
            )
            for item in body.inputs_prompt
        ),
        system_prompt_mode=wire.InteractionSystemPromptMode(body.system_prompt_mode),
        context_settings=contexts.shown(body.context_settings, body.compaction_model),
        loom=looms.shown(later.get("loom")),
        swarm=_swarm(later.get("swarm")),
        solution_rule=wire.DecisionRule(body.solution_rule),
        vote_rule=wire.DecisionRule(body.vote_rule),
        budget=budget(body.budget),
    )


def interaction(stored: StoredVersion, tenant_id: UUID) -> wire.Interaction:
    """An interaction with its newest version."""
    return wire.Interaction(**definition_fields(stored, tenant_id), type="RoundRobin", latest_version=version(stored))


def _compaction_model(settings: wire.InteractionContextSettingsRequest, faults: list[Fault]) -> Reference | None:
    link = settings.compaction_model
    return reference(link, "/contextSettings/compactionModel", faults) if link is not None else None


def _people_of(request: wire.RoundRobinInteractionHumanSettingsRequest | None) -> HumanSettings | None:
    if request is None:
        return None
    return HumanSettings(ChatMode(request.chat_mode), request.include_in_votes, request.include_in_solutions)


def _people(settings: HumanSettings | None) -> wire.RoundRobinInteractionHumanSettings | None:
    if settings is None:
        return None
    return wire.RoundRobinInteractionHumanSettings(
        chat_mode=wire.ChatMode(settings.chat_mode),
        include_in_votes=settings.include_in_votes,
        include_in_solutions=settings.include_in_solutions,
    )


def _binding_of(request: wire.InteractionAgentBindingRequest, pointer: str, faults: list[Fault]) -> AgentBinding:
    return AgentBinding(
        reference(request.agent, f"{pointer}/agent", faults),
        request.name,
        bindings.bindings_of(request.external_operations_mcp, f"{pointer}/externalOperationsMcp", faults),
        bindings.bindings_of(request.external_operations_open_api, f"{pointer}/externalOperationsOpenApi", faults),
        kept(request, _LATER_OF_BINDING),
    )


def _binding(binding: AgentBinding) -> wire.InteractionAgentBinding:
    later = binding.later
    return wire.InteractionAgentBinding(
        name=binding.name,
        agent=shown(binding.agent),
        external_operations_mcp=bindings.mcp_bindings(binding.external_operations_mcp),
        external_operations_open_api=bindings.open_api_bindings(binding.external_operations_open_api),
        loom_id=later.get("loomId"),
        web_access=later.get("webAccess"),
    )


def _swarm(stored: dict[str, Any] | None) -> wire.InteractionSwarmSettings | None:
    """Its links were settled to ids when the version was published."""
    return wire.InteractionSwarmSettings.model_validate(stored) if stored is not None else None
