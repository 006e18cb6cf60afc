"""The phases of an agent run: what comes next, what is offered, what its calls say, and what needs consent (agent-runs.md 'The loop', 'Consent')."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from engine_harness import Conversation, call, counted_ids, panel, reply, seat, tool

from folkmoot.agentloop import offers, readings, words
from folkmoot.agentloop.consent import applies, needs_consent
from folkmoot.agentloop.decide import Fail, Finish, OpenPhase, next_move, over_budget
from folkmoot.agentloop.payload import payload
from folkmoot.agentloop.state import BEGINNING, LoopState
from folkmoot.domain import items
from folkmoot.domain.agent_runs import Finding, Phase, PinnedLoop, PinnedSpecialist, Plan, PlanStep
from folkmoot.domain.agent_settings import Comparison, ConsentRule
from folkmoot.domain.budgets import Amounts
from folkmoot.domain.calls import AskedCall, CallResult, DelegateTarget, ResultTarget
from folkmoot.domain.items import ORCHESTRATOR, Item
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tool_names import READ_RESULT_TOOL
from folkmoot.engine.step import RunCall

LOOP = PinnedLoop(UUID(int=1), (UUID(int=2),), maximum_iterations=2)
CLERK = PinnedSpecialist("clerk", UUID(int=3), 1, "Signs.")
PLAN = Plan((PlanStep("Add.", "add"), PlanStep("Have it signed.", specialist="clerk"), PlanStep("Say it.")), ("Done.",))
ACTING = LoopState(phase=Phase.ACT, plan=PLAN)
MET = items.Verified(True, (Finding(1, True, "It says so."),), "42", None)
UNMET = items.Verified(False, (Finding(1, False, "Nothing."),), None, "All of it.")
LOOK, ADD, TELL = tool("look", is_read_only=True), tool("add"), tool("tell", is_gated=True)
new_id = counted_ids()


def said(detail: items.Detail | None, body: items.Body | None = None) -> Item:
    return Item(new_id(), ORCHESTRATOR, body or items.OrchestratorMessage("So."), detail)


def move(state: LoopState, *, can_read: bool = True) -> Any:
    return next_move(LOOP, state, goal="The goal.", can_read=can_read)


class TestWhatComesNext:
    def test_a_new_run_gathers_and_then_plans(self) -> None:
        assert move(BEGINNING).phase is Phase.GATHER
        assert move(BEGINNING.after_turn(said(None))).phase is Phase.PLAN

    def test_with_nothing_to_read_the_request_is_planned_from(self) -> None:
        assert move(BEGINNING, can_read=False).phase is Phase.PLAN

    def test_each_step_of_the_plan_has_a_turn_and_then_it_is_verified(self) -> None:
        state = replace(BEGINNING, phase=Phase.PLAN).with_item(said(items.Planned(PLAN)))
        found = []
        for _ in range(4):
            found.append((move(state).phase, move(state).step))
            state = state.after_turn(said(None))
        assert found == [(Phase.ACT, 0), (Phase.ACT, 1), (Phase.ACT, 2), (Phase.VERIFY, None)]

    def test_verifying_has_a_thread_of_its_own_each_time(self) -> None:
        first, second = (replace(ACTING, phase=Phase.VERIFY, step=3, iteration=n) for n in (0, 1))
        assert (move(first).thread_id, move(second).thread_id) == ("verify/1", "verify/2")
        assert move(ACTING).thread_id is None

    def test_what_is_verified_is_the_goal_the_criteria_and_what_was_recorded(self) -> None:
        call_ = AskedCall(str(UUID(int=9)), "add", '{"one": 1}', "boss")
        state = ACTING.with_result(call_, items.ToolResult(call_.call_id, "42", False, 2), None)
        words = move(replace(state, phase=Phase.VERIFY, step=3)).words
        assert "The goal." in words and "1. Done." in words and 'add with {"one": 1} gave: 42' in words

    def test_a_verdict_that_is_met_ends_the_run_with_its_answer(self) -> None:
        assert move(replace(ACTING, phase=Phase.VERIFY).with_item(said(MET))) == Finish("42")

    def test_what_is_missing_goes_back_to_planning(self) -> None:
        state = replace(ACTING, phase=Phase.VERIFY).with_item(said(UNMET))
        assert (state.phase, state.iteration, state.step, state.missing) == (Phase.PLAN, 1, 0, "All of it.")
        assert "All of it." in move(state).words

    def test_it_goes_back_as_often_as_allowed_however_it_came_about(self) -> None:
        state = replace(ACTING, phase=Phase.VERIFY).with_item(said(UNMET)).with_item(said(items.Replanned("It fails.")))
        assert isinstance(move(state), OpenPhase)
        found = move(state.with_item(said(items.Replanned("Again."))))
        assert isinstance(found, Fail) and "2 times" in found.words and "Again." in found.words

    @pytest.mark.parametrize("phase", [Phase.PLAN, Phase.VERIFY])
    def test_a_phase_that_needs_a_call_and_ends_in_words_fails_with_them(self, phase: Phase) -> None:
        found = move(replace(ACTING, phase=phase).after_turn(said(None, items.OrchestratorMessage("Too often."))))
        assert isinstance(found, Fail) and found.words.endswith("Too often.")

    def test_calls_beyond_the_budget_are_not_made(self) -> None:
        loop, state = replace(LOOP, tool_calls=3), replace(ACTING, tool_calls=2)
        assert over_budget(loop, state, wanted=1) is None
        found = over_budget(loop, state, wanted=2)
        assert found is not None and "3 tool calls" in found.words
        assert over_budget(LOOP, replace(state, tool_calls=1000), wanted=1000) is None


class TestWhatIsRecorded:
    CALL = AskedCall(str(UUID(int=9)), "add", "{}", "boss")

    def recorded(
        self, text: str = "42", *, detail: items.Detail | None = None, declined: str | None = None
    ) -> LoopState:
        result = items.ToolResult(self.CALL.call_id, text, False, len(text), rejection_reason=declined)
        return ACTING.with_result(self.CALL, result, detail)

    def test_a_call_counts_and_one_that_was_declined_does_not(self) -> None:
        assert (self.recorded().tool_calls, self.recorded(declined="No.").tool_calls) == (1, 0)

    def test_a_delegation_counts_with_what_was_called_below(self) -> None:
        assert self.recorded(detail=items.Delegated(5)).tool_calls == 6

    def test_a_call_that_the_end_closed_counts_only_if_it_may_have_happened(self) -> None:
        assert self.recorded(detail=items.UnknownOutcome()).tool_calls == 1
        assert self.recorded(detail=items.NotMade()).tool_calls == 0

    def test_a_long_result_is_kept_by_its_beginning_and_says_so(self) -> None:
        (found,) = self.recorded("x" * 5_000).evidence
        assert found.is_cut and len(found.result) == 4_000

    def test_the_newest_results_are_kept(self) -> None:
        state = ACTING
        for n in range(50):
            state = state.with_result(self.CALL, items.ToolResult(self.CALL.call_id, str(n), False, 1), None)
        assert [each.result for each in state.evidence] == [str(n) for n in range(10, 50)] and state.tool_calls == 50


class TestWhatIsOffered:
    TOOLS = (LOOK, ADD, TELL, tool(READ_RESULT_TOOL, is_read_only=True, target=ResultTarget()))

    @pytest.mark.parametrize(
        ("state", "names"),
        [
            (BEGINNING, {"look"}),
            (replace(BEGINNING, phase=Phase.PLAN), {"make_plan"}),
            (ACTING, {"add", "replan"}),
            (replace(ACTING, step=1), {"delegate", "replan"}),
            (replace(ACTING, step=2), {"replan"}),
            (replace(ACTING, phase=Phase.VERIFY), {"verdict"}),
        ],
        ids=["gather", "plan", "a tool", "a specialist", "words", "verify"],
    )
    def test_each_phase_offers_its_own(self, state: LoopState, names: set[str]) -> None:
        assert offers.names_for(state.phase, state, self.TOOLS, reads_on=False) == names

    def test_what_was_not_shown_whole_can_be_read_on_while_there_are_tools(self) -> None:
        for state in (BEGINNING, ACTING):
            assert READ_RESULT_TOOL in offers.names_for(state.phase, state, self.TOOLS, reads_on=True)
        assert READ_RESULT_TOOL not in offers.names_for(Phase.VERIFY, ACTING, self.TOOLS, reads_on=True)

    def test_gathering_asks_nobody(self) -> None:
        """A tool that reads and needs consent is no tool to gather with."""
        assert offers.is_reading(LOOK) and not offers.is_reading(ADD)
        assert not offers.is_reading(replace(LOOK, is_gated=True))
        assert not offers.is_reading(replace(LOOK, consent_rules=(ConsentRule("look"),)))

    def test_a_plan_names_what_there_is(self) -> None:
        loop = replace(LOOP, specialists=(CLERK,))
        delegate = offers.delegate_tool(loop)
        assert delegate is not None and isinstance(delegate.target, DelegateTarget) and delegate.is_idempotent
        step = offers.plan_tool(loop, (*self.TOOLS, delegate)).parameters["properties"]["steps"]["items"]["properties"]
        assert (step["tool"]["enum"], step["specialist"]["enum"]) == (["look", "add", "tell"], ["clerk"])

    def test_who_has_nobody_to_delegate_to_cannot(self) -> None:
        step = offers.plan_tool(LOOP, ()).parameters["properties"]["steps"]["items"]["properties"]
        assert offers.delegate_tool(LOOP) is None and set(step) == {"what"}


class TestWhatCallsSay:
    def test_a_plan_is_read(self) -> None:
        steps = [{"what": "Add.", "tool": "add"}, {"what": "Sign.", "specialist": "clerk"}, {"what": "Say."}]
        found = readings.said_by("make_plan", {"steps": steps, "criteria": ["Done."]}, BEGINNING)
        assert isinstance(found, items.Planned) and [s.tool for s in found.plan.steps] == ["add", None, None]

    def test_a_step_with_a_tool_and_a_specialist_is_none(self) -> None:
        both = {"steps": [{"what": "x", "tool": "add", "specialist": "clerk"}], "criteria": ["x"]}
        found = readings.said_by("make_plan", both, BEGINNING)
        assert isinstance(found, str) and "Step 1" in found

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"isMet": True, "criteria": []}, "There are 1 criteria"),
            ({"isMet": True, "criteria": [(1, True), (1, True)]}, "once"),
            ({"isMet": True, "criteria": [(2, True)]}, "You gave [2]"),
            ({"isMet": True, "criteria": [(1, False)], "answer": "x"}, "while a criterion is not"),
            ({"isMet": True, "criteria": [(1, True)]}, "Give the answer"),
            ({"isMet": True, "criteria": [(1, True)], "answer": " "}, "Give the answer"),
            ({"isMet": False, "criteria": [(1, True)]}, "what is missing"),
        ],
    )
    def test_a_verdict_that_does_not_hold_together_is_told_why(self, arguments: dict[str, Any], words: str) -> None:
        found = readings.said_by("verdict", self.verdict(arguments), ACTING)
        assert isinstance(found, str) and words in found

    def test_a_verdict_keeps_the_answer_or_what_is_missing(self) -> None:
        both = {"criteria": [(1, True)], "answer": "42", "missing": "x"}
        for is_met, wanted in ((True, ("42", None)), (False, (None, "x"))):
            found = readings.said_by("verdict", self.verdict({**both, "isMet": is_met}), ACTING)
            assert isinstance(found, items.Verified) and (found.answer, found.missing) == wanted

    @staticmethod
    def verdict(arguments: dict[str, Any]) -> dict[str, Any]:
        found = [{"number": n, "isMet": is_met, "evidence": "e"} for n, is_met in arguments["criteria"]]
        return {**arguments, "criteria": found}


NESTED = {
    "order": {"lines": [{"sum": 5}, {"sum": 500}], "a/b": "x"},
    "to": "Bo@Example.com",
    "sum": 50,
    "flag": True,
    "none": None,
}


class TestConsent:
    @pytest.mark.parametrize(
        ("comparison", "argument", "value", "needed"),
        [
            (Comparison.ALWAYS, None, None, True),
            (Comparison.ABOVE, "sum", 49.5, True),
            (Comparison.ABOVE, "sum", 50, False),
            (Comparison.BELOW, "sum", 51, True),
            (Comparison.BELOW, "sum", 50, False),
            (Comparison.ABOVE, "/order/lines/1/sum", 100, True),
            (Comparison.ABOVE, "/order/lines/0/sum", 100, False),
            (Comparison.EQUALS, "/order/a~1b", "X", True),
            (Comparison.EQUALS, "to", "bo@example.COM", True),
            (Comparison.EQUALS, "to", "al@example.com", False),
            (Comparison.EQUALS, "none", None, True),
            (Comparison.DIFFERS, "to", "Bo@Example.com", False),
            (Comparison.DIFFERS, "to", "bo@example.com", True),
            (Comparison.DIFFERS, "order", NESTED["order"], False),
            (Comparison.DIFFERS, "sum", 51, True),
            (Comparison.CONTAINS, "to", "@EXAMPLE", True),
            (Comparison.CONTAINS, "to", "@other", False),
            (Comparison.CONTAINS, "order", 500, True),
            (Comparison.CONTAINS, "order", 7, False),
        ],
    )
    def test_a_rule_is_held_against_an_argument(
        self, comparison: Comparison, argument: str | None, value: Any, needed: bool
    ) -> None:
        assert applies(ConsentRule("pay", comparison, argument, value), NESTED) is needed

    @pytest.mark.parametrize("comparison", [c for c in Comparison if c is not Comparison.ALWAYS])
    @pytest.mark.parametrize(
        "argument",
        [
            "missing",
            "/order/lines/7/sum",
            "/order/lines/x",
            "/order/lines/²",
            "/order/lines/" + "9" * 5000,
            "/to/0",
            "/nothing/at/all",
        ],
    )
    def test_what_is_missing_needs_consent(self, comparison: Comparison, argument: str) -> None:
        """Fail closed: an argument that is left out escapes no rule."""
        assert applies(ConsentRule("pay", comparison, argument, 1), NESTED)

    @pytest.mark.parametrize("found", ["500", True, None, [500], {"sum": 1}])
    @pytest.mark.parametrize("comparison", [Comparison.ABOVE, Comparison.BELOW])
    def test_what_is_no_number_needs_consent_of_a_rule_on_numbers(self, found: Any, comparison: Comparison) -> None:
        assert applies(ConsentRule("pay", comparison, "sum", 100), {"sum": found})

    @pytest.mark.parametrize(
        ("found", "value"), [(50, "50"), ("50", 50), (["Bo"], "Bo"), (None, "Bo"), (True, 1), (1, True)]
    )
    def test_what_is_of_another_type_needs_consent(self, found: Any, value: Any) -> None:
        """A tool may read a number out of a text; a rule that does not know what it will make of it asks."""
        for comparison in (Comparison.EQUALS, Comparison.DIFFERS):
            assert applies(ConsentRule("pay", comparison, "to", value), {"to": found})

    @pytest.mark.parametrize(
        ("found", "value"),
        [
            ("bo@stra\u00dfe.de", "bo@strasse.de"),
            ("5 \u212a", "5 K"),
            ("Jose\u0301", "Jos\u00e9"),
            ("\uff22o", "Bo"),
            ("B\u200bo\u00ad", "bo"),
            (" Bo\n", "Bo"),
            (["BO"], ["Bo"]),
            ({"to": "BO"}, {"to": "Bo"}),
            ([True], [1]),
        ],
    )
    def test_what_only_looks_like_the_value_needs_consent_either_way(self, found: Any, value: Any) -> None:
        """Fail closed: another address may be somebody else's, and the same one in other letters may be theirs."""
        for comparison in (Comparison.EQUALS, Comparison.DIFFERS):
            assert applies(ConsentRule("pay", comparison, "to", value), {"to": found})
        assert not applies(ConsentRule("pay", Comparison.DIFFERS, "to", value), {"to": value})

    @pytest.mark.parametrize(
        ("found", "needed"),
        [
            (50, True),
            (None, True),
            ("Al", False),
            (["Al", 50], False),
            (["Al", "Bo"], True),
            ("AlB\u200bO\u0301", True),
            ({"x": ["BO"]}, True),
        ],
    )
    def test_what_can_contain_nothing_of_the_kind_needs_consent(self, found: Any, needed: bool) -> None:
        assert applies(ConsentRule("pay", Comparison.CONTAINS, "to", "Bo"), {"to": found}) is needed

    def test_a_number_within_a_list_may_be_read_as_a_text(self) -> None:
        for found, needed in ((["a", 50], True), ({"amount": 1500}, True), ({"x": [None, 7]}, False)):
            assert applies(ConsentRule("pay", Comparison.CONTAINS, "to", "50"), {"to": found}) is needed

    def test_the_tools_own_mode_needs_no_rule_and_one_rule_of_many_suffices(self) -> None:
        call_ = AskedCall(str(UUID(int=1)), "pay", '{"sum": 50}', "boss")
        far, near = (ConsentRule("pay", Comparison.ABOVE, "sum", n) for n in (100, 10))
        assert needs_consent(tool("pay", is_gated=True), call_)
        assert not needs_consent(tool("pay"), call_)
        assert not needs_consent(tool("pay", consent_rules=(far,)), call_)
        assert needs_consent(tool("pay", consent_rules=(far, near)), call_)


