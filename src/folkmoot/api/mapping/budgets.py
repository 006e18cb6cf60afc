"""Budgets of runs. One that limits nothing is none."""

from __future__ import annotations

from folkmoot.domain.budgets import Budget
from folkmoot.wire import definitions as wire


def budget_of(request: wire.InteractionBudgetRequest | None) -> Budget | None:
    if request is None:
        return None
    made = Budget(request.tokens, request.money, request.calls)
    return made if made.is_limit else None


def budget(found: Budget | None) -> wire.InteractionBudget | None:
    return (
        wire.InteractionBudget(tokens=found.tokens, money=found.money, calls=found.calls) if found is not None else None
    )
