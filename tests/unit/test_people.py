"""People in a conversation (conversation.md 5 to 9): their floor, their votes, questions to them, and their time."""

from __future__ import annotations

import json

import pytest
from engine_harness import AGREE, DANA, PASS, Conversation, call, disagree, panel, propose, reply

from folkmoot.domain import items
from folkmoot.domain.definitions import ChatMode, HumanSettings, Rule
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import AskModel


def people(mode: ChatMode = ChatMode.EVERY_ROUND, *, votes: bool = False, solutions: bool = False) -> HumanSettings:
    return HumanSettings(mode, include_in_votes=votes, include_in_solutions=solutions)


def test_every_round_waits_for_a_person_at_its_end() -> None:
    """Trace C: the person has the floor after the last participant, and their message ends the turn."""
    talk = Conversation(panel("Ann", "Ben", human_settings=people()))
    talk.say("Ann", "one")
    talk.say("Ben", "two")
    wait = talk.wait
    assert (wait.status, wait.pending.kind) == (RunStatus.PENDING_HUMAN, PendingKind.TURN)
    assert wait.pending.pending_id == talk.items[-1].turn_id
    talk.answer(items.HumanMessage("three"))
    assert talk.floors() == ["Ann1", "Ben1", "Human1", "Ann2"]
    assert "Dana: three" in talk.lines("Ann")


def test_a_message_before_having_the_floor_is_not_the_persons_turn() -> None:
    """conversation.md 9."""
    talk = Conversation(panel("Ann", human_settings=people()))
    talk.hear("early")
    talk.say("Ann", "one")
    assert talk.wait.pending.kind is PendingKind.TURN


@pytest.mark.parametrize(("person", "ended"), [(items.NoAction(), True), (items.HumanMessage("no"), False)])
def test_a_round_is_passed_by_all_only_if_the_person_passed_too(person: items.Body, ended: bool) -> None:
    """conversation.md 9."""
    talk = Conversation(panel("Ann", human_settings=people(), maximum_no_action_loops=1))
    talk.say("Ann", PASS)
    talk.answer(person)
    assert (talk.end is not None) is ended
    assert any("Dana" in text for text in talk.lines("Ann"))


@pytest.mark.parametrize("mode", list(ChatMode))
def test_people_vote_first_and_agents_neither_wait_for_them_to_speak_nor_see_their_vote(mode: ChatMode) -> None:
    """Trace C, 20 and 21; `Excluded` and `Observing` people vote where they are included."""
    talk = Conversation(panel("Ann", "Ben", "Cid", human_settings=people(mode, votes=True)))
    talk.say("Ann", reply("", call("call_vote", topic="now?")))
    assert talk.wait.pending.kind is PendingKind.VOTE
    assert talk.wait.pending.card["proposer"] == "Ann"
    talk.answer(items.Agree(talk.wait.pending.pending_id))
    assert sorted(s.participant for s in talk.steps if isinstance(s, AskModel)) == ["Ben", "Cid"]
    assert not any("Dana" in text for text in talk.lines("Ben"))
    talk.vote(Ben=disagree("no"), Cid=disagree("no"))
    (tally,) = talk.details(items.Tally)
    assert (tally.in_favour, tally.against) == (("Ann", "Dana"), ("Ben", "Cid"))
    assert tally.outcome is items.Outcome.REJECTED, "two of four: a tie fails"
    assert "Dana: I agree." in talk.lines("Ben")


def test_a_second_vote_of_people_is_not_counted() -> None:
    """conversation.md 8: a ballot has one vote for people."""
    talk = Conversation(panel("Ann", "Ben", human_settings=people(votes=True)))
    talk.say("Ann", reply("", call("call_vote", topic="now?")))
    ballot = talk.wait.pending.pending_id
    talk.answer(items.Disagree(ballot, "no"))
    eve = items.Author(items.AuthorKind.HUMAN, "Eve", DANA.id)
    talk.add([items.Item(talk.new_id(), eve, items.Agree(ballot), items.Balloted(ballot, 1))])
    talk.say("Ben", AGREE)
    assert talk.details(items.Tally)[0].against == ("Dana",)
    assert talk.details(items.Tally)[0].in_favour == ("Ann", "Ben")


