"""The time limit as participants are told of it: at the start, near the end, and with one last turn (B72; kernel.md, Time)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from engine_harness import (
    AGREE,
    NOW,
    PASS,
    Conversation,
    call,
    disagree,
    panel,
    propose,
    reply,
    seat,
    tool,
)

from folkmoot.domain import items
from folkmoot.domain.contexts import ContextSettings
from folkmoot.domain.definitions import ChatMode, HumanSettings, SystemPromptMode
from folkmoot.domain.items import EndReason
from folkmoot.domain.model_calls import FailureClass, ModelFailure, Purpose
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine import time_limits
from folkmoot.engine.instructions import spoken
from folkmoot.engine.step import AskModel, RunCall, Wait

HOUR = timedelta(hours=1)
WARNING = timedelta(minutes=40)  # 20 minutes before the limit: the last turn after 50, the cut after 55
WRITE, LOOK = tool("write"), tool("look", is_read_only=True)
PEOPLE = HumanSettings(ChatMode.EVERY_ROUND, include_in_votes=True, include_in_solutions=True)


def timed(*seats: Any, **settings: Any) -> Conversation:
    """With an hour from NOW on."""
    limits = {"duration_auto_termination": HOUR, "duration_warning_to_ai": WARNING}
    talk = Conversation(panel(*(seats or ("Ann", "Ben")), **(limits | settings)))
    talk.deadline = NOW + HOUR
    return talk


def at(talk: Conversation, minutes: float) -> Conversation:
    """So many minutes of work after the start. What is asked then is under way when time goes on."""
    talk.under_way = {step.key: talk.new_id() for step in talk.steps if isinstance(step, AskModel)}
    talk.now = NOW + timedelta(minutes=minutes)
    talk.settle()
    return talk


def told(talk: Conversation) -> list[str]:
    return [body.message for body in talk.bodies(items.InjectedSystemMessage)]


def reason(talk: Conversation) -> EndReason | None:
    detail = talk.items[-1].detail
    assert (talk.end is not None) is isinstance(detail, items.Ended | items.Tally)
    return detail.reason if isinstance(detail, items.Ended) else None


# told


def test_the_limit_is_told_with_the_task() -> None:
    """B72: the deadline is told at the start, also where the default instructions are replaced."""
    talk = timed(system_prompt_mode=SystemPromptMode.REPLACE)
    task = talk.bodies(items.OrchestratorMessage)[0].message
    assert (
        task.startswith("The task: Choose.")
        and "a time limit of 1 hour of work" in task
        and "20 minutes or less" in task
    )
    for settings in ({"duration_warning_to_ai": None}, {"duration_auto_termination": None}):
        assert timed(**settings).bodies(items.OrchestratorMessage)[0].message == "The task: Choose."


def test_all_are_warned_once_at_the_next_call_after_the_warning_time() -> None:
    """kernel.md, Time: 'at the next call after the warning time an `injectedSystemMessage` says how much is left'."""
    talk = timed()
    at(talk, 39.9).say("Ann", "Hm.")
    assert told(talk) == []
    at(talk, 40)
    assert told(talk) == [], "Ben's call is under way"
    talk.now += timedelta(minutes=2)
    talk.say("Ben", "Hm.")
    assert told(talk) == ["Time is running out: 18 minutes left. Come to an end: propose an answer, or support one."]
    assert [type(item.detail) for item in talk.items[-2:]] == [items.Floor, items.TimeWarning]
    for name in ("Ann", "Ben"):
        assert sum("18 minutes left" in entry for entry in talk.lines(name)) == 1
    at(talk, 43).say("Ann", "Hm.")
    assert len(told(talk)) == 1


def test_a_voter_and_somebody_asked_are_warned_too() -> None:
    """The next call is the next one of anybody, for whatever it is."""
    for said, purpose in (
        (propose("A"), Purpose.BALLOT),
        (reply("", call("ask", participant="Ben", question="?")), Purpose.ANSWER),
    ):
        talk = timed()
        at(talk, 41)
        talk.say("Ann", said)
        assert len(talk.details(items.TimeWarning)) == 1 and talk.step_of("Ben").purpose is purpose


@pytest.mark.parametrize(
    ("settings", "deadline"),
    [({"duration_warning_to_ai": None}, NOW + HOUR), ({}, None), ({"duration_auto_termination": None}, None)],
)
def test_where_no_warning_is_set_nobody_is_told(settings: dict[str, Any], deadline: Any) -> None:
    talk = timed(**settings)
    talk.deadline = deadline
    for minutes in (41, 51, 56):
        at(talk, minutes)
        talk.say(talk.steps[0].participant if isinstance(talk.steps[0], AskModel) else "", "Hm.")
    assert told(talk) == [] and talk.end is None


def test_waiting_for_people_moves_what_is_told() -> None:
    """kernel.md, Time: waiting for a person does not count; the facts' deadline moves with it."""
    talk = timed()
    talk.deadline = NOW + 2 * HOUR
    at(talk, 60).say("Ann", "Hm.")
    assert told(talk) == []
    at(talk, 100).say("Ben", "Hm.")
    assert len(talk.details(items.TimeWarning)) == 1


