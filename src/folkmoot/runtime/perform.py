"""Performs one step: the only I/O of a drive. Returns a value, also for failure; raises only when it is cancelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.approvals import final_call
from folkmoot.domain.calls import CallResult
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import FailureClass, ModelFailure, ModelReply, ModelRequest
from folkmoot.domain.runs import Claim
from folkmoot.engine.step import AskModel, RunCall
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import FolkmootError, LeaseLost
from folkmoot.runtime import budgets, large_results
from folkmoot.runtime.model_access import opened
from folkmoot.runtime.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of a model call."""

    step: AskModel
    model_call_id: UUID
    outcome: ModelReply | ModelFailure


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a tool call."""

    step: RunCall
    result: CallResult


Performed = Asked | Called


async def ask(
    workshop: Workshop, claim: Claim, step: AskModel, *, resolved: ResolvedInteraction, request: ModelRequest, model_call_id: UUID
) -> Asked:  # fmt: skip
    """Ask a participant's model once, if there is room for it in the budgets."""
    if not workshop.may_act():
        raise LeaseLost("The worker's lease was not renewed in time; no model is called under it.")
    allowed = await budgets.reserved(
        workshop, claim.tenant_id, claim.run_id, request, model_call_id=model_call_id, budget=resolved.budget
    )
    if isinstance(allowed, ModelFailure):
        return Asked(step, model_call_id, allowed)
    request = allowed
    fault_points.reach("before_model_call")
    reply = workshop.watched.reply(
        claim.run_id, model_call_id=model_call_id, step_key=step.key, participant=step.participant, attempt=step.attempt
    )
    try:
        adapter, access = workshop.models.adapter_of(request.model), opened(workshop, request.model)
        outcome: ModelReply | ModelFailure
        if isinstance(access, ModelFailure):
            outcome = access
        else:
            outcome = await adapter.ask(replace(request, access=access), reply.add if reply.is_read else None)
    except FolkmootError as error:
        outcome = ModelFailure(FailureClass.INVALID_REQUEST, str(error))
    finally:
        reply.flush()
    fault_points.reach("after_model_call")
    return Asked(step, model_call_id, outcome)


async def call(workshop: Workshop, claim: Claim, step: RunCall) -> Called:
    """Make a tool call that is recorded as begun. What is too large for the conversation is kept before it is committed."""
    if not workshop.may_act():
        raise LeaseLost("The worker's lease was not renewed in time; no tool is called under it.")
    fault_points.reach("before_call")
    final = final_call(step.tool, step.call.arguments_json)
    result = await workshop.tools.call(
        step.tool, final.arguments, call_id=step.call.call_id, tenant_id=claim.tenant_id, run_id=claim.run_id
    )
    fault_points.reach("after_call")
    return Called(step, await large_results.kept(workshop, claim, result, tool=step.tool))
