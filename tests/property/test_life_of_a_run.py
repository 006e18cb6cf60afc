"""The life of a run under crashes, duplicates, late workers, stops, messages and time (B02, B20, B23, B30; F10).

A worker here is the real engine driven as the real worker drives it, against a store that is a dictionary with the fence and
the firm and soft parts of state.md. The control at the end takes the fence out, and must fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallResult, CallState, FunctionTool
from folkmoot.domain.definitions import Participant, ResolvedInteraction, Rule, SystemPromptMode
from folkmoot.domain.items import Author, AuthorKind, Item
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelCallFact,
    ModelChoice,
    ModelFailure,
    ModelReply,
    OwnCall,
    Purpose,
    ReplyCall,
    Sampling,
    Usage,
)
from folkmoot.domain.runs import Facts
from folkmoot.engine import decide, record
from folkmoot.engine.protocol import Protocol, folded
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, RunCall, Step
from folkmoot.engine.views import Views

Outcome = ModelReply | ModelFailure | CallResult
S = TypeVar("S", AskModel, RunCall)

NAMES = ("Ann", "Ben", "Cid")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
DEADLINE = BEGINNING + timedelta(minutes=5)
DANA = Author(AuthorKind.HUMAN, "Dana", UUID(int=7))
SCHEMA = json.dumps({"type": "object", "properties": {"choice": {"type": "string"}}, "required": ["choice"]})
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
            self.items[self.last_sequence] = item
            body = item.body
            if isinstance(body, items.ToolCall) and isinstance(item.detail, items.Called) and item.detail.leaves:
                self.calls[body.tool_call_id] = CallRow(body.function_name)
            elif isinstance(body, items.ToolResult) and body.tool_call_id in self.calls:
                self.calls[body.tool_call_id].is_ended = True


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


# what models and tools reply

WORDS = st.sampled_from(["", " ", "Yes.", "I agree", "TERMINATE", '{"name": "pass"}', "Größe \x00"])


def _call(name: str, **arguments: Any) -> ReplyCall:
    return ReplyCall(name, json.dumps(arguments))


CALLS = st.sampled_from(
    [
        _call("pass"),
        _call("call_vote", topic="A?"),
        _call("call_vote"),
        _call("propose_solution", solution={"choice": "A"}),
        _call("propose_solution", solution="A"),
        _call("propose_solution", solution=3),
        *(_call("ask", participant=name, question="Why?") for name in (*NAMES, "Nobody")),
        _call("agree"),
        _call("disagree", reason="no"),
        _call("answer", text="Because."),
        _call("nothing"),
        ReplyCall("write", "{"),
        *(_call(tool.name) for tool in TOOLS),
        *(_call(tool.name, of="x") for tool in TOOLS),
    ]
)
ANYTHING = st.tuples(WORDS, st.lists(CALLS, max_size=4).map(tuple))
FITTING = {
    Purpose.BALLOT: st.tuples(WORDS, st.sampled_from([(_call("agree"),), (_call("disagree", reason="no"),)])),
    Purpose.ANSWER: st.tuples(WORDS, st.just((_call("answer", text="Because."),))),
    Purpose.TURN: st.one_of(
        st.tuples(WORDS, st.lists(CALLS, max_size=1).map(tuple)),
        st.tuples(WORDS, st.lists(st.sampled_from([_call(tool.name) for tool in TOOLS]), max_size=3).map(tuple)),
        st.tuples(st.just(""), st.sampled_from([(_call("ask", participant=n, question="Why?"),) for n in NAMES])),
        st.tuples(
            st.just(""), st.sampled_from([(_call("propose_solution", solution=v),) for v in ("A", {"choice": "A"})])
        ),
    ),
}
CRASHES = st.sampled_from([None, None, None, None, 1, 2])  # after how many of the worker's writes
FAILURES = st.sampled_from([FailureClass.TIMEOUT, FailureClass.UNAVAILABLE, FailureClass.OVERLOADED])
HABITS: dict[str, tuple[str, tuple[ReplyCall, ...]]] = {
    "talks": ("Hm.", ()),
    "says nothing": ("", ()),
    "asks": ("", tuple(_call("ask", participant=name, question="Why?") for name in NAMES)),
    "calls what is not there": ("", (_call("nothing"),)),
    "proposes what does not fit": ("", (_call("propose_solution", solution=3),)),
    "proposes": ("", (_call("propose_solution", solution={"choice": "A"}), _call("propose_solution", solution="A"))),
    "calls for votes": ("Vote!", (_call("call_vote", topic="A?"),)),
    "uses every tool": ("", (*(_call(tool.name) for tool in TOOLS), _call("call_vote"))),
}


def _outcome(step: Step, text: str, calls: tuple[ReplyCall, ...]) -> Outcome:
    if isinstance(step, RunCall):
        return CallResult(text, is_error=text == "TERMINATE", unknown=text == "TERMINATE")
    return ModelReply(text, calls, Usage())


class LifeOfARun(RuleBasedStateMachine):
    is_fenced = True

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(is_fenced=self.is_fenced)
        self.worker: Worker | None = None
        self.late: list[tuple[Worker, str | None, Outcome | None]] = []
        self.seen: dict[str, list[Entry]] = {}
        self.texts = count(1)
        numbers = count(1)
        self.new_id = lambda: UUID(int=next(numbers))

    @initialize(
        seats=st.sampled_from([1, 2, 2, 3, 3]),
        flags=st.tuples(*[st.sampled_from([True, True, True, False])] * 4),
        rounds=st.integers(1, 4),
        silent=st.sampled_from([None, None, 1, 2]),
        loops=st.sampled_from([0, 1, 2, 3, 3, 3]),
        schema=st.sampled_from([None, SCHEMA]),
        rule=st.sampled_from(Rule),
        deadline=st.sampled_from([None, None, DEADLINE]),
        habit=st.sampled_from(sorted(HABITS)),
    )
    def start(
        self, seats: int, flags: tuple[bool, ...], rounds: int, silent: int | None, loops: int, schema: str | None, rule: Rule,
        deadline: datetime | None, habit: str,
    ) -> None:  # fmt: skip
        passing, voting, asking, proposing = flags
        self.seating = Seating(
            ResolvedInteraction(
                UUID(int=1), "panel", 1, "default",
                tuple(Participant(n, UUID(int=2), n, 1, None, (), ModelChoice("scripted", "s"), Sampling(), TOOLS) for n in NAMES[:seats]),
                "Choose.", (), SystemPromptMode.APPEND,
                is_no_action_allowed=passing, is_voting_allowed=voting, is_direct_questioning_allowed=asking,
                is_solution_proposal_allowed=proposing, maximum_no_action_loops=silent, maximum_rounds=rounds,
                solution_schema=schema, solution_rule=rule, vote_rule=rule, max_tool_call_loops=loops,
            )
        )  # fmt: skip
        self.store.deadline = deadline
        self.habit = habit
        self.claim()

    # what happens to it

    @precondition(lambda self: self.under_way(AskModel))
    @rule(data=st.data(), crash=CRASHES)
    def a_model_does_what_it_is_asked(self, data: st.DataObject, crash: int | None) -> None:
        key, step = data.draw(st.sampled_from(self.under_way(AskModel)))
        self.deliver(key, self.made_unique(_outcome(step, *data.draw(FITTING[step.purpose]))), crash_after=crash)

    @precondition(lambda self: self.under_way(AskModel))
    @rule(data=st.data(), crash=CRASHES)
    def a_model_replies_anything(self, data: st.DataObject, crash: int | None) -> None:
        key, step = data.draw(st.sampled_from(self.under_way(AskModel)))
        self.deliver(key, self.made_unique(_outcome(step, *data.draw(ANYTHING))), crash_after=crash)

    @precondition(lambda self: self.under_way(RunCall))
    @rule(data=st.data(), text=WORDS, crash=CRASHES)
    def a_tool_returns(self, data: st.DataObject, text: str, crash: int | None) -> None:
        key, step = data.draw(st.sampled_from(self.under_way(RunCall)))
        self.deliver(key, _outcome(step, text, ()), crash_after=crash)

    @precondition(lambda self: self.under_way(AskModel))
    @rule(data=st.data(), failure=FAILURES)
    def a_model_fails(self, data: st.DataObject, failure: FailureClass) -> None:
        key, _ = data.draw(st.sampled_from(self.under_way(AskModel)))
        self.deliver(key, ModelFailure(failure, "It failed."))

    @rule()
    def the_worker_is_lost_and_another_claims(self) -> None:
        if self.store.end is None:
            if self.worker is not None:
                self.late.append((self.worker, None, None))
            self.claim()

    @precondition(lambda self: self.late_ones())
    @rule(data=st.data(), text=WORDS)
    def a_late_worker_goes_on(self, data: st.DataObject, text: str) -> None:
        """It brings an outcome, perhaps one that it had committed without being told, or looks: it affects nothing (F10)."""
        worker, key, outcome = data.draw(st.sampled_from(self.late_ones()))
        if key is None and worker.under_way:
            key = data.draw(st.sampled_from(sorted(worker.under_way)))
            outcome = self.made_unique(_outcome(worker.under_way[key][0], text, (_call("agree"), _call("write"))))
        before = self.store.written()
        try:
            if key is None or outcome is None:
                worker.look()
            else:
                worker.take(key, outcome)
        except Lost:
            self.late = [entry for entry in self.late if entry[0] is not worker]
        if self.is_fenced:  # the control must find the harm by what always holds, below
            assert self.store.written() == before

    @rule(what=st.sampled_from(["message", "message", "nudge", "nudge", "a second", "a second", "minutes", "stop"]))
    def something_happens(self, what: str) -> None:
        match what:
            case "message":
                message = items.HumanMessage(f"Dana's word {next(self.texts)}")
                self.store.by_a_person(Item(self.new_id(), DANA, message))
            case "stop":
                self.store.by_a_person(None, stopped_by="Dana")
            case "nudge":
                if self.worker is not None and not self.worker.is_over:
                    self.guarded(self.worker.look)
            case _:
                self.store.now += timedelta(minutes=3) if what == "minutes" else timedelta(seconds=1)

    # how it is done

    def under_way(self, kind: type[S]) -> list[tuple[str, S]]:
        """The worker's steps of a kind, in the order of their keys."""
        going_on = self.worker.under_way if self.worker is not None and not self.worker.is_over else {}
        return [(key, step) for key, (step, _) in sorted(going_on.items()) if isinstance(step, kind)]

    def late_ones(self) -> list[tuple[Worker, str | None, Outcome | None]]:
        """Workers whose claim is no more. One that was not told what became of its write drops the run, whoever has it."""
        return [late for late in self.late if late[0].claim < self.store.claim or self.store.end is not None]

    def claim(self) -> None:
        self.worker = Worker(self.store, self.seating, self.new_id)
        self.guarded(self.worker.begin)

    def deliver(self, key: str, outcome: Outcome, *, crash_after: int | None = None) -> None:
        """An outcome comes, and then once more: the second is one too many."""
        worker = self.worker
        assert worker is not None
        worker.crash_after = crash_after
        before = worker.under_way[key]
        self.guarded(lambda: worker.take(key, outcome))
        worker.crash_after = None
        if self.worker is None:
            if crash_after == 1:  # it was told nothing of its write: what it brought may come again, by a late worker
                worker.under_way[key] = before
                self.late.append((worker, key, outcome))
        else:
            written = self.store.last_sequence
            if key not in worker.under_way:
                self.guarded(lambda: worker.take(key, outcome))
            assert self.store.last_sequence == written

    def guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Crash:
            self.worker = None

    def made_unique(self, outcome: Outcome) -> Outcome:
        """Words get a number, so that each can be found again; an empty reply stays one."""
        if isinstance(outcome, ModelReply):
            text = f"{outcome.text} word {next(self.texts)}." if outcome.text.strip() else outcome.text
            calls = tuple(
                _call("disagree", reason=f"reason {next(self.texts)}.") if c.name == "disagree" else c
                for c in outcome.calls
            )
            return ModelReply(text, calls, outcome.usage)
        return outcome

    def teardown(self) -> None:
        """Whatever a model's habit, a run with bounded rounds ends."""
        if not hasattr(self, "habit"):
            return
        if self.worker is None and self.store.end is None:
            self.claim()
        for _ in range(2000):
            worker = self.worker
            if worker is None or worker.is_over:
                break
            worker.look()
            if not worker.is_over:
                key, (step, _id) = next(iter(worker.under_way.items()))
                worker.take(key, _outcome(step, *HABITS[self.habit]))
        assert self.store.end is not None
        self.the_conversation_is_sound()
        self.what_the_worker_knows_is_what_the_items_say()
        self.views_only_grow_and_keep_ballots_sealed()

    # what always holds

    @invariant()
    def the_conversation_is_sound(self) -> None:
        store = self.store
        assert sorted(store.items) == list(range(1, store.last_sequence + 1))
        conversation = store.conversation()
        assert len({item.item_id for item in conversation}) == len(conversation)

        results = [item.body.tool_call_id for item in conversation if isinstance(item.body, items.ToolResult)]
        calls = [item.body.tool_call_id for item in conversation if isinstance(item.body, items.ToolCall)]
        assert len(set(results)) == len(results)
        assert len(set(calls)) == len(calls)
        assert set(results) <= set(calls)

        ends = [n for n, item in enumerate(conversation, 1) if _ends(item)]
        assert len(ends) <= 1
        assert bool(ends) is (store.end is not None)
        if ends:
            assert ends == [store.last_sequence]
            assert set(results) == set(calls)

        by_key: dict[str, int] = {}
        for row in store.model_calls.values():
            by_key[row.key] = by_key.get(row.key, 0) + row.is_answered
        assert all(answers <= 1 for answers in by_key.values())
        for call in store.calls.values():
            assert len(call.begun_by) <= 1 or call.name in ("sync", "look")

        votes = [
            (i.body.associated_id, i.author.name)
            for i in conversation
            if isinstance(i.body, items.Agree | items.Disagree)
        ]
        assert len(set(votes)) == len(votes)

    @invariant()
    def what_the_worker_knows_is_what_the_items_say(self) -> None:
        """The same items and facts give the same state, the same views and the same steps."""
        worker = self.worker
        if worker is None:
            return
        known = self.store.conversation()[: worker.sequence]
        again, views = folded(self.seating, known), Views(self.seating.names)
        for item in known:
            views.add(item)
        assert worker.protocol == again
        for name, view in views.of.items():
            assert worker.views.of[name].entries == view.entries
            assert worker.views.of[name].held == view.held
        is_in_step = (worker.signal, worker.sequence) == (self.store.signal, self.store.last_sequence)
        if is_in_step and not worker.is_over and not (self.store.deadline and self.store.now >= self.store.deadline):
            steps = decide.next_steps(self.seating, again, worker.facts(), self.new_id)
            assert {step.key for step in steps if not isinstance(step, Record)} == set(worker.under_way)

    @invariant()
    def views_only_grow_and_keep_ballots_sealed(self) -> None:
        conversation = self.store.conversation()
        views = Views(self.seating.names) if hasattr(self, "seating") else Views(())
        for item in conversation:
            views.add(item)
        for name, view in views.of.items():
            seen = self.seen.get(name, [])
            assert view.entries[: len(seen)] == seen
            self.seen[name] = list(view.entries)
        tallied = {item.detail.ballot for item in conversation if isinstance(item.detail, items.Tally)}
        for item in conversation:
            if isinstance(item.detail, items.Balloted) and item.detail.ballot not in tallied:
                for view in views.of.values():
                    assert not any(_shows(entry, item) for entry in [*view.entries, *view.held])


