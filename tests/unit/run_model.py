"""A run's store and worker in memory, for the property tests: the fence, the firm and the soft part of state.md, and no I/O.

The worker asks and records as `runtime.drive` does. Deliberately absent: the model and the tools; tests bring the outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallResult, CallState, FunctionTool
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import FailureClass, ModelCallFact, ModelFailure, ModelReply
from folkmoot.domain.runs import Facts
from folkmoot.engine import decide, record
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, RunCall, Step
from folkmoot.engine.views import Views
from folkmoot.store.codecs import BODIES, DETAIL, write_body

Outcome = ModelReply | ModelFailure | CallResult

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
SIZE = {"type": "object", "properties": {"of": {"type": "string"}}}
TOOLS = (
    FunctionTool("write", "Not idempotent.", SIZE),
    FunctionTool("sync", "Idempotent.", SIZE, is_idempotent=True),
    FunctionTool("look", "Read-only.", SIZE, is_read_only=True),
    FunctionTool("finish", "Terminal.", SIZE, is_terminal=True),
)


class Crash(Exception):
    """The worker is gone between two of its commits."""


class Lost(Exception):
    """The claim is no more."""


# the store


@dataclass(frozen=True)
class Append:
    """A worker's write: the first `firm` of `items` are written whatever came between, the rest with the end only if nothing did."""

    claim: int
    signal: int
    items: Sequence[Item] = ()
    firm: int = 0
    end: End | None = None
    asked: Sequence[tuple[UUID, str]] = ()
    answered: Sequence[UUID] = ()
    failed: Sequence[tuple[UUID, FailureClass]] = ()
    begun: Sequence[str] = ()


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


@dataclass
class CallRow:
    """`begun_by`: the claims under which it was begun, one for each time."""

    name: str
    begun_by: list[int] = field(default_factory=list)
    is_ended: bool = False


class Store:
    """One run: its row, its items, the facts beside them."""

    def __init__(self, *, is_fenced: bool) -> None:
        self.is_fenced = is_fenced
        self.items: dict[int, Item] = {}
        self.last_sequence = 0
        self.signal = 0
        self.claim = 0
        self.stopped_by: str | None = None
        self.end: End | None = None
        self.now = BEGINNING
        self.deadline: datetime | None = None
        self.model_calls: dict[UUID, ModelCallRow] = {}
        self.calls: dict[str, CallRow] = {}

    def conversation(self) -> list[Item]:
        return [self.items[n] for n in range(1, self.last_sequence + 1)]

    def written(self) -> str:
        """All that a worker can write, for comparing."""
        return repr((self.last_sequence, self.end, self.model_calls, self.calls))

    def claim_it(self) -> int:
        self.claim += 1
        return self.claim

    def by_a_person(self, item: Item | None, *, stopped_by: str | None = None) -> None:
        """A write by the other kind of writer: only while the run has not ended, and it raises the signal."""
        if self.end is not None:
            return
        self.signal += 1
        if stopped_by is not None and self.stopped_by is None:
            self.stopped_by = stopped_by
        if item is not None:
            self._insert([item])

    def append(self, a: Append) -> Appended | None:
        if self.is_fenced and (a.claim != self.claim or self.end is not None):
            return None
        is_whole = a.signal == self.signal
        before = self.last_sequence
        self._insert(a.items if is_whole else a.items[: a.firm])
        for model_call_id in a.answered:
            self.model_calls[model_call_id].is_answered = True
        for model_call_id, failure in a.failed:
            self.model_calls[model_call_id].failure = failure
        if is_whole:
            self.model_calls.update({call_id: ModelCallRow(key) for call_id, key in a.asked})
            for call in a.begun:
                self.calls[call].begun_by.append(a.claim)
            self.end = a.end or self.end
        return Appended(before, self.signal, is_whole)

    def _insert(self, new: Sequence[Item]) -> None:
        for item in new:
            self.last_sequence += 1
            self.items[self.last_sequence] = _as_read_again(item)
            body = item.body
            if isinstance(body, items.ToolCall) and isinstance(item.detail, items.Called) and item.detail.leaves:
                self.calls[body.tool_call_id] = CallRow(body.function_name)
            elif isinstance(body, items.ToolResult) and body.tool_call_id in self.calls:
                self.calls[body.tool_call_id].is_ended = True


def _as_read_again(item: Item) -> Item:
    """An item as it comes back from the database: through the real storage edge."""
    body = BODIES[item.body.kind].read(write_body(item))
    detail = DETAIL.read(DETAIL.write(item.detail)) if item.detail is not None else None
    return Item(item.item_id, item.author, body, detail, item.turn_id, item.model_call_id, item.thread_id)


# the worker


