"""A run's store in memory: the fence, the firm and the soft part of state.md, the pause, and what people write.

It keeps notes of what came to pass (under which decision a call was begun, what was asked after its answer), for tests to
look at. Deliberately absent: who is told, and several runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import FailureClass
from folkmoot.domain.pending import Decision, Pending, PendingKind, PendingOutcome
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import End, Wait
from folkmoot.store.codecs import BODIES, DETAIL, write_body

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
AT_WORK = RunStatus.RUNNING


@dataclass(frozen=True)
class Append:
    """A worker's write: the first `firm` of `items` are written whatever came between, the rest with the end or the pause only
    if nothing did."""

    claim: int
    signal: int
    items: Sequence[Item] = ()
    firm: int = 0
    end: End | None = None
    pause: Wait | None = None
    asked: Sequence[tuple[UUID, str]] = ()
    answered: Sequence[UUID] = ()
    failed: Sequence[tuple[UUID, FailureClass]] = ()
    begun: Sequence[str] = ()
    cut: Sequence[UUID] = ()


@dataclass(frozen=True)
class Appended:
    before: int
    signal: int
    is_whole: bool


@dataclass
class ModelCallRow:
    key: str
    failure: FailureClass | None = None
    is_answered: bool = False


@dataclass(frozen=True)
class Begun:
    """One time that a call was begun: under which claim, and what people had decided on it by then."""

    claim: int
    decision: Decision | None


@dataclass
class CallRow:
    name: str
    arguments_json: str
    participant: str
    begun: list[Begun] = field(default_factory=list)
    is_ended: bool = False


@dataclass
class PendingRow:
    """`decision`: of an approval. `asked_after`: how often it was asked again once it was closed."""

    pending: Pending
    outcome: PendingOutcome | None = None
    decision: Decision | None = None
    asked_after: int = 0


class Store:
    """One run: its row, its items, the facts beside them."""

    def __init__(self, *, is_fenced: bool = True) -> None:
        self.is_fenced = is_fenced
        self.items: dict[int, Item] = {}
        self.last_sequence = 0
        self.signal = 0
        self.claim = 0
        self.status = AT_WORK
        self.wait: Wait | None = None
        self.is_awake = True
        self.stopped_by: str | None = None
        self.ran_out: RunStatus | None = None
        self.end: End | None = None
        self.now = BEGINNING
        self.deadline: datetime | None = None
        self.model_calls: dict[UUID, ModelCallRow] = {}
        self.calls: dict[str, CallRow] = {}
        self.pending: dict[UUID, PendingRow] = {}
        self.begun_when_over = 0
        self._paused_at = BEGINNING

    def conversation(self) -> list[Item]:
        return [self.items[n] for n in range(1, self.last_sequence + 1)]

    def written(self) -> str:
        """All that a worker or an answer can write, for comparing."""
        return repr((self.last_sequence, self.status, self.end, self.model_calls, self.calls, self.pending))

    def claim_it(self) -> int:
        """A worker takes the run over. The time that it waited is no working time."""
        if self.status is not AT_WORK and self.deadline is not None:
            self.deadline += self.now - self._paused_at
        self.status, self.wait, self.is_awake = AT_WORK, None, False
        self.claim += 1
        return self.claim

    # what people write

    @property
    def open_row(self) -> PendingRow | None:
        """What the run waits for and nobody has answered yet."""
        return next((row for row in self.pending.values() if row.outcome is None), None)

    @property
    def decisions(self) -> dict[str, Decision]:
        return {str(pending_id): row.decision for pending_id, row in self.pending.items() if row.decision is not None}

    def by_a_person(self, item: Item | None, *, stopped_by: str | None = None) -> None:
        """A write by the other kind of writer: only while the run has not ended, and it raises the signal."""
        if self.end is not None:
            return
        self.signal += 1
        if stopped_by is not None:
            self.stopped_by = self.stopped_by or stopped_by
            self._close(PendingOutcome.STOPPED)
        if item is not None:
            self._insert([item])

    def settle(self, pending_id: UUID, outcome: PendingOutcome, given: Item | Decision) -> bool:
        """A person's answer: once, while there is time; the run is woken and keeps its status. Whether it counted."""
        row = self.pending.get(pending_id)
        if row is None or row.outcome is not None or self.end is not None:
            return False
        row.outcome = outcome
        self.signal += 1
        self.is_awake = True
        if isinstance(given, Decision):
            row.decision = given
        else:
            self._insert([given])
        return True

    def run_out(self) -> None:
        """The person's time is over: nothing can be answered any more, and a worker is woken to end the run."""
        self.ran_out = self.status
        self.signal += 1
        self._close(PendingOutcome.EXPIRED)

    def _close(self, outcome: PendingOutcome) -> None:
        row = self.open_row
        if row is not None:
            row.outcome = outcome
            self.is_awake = True

    # what a worker writes

    def append(self, a: Append) -> Appended | None:
        if self.is_fenced and (a.claim != self.claim or self.end is not None or self.status is not AT_WORK):
            return None
        is_whole = a.signal == self.signal
        before = self.last_sequence
        self._insert(a.items if is_whole else a.items[: a.firm])
        for model_call_id in a.answered:
            self.model_calls[model_call_id].is_answered = True
        for model_call_id, failure in a.failed:
            self.model_calls[model_call_id].failure = failure
        if is_whole:
            if self.stopped_by is not None or self.ran_out is not None:
                self.begun_when_over += len(a.asked) + len(a.begun)
            for model_call_id in a.cut:
                self.model_calls[model_call_id].failure = FailureClass.LOST
            self.model_calls.update({call_id: ModelCallRow(key) for call_id, key in a.asked})
            for call in a.begun:
                self.calls[call].begun.append(Begun(a.claim, self.decisions.get(call)))
            self.end = a.end or self.end
            if a.pause is not None:
                self._pause(a.pause)
        return Appended(before, self.signal, is_whole)

    def _pause(self, wait: Wait) -> None:
        row = self.pending.setdefault(wait.pending.pending_id, PendingRow(wait.pending))
        row.asked_after += row.outcome is not None
        self.status, self.wait, self.is_awake, self._paused_at = wait.status, wait, False, self.now

    def _insert(self, new: Sequence[Item]) -> None:
        for item in new:
            self.last_sequence += 1
            self.items[self.last_sequence] = _as_read_again(item)
            body = item.body
            if isinstance(body, items.ToolCall) and isinstance(item.detail, items.Called) and item.detail.leaves:
                self.calls[body.tool_call_id] = CallRow(body.function_name, body.arguments_json, item.author.name)
            elif isinstance(body, items.ToolResult) and body.tool_call_id in self.calls:
                self.calls[body.tool_call_id].is_ended = True


def _as_read_again(item: Item) -> Item:
    """An item as it comes back from the database: through the real storage edge."""
    body = BODIES[item.body.kind].read(write_body(item))
    detail = DETAIL.read(DETAIL.write(item.detail)) if item.detail is not None else None
    return Item(item.item_id, item.author, body, detail, item.turn_id, item.model_call_id, item.thread_id)


def answer_detail(kind: PendingKind, pending_id: UUID) -> items.Detail:
    """What the item of a person's answer carries, as the services write it."""
    return items.Balloted(pending_id, 1) if kind is PendingKind.VOTE else items.TurnEnd()
