"""The life of a run under crashes, duplicates, late workers, stops, messages, people's answers and time (B01, B02, B05, B13,
B20, B23, B30; F10, F30, F34).

A worker here is the real engine driven as the real worker drives it, against a store that is a dictionary with the fence and
the firm and soft parts of state.md. The controls at the end take the fence out, and what refuses a call; they must fail.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import TypeVar
from uuid import UUID

import pytest
from engine_harness import call, counted_ids, panel, seat
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
from replies_at_random import (
    ANSWERS,
    ANYTHING,
    CRASHES,
    FAILURES,
    FITTING,
    HABITS,
    NAMES,
    PEOPLE,
    SETTINGS,
    WORDS,
    outcome_of,
)
from run_model import TOOLS, Crash, Lost, Outcome, Worker
from run_store import AT_WORK, BEGINNING, PendingRow, Store, answer_detail

from folkmoot.domain import items
from folkmoot.domain.approvals import final_call
from folkmoot.domain.contexts import ContextSettings
from folkmoot.domain.definitions import HumanSettings, Rule
from folkmoot.domain.items import Author, AuthorKind, Item
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelFailure,
    ModelReply,
    OtherText,
    OwnCall,
)
from folkmoot.domain.pending import PERSON, Decision, PendingKind, PendingOutcome
from folkmoot.domain.runs import Facts
from folkmoot.engine import calls as tool_calls
from folkmoot.engine import decide, time_limits
from folkmoot.engine.protocol import folded
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record, RunCall
from folkmoot.engine.views import Views

pytestmark = pytest.mark.timeout(400)  # what fails is made small before it is shown, which takes its time

S = TypeVar("S", AskModel, RunCall)

DEADLINE = BEGINNING + timedelta(minutes=5)
SCHEMA = json.dumps({"type": "object", "properties": {"choice": {"type": "string"}}, "required": ["choice"]})


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
        warned_after=st.sampled_from([None, 1, 2, 4]),
        habit=st.sampled_from(sorted(HABITS)),
        people=SETTINGS,
        is_willing=st.booleans(),
        steps=st.integers(0, 12),
    )
    def start(
        self, seats: int, flags: tuple[bool, ...], rounds: int, silent: int | None, loops: int, schema: str | None, rule: Rule,
        deadline: datetime | None, warned_after: int | None, habit: str, people: HumanSettings | None, is_willing: bool, steps: int,
    ) -> None:  # fmt: skip
        passing, voting, asking, proposing = flags
        self.seating = Seating(
            panel(
                *(seat(name, *TOOLS) for name in NAMES[:seats]),
                is_no_action_allowed=passing, is_voting_allowed=voting, is_direct_questioning_allowed=asking,
                is_solution_proposal_allowed=proposing, maximum_no_action_loops=silent, maximum_rounds=rounds,
                solution_schema=schema, solution_rule=rule, vote_rule=rule, context=ContextSettings(max_tool_call_loops=loops),
                human_settings=people, duration_auto_termination=DEADLINE - BEGINNING if deadline else None,
                duration_warning_to_ai=timedelta(minutes=warned_after) if deadline and warned_after else None,
            )
        )  # fmt: skip
        self.store.deadline = deadline
        self.habit, self.is_willing = habit, is_willing
        for _ in range(steps):  # what befalls it may befall it in the midst of things
            self.go_on()

    # what happens to it

    @rule(data=st.data(), outcomes=st.integers(1, 3), crash=CRASHES)
    def it_goes_on(self, data: st.DataObject, outcomes: int, crash: int | None) -> None:
        """Models do what they are asked, tools return, and whoever is waited for comes."""
        for _ in range(outcomes):
            worker, row = self.worker, self.store.open_row
            if row is not None:
                assert self.answer(row, data.draw(st.sampled_from(ANSWERS[row.pending.kind])))
            if self.store.end is None and (worker is None or worker.is_over):
                self.claim(crash_after=crash)
            under_way: list[tuple[str, AskModel | RunCall]] = [*self.under_way(AskModel), *self.under_way(RunCall)]
            if under_way:
                key, step = data.draw(st.sampled_from(under_way))
                said = data.draw(FITTING[step.purpose]) if isinstance(step, AskModel) else (data.draw(WORDS), ())
                self.deliver(key, self.made_unique(outcome_of(step, *said)), crash_after=crash)

    @precondition(lambda self: self.under_way(AskModel))
    @rule(data=st.data(), crash=CRASHES)
    def a_model_replies_anything(self, data: st.DataObject, crash: int | None) -> None:
        key, step = data.draw(st.sampled_from(self.under_way(AskModel)))
        self.deliver(key, self.made_unique(outcome_of(step, *data.draw(ANYTHING))), crash_after=crash)

    @precondition(lambda self: self.under_way(AskModel))
    @rule(data=st.data(), failure=FAILURES)
    def a_model_fails(self, data: st.DataObject, failure: FailureClass) -> None:
        key, _ = data.draw(st.sampled_from(self.under_way(AskModel)))
        self.deliver(key, ModelFailure(failure, "It failed."))

    @rule(crash=CRASHES)
    def another_worker_claims(self, crash: int | None) -> None:
        """The former one is lost, or had paused; where nobody has answered, it is a wake for nothing."""
        if self.store.end is None:
            if self.worker is not None:
                self.late.append((self.worker, None, None))
            self.claim(crash_after=crash)

    @precondition(lambda self: self.store.open_row is not None)
    @rule(data=st.data(), is_claimed=st.sampled_from([True, True, False]), crash=CRASHES)
    def a_person_answers(self, data: st.DataObject, is_claimed: bool, crash: int | None) -> None:
        row = self.store.open_row
        assert row is not None
        assert self.answer(row, data.draw(st.sampled_from(ANSWERS[row.pending.kind])))
        if is_claimed:
            self.claim(crash_after=crash)

    @precondition(lambda self: self.store.open_row is not None)
    @rule(what=st.sampled_from(["nothing", "nothing", "a stop", "silence"]))
    def nobody_answers(self, what: str) -> None:
        """Their time runs out, or the run is stopped while it waits."""
        if what == "a stop":
            self.store.by_a_person(None, stopped_by="Dana")
        elif what == "silence":
            self.store.run_out()

    @precondition(lambda self: any(row.outcome is not None for row in self.store.pending.values()))
    @rule(data=st.data())
    def a_person_answers_what_is_closed(self, data: st.DataObject) -> None:
        """Answered already, expired, or the run was stopped: it changes nothing (B03, F30, F34)."""
        closed = [row for row in self.store.pending.values() if row.outcome is not None]
        row = data.draw(st.sampled_from(closed))
        before = self.store.written()
        assert not self.answer(row, data.draw(st.sampled_from(ANSWERS[row.pending.kind])))
        assert self.store.written() == before

    @precondition(lambda self: self.late_ones())
    @rule(data=st.data(), text=WORDS)
    def a_late_worker_goes_on(self, data: st.DataObject, text: str) -> None:
        """It brings an outcome, perhaps one that it had committed without being told, or looks: it affects nothing (F10)."""
        worker, key, outcome = data.draw(st.sampled_from(self.late_ones()))
        if key is None and worker.under_way:
            key = data.draw(st.sampled_from(sorted(worker.under_way)))
            outcome = self.made_unique(outcome_of(worker.under_way[key][0], text, (call("agree"), call("write"))))
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

    @rule(
        what=st.sampled_from([*["message"] * 3, *["nudge"] * 3, "a second", "a second", "minutes", "a minute", "stop"])
    )
    def something_happens(self, what: str) -> None:
        match what:
            case "message":
                row = self.store.open_row
                if row is not None and row.pending.kind is PendingKind.TURN:
                    self.answer(row, "message")
                else:
                    self.store.by_a_person(Item(self.new_id(), self.person(), self.words()))
            case "stop":
                self.store.by_a_person(None, stopped_by="Dana")
            case "nudge":
                if self.worker is not None and not self.worker.is_over:
                    self.guarded(self.worker.look)
            case _:
                self.store.now += timedelta(seconds={"a second": 1, "a minute": 60, "minutes": 180}[what])

    # how it is done

    def go_on(self) -> None:
        """One outcome by habit, or what else is waited for: an answer and a claim."""
        worker, row = self.worker, self.store.open_row
        if row is not None:
            possible = ANSWERS[row.pending.kind]
            self.answer(row, possible[0 if self.is_willing else next(self.texts) % len(possible)])
        if self.store.end is not None:
            return
        if worker is None or worker.is_over:
            return self.claim()
        worker.look()
        if not worker.is_over:
            key, (step, _id) = next(iter(worker.under_way.items()))
            worker.take(key, self.made_unique(outcome_of(step, *HABITS[self.habit])))

    def under_way(self, kind: type[S]) -> list[tuple[str, S]]:
        """The worker's steps of a kind, in the order of their keys."""
        going_on = self.worker.under_way if self.worker is not None and not self.worker.is_over else {}
        return [(key, step) for key, (step, _) in sorted(going_on.items()) if isinstance(step, kind)]

    def late_ones(self) -> list[tuple[Worker, str | None, Outcome | None]]:
        """Workers whose claim is no more. One that was not told what became of its write drops the run, whoever has it."""
        store = self.store
        is_given_back = store.end is not None or store.status is not AT_WORK
        return [late for late in self.late if late[0].claim < store.claim or is_given_back]

    def claim(self, *, crash_after: int | None = None) -> None:
        self.worker = worker = Worker(self.store, self.seating, self.new_id)
        worker.crash_after = crash_after
        self.guarded(worker.begin)
        worker.crash_after = None

    def person(self) -> Author:
        """Each time another one, so that it can be told who did what."""
        return Author(AuthorKind.HUMAN, f"Eve {next(self.texts)}", self.new_id())

    def words(self) -> items.HumanMessage:
        return items.HumanMessage(f"Eve's word {next(self.texts)}")

    def answer(self, row: PendingRow, how: str) -> bool:
        """A person's answer, as the services write it; whether it counted."""
        pending, person = row.pending, self.person()
        if pending.kind is PendingKind.APPROVAL:
            outcome = PendingOutcome.REJECTED if how == "reject" else PendingOutcome.APPROVED
            hashed = b"of something else" if how == "approve something else" else pending.binding_hash
            assert hashed is not None
            is_void = how == "approve without the right"
            decision = Decision(how != "reject", person.name, hashed, reason=None, is_void=is_void)
            return self.store.settle(pending.pending_id, outcome, decision)
        bodies: dict[str, items.Body] = {
            "agree": items.Agree(pending.pending_id),
            "disagree": items.Disagree(pending.pending_id, f"reason {next(self.texts)}."),
            "answer": items.DirectQuestionAnswer(pending.pending_id, f"answer {next(self.texts)}."),
            "message": self.words(),
            "pass": items.NoAction(),
        }
        turn_id = pending.pending_id if pending.kind is PendingKind.TURN else None
        detail = answer_detail(pending.kind, pending.pending_id)
        item = Item(self.new_id(), person, bodies[how], detail, turn_id)
        return self.store.settle(pending.pending_id, PendingOutcome.ANSWERED, item)

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
        """Whatever a model's habit, a run with bounded rounds ends where people answer."""
        if not hasattr(self, "habit"):
            return
        for _ in range(2000):
            if self.store.end is not None:
                break
            self.go_on()
        assert self.store.end is not None
        self.the_conversation_is_sound()
        self.nothing_is_done_that_people_did_not_allow()
        self.each_ballot_has_one_vote_for_people_that_comes_first()
        self.what_waits_is_asked_once_and_alone()
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
        floors = [item.detail for item in conversation if isinstance(item.detail, items.Floor)]
        assert len(set(floors)) == len(floors)

    @invariant()
    def time_is_told_in_its_order(self) -> None:
        """B72, B30: how long there is, how much is left, the last turn, the end: each once, in whichever claim; and after the
        last turn nothing but what comes of it."""
        conversation = self.store.conversation()
        told = [
            type(item.detail)
            for item in conversation
            if isinstance(item.detail, items.Task | items.TimeWarning | items.LastTurn) or _ends(item)
        ]
        order = [items.Task, items.TimeWarning, items.LastTurn, items.Ended, items.Tally]
        assert [order.index(kind) for kind in told] == sorted({order.index(kind) for kind in told})
        last = next((n for n, item in enumerate(conversation) if isinstance(item.detail, items.LastTurn)), None)
        if last is not None:
            after = conversation[last:]
            assert not any(isinstance(item.detail, items.Floor) for item in after)
            assert not any(isinstance(item.body, items.VoteProposal | items.DirectQuestionAsk) for item in after)

    @invariant()
    def each_ballot_has_one_vote_for_people_that_comes_first(self) -> None:
        """Where they are included; else none. Nobody votes twice, or is counted twice."""
        voters: dict[UUID, list[str]] = {}
        of_people: set[UUID] = set()
        for item in self.store.conversation():
            match item.body:
                case items.VoteProposal(ballot) if self.seating.do_people_vote(is_solution=False):
                    of_people.add(ballot)
                case items.SolutionProposal(ballot) if self.seating.do_people_vote(is_solution=True):
                    of_people.add(ballot)
                case items.Agree(ballot) | items.Disagree(ballot):
                    is_person = item.author.kind is AuthorKind.HUMAN
                    voters.setdefault(ballot, []).append(PERSON if is_person else item.author.name)
            if isinstance(item.detail, items.Tally):
                tally = item.detail
                counted = [*tally.in_favour, *tally.against, *tally.abstained]
                assert len(set(counted)) == len(counted)
                assert len(set(counted) - set(self.seating.names)) == (tally.ballot in of_people)
        for ballot, names in voters.items():
            assert len(set(names)) == len(names)
            assert (names[0] == PERSON) is (ballot in of_people)
            assert PERSON not in names[1:]

    @invariant()
    def nothing_is_done_that_people_did_not_allow(self) -> None:
        """B05, B13, F30, F34: a gated call runs once its very self was approved, and nothing is begun once the run is to end."""
        store = self.store
        assert store.begun_when_over == 0
        for call_id, made in store.calls.items():
            tool = self.seating.tools[made.participant][made.name]
            assert len(made.begun) <= 1 or tool.is_idempotent or tool.is_read_only
            for begun in made.begun if tool.is_gated else ():
                decision = begun.decision
                assert decision is not None, f"{call_id} was begun before anybody decided"
                assert decision.is_approved and not decision.is_void
                assert decision.binding_hash == final_call(tool, made.arguments_json).hash

    @invariant()
    def what_waits_is_asked_once_and_alone(self) -> None:
        """B01, B02, B08: it is found again by whoever reads the items; meanwhile nothing is under way."""
        store = self.store
        assert not any(row.asked_after for row in store.pending.values()), "what was closed is asked again"
        assert len([row for row in store.pending.values() if row.outcome is None]) <= (store.end is None)
        if store.status is AT_WORK or store.end is not None:
            return
        assert all(row.is_answered or row.failure is not None for row in store.model_calls.values())
        assert all(made.is_ended or not made.begun for made in store.calls.values())
        assert store.is_awake is (store.open_row is None)
        if store.open_row is not None:
            again = folded(self.seating, store.conversation())
            facts = Facts(store.now, decisions=store.decisions)
            assert decide.next_steps(self.seating, again, facts, self.new_id) == (store.wait,)

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
        deadline = time_limits.next_cut(self.seating.definition, again, self.store.deadline) or self.store.deadline
        if is_in_step and not worker.is_over and not (deadline and self.store.now >= deadline):
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
    if item.author.kind is AuthorKind.HUMAN:  # who voted may write a message as well
        is_theirs = isinstance(entry, OtherText) and item.author.name in (entry.speaker or "")
        return is_theirs and (text.startswith(("I agree", "I disagree")) or (words != "" and words in text))
    return (isinstance(entry, OwnCall) and entry.call_id == str(item.item_id)) or (words != "" and words in text)