class Worker:
    """One claim. `crash_after`: after how many of its next writes it is gone; what it was told of none of them it knows."""

    def __init__(self, store: Store, seating: Seating, new_id: Callable[[], UUID]) -> None:
        self.store, self.seating, self.new_id = store, seating, new_id
        self.claim = store.claim_it()
        self.signal, self.sequence = store.signal, store.last_sequence
        self.protocol, self.views = Protocol(), Views(seating.names)
        self.crash_after: int | None = None
        self.is_over = False
        self.under_way: dict[str, tuple[Step, UUID | None]] = {}
        self.failures: dict[str, tuple[ModelCallFact, ...]] = {}
        self.calls: dict[str, CallFact] = {}
        self._publish(store.conversation())
        lost: list[tuple[UUID, FailureClass]] = []
        for model_call_id, row in store.model_calls.items():
            if row.failure is None and not row.is_answered:
                lost.append((model_call_id, FailureClass.LOST))
            if not row.is_answered:
                self._note_failure(model_call_id, row.key, row.failure or FailureClass.LOST)
        repeatable = {tool.name for tool in TOOLS if tool.is_idempotent or tool.is_read_only}
        for call_id, call in store.calls.items():
            if not call.is_ended:
                state = CallState.BEGUN if call.begun_by else CallState.ASKED
                is_lost = state is CallState.BEGUN and call.name not in repeatable
                self.calls[call_id] = CallFact(call_id, state, lost=is_lost)
        self._lost = lost

    def begin(self) -> None:
        self._commit([], failed=self._lost)

    def look(self) -> None:
        """A nudge, or the time limit: read what others wrote, and decide again."""
        if self.store.is_fenced and self.claim != self.store.claim:
            raise Lost
        self._read_gap(self.store.last_sequence)
        self.signal = self.store.signal
        self._commit([])

    def take(self, key: str, outcome: Outcome) -> None:
        """A step's outcome; one that was taken before is not under way, and is dropped."""
        if key not in self.under_way:
            return
        step, model_call_id = self.under_way[key]
        if isinstance(step, RunCall):
            assert isinstance(outcome, CallResult)
            made = record.items_of_result(self.seating, self.protocol, step, result=outcome, new_id=self.new_id)
            del self.under_way[key]
            return self._commit(made)
        assert isinstance(step, AskModel) and model_call_id is not None
        if isinstance(outcome, ModelFailure):
            del self.under_way[key]
            self._note_failure(model_call_id, key, outcome.failure)
            return self._commit([], failed=[(model_call_id, outcome.failure)])
        assert isinstance(outcome, ModelReply)
        made = record.items_of_reply(
            self.seating, self.protocol, step, reply=outcome, model_call_id=model_call_id, new_id=self.new_id
        )
        del self.under_way[key]
        self.failures.pop(key, None)
        return self._commit(made, answered=[model_call_id])

    def facts(self) -> Facts:
        return Facts(self.store.now, self.store.deadline, self.store.stopped_by, self.failures, self.calls)

    def _commit(
        self, firm: list[Item], *, answered: Sequence[UUID] = (), failed: Sequence[tuple[UUID, FailureClass]] = ()
    ) -> None:
        while not self.is_over:
            soft, end, steps, ahead = self._decide(firm)
            new = {s.key: s for s in steps if s.key not in self.under_way}
            ids = {key: self.new_id() for key, s in new.items() if isinstance(s, AskModel)}
            got = self._append(
                Append(self.claim, self.signal, [*firm, *soft], len(firm), end, [(i, k) for k, i in ids.items()], answered, failed)
            )  # fmt: skip
            written = [*firm, *soft] if got.is_whole else firm
            for item in written:
                self.views.add(item)
                if not got.is_whole:
                    self.protocol.advance(self.seating, item)
            if got.is_whole:
                self.protocol, self.is_over = ahead, end is not None
            self._note_calls(written)
            self.sequence = got.before + len(written)
            firm, answered, failed = [], (), ()
            if got.is_whole and (self.is_over or self._start(new, ids)):
                return

    def _decide(self, firm: list[Item]) -> tuple[list[Item], End | None, tuple[AskModel | RunCall, ...], Protocol]:
        ahead = self.protocol.copy()
        for item in firm:
            ahead.advance(self.seating, item)
        soft: list[Item] = []
        for _ in range(50):
            steps = decide.next_steps(self.seating, ahead, self.facts(), self.new_id)
            if not steps or not isinstance(steps[0], Record):
                return soft, None, tuple(s for s in steps if not isinstance(s, Record)), ahead
            soft += steps[0].items
            for item in steps[0].items:
                ahead.advance(self.seating, item)
            if steps[0].end is not None:
                return soft, steps[0].end, (), ahead
        raise AssertionError("what is decided never comes to a step")

    def _start(self, new: dict[str, AskModel | RunCall], ids: dict[str, UUID]) -> bool:
        """Model calls begin with the commit that recorded them; tool calls are recorded as begun just before."""
        for key, step in new.items():
            if isinstance(step, AskModel):
                self.under_way[key] = (step, ids[key])
        calls = [step for step in new.values() if isinstance(step, RunCall)]
        if not calls:
            return True
        got = self._append(Append(self.claim, self.signal, begun=[step.call.call_id for step in calls]))
        self.sequence = got.before
        if got.is_whole:
            for step in calls:
                self.calls[step.call.call_id] = CallFact(step.call.call_id, CallState.BEGUN)
                self.under_way[step.key] = (step, None)
        return got.is_whole

    def _append(self, append: Append) -> Appended:
        got = self.store.append(append)
        if got is None:
            raise Lost
        if self.crash_after is not None:
            self.crash_after -= 1
            if self.crash_after <= 0:
                raise Crash
        self._read_gap(got.before)
        self.signal = got.signal
        return got

    def _read_gap(self, upto: int) -> None:
        self._publish([self.store.items[n] for n in range(self.sequence + 1, upto + 1)])
        self.sequence = max(self.sequence, upto)

    def _publish(self, new: Sequence[Item]) -> None:
        for item in new:
            self.protocol.advance(self.seating, item)
            self.views.add(item)

    def _note_failure(self, model_call_id: UUID, key: str, failure: FailureClass) -> None:
        self.failures[key] = (*self.failures.get(key, ()), ModelCallFact(model_call_id, key, failure, "It failed."))

    def _note_calls(self, written: Sequence[Item]) -> None:
        for item in written:
            body = item.body
            if isinstance(body, items.ToolCall) and isinstance(item.detail, items.Called) and item.detail.leaves:
                self.calls[body.tool_call_id] = CallFact(body.tool_call_id, CallState.ASKED)
            elif isinstance(body, items.ToolResult):
                self.calls.pop(body.tool_call_id, None)
