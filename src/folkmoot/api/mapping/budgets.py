"""Budgets of runs. One that limits nothing is none."""

from __future__ import annotations

from decimal import Decimal

from folkmoot.domain.agent_settings import AgentBudget
from folkmoot.domain.budgets import Budget
from folkmoot.wire import definitions as wire


def budget_of(request: wire.InteractionBudgetRequest | None) -> Budget | None:
    if request is None:
        return None
    made = Budget(request.tokens, _amount(request.money), request.calls)
    return made if made.is_limit else None


def budget(found: Budget | None) -> wire.InteractionBudget | None:
    return (
        wire.InteractionBudget(tokens=found.tokens, money=found.money, calls=found.calls) if found is not None else None
    )


def agent_budget_of(request: wire.AgentBudgetRequest | None) -> AgentBudget:
    if request is None:
        return AgentBudget()
    return AgentBudget(
        tokens=request.tokens,
        money=_amount(request.money),
        calls=request.model_calls,
        tool_calls=request.tool_calls,
        working_time=request.working_time,
    )


def agent_budget(found: AgentBudget) -> wire.AgentBudget:
    return wire.AgentBudget(
        tokens=found.tokens,
        money=found.money,
        model_calls=found.calls,
        tool_calls=found.tool_calls,
        working_time=found.working_time,
    )


def _amount(given: Decimal | None) -> Decimal | None:
    """In one spelling, so that 10 and 10.0 are the same version."""
    return Decimal(f"{given.normalize():f}") if given is not None else None
