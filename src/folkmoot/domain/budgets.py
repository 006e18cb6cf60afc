"""How much may be used, in tokens, money and calls: by a run with all that it starts, and by a tenant in a day (UTC).

Before a call is sent, the most that it can use is set aside; what is set aside and what was used never exceed the budget together.
Deliberately absent: the count (`store.budgets`), and prices (`costs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import TypeVar
from uuid import UUID

from folkmoot.kernel.errors import Fault

Limit = TypeVar("Limit", int, Decimal)

REPLY_TOKENS = 4096  # the longest reply under a budget, where neither agent nor interaction bounds it


@dataclass(frozen=True, slots=True)
class Budget:
    """Null: no limit. `money`: US dollars. `calls`: of models."""

    tokens: int | None = None
    money: Decimal | None = None
    calls: int | None = None

    @property
    def is_limit(self) -> bool:
        return any(most is not None for _, most in _limits(self))

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how long a reply may be."""
        return self.tokens is not None or self.money is not None


@dataclass(frozen=True, slots=True)
class BudgetAbove:
    """A budget of a run that this one was started by, directly or not: this one's calls are held to it too."""

    run_id: UUID
    budget: Budget


@dataclass(frozen=True, slots=True)
class Amounts:
    """Tokens of all kinds together, US dollars, and calls of models."""

    tokens: int = 0
    money: Decimal = Decimal(0)
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Spent:
    """What calls have used, and what is set aside for those under way."""

    used: Amounts = Amounts()
    reserved: Amounts = Amounts()


@dataclass(frozen=True, slots=True)
class DayBudget:
    """A tenant's budget of a day, with what the day has used so far. `ends_at`: the next midnight, UTC."""

    budget: Budget
    spent: Spent
    now: datetime
    ends_at: datetime

    @property
    def is_used_up(self) -> bool:
        """Whether nothing is left for any call."""
        used = self.spent.used
        return any(most is not None and getattr(used, name) >= most for name, most in _limits(self.budget))


class Room(Enum):
    """Whether a call finds room in a budget. `LATER`: once calls under way have used less than was set aside for them."""

    NOW = "now"
    LATER = "later"
    NONE = "none"


def room(budget: Budget, spent: Spent, wanted: Amounts) -> Room:
    """Whether the most that a call can use is left of a budget."""
    found = Room.NOW
    for name, most in _limits(budget):
        used, reserved, more = (getattr(each, name) for each in (spent.used, spent.reserved, wanted))
        if most is None or used + reserved + more <= most:
            continue
        if used + more > most:
            return Room.NONE
        found = Room.LATER
    return found


def refusal(whose: str, budget: Budget, spent: Spent, wanted: Amounts, *, advice: str) -> str:
    """Which budget does not allow a call, and how much of it is used."""
    parts = [
        f"{_shown(name, most)}, of which {_shown(name, getattr(spent.used, name))} are used, and the call may take up to "
        f"{_shown(name, getattr(wanted, name))}"
        for name, most in _limits(budget)
        if most is not None and getattr(spent.used, name) + getattr(wanted, name) > most
    ]
    return f"The {whose} is {'; and '.join(parts)}. It was not made. {advice}"


def lower(one: Budget | None, other: Budget | None) -> Budget | None:
    """What holds where both do: the lower of each."""
    if one is None or other is None:
        return one or other
    return Budget(_least(one.tokens, other.tokens), _least(one.money, other.money), _least(one.calls, other.calls))


def faults_of_budget(budget: Budget | None, within: Budget | None = None) -> Iterator[Fault]:
    """What is wrong with a run's budget. `within`: the definition's, which a start can only lower."""
    for name in ("tokens", "money", "calls"):
        wanted, most = (getattr(each, name) if each is not None else None for each in (budget, within))
        if wanted is not None and wanted <= 0:
            yield Fault(f"/budget/{name}", "A budget of 0 lets no call be made; name more, or leave it out.")
        elif wanted is not None and most is not None and wanted > most:
            text = f"The interaction's own budget is {_shown(name, most)}; a start can lower it, not raise it."
            yield Fault(f"/budget/{name}", text)


def reply_bound(max_tokens: int | None, largest_response: int | None) -> int:
    """The most tokens that a reply may have under a budget; it is sent along, so that the model keeps to it."""
    if max_tokens is not None:
        return max_tokens
    return min(REPLY_TOKENS, largest_response or REPLY_TOKENS)


def shown_money(amount: Decimal) -> str:
    """Such as `$0.25`; smaller amounts with as many digits as they need."""
    text = f"{amount.normalize():f}"
    whole, _, fraction = text.partition(".")
    return f"${whole}.{fraction.ljust(2, '0')}"


def _limits(budget: Budget) -> tuple[tuple[str, int | Decimal | None], ...]:
    return (("tokens", budget.tokens), ("money", budget.money), ("calls", budget.calls))


def _shown(name: str, amount: int | Decimal) -> str:
    return shown_money(Decimal(amount)) if name == "money" else f"{amount:,} {name}"


def _least(one: Limit | None, other: Limit | None) -> Limit | None:
    if one is None or other is None:
        return one if one is not None else other
    return min(one, other)
