"""What can be open in a conversation, or is remembered of it: a turn with its calls, dispatched work, a choice of who takes a turn, a
ballot, a question, rejected answers.

Values: a change makes a new one. Deliberately absent: what changes them (`protocol`), and what follows (`decide`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.agent_runs import Phase
from folkmoot.domain.calls import AskedCall
from folkmoot.engine.seats import seat_key, view_key


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Work that a manager has sent to an agent. `turn` null before it begins and after it is over; then `outcome` is what came of it."""

    sent: items.Dispatched
    turn: Turn | None = None
    outcome: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result: one that leaves the process, or with `dispatch` one that sends work to an agent."""

    call: AskedCall
    model_call_id: UUID | None
    dispatch: Dispatch | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A protocol call that waits for the results of the calls before it."""

    call: items.ProtocolCall
    model_call_id: UUID | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that is open. `replies`: distinct model calls whose items are in; `loops`: those among them that called tools.

    `is_terminal`: a terminal tool has succeeded, so that the turn is over once the calls of its reply are done.
    `is_last`: it is the last one before the time limit, and was told so. `agent`: who has the seat, where a router chose.
    `opened_at`: the sequence of its floor.
    `reminders`: how often in a row it was told that its words alone are no answer. `phase`: of an agent run. `said`: the last words, in dispatched work;
    `terminal`: what the terminal tool gave.
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
    agent: UUID | None = None
    thread_id: str = items.MAIN_THREAD
    opened_at: int = 0
    reminders: int = 0
    said: str = ""
    terminal: str | None = None
    phase: Phase | None = None

    @property
    def seat(self) -> str:
        return seat_key(self.participant, self.agent)

    @property
    def view(self) -> str:
        return view_key(self.participant, self.thread_id)


@dataclass(frozen=True, slots=True)
class Choosing:
    """A floor that waits for routers: the decisions so far, and how often in a row the next router's model has chosen nobody.

    `place`: which floor it is; what is said of another one is none of its business.
    """

    place: str
    chain: tuple[items.Routing, ...] = ()
    no_choices: int = 0


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
