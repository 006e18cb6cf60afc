"""What waits or waited for a person, as it is listed, answered and told of: a run's question with what became of it.

Deliberately absent: what a card holds of each kind, which whoever pauses a run decides (`pending`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from folkmoot.domain.pending import Pending, PendingKind, PendingOutcome


class InboxStatus(StrEnum):
    """`Pending` while nobody has answered; else what became of it."""

    PENDING = "Pending"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    ANSWERED = "Answered"
    EXPIRED = "Expired"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of it. `answer`: as it was given; null, like who gave it, where time ran out. `by` is authenticated (B15)."""

    outcome: PendingOutcome
    at: datetime
    answer: dict[str, Any] | None = None
    by: UUID | None = None
    by_name: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class PendingEntry:
    """What a run asked a person, since when, until when, and what became of it (null: it waits). `root_id`: of the run's tree; null where
    the run is the root itself."""

    run_id: UUID
    pending: Pending
    asked_at: datetime
    expires_at: datetime | None
    settled: Settled | None
    root_id: UUID | None = None

    @property
    def status(self) -> InboxStatus:
        return InboxStatus(self.settled.outcome) if self.settled is not None else InboxStatus.PENDING


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """The same with the names of what runs. `agent_run`, `chat_item_id`: where an agent run asks its owner for consent, the run's number
    and where the request stands; null for what an interaction's run asks."""

    entry: PendingEntry
    interaction_name: str
    namespace: str
    agent_run: int | None = None
    chat_item_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class InboxFilter:
    """Null: any. `root`: what all runs of the tree ask whose root it is; `below`: what this run and those below it ask."""

    status: InboxStatus | None = None
    kind: PendingKind | None = None
    run_id: UUID | None = None
    root: UUID | None = None
    below: UUID | None = None


@dataclass(frozen=True, slots=True)
class InboxCursor:
    """The last entry of a page; the next page begins after it."""

    asked_at: datetime
    pending_id: UUID