# the last turn


def test_whoever_gets_the_floor_next_has_the_last_turn() -> None:
    talk = timed()
    at(talk, 51)
    talk.say("Ann", "Hm.")
    assert [type(item.detail) for item in talk.items[-2:]] == [items.Floor, items.LastTurn]
    words = "Ben, this is the last turn: 9 minutes left. Call propose_solution now with the best answer you have."
    assert told(talk) == [f"{words} The others vote on it, and then the conversation ends."]
    assert all(any("Ben, this is the last turn" in entry for entry in talk.lines(name)) for name in ("Ann", "Ben"))
    step = talk.step_of("Ben")
    assert ([offered.name for offered in step.offered], step.required) == (["propose_solution"], True)


def test_whoever_has_the_floor_keeps_it_for_the_last_turn() -> None:
    """Even where all calls of the turn are used up: what leads to an answer is offered all the same."""
    talk = timed(seat("Ann", LOOK), "Ben", context=ContextSettings(max_tool_call_loops=1))
    talk.say("Ann", reply("", call("look")))
    at(talk, 52)
    talk.give("a door")
    assert talk.details(items.LastTurn) == [items.LastTurn("Ann")]
    assert talk.items[-1].turn_id == talk.items[-2].turn_id
    assert [offered.name for offered in talk.step_of("Ann").offered] == ["propose_solution"]
    talk.say("Ann", reply("", call("look")))  # not offered any more
    assert talk.bodies(items.ToolResult)[-1].is_error
    assert talk.step_of("Ann").offered == ()


def in_last_turn(*seats: str, **settings: Any) -> Conversation:
    """Ben has it."""
    talk = timed(*seats, **settings)
    at(talk, 51)
    talk.say("Ann", "Hm.")
    assert talk.details(items.LastTurn) == [items.LastTurn("Ben")]
    return talk


def test_an_answer_of_the_last_turn_is_voted_on_and_ends_the_run() -> None:
    talk = in_last_turn("Ann", "Ben", "Cid")
    talk.say("Ben", propose("A"))
    talk.vote(Ann=AGREE, Cid=disagree("no"))
    assert talk.end is not None and (talk.end.status, talk.end.output) == (RunStatus.COMPLETED, "A")
    assert talk.steps == ()


@pytest.mark.parametrize(
    "ends",
    [lambda t: t.say("Ben", "I am for A."), lambda t: (t.say("Ben", propose("A")), t.say("Ann", disagree("no")))],
)
def test_without_an_agreed_answer_the_run_ends_at_once_after_it(ends: Callable[[Conversation], object]) -> None:
    """Rather than idling until the limit."""
    talk = in_last_turn()
    ends(talk)
    assert reason(talk) is EndReason.TIME and talk.end is not None
    assert (talk.end.status, talk.end.output, talk.steps) == (RunStatus.FAILED, None, ())
    assert (
        talk.end.failure
        == "The time limit of 1:00:00 was close, and the last turn brought no answer that was agreed on."
    )


