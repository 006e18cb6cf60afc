"""Where people and the rest of the protocol meet: what stands beside a gated call, who else speaks, ballots of one."""

from __future__ import annotations

import pytest
from engine_harness import PASS, Conversation, call, panel, propose, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.definitions import ChatMode, HumanSettings, Rule
from folkmoot.domain.items import Outcome
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import RunCall

PAY = tool("pay", is_gated=True)


def people(mode: ChatMode = ChatMode.ON_QUESTION, *, votes: bool = False, solutions: bool = False) -> HumanSettings:
    return HumanSettings(mode, include_in_votes=votes, include_in_solutions=solutions)


@pytest.mark.parametrize("agrees", [True, False])
def test_the_answer_of_one_participant_alone_is_the_persons_to_accept(agrees: bool) -> None:
    """conversation.md 5 and 9: nobody else is to vote, and the tally waits for the person; one of two is a tie."""
    talk = Conversation(panel("Ann", human_settings=people(solutions=True)))
    talk.say("Ann", propose("B"))
    assert talk.wait.pending.kind is PendingKind.VOTE
    ballot = talk.wait.pending.pending_id
    talk.answer(items.Agree(ballot) if agrees else items.Disagree(ballot, "rather not"))
    (tally,) = talk.details(items.Tally)
    assert tally.outcome is (Outcome.ACCEPTED if agrees else Outcome.REJECTED)
    assert (talk.end is not None) is agrees


@pytest.mark.parametrize("approve", [True, False])
def test_a_vote_called_beside_a_gated_call_is_put_once_that_is_decided(approve: bool) -> None:
    """state.md: calls that leave the process run before the reply's first protocol call counts; people are asked about each."""
    talk = Conversation(panel(seat("Ann", PAY), "Ben", human_settings=people(votes=True)))
    talk.say("Ann", reply("", call("call_vote", topic="now?"), call("pay")))
    approval = talk.wait.pending
    assert approval.kind is PendingKind.APPROVAL
    talk.decide(approve=approve, reason=None if approve else "no")
    if approve:
        talk.give("paid")
    assert talk.wait.pending.kind is PendingKind.VOTE
    assert talk.bodies(items.VoteProposal)[0].vote_id == talk.wait.pending.pending_id


def test_a_message_while_a_question_waits_is_not_its_answer() -> None:
    """conversation.md 7 and 8: the asker sees it after the answer, everybody else at once."""
    talk = Conversation(panel("Ann", "Ben", human_settings=people()))
    talk.say("Ann", reply("", call("ask", participant="Human", question="which?")))
    wait = talk.wait
    talk.hear("Let me look.")
    assert talk.wait == wait
    assert "Dana: Let me look." in talk.lines("Ben")
    assert "Dana: Let me look." not in talk.lines("Ann")
    talk.answer(items.DirectQuestionAnswer(wait.pending.pending_id, "red"))
    assert talk.lines("Ann")[-1] == "Dana: Let me look."
    assert "Dana answers: red" in talk.lines("Ann")[-2]


def test_a_terminal_tool_beside_a_question_ends_the_turn_with_the_persons_answer() -> None:
    """conversation.md 2: after `ask` the turn goes on, but for a terminal tool."""
    talk = Conversation(panel(seat("Ann", tool("finish", is_terminal=True)), "Ben", human_settings=people()))
    talk.say("Ann", reply("", call("finish"), call("ask", participant="Human", question="which?")))
    talk.give("done")
    talk.answer(items.DirectQuestionAnswer(talk.wait.pending.pending_id, "red"))
    assert talk.floors() == ["Ann1", "Ben1"]


def test_a_rejected_terminal_tool_does_not_end_the_turn() -> None:
    """conversation.md 2: its success does."""
    talk = Conversation(panel(seat("Ann", tool("finish", is_terminal=True, is_gated=True)), "Ben"))
    talk.say("Ann", reply("", call("finish")))
    talk.decide(approve=False, reason="not yet")
    assert talk.floors() == ["Ann1"]
    talk.say("Ann", reply("", call("finish")))
    talk.decide(approve=True)
    talk.give("done")
    assert talk.floors() == ["Ann1", "Ben1"]


def test_who_insists_on_a_rejected_call_is_warned_and_then_the_run_is_stuck() -> None:
    """F57: a rejection is a failure of the call like another one."""
    talk = Conversation(panel(seat("Ann", PAY), max_tool_call_loops=10))
    while talk.end is None:
        talk.say("Ann", reply("", call("pay", amount=1)))
        if talk.end is None:
            talk.decide(approve=False, reason="no")
    assert len(talk.details(items.StuckWarning)) == 1
    assert talk.end.status is RunStatus.FAILED
    assert not any(isinstance(step, RunCall) for step in talk.steps)


def test_the_time_limit_is_not_looked_at_before_an_answer_of_the_person_completed_a_ballot() -> None:
    """B30: a complete ballot comes before the time limit, also when the person's vote was the last one."""
    talk = Conversation(panel("Ann", human_settings=people(solutions=True), solution_rule=Rule.UNANIMOUS))
    talk.say("Ann", propose("B"))
    talk.deadline = talk.now
    talk.answer(items.Agree(talk.wait.pending.pending_id))
    assert talk.end is not None
    assert talk.end.status is RunStatus.COMPLETED


def test_a_person_alone_can_keep_a_conversation_going() -> None:
    """conversation.md 9: all participants pass, the person does not, so that the round was not passed by all."""
    settings = people(ChatMode.EVERY_ROUND)
    talk = Conversation(panel("Ann", "Ben", human_settings=settings, maximum_no_action_loops=2))
    for _ in range(2):
        talk.say("Ann", PASS)
        talk.say("Ben", PASS)
        talk.answer(items.HumanMessage("go on"))
    for _ in range(2):
        assert talk.end is None
        talk.say("Ann", PASS)
        talk.say("Ben", PASS)
        talk.answer(items.NoAction())
    assert talk.end is not None
    assert talk.details(items.Ended) == [items.Ended(items.EndReason.NO_ACTION)]