@pytest.mark.parametrize("agrees", [True, False])
def test_a_unanimous_solution_needs_the_person_where_included(agrees: bool) -> None:
    settings = people(ChatMode.EXCLUDED, solutions=True)
    talk = Conversation(panel("Ann", "Ben", human_settings=settings, solution_rule=Rule.UNANIMOUS))
    talk.say("Ann", propose("B"))
    ballot = talk.wait.pending.pending_id
    talk.answer(items.Agree(ballot) if agrees else items.Disagree(ballot, "rather not"))
    talk.say("Ben", AGREE)
    assert (talk.end is not None) is agrees


def test_topics_are_not_put_to_people_who_are_included_in_solutions_alone() -> None:
    talk = Conversation(panel("Ann", "Ben", human_settings=people(ChatMode.EXCLUDED, solutions=True)))
    talk.say("Ann", reply("", call("call_vote", topic="now?")))
    assert talk.step_of("Ben")


def test_a_question_to_the_person_waits_and_then_the_askers_turn_goes_on() -> None:
    """Trace C: no turn is opened for the answer."""
    talk = Conversation(panel("Ann", "Ben", human_settings=people(ChatMode.ON_QUESTION)))
    talk.say("Ann", "one")
    talk.say("Ben", reply("", call("ask", participant="Human", question="which?")))
    assert talk.wait.pending.kind is PendingKind.QUESTION
    assert talk.wait.pending.card == {"asker": "Ben", "question": "which?"}
    talk.answer(items.DirectQuestionAnswer(talk.wait.pending.pending_id, "the red one"))
    assert talk.step_of("Ben").turn_id == next(
        i.turn_id for i in talk.items if i.item_id and isinstance(i.body, items.DirectQuestionAsk)
    )
    assert any("Dana answers: the red one" in text for text in talk.lines("Ben"))
    talk.say("Ben", "thanks")
    assert talk.floors()[-1] == "Ann2", "the person has no floor of their own in OnQuestion"


@pytest.mark.parametrize(("mode", "askable"), [(ChatMode.EXCLUDED, False), (ChatMode.OBSERVING, False), (ChatMode.ON_QUESTION, True), (ChatMode.EVERY_ROUND, True)])  # fmt: skip
def test_only_people_who_are_waited_for_can_be_asked(mode: ChatMode, askable: bool) -> None:
    talk = Conversation(panel("Ann", "Ben", human_settings=people(mode)))
    ask = next(tool for tool in talk.step_of("Ann").offered if tool.name == "ask")
    assert ("Human" in ask.parameters["properties"]["participant"]["enum"]) is askable


def test_one_participant_alone_may_ask_the_person() -> None:
    talk = Conversation(panel("Ann", human_settings=people(ChatMode.ON_QUESTION)))
    assert "ask" in [tool.name for tool in talk.step_of("Ann").offered]
    assert "To ask the person" in json.dumps(talk.items[0].body.prompt)  # type: ignore[union-attr]


def test_a_person_who_lets_the_time_run_out_ends_the_run_as_timed_out() -> None:
    talk = Conversation(panel("Ann", human_settings=people()))
    talk.say("Ann", "one")
    talk.run_out()
    assert talk.end is not None
    assert talk.end.status is RunStatus.TIMED_OUT
    assert talk.end.failure is not None
    assert talk.details(items.Ended) == [items.Ended(items.EndReason.PERSON_TIMEOUT)]


def test_a_stop_comes_before_a_time_that_ran_out() -> None:
    """B30: where two rules hold at once, a documented order decides."""
    talk = Conversation(panel("Ann", human_settings=people()))
    talk.say("Ann", "one")
    talk.stopped_by = "Dana"
    talk.run_out()
    assert talk.end is not None
    assert talk.end.status is RunStatus.STOPPED


def test_a_refold_comes_to_the_same_state() -> None:
    """state.md: items are the state."""
    talk = Conversation(panel("Ann", "Ben", human_settings=people(votes=True)))
    talk.say("Ann", reply("", call("ask", participant="Human", question="which?")))
    talk.answer(items.DirectQuestionAnswer(talk.wait.pending.pending_id, "red"))
    talk.say("Ann", reply("", call("call_vote", topic="red?")))
    talk.answer(items.Agree(talk.wait.pending.pending_id))
    assert talk.refolded() == talk.protocol