def test_where_nobody_may_propose_the_last_turn_is_for_last_words() -> None:
    talk = in_last_turn(is_solution_proposal_allowed=False)
    assert told(talk) == [
        "Ben, this is the last turn: 9 minutes left. Say your last words; then the conversation ends."
    ]
    step = talk.step_of("Ben")
    assert (step.offered, step.required) == ((), False)
    talk.say("Ben", "Farewell.")
    assert reason(talk) is EndReason.TIME


def test_the_limit_cuts_the_last_turn_too() -> None:
    """kernel.md, Time: reached, the run is Failed: nothing is produced after the limit."""
    talk = in_last_turn()
    talk.say("Ben", propose("A"))
    at(talk, 60)
    assert reason(talk) is EndReason.TIME and talk.end is not None and "was reached" in (talk.end.failure or "")


def test_people_vote_on_the_last_answer_and_their_time_does_not_count() -> None:
    talk = in_last_turn(human_settings=HumanSettings(ChatMode.OBSERVING, include_in_solutions=True))
    talk.say("Ben", propose("A"))
    waited = talk.wait
    talk.now, talk.deadline = NOW + 5 * HOUR, NOW + 5 * HOUR + timedelta(minutes=8)
    talk.answer(items.Agree(waited.pending.pending_id))
    talk.say("Ann", disagree("no"))
    assert talk.end is not None and talk.end.output == "A"


# what would miss it


def test_a_call_under_way_has_until_the_cut_and_is_then_asked_anew() -> None:
    """A long call does not take the last turn away; a reply that comes before is heard."""
    talk = timed()
    first = talk.step_of("Ann")
    for minutes in (41, 51, 54.9):
        assert (told(at(talk, minutes)), talk.step_of("Ann")) == ([], first)
    at(talk, 55)
    assert talk.details(items.LastTurn) == [items.LastTurn("Ann")] and talk.details(items.TimeWarning) == []
    step = talk.step_of("Ann")
    assert (step.key, step.attempt, [o.name for o in step.offered]) == (first.key, 2, ["propose_solution"])
    assert [fact.failure for fact in talk.model_calls[step.key]] == [FailureClass.LOST]
    talk.say("Ann", propose("A"))
    talk.say("Ben", AGREE)
    assert talk.end is not None and talk.end.output == "A"


def calling(talk: Conversation) -> None:
    talk.say("Ann", reply("", call("write"), call("look"), call("ask", participant="Ben", question="?")))
    talk.begin("write")


def asking(talk: Conversation) -> None:
    talk.say("Ann", reply("", call("ask", participant="Ben", question="?")))


def voting(talk: Conversation) -> None:
    talk.say("Ann", reply("", call("call_vote", topic="A?")))


@pytest.mark.parametrize(
    ("opens", "closed", "last"),
    [
        (calling, [items.UnknownOutcome, items.NotMade, type(None), items.NoAnswer], "Ann"),
        (asking, [items.NoAnswer], "Ann"),
        (voting, [items.Abstained, items.Abstained, items.Tally, items.Floor], "Ben"),
    ],
)
def test_what_is_open_is_closed_for_the_last_turn(
    opens: Callable[[Conversation], None], closed: list[type], last: str
) -> None:
    """B20: each call gets its result, a question its end, and who has not voted on a topic abstains."""
    talk = timed(seat("Ann", WRITE, LOOK), "Ben", "Cid")
    opens(talk)
    before = len(talk.items)
    at(talk, 54.9)
    assert len(talk.items) == before
    at(talk, 55)
    assert [type(item.detail) for item in talk.items[before:]] == [*closed, items.LastTurn]
    assert talk.details(items.LastTurn) == [items.LastTurn(last)] and talk.step_of(last).required
    assert talk.refolded() == talk.protocol
    talk.say(last, "That is all.")
    assert reason(talk) is EndReason.TIME


def test_an_answer_that_is_voted_on_is_not_cut() -> None:
    """It is itself what leads to an answer; rejected, it leaves time for a last turn."""
    talk = timed()
    talk.say("Ann", propose("A"))
    vote = talk.step_of("Ben")
    at(talk, 56)
    assert talk.step_of("Ben") == vote and told(talk) == []
    talk.say("Ben", disagree("no"))
    assert talk.details(items.LastTurn) == [items.LastTurn("Ben")]