def _ends(item: Item) -> bool:
    return isinstance(item.detail, items.Ended) or (
        isinstance(item.detail, items.Tally) and item.detail.outcome is items.Outcome.ACCEPTED
    )


def _shows(entry: Entry, item: Item) -> bool:
    """Whether an entry shows a vote, or what was said beside it."""
    text = f"{entry.arguments_json}{entry.result}" if isinstance(entry, OwnCall) else entry.text
    match item.body:
        case items.Disagree(reason=reason):
            words = reason
        case items.AgentMessage(message=message):
            words = message
        case _:
            words = ""
    return (isinstance(entry, OwnCall) and entry.call_id == str(item.item_id)) or (words != "" and words in text)


QUICK = settings(
    max_examples=200, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)  # fmt: skip


class TestLifeOfARun(LifeOfARun.TestCase):  # type: ignore[misc,name-defined]
    settings = QUICK


class LifeWithoutTheFence(LifeOfARun):
    """The control: a late worker's writes are let in."""

    is_fenced = False


def test_without_the_fence_a_late_worker_does_harm() -> None:
    """The negative control: what the machine above asserts does not hold by itself (F10)."""
    once = settings(
        QUICK, max_examples=400, phases=[Phase.generate], derandomize=True, database=None, report_multiple_bugs=False
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(LifeWithoutTheFence, settings=once)