class TestARun:
    """The same by the engine's own doors."""

    def run(self, *replies: Any, rules: tuple[ConsentRule, ...] = ()) -> Conversation:
        loop = replace(LOOP, specialists=(CLERK,))
        talk = Conversation(panel(seat("boss", LOOK, tool("pay", consent_rules=rules), TELL), loop=loop))
        for each in replies:
            talk.say("boss", each)
        return talk

    @staticmethod
    def plan(**step: str) -> Any:
        return reply("", call("make_plan", steps=[{"what": "Act.", **step}], criteria=["Done."]))

    def test_it_goes_from_phase_to_phase(self) -> None:
        talk = self.run("Nothing.", self.plan(), "Said.")
        met = [{"number": 1, "isMet": True, "evidence": "e"}]
        talk.say("boss", reply("", call("verdict", isMet=True, criteria=met, answer="42")))
        assert talk.end is not None and (talk.end.status, talk.end.output) == (RunStatus.COMPLETED, "42")
        assert [floor.phase for floor in talk.details(items.Floor)] == list(Phase)

    def test_words_make_no_plan_and_the_third_time_they_end_the_run(self) -> None:
        talk = self.run("Nothing.", "First we add.", "Then we tell.")
        assert len(talk.details(items.PhaseReminder)) == 2 and talk.end is None
        talk.say("boss", "So be it.")
        assert talk.end is not None and talk.end.failure is not None and "No plan could be made." in talk.end.failure

    def test_a_call_that_a_rule_gates_waits_and_another_does_not(self) -> None:
        over = (ConsentRule("pay", Comparison.ABOVE, "sum", 100),)
        free = self.run("Nothing.", self.plan(tool="pay"), reply("", call("pay", sum=5)), rules=over)
        assert isinstance(free.steps[0], RunCall)
        held = self.run("Nothing.", self.plan(tool="pay"), reply("", call("pay", sum=500)), rules=over)
        assert held.wait.status is RunStatus.PENDING_APPROVAL and held.wait.pending is not None
        assert json.loads(held.wait.pending.card["argumentsJson"]) == {"sum": 500}
        held.decide(approve=True)
        assert isinstance(held.steps[0], RunCall)

    def test_a_declined_call_is_an_error_result_and_the_step_goes_on(self) -> None:
        talk = self.run("Nothing.", self.plan(tool="tell"), reply("", call("tell")))
        talk.decide(approve=False, reason="Not today.")
        (result,) = [r for r in talk.bodies(items.ToolResult) if r.rejection_reason]
        assert result.rejection_reason == "Not today." and talk.protocol.loop.tool_calls == 0
        assert talk.step_of("boss").turn_id is not None and talk.protocol.loop.phase is Phase.ACT

    def test_a_call_that_waits_when_its_run_is_stopped_was_not_made(self) -> None:
        """B20, B37: it has its result, and nobody pays for it."""
        talk = self.run("Nothing.", self.plan(tool="tell"), reply("", call("tell")))
        talk.stop()
        (result,) = talk.bodies(items.ToolResult)[-1:]
        assert "no result" in result.result and talk.protocol.loop.tool_calls == 0

    def test_a_delegation_is_started_awaited_and_read(self) -> None:
        talk = self.run(
            "Nothing.", self.plan(specialist="clerk"), reply("", call("delegate", specialist="clerk", task="Sign."))
        )
        (start,) = talk.steps
        assert isinstance(start, RunCall)
        run_id = UUID(start.call.call_id)
        talk.sub_runs[run_id] = RunStatus.RUNNING
        talk.settle()
        assert talk.wait.status is RunStatus.PENDING_SUB_INTERACTIONS and talk.wait.awaits[0].run_ids == (run_id,)
        talk.sub_runs[run_id] = RunStatus.COMPLETED
        (reading,) = talk.settle()
        assert reading == start, "the call made again reads what came of it"
        talk.take(reading, CallResult("Signed.", is_error=False, delegated_calls=3))
        assert talk.protocol.loop.tool_calls == 4

    def test_a_rule_on_a_tool_that_reads_is_a_gate_too(self) -> None:
        looks = replace(LOOK, consent_rules=(ConsentRule("look"),))
        talk = Conversation(panel(seat("boss", looks), loop=LOOP))
        talk.say("boss", self.plan(tool="look"))  # there is nothing to gather with
        talk.say("boss", reply("", call("look")))
        assert talk.wait.status is RunStatus.PENDING_APPROVAL


