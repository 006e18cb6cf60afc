"""What is beside an item, so that nothing is read out of prose. `type` tells them apart in the database; they are not on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal
from uuid import UUID

from folkmoot.domain.agent_runs import Finding, Phase, Plan


@dataclass(frozen=True, slots=True)
class Prompted:
    """On a systemPrompt: whose it is. `agent`: of a seat with a router, the candidate that is given it."""

    participant: str
    agent: UUID | None = None
    type: Literal["prompted"] = "prompted"


@dataclass(frozen=True, slots=True)
class Task:
    type: Literal["task"] = "task"


@dataclass(frozen=True, slots=True)
class Routing:
    """What a router decided: which candidate, an agent or a further router, and why. `chosen_id` null: there was nothing to choose.

    `depth`: of the router in its chain, from 1. `reason` null: the model gave none.
    """

    router_id: UUID
    router_name: str
    router_version: int
    chosen_id: UUID | None
    chosen_version: int | None
    chosen_name: str | None
    reason: str | None
    is_fallback: bool
    depth: int


@dataclass(frozen=True, slots=True)
class Floor:
    """Opens a turn, or with `question` the answering turn inside another one. `router`: the chain of decisions that led to `agent`,
    who has the seat from now on; both are empty for a seat without a router. `dispatch`: the call whose work this turn does.
    `phase`: of an agent run; `step`: of its plan, as an index."""

    participant: str
    round: int
    router: tuple[Routing, ...] = ()
    question: UUID | None = None
    agent: UUID | None = None
    dispatch: str | None = None
    phase: Phase | None = None
    step: int | None = None
    type: Literal["floor"] = "floor"


@dataclass(frozen=True, slots=True)
class Routed:
    """A decision that a router's model made, or could not be brought to make; the floor follows, or the next router's decision.

    `place`: the floor that it is for, as the step's key has it; a reply that comes late is for one that was given already.
    """

    participant: str
    routing: Routing
    place: str
    type: Literal["routed"] = "routed"


@dataclass(frozen=True, slots=True)
class NoChoice:
    """A reply of a router's model that chose none, several, or one that is no candidate; `reply` is kept as it came."""

    participant: str
    reply: str
    place: str
    type: Literal["no_choice"] = "no_choice"


class DispatchMode(StrEnum):
    ONE_TIME = "OneTime"
    CONTINUE = "Continue"


@dataclass(frozen=True, slots=True)
class Dispatched:
    """On a manager's toolCall that sends work to an agent: the thread in which it works. `label`: the manager's name for the thread;
    `then`: the reply's protocol call, kept for later."""

    agent: str
    message: str
    mode: DispatchMode
    thread_id: str
    label: str = ""
    then: ProtocolCall | None = None
    type: Literal["dispatched"] = "dispatched"


@dataclass(frozen=True, slots=True)
class ManagerReminder:
    """Tells a manager that answered with plain text how an answer is given."""

    type: Literal["manager_reminder"] = "manager_reminder"


@dataclass(frozen=True, slots=True)
class PhaseReminder:
    """Tells an agent that answered with plain text which call its phase asks for."""

    type: Literal["phase_reminder"] = "phase_reminder"


@dataclass(frozen=True, slots=True)
class Planned:
    """On the toolCall that gives an agent run's plan."""

    plan: Plan
    type: Literal["planned"] = "planned"


@dataclass(frozen=True, slots=True)
class Replanned:
    """On the toolCall that asks for another plan."""

    reason: str
    type: Literal["replanned"] = "replanned"


@dataclass(frozen=True, slots=True)
class Verified:
    """On the toolCall that says whether an agent run's goal is met. `answer` is set if it is, `missing` if it is not."""

    is_met: bool
    findings: tuple[Finding, ...]
    answer: str | None = None
    missing: str | None = None
    type: Literal["verified"] = "verified"


@dataclass(frozen=True, slots=True)
class Delegated:
    """On the toolResult of a delegation: how many tool calls the delegated run made, with those of its own specialists."""

    tool_calls: int
    type: Literal["delegated"] = "delegated"


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """On the item that ends its turn."""

    type: Literal["turn_end"] = "turn_end"


