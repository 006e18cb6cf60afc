"""What can be open in a conversation, or is remembered of it: a turn with its calls, a ballot, a question, rejected answers.

Values: a change makes a new one. Deliberately absent: what changes them (`protocol`), and what follows (`decide`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import AskedCall


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that leaves the process and has no result yet."""

    call: AskedCall
    model_call_id: UUID | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A protocol call that waits for the results of the calls before it."""

    call: items.ProtocolCall
    model_call_id: UUID | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is open. `replies`: distinct model calls whose items are in; `loops`: those among them that called tools.

    `is_terminal`: a terminal tool has succeeded, so that the turn is over once the calls of its reply are done.
    `is_last`: it is the last one before the time limit, and was told so.
    """

    turn_id: UUID
    participant: str
    round: int
    question: UUID | None = None
    replies: int = 0
    last_reply: UUID | None = None
    loops: int = 0
    last_loop: UUID | None = None
    invalid_solutions: int = 0
    empty_replies: int = 0
    open_calls: tuple[OpenCall, ...] = ()
    kept: Kept | None = None
    is_terminal: bool = False
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Ballot:
    """An open vote. `votes`: who and whether they agreed, as they came; `no_votes`: replies without a vote so far.

    `have_people_voted`: people have one vote together, under the name of whoever gave it.
    """

    ballot_id: UUID
    turn_id: UUID | None
    proposer: str
    text: str
    is_solution: bool
    votes: tuple[tuple[str, bool], ...] = ()
    abstained: tuple[str, ...] = ()
    no_votes: tuple[str, ...] = ()
    have_people_voted: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    question_id: UUID
    asker: str
    asked: str
    text: str
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """An answer that was voted down, as its key, and who has said something since (people as one)."""

    answer_key: str
    spoke_since: frozenset[str] = frozenset()
