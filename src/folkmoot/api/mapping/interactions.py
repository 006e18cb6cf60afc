"""Interactions of both types: a request as a version, a stored version with all of its fields as it is shown."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.api.mapping import bindings, contexts, looms, seats
from folkmoot.api.mapping.budgets import budget, budget_of
from folkmoot.api.mapping.references import reference, refuse
from folkmoot.api.mapping.resources import definition_fields, kept, version_fields
from folkmoot.domain.definitions import (
    ChatMode,
    DataType,
    HumanSettings,
    InteractionType,
    InteractionVersion,
    PromptInput,
    Reference,
    Rule,
    StoredVersion,
    SystemPromptMode,
)
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire

_LATER = ("loom",)
# Same name, same meaning, same type on both sides.
_SAME = (
    "prompt",
    "solution_schema",
    "system_prompts",
    "duration_warning_to_ai",
    "duration_auto_termination",
    "duration_human_timeout",
    "credential_stack",
)
_SAME_OF_ROUND_ROBIN = (
    "is_no_action_allowed",
    "is_voting_allowed",
    "is_direct_questioning_allowed",
    "is_solution_proposal_allowed",
    "maximum_no_action_loops",
    "maximum_rounds",
)
Request = wire.RoundRobinInteractionVersionRequest | wire.ManagedInteractionVersionRequest
Shown = wire.RoundRobinInteractionVersion | wire.ManagedInteractionVersion


def version_of(request: Request) -> InteractionVersion:
    """Raises BadInput with a fault for each link that is no reference."""
    faults: list[Fault] = []
    made = InteractionVersion(
        **{name: getattr(request, name) for name in _SAME},
        **_fields_of_type(request, faults),
        agents=tuple(seats.seat_of(seat, f"/agents/{index}", faults) for index, seat in enumerate(request.agents)),
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
        context_settings=contexts.settings_of(request.context_settings),
        compaction_model=_compaction_model(request.context_settings, faults),
        swarm=seats.swarm_of(request.swarm, faults),
        later=kept(request, _LATER),
        budget=budget_of(request.budget),
    )
    refuse(faults)
    return made


def _fields_of_type(request: Request, faults: list[Fault]) -> dict[str, Any]:
    if isinstance(request, wire.ManagedInteractionVersionRequest):
        return {
            "type": InteractionType.MANAGED,
            "manager": seats.seat_of(request.manager, "/manager", faults),
            "maximum_concurrent_dispatches": request.maximum_concurrent_dispatches,
        }
    return {
        **{name: getattr(request, name) for name in _SAME_OF_ROUND_ROBIN},
        "solution_rule": Rule(request.solution_rule),
        "vote_rule": Rule(request.vote_rule),
    }


def version(stored: StoredVersion) -> Shown:
    body = stored.body
    assert isinstance(body, InteractionVersion)
    shared = {**version_fields(stored), **_shared(body)}
    if body.type is InteractionType.MANAGED:
        assert body.manager is not None
        return wire.ManagedInteractionVersion(
            **shared,
            type="Managed",
            manager=seats.seat(body.manager),
            maximum_concurrent_dispatches=body.maximum_concurrent_dispatches,
        )
    return wire.RoundRobinInteractionVersion(
        **shared,
        **{name: getattr(body, name) for name in _SAME_OF_ROUND_ROBIN},
        type="RoundRobin",
        solution_rule=wire.DecisionRule(body.solution_rule),
        vote_rule=wire.DecisionRule(body.vote_rule),
    )


def _shared(body: InteractionVersion) -> dict[str, Any]:
    return {
        **{name: getattr(body, name) for name in _SAME},
        "agents": tuple(seats.seat(binding) for binding in body.agents),
        "human_settings": _people(body.human_settings),
        "external_operations_mcp": bindings.mcp_bindings(body.external_operations_mcp),
        "external_operations_open_api": bindings.open_api_bindings(body.external_operations_open_api),
        "inputs_connector_authentication_secret": bindings.secret_inputs(body.inputs_connector_authentication_secret),
        "inputs_connector_binding": bindings.binding_inputs(body.inputs_connector_binding),
        "inputs_prompt": tuple(
            wire.PromptInput(
                data_type=wire.PromptInputType(item.data_type),
                name=item.name,
                description=item.description,
                is_required=item.is_required,
            )
            for item in body.inputs_prompt
        ),
        "system_prompt_mode": wire.InteractionSystemPromptMode(body.system_prompt_mode),
        "context_settings": contexts.shown(body.context_settings, body.compaction_model),
        "loom": looms.shown(body.later.get("loom")),
        "swarm": seats.swarm(body.swarm),
        "budget": budget(body.budget),
    }


def interaction(stored: StoredVersion, tenant_id: UUID) -> wire.Interaction:
    """An interaction with its newest version."""
    latest = version(stored)
    return wire.Interaction(**definition_fields(stored, tenant_id), type=latest.type, latest_version=latest)


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
