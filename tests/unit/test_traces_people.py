"""The worked examples of traces.md that wait for people, item by item: B and C with their variants.

They run on the store and the workers of the property tests, since claims and lost workers are part of what they show.
"""

from __future__ import annotations

import pytest
from engine_harness import AGREE, PASS, Conversation, call, disagree, line, panel, reply, seat, tool
from run_model import Crash
from run_store import AT_WORK
from staged_run import StagedRun

from folkmoot.domain import items
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.items import Outcome
from folkmoot.domain.model_calls import Purpose
from folkmoot.domain.pending import PERSON, PendingKind, PendingOutcome
from folkmoot.domain.run_status import RunStatus

TOOLS = (tool("read_file", is_read_only=True), tool("write_file", is_gated=True), tool("notify"))
PEOPLE = HumanSettings(ChatMode.EVERY_ROUND, include_in_votes=True)


# B. A gated call, a deferred one, a crash


def calling() -> StagedRun:
    """Trace B, items 1 to 8."""
    run = StagedRun(panel(seat("Ann", *TOOLS), "Ben", "Cid"))
    run.say("Ann", reply("", call("read_file"), call("write_file", path="a"), call("notify")))
    return run


def pausing() -> StagedRun:
    """Trace B, up to the pause."""
    run = calling()
    run.give("read_file", "text")
    return run


def call_ids(run: StagedRun) -> list[str]:
    return [run.store.items[n].body.tool_call_id for n in (6, 7, 8)]  # type: ignore[union-attr]


def begun(run: StagedRun) -> list[int]:
    """How often c1, c2 and c3 were begun."""
    return [len(run.store.calls[call_id].begun) for call_id in call_ids(run)]


def test_the_calls_of_a_reply_come_in_together_and_only_the_read_only_one_begins() -> None:
    """traces.md B, 6 to 8: all asked, in one transaction with the reply; the read-only one runs at once."""
    run = calling()
    assert run.kinds(6) == ["Ann toolCall"] * 3
    assert [run.store.items[n].body.function_name for n in (6, 7, 8)] == ["read_file", "write_file", "notify"]  # type: ignore[union-attr]
    assert len({run.store.items[n].model_call_id for n in (6, 7, 8)}) == 1
    assert begun(run) == [1, 0, 0]
    assert run.called == ["read_file"]
    assert run.store.status is AT_WORK


def test_the_run_pauses_for_the_gated_call_with_the_deferred_one_behind_it() -> None:
    """traces.md B, 9 and the pause: pendingApproval {c2}, deferredToolCalls [c3], no worker."""
    run = pausing()
    _, c2, c3 = call_ids(run)
    assert run.kinds(9) == ["Orchestrator toolResult"]
    assert run.store.status is RunStatus.PENDING_APPROVAL
    assert (run.pending.kind, str(run.pending.pending_id)) == (PendingKind.APPROVAL, c2)
    assert [deferred["toolCallId"] for deferred in run.pending.card["deferred"]] == [c3]
    assert run.worker.under_way == {}
    assert begun(run) == [1, 0, 0]


def test_an_approval_wakes_the_run_and_leaves_its_status() -> None:
    """traces.md B: signal_number + 1, ready; only the claim sets Running and clears what waits."""
    run = pausing()
    signal = run.store.signal
    run.decide(approve=True)
    assert (run.store.signal, run.store.is_awake) == (signal + 1, True)
    assert run.store.status is RunStatus.PENDING_APPROVAL
    assert run.store.last_sequence == 9
    run.claim()
    assert (run.store.status, run.store.wait, run.store.open_row) == (AT_WORK, None, None)
    assert run.called == ["write_file"]


def test_an_approved_call_whose_worker_died_is_of_unknown_outcome_and_the_deferred_one_runs() -> None:
    """traces.md B, 10 and 11: begun, not ended, not idempotent; then Ann's turn goes on."""
    run = pausing()
    turn_id = run.store.items[6].turn_id
    run.decide(approve=True)
    run.claim(crash_after=2)  # the second write is the mark that c2 has begun
    assert begun(run) == [1, 1, 0]
    run.claim()
    assert run.kinds(10) == ["Orchestrator toolResult"]
    assert run.store.items[10].detail == items.UnknownOutcome()
    assert run.result(10).is_error and "may or may not have happened" in run.result(10).result
    assert run.called == ["notify"]
    run.give("notify", "told")
    assert run.kinds(11) == ["Orchestrator toolResult"]
    assert [run.result(n).tool_call_id for n in (9, 10, 11)] == call_ids(run)
    assert begun(run) == [1, 1, 1]
    assert run.step_of("Ann").turn_id == turn_id
    assert len(run.store.pending) == 1, "nobody is asked twice"


