"""What waits for a person: an approval, a vote, a question, the floor; and what a person decided.

The id of what is pending is that of its subject: the call, the ballot, the question, the turn. So it is the same however
often it is asked. Deliberately absent: how it is answered (`services.answers`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

PERSON = "Human"  # the seat of whoever takes part as a person; no participant may have the name


class PendingKind(StrEnum):
    APPROVAL = "Approval"
    VOTE = "Vote"
    QUESTION = "Question"
    TURN = "Turn"


class PendingOutcome(StrEnum):
    ANSWERED = "Answered"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    EXPIRED = "Expired"
    STOPPED = "Stopped"


@dataclass(frozen=True, slots=True)
class Pending:
    """What a run asks a person. `card`: what is shown, as JSON. `binding_hash`: of an approval, what it is bound to (B05)."""

    pending_id: UUID
    kind: PendingKind
    card: dict[str, Any]
    binding_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's word on a gated call. `is_void`: whoever gave it may approve no more (F34)."""

    is_approved: bool
    by: str
    binding_hash: bytes
    reason: str | None = None
    is_void: bool = False
