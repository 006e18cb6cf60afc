"""Budgets: what a tenant may use in a day, and what is set aside for a call before it is sent.

What was used is counted from the model calls themselves, each with what was set aside for it: after a crash there is no other count
to be put right. Whoever reserves holds the budget's lock from looking to the end of the transaction. Deliberately absent: prices,
and what becomes of a call that finds no room (`runtime.budgets`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.budgets import Amounts, Budget, DayBudget, Spent
from folkmoot.domain.model_calls import NEVER_MADE, FailureClass
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("budgets")


async def tenants(reader: Reader) -> frozenset[UUID]:
    """Those that have a budget of the day."""
    return frozenset([row["tenant_id"] async for row in _sql.tenants(reader.connection)])


async def save(writer: Writer, tenant_id: UUID, *, budget: Budget) -> None:
    await _sql.save(writer.connection, tenant_id=tenant_id, tokens=budget.tokens, money=budget.money)


async def limits(reader: Reader, tenant_id: UUID) -> Budget | None:
    """A tenant's budget of the day; null where nothing is limited."""
    row = await _sql.limits(reader.connection, tenant_id=tenant_id)
    return Budget(row["tokens_per_day"], row["money_per_day"]) if row is not None else None


async def day(reader: Reader, tenant_id: UUID) -> DayBudget:
    """A tenant's budget, which may limit nothing, with what today's calls have used."""
    row = await _sql.day(reader.connection, tenant_id=tenant_id, lost=FailureClass.LOST)
    return DayBudget(Budget(row["tokens_per_day"], row["money_per_day"]), _spent(row), row["now"], row["ends_at"])


async def subtree(reader: Reader, tenant_id: UUID, *, top: UUID) -> Spent:
    """What the calls of a run, and of all that it started, have used."""
    row = await _sql.subtree(
        reader.connection, tenant_id=tenant_id, top=top, lost=FailureClass.LOST, not_made=sorted(NEVER_MADE)
    )
    spent = _spent(row)
    return Spent(replace(spent.used, calls=row["used_calls"]), replace(spent.reserved, calls=row["reserved_calls"]))


@dataclass(frozen=True, slots=True)
class CallAtHand:
    """`prompt_tokens`: what its prompt was guessed to hold when the call began, or what that was corrected to: the larger.
    `root`: the topmost run of an interaction above it, or the run itself; runs beside each other under an App run share no budget."""

    prompt_tokens: int
    root: UUID
    now: datetime


async def call_at_hand(reader: Reader, tenant_id: UUID, *, run_id: UUID, model_call_id: UUID) -> CallAtHand:
    row = await _sql.call(reader.connection, tenant_id=tenant_id, run_id=run_id, model_call_id=model_call_id)
    return CallAtHand(row["prompt_tokens"], row["swarm_root_id"], row["now"])


async def lock(writer: Writer, subject: UUID) -> None:
    """Until the transaction ends nobody else reserves of this tenant's or this tree's budget. Lock trees before tenants."""
    await _sql.lock(writer.connection, subject=str(subject))


async def reserve(writer: Writer, tenant_id: UUID, *, run_id: UUID, model_call_id: UUID, amounts: Amounts) -> None:
    """Set aside what a call can use at most; what it has used takes its place when it ends."""
    await _sql.reserve(
        writer.connection, tenant_id=tenant_id, run_id=run_id, model_call_id=model_call_id, tokens=amounts.tokens,
        money=amounts.money,
    )  # fmt: skip


def _spent(row: Any) -> Spent:
    return Spent(
        Amounts(int(row["used_tokens"]), row["used_money"]), Amounts(int(row["reserved_tokens"]), row["reserved_money"])
    )
