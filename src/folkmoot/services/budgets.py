"""Budgets of a tenant's day: shown, set, and asked before a start. Whether a run's models can be held to a budget of money.

Deliberately absent: what is set aside for a call (`runtime.budgets`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from folkmoot.domain.budgets import Budget, DayBudget, shown_money
from folkmoot.domain.costs import Prices, most_it_can_cost
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BudgetSpent, Fault
from folkmoot.store import audit, budgets
from folkmoot.store.database import Database, Reader


async def show(database: Database, caller: Caller) -> DayBudget:
    """The tenant's budget of the day, which may limit nothing, with what today's calls have used."""
    async with database.reader() as reader:
        return await budgets.day(reader, caller.tenant_id)


async def save(database: Database, caller: Caller, *, budget: Budget) -> DayBudget:
    """Set what the tenant may use in a day; workers hear of it within seconds."""
    async with database.writer() as writer:
        await budgets.save(writer, caller.tenant_id, budget=budget)
        detail = {
            "tokensPerDay": budget.tokens,
            "moneyPerDay": str(budget.money) if budget.money is not None else None,
        }
        await audit.note(
            writer, caller, action="budget.set", subject_kind="tenant", subject_id=caller.tenant_id, detail=detail
        )
        return await budgets.day(writer, caller.tenant_id)


async def refuse_where_used_up(reader: Reader, caller: Caller) -> Budget | None:
    """The tenant's budget of the day, null without one. Raises BudgetSpent where nothing is left of it."""
    limits = await budgets.limits(reader, caller.tenant_id)
    if limits is None:
        return None
    found = await budgets.day(reader, caller.tenant_id)
    if found.is_used_up:
        raise BudgetSpent(_words(found), retry_after_seconds=math.ceil((found.ends_at - found.now).total_seconds()))
    return limits


def _words(found: DayBudget) -> str:
    used, budget = found.spent.used, found.budget
    parts = []
    if budget.tokens is not None:
        parts.append(f"{used.tokens:,} of {budget.tokens:,} tokens")
    if budget.money is not None:
        parts.append(f"{shown_money(used.money)} of {shown_money(budget.money)}")
    return (
        f"The tenant's budget of the day is used up ({', '.join(parts)}). Let an owner or admin raise it "
        f"(`folkmoot budget set`), or start again after {found.ends_at:%Y-%m-%d %H:%M} UTC."
    )


def unpriced(
    resolved: ResolvedInteraction, day: Budget | None, prices_of: Callable[[ModelChoice], Prices]
) -> Iterator[Fault]:
    """A fault for each model that has no known price, where a budget limits money."""
    above = (
        "budget of a run above",
        next((b.budget for b in resolved.budgets_above if b.budget.money is not None), None),
    )
    whose = [
        title
        for title, budget in (("run's budget", resolved.budget), above, ("tenant's budget of the day", day))
        if budget is not None and budget.money is not None
    ]
    if not whose:
        return
    variants = [variant for participant in resolved.participants for variant in participant.variants]
    asked = [
        *((f"agent '{p.agent_name}'", model) for p in variants for model in (p.model, p.compaction_model)),
        *((f"router '{router.name}'", router.model) for p in resolved.participants for router in p.routers),
    ]
    for whose_model, model in asked:
        if model is not None and most_it_can_cost(1, 1, prices_of(model)) is None:
            words = (
                f"The {' and the '.join(whose)} limits money, and no price is known of model '{model.model_name}' "
                f"({whose_model}). "
                "Give the model prices for input and output, or take the money out of the budget."
            )
            yield Fault("", words)
