"""The life of a run under crashes, duplicates, late workers, stops, messages and time (B02, B20, B23, B30; F10).

A worker here is the real engine driven as the real worker drives it, against a store that is a dictionary with the fence and
the firm and soft parts of state.md. The control at the end takes the fence out, and must fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar

import pytest
from engine_harness import DANA, call, counted_ids, panel, seat
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
from run_model import BEGINNING, TOOLS, Crash, Lost, Outcome, Store, Worker

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.definitions import Rule
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelFailure,
    ModelReply,
    OwnCall,
    Purpose,
    ReplyCall,
    Usage,
)
from folkmoot.engine import decide
from folkmoot.engine.protocol import folded
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record, RunCall, Step
from folkmoot.engine.views import Views

pytestmark = pytest.mark.timeout(400)  # what fails is made small before it is shown, which takes its time

S = TypeVar("S", AskModel, RunCall)

NAMES = ("Ann", "Ben", "Cid")
DEADLINE = BEGINNING + timedelta(minutes=5)
SCHEMA = json.dumps({"type": "object", "properties": {"choice": {"type": "string"}}, "required": ["choice"]})


# what models and tools reply

WORDS = st.sampled_from(["", " ", "Yes.", "I agree", "TERMINATE", '{"name": "pass"}', "Größe \x00"])


CALLS = st.sampled_from(
    [
        call("pass"),
        call("call_vote", topic="A?"),
        call("call_vote"),
        call("propose_solution", solution={"choice": "A"}),
        call("propose_solution", solution="A"),
        call("propose_solution", solution=3),
        *(call("ask", participant=name, question="Why?") for name in (*NAMES, "Nobody")),
        call("agree"),
        call("disagree", reason="no"),
        call("answer", text="Because."),
        call("nothing"),
        ReplyCall("write", "{"),
        *(call(tool.name) for tool in TOOLS),
        *(call(tool.name, of="x") for tool in TOOLS),
    ]
)
ANYTHING = st.tuples(WORDS, st.lists(CALLS, max_size=4).map(tuple))
FITTING = {
    Purpose.BALLOT: st.tuples(WORDS, st.sampled_from([(call("agree"),), (call("disagree", reason="no"),)])),
    Purpose.ANSWER: st.tuples(WORDS, st.just((call("answer", text="Because."),))),
    Purpose.TURN: st.one_of(
        st.tuples(WORDS, st.lists(CALLS, max_size=1).map(tuple)),
        st.tuples(WORDS, st.lists(st.sampled_from([call(tool.name) for tool in TOOLS]), max_size=3).map(tuple)),
        st.tuples(st.just(""), st.sampled_from([(call("ask", participant=n, question="Why?"),) for n in NAMES])),
        st.tuples(
            st.just(""), st.sampled_from([(call("propose_solution", solution=v),) for v in ("A", {"choice": "A"})])
        ),
    ),
}
CRASHES = st.sampled_from([None, None, None, None, 1, 2])  # after how many of the worker's writes
FAILURES = st.sampled_from([FailureClass.TIMEOUT, FailureClass.UNAVAILABLE, FailureClass.OVERLOADED])
HABITS: dict[str, tuple[str, tuple[ReplyCall, ...]]] = {
    "talks": ("Hm.", ()),
    "says nothing": ("", ()),
    "asks": ("", (call("ask", participant="Ann", question="Why?"),)),
    "asks several": ("", tuple(call("ask", participant=name, question="Why?") for name in NAMES)),
    "calls what is not there": ("", (call("nothing"),)),
    "proposes what does not fit": ("", (call("propose_solution", solution=3),)),
    "proposes": ("", (call("propose_solution", solution={"choice": "A"}), call("propose_solution", solution="A"))),
    "calls for votes": ("Vote!", (call("call_vote", topic="A?"),)),
    "uses every tool": ("", (*(call(tool.name) for tool in TOOLS), call("call_vote"))),
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
        self.new_id = counted_ids()

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
            panel(
                *(seat(name, *TOOLS) for name in NAMES[:seats]),
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
            outcome = self.made_unique(_outcome(worker.under_way[key][0], text, (call("agree"), call("write"))))
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
                call("disagree", reason=f"reason {next(self.texts)}.") if c.name == "disagree" else c
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
        for made in store.calls.values():
            assert len(made.begun_by) <= 1 or made.name in ("sync", "look")

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
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


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
