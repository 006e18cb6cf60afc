"""Performs one step: the only I/O of a drive. Returns a value, also for failure; raises only when it is cancelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.approvals import final_call
from folkmoot.domain.calls import CallResult, DelegateTarget
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import FailureClass, Held, ModelFailure, ModelReply, ModelRequest
from folkmoot.domain.runs import Claim
from folkmoot.engine.step import AskModel, RunCall
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import FolkmootError
from folkmoot.runtime import budgets, large_results, model_access
from folkmoot.runtime.model_access import Opened
from folkmoot.runtime.workshop import Workshop


@dataclass(frozen=True, slots=True)
class Asked:
    """The outcome of a model call. `key_rests`: its key failed and is not taken again for now, so the next can be tried at once."""

    step: AskModel
    model_call_id: UUID
    outcome: ModelReply | ModelFailure | Held
    key_rests: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """The outcome of a tool call."""

    step: RunCall
    result: CallResult


Performed = Asked | Called


async def ask(
    workshop: Workshop, claim: Claim, step: AskModel, *, resolved: ResolvedInteraction, request: ModelRequest, model_call_id: UUID
) -> Asked:  # fmt: skip
    """Ask a participant's model once, if there is room for it in the budgets, with the first key that can be used now.

    Held where none can just now.
    """
    workshop.must_act("no model is called")
    allowed = await budgets.reserved(
        workshop, claim.tenant_id, claim.run_id, request, model_call_id=model_call_id, resolved=resolved
    )
    if isinstance(allowed, ModelFailure):
        return Asked(step, model_call_id, allowed)
    request = allowed
    fault_points.reach("before_model_call")
    opened = await model_access.opened(
        workshop, claim, resolved=resolved, step=step, model=request.model, model_call_id=model_call_id
    )
    if not isinstance(opened, Opened):
        return Asked(step, model_call_id, opened)
    workshop.must_act("no model is called")
    outcome = await _sent(workshop, claim, step, request=replace(request, access=opened.access), id_=model_call_id)
    fault_points.reach("after_model_call")
    if not isinstance(outcome, ModelFailure):
        return Asked(step, model_call_id, outcome)
    failure, key_rests = await model_access.failed(workshop, claim, opened, outcome, model=request.model)
    if key_rests:
        fault_points.reach("after_key_rests")
    return Asked(step, model_call_id, failure, key_rests)


async def _sent(
    workshop: Workshop, claim: Claim, step: AskModel, *, request: ModelRequest, id_: UUID
) -> ModelReply | ModelFailure:
    reply = workshop.watched.reply(
        claim.run_id, model_call_id=id_, step_key=step.key, participant=step.participant, attempt=step.attempt
    )
    try:
        adapter = workshop.models.adapter_of(request.model)
        return await adapter.ask(request, reply.add if reply.is_read else None)
    except FolkmootError as error:
        return ModelFailure(FailureClass.INVALID_REQUEST, str(error))
    finally:
        reply.flush()


async def refused(step: RunCall, words: str) -> Called:
    """A call that is not made."""
    return Called(step, CallResult(words, is_error=True))


async def call(workshop: Workshop, claim: Claim, step: RunCall) -> Called:
    """Make a tool call that is recorded as begun. What is too large for the conversation is kept before it is committed."""
    workshop.must_act("no tool is called")
    fault_points.reach("before_call")
    final = final_call(step.tool, step.call.arguments_json)
    if isinstance(step.tool.target, DelegateTarget):
        assert workshop.delegations is not None
        result = await workshop.delegations.call(
            final.arguments, call_id=UUID(step.call.call_id), claim=claim, tool_calls_left=step.tool_calls_left
        )
        return Called(step, await large_results.kept(workshop, claim, result, tool=step.tool))
    result = await workshop.tools.call(
        step.tool, final.arguments, call_id=step.call.call_id, claim=claim, participant=step.call.participant,
    )  # fmt: skip
    fault_points.reach("after_call")
    return Called(step, await large_results.kept(workshop, claim, result, tool=step.tool))
