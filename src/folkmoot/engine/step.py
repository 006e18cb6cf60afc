"""The steps that a conversation can need next. Each has a key that depends on items and facts alone."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain.calls import AskedCall, Tool
from folkmoot.domain.contexts import Cover
from folkmoot.domain.items import MAIN_THREAD, Item
from folkmoot.domain.model_calls import OfferedTool, Purpose
from folkmoot.domain.pending import Pending
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.swarms import Await
from folkmoot.engine.seats import seat_key, view_key


@dataclass(frozen=True, slots=True)
class AskModel:
    """Ask a participant's model. `subject`: the ballot, question or router it is about. `attempt` from 1; `try_number`: of a ballot or
    answer. `agent`: who has the participant's seat, where a router chose.

    `not_before`: Unix seconds by the database's clock (null: now). `turn` and `call` count the participant's from 1.
    `cover`: of a compaction, the part that the summary is to stand for.
    """

    key: str
    participant: str
    purpose: Purpose
    turn_id: UUID | None
    offered: tuple[OfferedTool, ...]
    required: bool
    instruction: str | None
    turn: int
    call: int
    attempt: int = 1
    not_before: float | None = None
    subject: UUID | None = None
    try_number: int = 1
    cover: Cover | None = None
    agent: UUID | None = None
    thread_id: str = MAIN_THREAD

    @property
    def seat(self) -> str:
        return seat_key(self.participant, self.agent)

    @property
    def view(self) -> str:
        return view_key(self.participant, self.thread_id)


@dataclass(frozen=True, slots=True)
class RunCall:
    """Make a tool call that leaves the process; it is recorded as begun first. `tool_calls_left`: of a delegation, what of an agent run's
    budget of tool calls is left for the delegated run; null: there is no limit."""

    key: str
    call: AskedCall
    tool: Tool
    turn_id: UUID
    model_call_id: UUID | None
    thread_id: str = MAIN_THREAD
    tool_calls_left: int | None = None


@dataclass(frozen=True, slots=True)
class End:
    """How the run ends; written with the items that lead to it."""

    status: RunStatus
    output: str | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """Something decided without I/O: items to append, and perhaps the end. Folding them in changes what comes next.

    `cuts`: whatever is under way is cut with it, as at an end, and goes on by what is decided from there.
    """

    items: tuple[Item, ...]
    end: End | None = None
    cuts: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can go on until a person has answered, or sub-runs have ended: the run gives back its worker.

    `status`: the waiting one it goes to. `awaits`: all that are open, also beside a wait for a person; where `pending` is null there
    is one at least.
    """

    key: str
    status: RunStatus
    pending: Pending | None = None
    awaits: tuple[Await, ...] = ()


Step = AskModel | RunCall | Record | Wait