@dataclass(frozen=True, slots=True)
class ProtocolCall:
    """A protocol call that counts once the calls before it, which leave the process, have their results."""

    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class Called:
    """On a toolCall: `leaves` is false for a call refused on the spot; `then` is the reply's protocol call, kept for later."""

    leaves: bool
    then: ProtocolCall | None = None
    type: Literal["called"] = "called"


@dataclass(frozen=True, slots=True)
class Terminal:
    """On a toolResult that ends its turn, since its tool is terminal and it succeeded."""

    type: Literal["terminal"] = "terminal"


@dataclass(frozen=True, slots=True)
class UnknownOutcome:
    """On the error toolResult of a call that may or may not have happened."""

    type: Literal["unknown_outcome"] = "unknown_outcome"


@dataclass(frozen=True, slots=True)
class NotMade:
    """On the error toolResult of a call that had not begun when its run, or its turn, came to an end."""

    type: Literal["not_made"] = "not_made"


@dataclass(frozen=True, slots=True)
class InvalidSolution:
    """On the error toolResult of a proposal that does not fit the schema, or repeats a rejected one."""

    type: Literal["invalid_solution"] = "invalid_solution"


@dataclass(frozen=True, slots=True)
class Balloted:
    """On agree and disagree."""

    ballot: UUID
    attempt: int
    type: Literal["balloted"] = "balloted"


@dataclass(frozen=True, slots=True)
class NoVote:
    """A reply to a ballot that held no vote; `reply` is its text, kept as it came."""

    ballot: UUID
    participant: str
    attempt: int
    reply: str
    type: Literal["no_vote"] = "no_vote"


@dataclass(frozen=True, slots=True)
class Abstained:
    ballot: UUID
    participant: str
    reply: str = ""
    type: Literal["abstained"] = "abstained"


class Outcome(StrEnum):
    CARRIED = "carried"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Tally:
    ballot: UUID
    in_favour: tuple[str, ...]
    against: tuple[str, ...]
    abstained: tuple[str, ...]
    outcome: Outcome
    type: Literal["tally"] = "tally"


@dataclass(frozen=True, slots=True)
class EmptyReply:
    """A reply with neither text nor call; with `ends_turn` it was the second one where passing is not allowed."""

    participant: str
    ends_turn: bool
    type: Literal["empty_reply"] = "empty_reply"


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A reply to a direct question that held no answer; with `closed` the asker goes on without one."""

    question: UUID
    participant: str
    reply: str
    closed: bool
    type: Literal["no_answer"] = "no_answer"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Ends a turn that came to nothing: three invalid solutions in a row, or calls where none are offered."""

    participant: str
    reason: str
    type: Literal["given_up"] = "given_up"


@dataclass(frozen=True, slots=True)
class Reminder:
    """Asks to settle after rounds without a proposal or a vote."""

    round: int
    type: Literal["reminder"] = "reminder"


@dataclass(frozen=True, slots=True)
class StuckWarning:
    """Tells a participant that it repeats itself; the next repetition ends the run."""

    participant: str
    type: Literal["stuck_warning"] = "stuck_warning"


@dataclass(frozen=True, slots=True)
class TimeWarning:
    """Tells the participants how much time is left; once a run."""

    type: Literal["time_warning"] = "time_warning"


@dataclass(frozen=True, slots=True)
class LastTurn:
    """Tells whoever has the floor that this turn is the last one; when it is over, the run ends."""

    participant: str
    type: Literal["last_turn"] = "last_turn"


class EndReason(StrEnum):
    SOLUTION = "solution"
    NO_ACTION = "no_action"
    ROUNDS = "rounds"
    STUCK = "stuck"
    TIME = "time"
    PERSON_TIMEOUT = "person_timeout"
    STOPPED = "stopped"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Ended:
    """On the item that closes the run without a solution."""

    reason: EndReason
    type: Literal["ended"] = "ended"


Detail = (
    Prompted
    | Task
    | Floor
    | Routed
    | NoChoice
    | Dispatched
    | ManagerReminder
    | PhaseReminder
    | Planned
    | Replanned
    | Verified
    | Delegated
    | TurnEnd
    | Called
    | Terminal
    | UnknownOutcome
    | NotMade
    | InvalidSolution
    | Balloted
    | NoVote
    | Abstained
    | Tally
    | EmptyReply
    | NoAnswer
    | GivenUp
    | Reminder
    | StuckWarning
    | TimeWarning
    | LastTurn
    | Ended
)
