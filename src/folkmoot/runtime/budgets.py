"""Reserves the most that a call can use before it is sent: of its run's budget, of those of the runs above, and of its tenant's of the day.

Where neither has one nothing is asked of the database. A call for which only what is set aside for others leaves no room waits for
them; one that could use more than is left at all is not made, and its run fails. Deliberately absent: the count (`store.budgets`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

from folkmoot.domain.budgets import Amounts, Budget, BudgetAbove, Room, Spent, refusal, reply_bound, room
from folkmoot.domain.costs import most_it_can_cost
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import FailureClass, ModelFailure, ModelRequest
from folkmoot.runtime.workshop import Workshop
from folkmoot.store import budgets
from folkmoot.store.budgets import CallAtHand
from folkmoot.store.database import Writer

FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0
_MARGIN = 1.25  # an estimate of a prompt is no bound of it
_OF_RUN = "Start a run with a higher budget, or raise the interaction's."
_OF_TENANT = "Let an owner or admin raise it (`folkmoot budget set`), or start a run after midnight, UTC."
_UNPRICED = (
    "The {whose} limits money, and no price of model '{model}' is known, so that a call cannot be held to it. Give the model prices, "
    "or take the money out of the budget."
)


@dataclass(frozen=True, slots=True)
class _Held:
    """A budget that a call must be held to."""

    whose: str
    budget: Budget
    spent: Spent
    advice: str


async def reserved(
    workshop: Workshop, tenant_id: UUID, run_id: UUID, request: ModelRequest, *, model_call_id: UUID, resolved: ResolvedInteraction
) -> ModelRequest | ModelFailure:  # fmt: skip
    """The request, its reply bounded where a budget holds and room was found; else why it is not made."""
    has_day = await workshop.tenant_budgets.has_any(workshop.database, tenant_id)
    of_runs = resolved.budgets_above
    if resolved.budget is not None:
        of_runs = (*of_runs, BudgetAbove(run_id, resolved.budget))
    if not of_runs and not has_day:
        return request
    bounded = request
    if has_day or any(each.budget.counts_tokens for each in of_runs):
        bounded = replace(request, sampling=replace(request.sampling, max_tokens=_reply_tokens(request)))
    wait_seconds = FIRST_WAIT_SECONDS
    while True:
        async with workshop.database.writer() as writer:
            call = await budgets.call_at_hand(writer, tenant_id, run_id=run_id, model_call_id=model_call_id)
            held = await _held(writer, tenant_id, call, run_id=run_id, of_runs=of_runs, has_day=has_day)
            found = _room(workshop, bounded, call, held)
            if isinstance(found, Amounts):
                await budgets.reserve(writer, tenant_id, run_id=run_id, model_call_id=model_call_id, amounts=found)
                return bounded
        if found is not None:
            return found
        await asyncio.sleep(wait_seconds)
        wait_seconds = min(wait_seconds * 2, LONGEST_WAIT_SECONDS)
        workshop.must_act("no model is called")


async def _held(
    writer: Writer, tenant_id: UUID, call: CallAtHand, *, run_id: UUID, of_runs: Sequence[BudgetAbove], has_day: bool
) -> list[_Held]:
    """The budgets that hold, each locked before it is looked at: the tree's, with those of its subtrees, then the tenant's."""
    held = []
    if of_runs:
        await budgets.lock(writer, call.root)
    for each in of_runs:
        spent = await budgets.subtree(writer, tenant_id, top=each.run_id)
        whose = "run's budget" if each.run_id == run_id else f"budget that it shares with the run {each.run_id}"
        held.append(_Held(whose, each.budget, spent, _OF_RUN))
    if has_day:
        await budgets.lock(writer, tenant_id)
        day = await budgets.day(writer, tenant_id)
        if day.budget.is_limit:
            held.append(_Held("tenant's budget of the day", day.budget, day.spent, _OF_TENANT))
    return held


def _room(
    workshop: Workshop, request: ModelRequest, call: CallAtHand, held: list[_Held]
) -> Amounts | ModelFailure | None:
    """What to set aside; a failure where a budget has no room; null where it will have once others are done."""
    prompt = math.ceil(_MARGIN * call.prompt_tokens)
    reply = _reply_tokens(request)
    prices = workshop.prices_of(request.model, call.now, prompt_tokens=prompt)
    money = most_it_can_cost(prompt, reply, prices)
    wanted = Amounts(prompt + reply, money or Decimal(0), calls=1)
    must_wait = False
    for each in held:
        if each.budget.money is not None and money is None:
            words = _UNPRICED.format(whose=each.whose, model=request.model.model_name)
            return ModelFailure(FailureClass.BUDGET_SPENT, words)
        match room(each.budget, each.spent, wanted):
            case Room.NONE:
                words = refusal(each.whose, each.budget, each.spent, wanted, advice=each.advice)
                return ModelFailure(FailureClass.BUDGET_SPENT, words)
            case Room.LATER:
                must_wait = True
            case Room.NOW:
                pass
    return None if must_wait else wanted


def _reply_tokens(request: ModelRequest) -> int:
    return reply_bound(request.sampling.max_tokens, request.model.largest_response)