def test_the_payload_says_where_the_run_stands_and_what_was_used() -> None:
    told = payload(
        replace(LOOP, tool_calls=9), replace(ACTING, tool_calls=2), pending_call="c", used=Amounts(tokens=7, calls=3), budget=None, working_seconds=1.23456
    )  # fmt: skip
    assert (told["phase"], told["step"], told["pendingCall"], told["verification"]) == ("act", 0, "c", None)
    assert told["budget"]["toolCalls"] == {"used": 2, "limit": 9} and told["budget"]["modelCalls"] == {
        "used": 3,
        "limit": None,
    }
    assert told["budget"]["workingSeconds"] == 1.235 and told["plan"]["steps"][1]["specialist"] == "clerk"


def test_one_large_call_hides_nothing_of_what_was_recorded_before_it() -> None:
    """verify goes by the recorded results: what was written is long, and what came before is still there."""
    state = replace(BEGINNING, plan=Plan((PlanStep("Add.", "add"),), ("It was added.",)))
    for name, arguments, result in (
        ("add", '{"a": 1}', "THREE"),
        ("write", '{"text": "' + "x" * 90_000 + '"}', "Written."),
    ):
        state = state.with_result(
            AskedCall("c", name, arguments, "clerk"), items.ToolResult("c", result, False, 5), None
        )
    told = words.evidence("goal", state)
    assert "THREE" in told and "Written." in told and "(cut)" in told and len(told) < 20_000
