"""What calls of models used: one call, sums over many, and by what they are grouped and filtered.

A sum of money says how many of its calls have no known price: its cost is that of the others, and null where there are no others.
Deliberately absent: prices (`costs`), and limits (`budgets`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from uuid import UUID

from folkmoot.domain.model_calls import Usage


class UsageKey(StrEnum):
    """What sums are grouped by, in the order in which groups are sorted. A day is UTC's; a tree goes by its root."""

    DAY = "day"
    NAMESPACE = "namespace"
    INTERACTION = "interaction"
    TREE = "tree"
    RUN = "run"
    AGENT = "agent"
    MODEL = "model"
    CREDENTIAL = "credential"


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """Null: any. `since` and `before`: when a call began. `agent`: a participant's name. `root`: the tree whose root it is; `below`: that run and all below it."""

    since: datetime | None = None
    before: datetime | None = None
    run_id: UUID | None = None
    root: UUID | None = None
    below: UUID | None = None
    namespace_id: UUID | None = None
    interaction_id: UUID | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    credential: str | None = None


@dataclass(frozen=True, slots=True)
class UsageGroup:
    """The keys that the calls of a sum share, in the order in which groups are sorted; null: not grouped by. `credential` '': without one.

    The names come last, and sort nothing.
    """

    day: date | None = None
    namespace_id: UUID | None = None
    interaction_id: UUID | None = None
    root_id: UUID | None = None
    run_id: UUID | None = None
    agent: str | None = None
    provider: str | None = None
    model: str | None = None
    credential: str | None = None
    namespace: str | None = None
    interaction: str | None = None


@dataclass(frozen=True, slots=True)
class UsageSum:
    """`estimated_calls`: those whose tokens are guessed, lost ones among them. `failed_calls`: those that brought no reply.

    `unpriced_calls`: those whose tokens have no known price, and which `cost` does not hold.
    """

    tokens: Usage
    calls: int
    estimated_calls: int
    failed_calls: int
    unpriced_calls: int
    cost: Decimal | None

    @property
    def whole_cost(self) -> Decimal | None:
        """The cost where all of it is known."""
        return None if self.unpriced_calls else self.cost


@dataclass(frozen=True, slots=True)
class GroupedUsage:
    group: UsageGroup
    total: UsageSum


@dataclass(frozen=True, slots=True)
class UsedCall:
    """One call of a run. `usage` null: under way, or it failed and nothing was told. `error_class`: as `FailureClass`, null for a reply."""

    model_call_id: UUID
    turn_id: UUID | None
    started_at: datetime
    ended_at: datetime | None
    agent: str
    provider: str
    model: str
    purpose: str
    credential: str | None
    is_own_license: bool
    service_tier: str | None
    usage: Usage | None
    error_class: str | None
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class CallCursor:
    """The last call of a page; the next page begins after it."""

    started_at: datetime
    model_call_id: UUID