@pytest.mark.parametrize(
    "opens",
    [
        lambda talk: (talk.say("Ann", PASS), talk.say("Ben", PASS)),
        lambda talk: talk.say("Ann", reply("", call("ask", participant="Human", question="?"))),
        lambda talk: talk.say("Ann", reply("", call("call_vote", topic="A?"))),
        lambda talk: talk.say("Ann", reply("", call("pay"))),
    ],
)
def test_a_person_who_is_waited_for_is_not_cut_off(opens: Callable[[Conversation], object]) -> None:
    """Waiting for people does not count: the run stands still until they come."""
    talk = timed(seat("Ann", tool("pay", is_gated=True)), "Ben", human_settings=PEOPLE)
    opens(talk)
    before = len(talk.items)
    at(talk, 56)
    (step,) = talk.steps
    assert isinstance(step, Wait) and len(talk.items) == before


# B30


def test_the_end_of_the_last_turn_comes_before_going_round_in_circles_and_before_the_rounds() -> None:
    """B30: of two rules that hold at once the first of the order decides."""
    talk = in_last_turn(maximum_rounds=1)
    talk.say("Ben", "Hm.")
    assert reason(talk) is EndReason.TIME


def test_the_last_turn_is_given_where_somebody_goes_round_in_circles() -> None:
    """B30: what is cut for it is cut before; a circle that is stuck ends the run only where nothing was."""
    talk = timed(seat("Ann", LOOK), "Ben", context=ContextSettings(max_tool_call_loops=99))
    for _ in range(4):
        talk.say("Ann", reply("", call("look")))
        talk.give("a door")
    talk.say("Ann", reply("", call("look")))
    at(talk, 52)
    talk.give("a door")
    assert reason(talk) is EndReason.STUCK


def test_whoever_cannot_be_asked_gets_no_last_turn() -> None:
    """B30: 7 comes before it."""
    talk = timed()
    at(talk, 51)
    talk.say("Ann", ModelFailure(FailureClass.INVALID_REQUEST, "No such field."))
    assert reason(talk) is EndReason.FAILURE and told(talk) == []


def test_a_wait_for_a_next_attempt_is_kept_in_the_last_turn() -> None:
    """The key asked for time: it is told of the last turn, and asked when that time is over."""
    talk = timed()
    at(talk, 51)
    talk.under_way = {}
    for _ in range(2):
        talk.say("Ann", ModelFailure(FailureClass.RATE_LIMITED, "Slowly."))
    assert talk.details(items.LastTurn) == [items.LastTurn("Ann")]
    assert talk.step_of("Ann").attempt == 3


def test_calls_that_are_over_the_mark_go_on_until_the_cut() -> None:
    """A reply that came before the last turn may still make its calls."""
    talk = timed(seat("Ann", LOOK), "Ben")
    at(talk, 51)
    talk.say("Ann", reply("", call("look")))
    assert [type(step) for step in talk.steps] == [RunCall] and told(talk) == []


def test_when_to_look_again() -> None:
    """The drive wakes for the cut once: not where nobody is warned, nor after the last turn was given."""
    talk = timed()
    definition, deadline = talk.seating.definition, talk.deadline
    assert time_limits.next_cut(definition, talk.protocol, deadline) == NOW + timedelta(minutes=55)
    assert time_limits.next_cut(definition, talk.protocol, None) is None
    assert time_limits.next_cut(definition, in_last_turn().protocol, deadline) is None
    assert time_limits.next_cut(panel("Ann"), talk.protocol, deadline) is None


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(days=1, hours=2, minutes=3), "1 day 2 hours"),
        (timedelta(hours=1, seconds=4), "1 hour"),
        (timedelta(minutes=1, seconds=30), "1 minute 30 seconds"),
        (timedelta(seconds=59.7), "1 minute"),
        (timedelta(milliseconds=3), "1 second"),
    ],
)
def test_time_is_spoken_of_in_two_units(span: timedelta, words: str) -> None:
    assert spoken(span) == words