QUICK = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class TestLifeOfARun(LifeOfARun.TestCase):  # type: ignore[misc,valid-type]
    settings = QUICK


class LifeWithoutTheFence(LifeOfARun):
    """The control: a late worker's writes are let in."""

    is_fenced = False


ONCE = settings(
    QUICK, max_examples=400, phases=[Phase.generate], derandomize=True, database=None, report_multiple_bugs=False
)


def test_without_the_fence_a_late_worker_does_harm() -> None:
    """The negative control: what the machine above asserts does not hold by itself (F10)."""
    with pytest.raises(AssertionError):
        run_state_machine_as_test(LifeWithoutTheFence, settings=ONCE)


def test_without_its_refusal_a_call_is_made_that_nobody_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: a decision of any kind lets the call through (B04, B05)."""
    monkeypatch.setattr(tool_calls, "_refusal", lambda decision, call: None)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(LifeOfARun, settings=ONCE)


class TimeOfARun(LifeOfARun):
    """A run whose time is short, with nobody who stops it: time passes at every step, and the worker wakes as the drive does (B72)."""

    @initialize(
        seats=st.integers(1, 3),
        flags=st.tuples(*[st.sampled_from([True, True, False])] * 4),
        loops=st.sampled_from([1, 3]),
        rule=st.sampled_from(Rule),
        warned_after=st.sampled_from([1, 2, 4]),
        habit=st.sampled_from(sorted(HABITS)),
        people=st.sampled_from([None, None, *PEOPLE]),
    )
    def start(  # type: ignore[override]
        self, seats: int, flags: tuple[bool, ...], loops: int, rule: Rule, warned_after: int, habit: str, people: HumanSettings | None
    ) -> None:  # fmt: skip
        super().start(
            seats=seats, flags=flags, rounds=1000, silent=None, loops=loops, schema=None, rule=rule, deadline=DEADLINE,
            warned_after=warned_after, habit=habit, people=people, is_willing=True, steps=0,
        )  # fmt: skip

    # what is not to happen here
    something_happens = None
    nobody_answers = None
    a_person_answers_what_is_closed = None

    @precondition(lambda self: self.worker is not None and not self.worker.is_over)
    @rule(seconds=st.sampled_from([1, 20, 20, 45, 90]))
    def time_passes(self, seconds: int) -> None:
        """While a worker has the run: what people take is not counted."""
        worker, store = self.worker, self.store
        assert worker is not None
        store.now += timedelta(seconds=seconds)
        self.guarded(worker.look)

    def go_on(self) -> None:
        if self.worker is not None and not self.worker.is_over:
            self.store.now += timedelta(seconds=7)
        super().go_on()


class TestTimeOfARun(TimeOfARun.TestCase):  # type: ignore[misc,valid-type]
    settings = settings(QUICK, max_examples=25, stateful_step_count=20)


def test_without_its_end_a_turn_follows_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: what the machine asserts does not hold by itself."""
    monkeypatch.setattr(time_limits, "is_last_turn_over", lambda protocol: False)
    with pytest.raises(AssertionError):
        run_state_machine_as_test(TimeOfARun, settings=ONCE)