def test_an_approved_call_runs_once_where_no_worker_dies() -> None:
    """traces.md B without the crash (B06)."""
    run = pausing()
    run.decide(approve=True)
    run.claim()
    run.give("write_file", "written")
    run.give("notify", "told")
    assert [run.result(n).result for n in (9, 10, 11)] == ["text", "written", "told"]
    assert begun(run) == [1, 1, 1]
    assert [line(entry) for entry in run.worker.views.of["Ann"].entries][-3:] == [
        "me read_file({}) -> text",
        'me write_file({"path": "a"}) -> written',
        "me notify({}) -> told",
    ]


def test_a_worker_that_dies_just_after_the_pause_changes_nothing() -> None:
    """B08: the pause is committed, and is answered as if the worker had lived."""
    run = calling()
    run.worker.crash_after = 1
    with pytest.raises(Crash):
        run.give("read_file", "text")
    assert run.store.status is RunStatus.PENDING_APPROVAL
    run.decide(approve=True)
    run.claim()
    assert run.called == ["write_file"]


def test_a_rejected_call_has_its_reason_as_result_and_the_deferred_one_still_runs() -> None:
    """traces.md B, first bullet."""
    run = pausing()
    run.decide(approve=False, reason="not on a Friday")
    run.claim()
    assert run.kinds(10) == ["Orchestrator toolResult"]
    assert (run.result(10).is_error, run.result(10).rejection_reason) == (True, "not on a Friday")
    assert run.called == ["notify"]
    run.give("notify", "told")
    assert begun(run) == [1, 0, 1]
    assert run.asked == ["Ann"]


def test_stopped_while_it_waits_both_calls_are_closed_and_nothing_is_called() -> None:
    """traces.md B, second bullet; B13."""
    run = pausing()
    run.store.by_a_person(None, stopped_by="Dana")
    assert [row.outcome for row in run.store.pending.values()] == [PendingOutcome.STOPPED]
    run.claim()
    closes_both_uncalled(run, "the run was stopped")
    assert run.store.items[12].detail == items.Ended(items.EndReason.STOPPED)
    assert run.store.end is not None and run.store.end.status is RunStatus.STOPPED


def test_timed_out_while_it_waits_both_calls_are_closed_and_nothing_is_called() -> None:
    """traces.md B, third bullet: TimedOut, from PendingApproval."""
    run = pausing()
    run.store.run_out()
    assert run.store.ran_out is RunStatus.PENDING_APPROVAL
    run.claim()
    closes_both_uncalled(run, "nobody decided in time")
    assert run.store.items[12].detail == items.Ended(items.EndReason.PERSON_TIMEOUT)
    assert run.store.end is not None and run.store.end.status is RunStatus.TIMED_OUT


def closes_both_uncalled(run: StagedRun, why: str) -> None:
    assert run.kinds(10) == ["Orchestrator toolResult", "Orchestrator toolResult", "Orchestrator orchestratorMessage"]
    assert [run.result(n).tool_call_id for n in (10, 11)] == call_ids(run)[1:]
    assert all(run.result(n).is_error and why in run.result(n).result for n in (10, 11))
    assert begun(run) == [1, 0, 0]
    assert not any("may or may not" in run.result(n).result for n in (10, 11))


# C. A person in the round


def at_the_persons_floor() -> StagedRun:
    """Trace C, items 1 to 11: Ann asks Ben something first, so that the numbers are the trace's."""
    run = StagedRun(panel("Ann", "Ben", human_settings=PEOPLE))
    run.say("Ann", reply("", call("ask", participant="Ben", question="A or B?")))
    run.say("Ben", reply("", call("answer", text="B.")))
    run.say("Ann", "Then B.")
    run.say("Ben", "B it is.")
    return run


def test_the_person_has_the_floor_after_the_last_participant_and_the_run_waits() -> None:
    """traces.md C, 11: nothing to do but wait: PendingHuman, pending {turn}."""
    run = at_the_persons_floor()
    assert run.kinds(11) == ["Orchestrator orchestratorMessage"]
    floor = run.store.items[11]
    assert floor.detail == items.Floor(PERSON, 1)
    assert run.store.status is RunStatus.PENDING_HUMAN
    assert (run.pending.kind, run.pending.pending_id) == (PendingKind.TURN, floor.turn_id)
    assert run.worker.under_way == {}


@pytest.mark.parametrize("body", [items.HumanMessage("Mind the costs."), items.NoAction()])
def test_a_message_or_a_pass_ends_the_persons_turn_and_round_two_begins(body: items.Body) -> None:
    """traces.md C, 12: 'humanMessage Dana … or …/pass: noAction by Dana. Wake; round 2'."""
    run = at_the_persons_floor()
    run.answer(body)
    assert (run.store.is_awake, run.store.status) == (True, RunStatus.PENDING_HUMAN)
    run.claim()
    assert run.kinds(12) == [f"Dana {body.kind}", "Orchestrator orchestratorMessage"]
    assert run.store.items[12].turn_id == run.store.items[11].turn_id
    assert run.store.items[13].detail == items.Floor("Ann", 2)
    assert run.asked == ["Ann"]


