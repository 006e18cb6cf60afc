"""A run's worker in memory, against the store of `run_store`: no I/O, and a crash wherever a test wants one.

It asks, records and pauses as `runtime.drive` does. Deliberately absent: the model, the tools and people; tests bring the outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from run_store import AT_WORK, Append, Appended, Store

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallResult, CallState, Tool
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import FailureClass, ModelCallFact, ModelFailure, ModelReply
from folkmoot.domain.runs import Facts
from folkmoot.engine import decide, record
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, RunCall, Step, Wait
from folkmoot.engine.views import Views

Outcome = ModelReply | ModelFailure | CallResult

SIZE = {"type": "object", "properties": {"of": {"type": "string"}}}
TOOLS = (
    Tool("write", "Not idempotent.", SIZE),
    Tool("sync", "Idempotent.", SIZE, is_idempotent=True),
    Tool("look", "Read-only.", SIZE, is_read_only=True),
    Tool("finish", "Terminal.", SIZE, is_terminal=True),
    Tool("pay", "Gated.", SIZE, is_gated=True),
    Tool("put", "Gated, idempotent.", SIZE, is_gated=True, is_idempotent=True),
    Tool("peek", "Gated, read-only.", SIZE, is_gated=True, is_read_only=True),
)


class Crash(Exception):
    """The worker is gone between two of its commits."""


class Lost(Exception):
    """The claim is no more."""


@dataclass(frozen=True)
class Plan:
    """What was decided: items with the end or the wait (soft), then the steps to perform. `protocol`: the state after them."""

    items: list[Item]
    protocol: Protocol
    end: End | None = None
    wait: Wait | None = None
    steps: tuple[AskModel | RunCall, ...] = ()
    cuts: bool = False


class Worker:
    """One claim. `crash_after`: after how many of its next writes it is gone; what it was told of none of them it knows."""

    def __init__(self, store: Store, seating: Seating, new_id: Callable[[], UUID]) -> None:
        self.store, self.seating, self.new_id = store, seating, new_id
        self.claim = store.claim_it()
        self.signal, self.sequence = store.signal, store.last_sequence
        self.decisions, self.ran_out = store.decisions, store.ran_out
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
        for call_id, call in store.calls.items():
            if not call.is_ended:
                tool = seating.tools[call.participant][call.name]
                state = CallState.BEGUN if call.begun else CallState.ASKED
                is_lost = state is CallState.BEGUN and not (tool.is_idempotent or tool.is_read_only)
                self.calls[call_id] = CallFact(call_id, state, lost=is_lost)
        self._lost = lost

    def begin(self) -> None:
        self._commit([], failed=self._lost)

    def look(self) -> None:
        """A nudge, or the time limit: read what others wrote, and decide again."""
        if self.store.is_fenced and (self.claim != self.store.claim or self.store.status is not AT_WORK):
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
        store = self.store
        return Facts(
            store.now,
            store.deadline,
            store.stopped_by,
            self.failures,
            self.calls,
            self.decisions,
            self.ran_out,
            under_way=self.asked,
        )

    @property
    def asked(self) -> dict[str, UUID]:
        """The model calls under way."""
        return {key: call_id for key, (_, call_id) in self.under_way.items() if call_id is not None}

    def _commit(
        self, firm: list[Item], *, answered: Sequence[UUID] = (), failed: Sequence[tuple[UUID, FailureClass]] = ()
    ) -> None:
        while not self.is_over:
            plan = self._decide(firm)
            new = {s.key: s for s in plan.steps if plan.cuts or s.key not in self.under_way}
            cut = list(self.asked.values()) if plan.cuts else []
            ids = {key: self.new_id() for key, s in new.items() if isinstance(s, AskModel)}
            asked = [(i, k) for k, i in ids.items()]
            all_items = [*firm, *plan.items]
            got = self._append(
                Append(
                    self.claim, self.signal, all_items, len(firm), plan.end, plan.wait, asked, answered, failed, cut=cut
                )
            )
            if got.is_whole and plan.cuts:
                for key, call_id in self.asked.items():
                    self._note_failure(call_id, key, FailureClass.LOST)
                self.under_way = {}
            written = all_items if got.is_whole else firm
            for item in written:
                self.views.add(item)
                if not got.is_whole:
                    self.protocol.advance(self.seating, item)
            if got.is_whole:
                self.protocol, self.is_over = plan.protocol, plan.end is not None or plan.wait is not None
            self._note_calls(written)
            self.sequence = got.before + len(written)
            firm, answered, failed = [], (), ()
            if got.is_whole and (self.is_over or self._start(new, ids)):
                return

    def _decide(self, firm: list[Item]) -> Plan:
        ahead = self.protocol.copy()
        for item in firm:
            ahead.advance(self.seating, item)
        soft: list[Item] = []
        facts, cuts = self.facts(), False
        for _ in range(50):
            steps = decide.next_steps(self.seating, ahead, facts, self.new_id)
            first = steps[0] if steps else None
            if isinstance(first, Wait):
                assert len(steps) == 1
                assert cuts or not self.under_way, "the run waits while something of its own goes on"
                return Plan(soft, ahead, wait=first, cuts=cuts)
            if not isinstance(first, Record):
                made = tuple(s for s in steps if isinstance(s, AskModel | RunCall))
                return Plan(soft, ahead, steps=made, cuts=cuts)
            if first.cuts:
                cuts, facts = True, facts.cut()
            soft += first.items
            for item in first.items:
                ahead.advance(self.seating, item)
            if first.end is not None:
                return Plan(soft, ahead, end=first.end, cuts=cuts)
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
