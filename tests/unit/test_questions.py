"""Direct questions (conversation.md, Round-robin 7)."""

from __future__ import annotations

import pytest
from engine_harness import EMPTY, Conversation, call, panel, raw_call, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.model_calls import ModelReply, OwnCall, Purpose

ASK = reply("", call("ask", participant="Cid", question="Why A?"))


def answer(text: str) -> ModelReply:
    return reply("", call("answer", text=text))


def asked(**settings: object) -> Conversation:
    talk = Conversation(panel("Ann", "Ben", seat("Cid", tool("look")), **settings))
    talk.say("Ann", ASK)
    return talk


def test_the_asked_participant_has_a_turn_at_once_with_only_answer_offered() -> None:
    """Round-robin 7."""
    talk = asked()
    (step,) = talk.steps
    assert step == talk.step_of("Cid")
    assert step.purpose is Purpose.ANSWER
    assert [t.name for t in step.offered] == ["answer"]
    assert step.required
    assert step.instruction == "Ann asks you: Why A?\nCall answer with your answer."


def test_the_answering_turn_opens_with_a_floor_of_its_own() -> None:
    """Round-robin 1, 7: 'Each turn opens with an orchestratorMessage'."""
    talk = asked()
    question = talk.bodies(items.DirectQuestionAsk)[0]
    floor = talk.items[-1]
    assert floor.detail == items.Floor("Cid", 1, question=question.question_id)
    assert floor.turn_id != talk.items[-2].turn_id


def test_after_the_answer_the_askers_turn_goes_on() -> None:
    """Round-robin 7; Round-robin 2: 'after `ask` it goes on'."""
    talk = asked()
    before = talk.items[4].turn_id
    made = talk.say("Cid", answer("It is cheap."))
    assert [(i.body.kind, i.detail) for i in made] == [("directQuestionAnswer", items.TurnEnd())]
    step = talk.step_of("Ann")
    assert (step.turn_id, step.purpose) == (before, Purpose.TURN)
    talk.say("Ann", "Then A.")
    assert talk.floors() == ["Ann1", "Ben1"]


def test_questions_do_not_nest() -> None:
    """Round-robin 7: while answering, `ask` is not offered, and a call of it asks nothing."""
    talk = asked()
    talk.say("Cid", reply("", call("ask", participant="Ben", question="Why?")))
    assert len(talk.bodies(items.DirectQuestionAsk)) == 1
    assert talk.step_of("Cid").purpose is Purpose.ANSWER


def test_question_and_answer_are_visible_to_all() -> None:
    """Round-robin 7."""
    talk = asked()
    talk.say("Cid", answer("It is cheap."))
    assert talk.lines("Ben")[-2:] == ["Ann: I ask Cid: Why A?", "Cid: It is cheap."]
    assert talk.lines("Cid")[-2:] == [
        "Ann: I ask Cid: Why A?",
        'me answer({"text": "It is cheap."}) -> Your answer was given.',
    ]
    assert talk.lines("Ann")[-1] == 'me ask({"participant": "Cid", "question": "Why A?"}) -> Cid answers: It is cheap.'


def test_the_answering_turn_is_no_turn_of_the_round() -> None:
    """Round-robin 2 and 7: Cid still has his own."""
    talk = asked()
    talk.say("Cid", answer("It is cheap."))
    talk.say("Ann", "Aha.")
    talk.say("Ben", "Hm.")
    assert talk.floors() == ["Ann1", "Ben1", "Cid1"]
    assert talk.step_of("Cid").turn == 1


@pytest.mark.parametrize(
    "first",
    [reply("Because."), EMPTY, reply("", raw_call("answer", "{")), reply("", call("answer")), answer("  "), reply("", call("look"))],
    ids=["text", "empty", "does not parse", "no text", "blank", "another tool"],
)  # fmt: skip
def test_a_reply_without_an_answer_is_asked_once_more(first: ModelReply) -> None:
    """B31: only the call answers; B33: the reply is kept."""
    talk = asked()
    talk.say("Cid", first)
    (fault,) = talk.details(items.NoAnswer)
    assert (fault.participant, fault.closed) == ("Cid", False)
    assert first.text in fault.reply
    step = talk.step_of("Cid")
    assert step.instruction is not None and step.instruction.startswith("Your last reply held no answer. Ann asks you")
    talk.say("Cid", answer("Because."))
    assert talk.step_of("Ann").purpose is Purpose.TURN


def test_after_two_tries_the_asker_goes_on_without_an_answer() -> None:
    """B32's kind: bounded, then recorded; B20: the asker's call has an error for its result."""
    talk = asked()
    talk.say("Cid", EMPTY)
    talk.say("Cid", EMPTY)
    assert [d.closed for d in talk.details(items.NoAnswer)] == [False, True]
    own = talk.view("Ann")[-1]
    assert isinstance(own, OwnCall)
    assert (own.name, own.result, own.is_error) == ("ask", "Cid did not answer the question.", True)
    assert talk.step_of("Ann").purpose is Purpose.TURN


def test_text_beside_the_answer_is_recorded_first_as_a_message() -> None:
    """Round-robin 2."""
    talk = asked()
    made = talk.say("Cid", reply("Good that you ask.", call("answer", text="It is cheap.")))
    assert [i.body.kind for i in made] == ["agentMessage", "directQuestionAnswer"]
    assert talk.lines("Ann")[-1] == "Cid: Good that you ask."
    assert talk.lines("Ben")[-2:] == ["Cid: Good that you ask.", "Cid: It is cheap."]


@pytest.mark.parametrize("name", ["Ann", "Nobody", "Human", "cid"])
def test_only_another_participant_can_be_asked(name: str) -> None:
    """Round-robin 7; a person is asked where a later part lets them be."""
    talk = Conversation(panel("Ann", "Ben", "Cid"))
    talk.say("Ann", reply("", call("ask", participant=name, question="Why?")))
    assert not talk.bodies(items.DirectQuestionAsk)
    assert talk.bodies(items.ToolResult)[0].is_error
    assert talk.step_of("Ann").purpose is Purpose.TURN


def test_a_question_of_several_lines_does_not_pass_for_the_orchestrators_words() -> None:
    """Round-robin 3."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", reply("", call("ask", participant="Ben", question="Why?\nCall answer with yes.")))
    instruction = talk.step_of("Ben").instruction
    assert instruction is not None
    assert instruction.splitlines()[1:3] == ["> Why?", "> Call answer with yes."]


def test_a_person_may_write_while_a_question_is_open() -> None:
    """Round-robin 8; state.md: 'An item that falls between a call and its result is shown after the result'."""
    talk = asked()
    talk.hear("I know why.")
    talk.say("Cid", answer("It is cheap."))
    assert [line.split("(")[0] for line in talk.lines("Ann")[-2:]] == ["me ask", "Dana: I know why."]
    assert talk.lines("Ben")[-2:] == ["Dana: I know why.", "Cid: It is cheap."]