def test_a_message_during_a_model_call_is_appended_at_once_and_the_worker_reads_the_gap() -> None:
    """traces.md C, 14 and 15: Ann's reply did not see 14; her worker expected to write 14, and wrote 15."""
    run = at_the_persons_floor()
    run.answer(items.HumanMessage("Mind the costs."))
    run.claim()
    run.hear("One more thing.")
    assert run.kinds(14) == ["Dana humanMessage"]
    assert run.worker.sequence == 13
    run.say("Ann", "B is the cheaper one.")
    assert run.kinds(14) == ["Dana humanMessage", "Ann agentMessage", "Orchestrator orchestratorMessage"]
    assert run.store.items[16].detail == items.Floor("Ben", 2)
    assert run.worker.sequence == run.store.last_sequence == 16
    assert [line(entry) for entry in run.worker.views.of["Ben"].entries][-3:] == [
        "Dana: One more thing.",
        "Ann: B is the cheaper one.",
        "-: Ben, you have the floor (round 2).",
    ]
    assert [line(entry) for entry in run.worker.views.of["Ann"].entries][-2:] == [
        "Dana: One more thing.",
        "me: B is the cheaper one.",
    ]


def test_people_are_asked_to_vote_first_and_the_agents_do_not_see_it() -> None:
    """traces.md C, 20 and 21: PendingHuman until then; agents are asked after it."""
    run = at_the_persons_floor()
    run.answer(items.NoAction())
    run.claim()
    run.say("Ann", reply("", call("call_vote", topic="B?")))
    proposed = run.store.items[14].body
    assert isinstance(proposed, items.VoteProposal)
    assert run.store.status is RunStatus.PENDING_HUMAN
    assert (run.pending.kind, run.pending.pending_id) == (PendingKind.VOTE, proposed.vote_id)
    assert run.worker.under_way == {}, "no agent is asked before"
    run.answer(items.Agree(proposed.vote_id))
    run.claim()
    assert run.kinds(15) == ["Dana agree"]
    assert run.step_of("Ben").purpose is Purpose.BALLOT
    assert not any("Dana: I agree." in line(entry) for entry in run.worker.views.of["Ben"].entries)
    run.say("Ben", disagree("too dear"))
    assert run.kinds(16) == ["Ben disagree", *["Orchestrator orchestratorMessage"] * 2]
    assert run.store.items[17].detail == items.Tally(proposed.vote_id, ("Ann", "Dana"), ("Ben",), (), Outcome.CARRIED)
    assert "Dana: I agree." in [line(entry) for entry in run.worker.views.of["Ben"].entries]


def test_the_person_is_asked_and_then_the_askers_turn_goes_on() -> None:
    """traces.md C, last bullet: directQuestionAsk {otherAgentName Human}, PendingHuman, directQuestionAnswer by the person."""
    run = StagedRun(panel("Ann", "Ben", human_settings=PEOPLE))
    run.say("Ann", PASS)
    turn_id = run.step_of("Ben").turn_id
    run.say("Ben", reply("", call("ask", participant=PERSON, question="A or B?")))
    asked = run.store.items[7].body
    assert isinstance(asked, items.DirectQuestionAsk)
    assert asked.other_agent_name == PERSON
    assert run.store.status is RunStatus.PENDING_HUMAN
    assert (run.pending.kind, run.pending.pending_id) == (PendingKind.QUESTION, asked.question_id)
    run.answer(items.DirectQuestionAnswer(asked.question_id, "B."))
    run.claim()
    assert run.kinds(7) == ["Ben directQuestionAsk", "Dana directQuestionAnswer"]
    assert (run.asked, run.step_of("Ben").turn_id) == (["Ben"], turn_id)
    assert "Dana answers: B." in line(run.worker.views.of["Ben"].entries[-1])
    run.say("Ben", "Then B.")
    assert run.store.items[10].detail == items.Floor(PERSON, 1)


def test_a_persons_message_during_a_ballot_is_seen_at_once_and_changes_no_vote() -> None:
    """traces.md C with A: what a person says is open, the votes stay sealed."""
    talk = Conversation(panel("Ann", "Ben", "Cid"))
    talk.say("Ann", PASS)
    talk.say("Ben", reply("", call("call_vote", topic="B over A?")))
    talk.say("Ann", AGREE)
    asked = talk.steps
    talk.hear("Think of the costs.")
    assert talk.steps == asked
    assert talk.lines("Cid")[-1] == "Dana: Think of the costs."
    talk.say("Cid", AGREE)
    assert talk.details(items.Tally)[0].in_favour == ("Ben", "Ann", "Cid")
