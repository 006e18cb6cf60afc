"""What happens next, and which rule decides where two hold at once (B30; the order is `decide`'s docstring)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from engine_harness import (
    AGREE,
    NOW,
    PASS,
    Conversation,
    call,
    panel,
    propose,
    reply,
    seat,
    tool,
)

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallState
from folkmoot.domain.items import EndReason
from folkmoot.domain.model_calls import FailureClass, ModelCallFact, ModelFailure
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine import decide
from folkmoot.engine.step import AskModel, Record, RunCall

LOOK = tool("look", is_read_only=True)
WRITE = tool("write")
BAD_KEY = ModelFailure(FailureClass.NO_CREDENTIAL, "The key was refused.")


def reason(talk: Conversation) -> EndReason | None:
    """Why the run ended; checks that it says so once and is over."""
    ends = [i for i in talk.items if isinstance(i.detail, items.Ended)]
    accepted = [d for d in talk.details(items.Tally) if d.outcome is items.Outcome.ACCEPTED]
    assert len(ends) + len(accepted) <= 1
    if talk.end is None:
        assert not ends and not accepted
        return None
    assert talk.steps == ()
    assert talk.items[-1].detail in [*(e.detail for e in ends), *accepted]
    detail = talk.items[-1].detail
    return detail.reason if isinstance(detail, items.Ended) else EndReason.SOLUTION


def voting(**settings: object) -> Conversation:
    """Ann has proposed, and Ben's vote is about to accept."""
    talk = Conversation(panel("Ann", "Ben", **settings))
    talk.say("Ann", propose("A"))
    return talk


def circling() -> Conversation:
    """Ann is warned, and about to make the same call again."""
    talk = Conversation(panel(seat("Ann", LOOK), "Ben", max_tool_call_loops=99))
    for _ in range(4):
        talk.say("Ann", reply("", call("look")))
        talk.give("a door")
    talk.say("Ann", reply("", call("look")))
    return talk


def without_time(talk: Conversation) -> Conversation:
    talk.deadline = NOW
    return talk


# B30: neighbours in the order


def test_a_stop_comes_before_a_complete_ballot() -> None:
    """B30, 1 before 2; state.md: 'A stop that commits before an acceptance wins'."""
    talk = voting()
    talk.stopped_by = "Dana"
    talk.say("Ben", AGREE)
    assert reason(talk) is EndReason.STOPPED
    assert talk.end is not None
    assert (talk.end.status, talk.end.output, talk.end.failure) == (RunStatus.STOPPED, None, None)
    assert not talk.details(items.Tally)


def test_a_complete_ballot_comes_before_the_time_limit() -> None:
    """B30, 2 before 3: an answer that was accepted is not thrown away."""
    talk = without_time(voting())
    talk.say("Ben", AGREE)
    assert reason(talk) is EndReason.SOLUTION
    assert talk.end is not None
    assert (talk.end.status, talk.end.output) == (RunStatus.COMPLETED, "A")


def test_after_a_rejection_the_time_limit_still_holds() -> None:
    """B30: a ballot that accepts nothing ends nothing; its tally is recorded."""
    talk = without_time(voting())
    talk.say("Ben", reply("", call("disagree", reason="no")))
    assert reason(talk) is EndReason.TIME
    assert talk.details(items.Tally)[0].outcome is items.Outcome.REJECTED


def test_the_time_limit_comes_before_going_round_in_circles() -> None:
    """B30, 3 before 4."""
    talk = without_time(circling())
    talk.give("a door")
    assert reason(talk) is EndReason.TIME


def test_going_round_in_circles_comes_before_a_model_that_cannot_be_asked() -> None:
    """B30, 4 before 5."""
    talk = circling()
    turn = talk.protocol.turn
    assert turn is not None
    key = f"turn:{turn.turn_id}:{turn.replies}"
    talk.model_calls[key] = (ModelCallFact(talk.new_id(), key, FailureClass.NO_CREDENTIAL, "The key was refused."),)
    talk.give("a door")
    assert reason(talk) is EndReason.STUCK


def test_a_model_that_cannot_be_asked_comes_before_rounds_of_passes() -> None:
    """B30, 5 before 6: the round is not over while somebody in it is still to be asked."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=1))
    talk.say("Ann", PASS)
    talk.say("Ben", BAD_KEY)
    assert reason(talk) is EndReason.FAILURE


def test_rounds_of_passes_come_before_the_bound_on_rounds() -> None:
    """B30, 6 before 7."""
    talk = Conversation(panel("Ann", "Ben", maximum_no_action_loops=2, maximum_rounds=2))
    talk.run(lambda _: PASS)
    assert reason(talk) is EndReason.NO_ACTION


@pytest.mark.parametrize("holding", ["stop", "time"])
def test_before_the_opening_a_stop_needs_none_and_the_time_limit_comes_after_it(holding: str) -> None:
    """B30: a run that is stopped before its first step begins nothing."""
    talk = Conversation(panel("Ann", "Ben"))
    fresh = type(talk.protocol)()
    talk.deadline = NOW if holding == "time" else None
    talk.stopped_by = "Dana" if holding == "stop" else None
    (step,) = decide.next_steps(talk.seating, fresh, talk.facts, talk.new_id)
    assert isinstance(step, Record)
    assert (step.end is not None) is (holding == "stop")


@pytest.mark.parametrize("how", ["solution", "stop", "time", "failure", "passes", "rounds"])
def test_nothing_is_decided_after_the_end(how: str) -> None:
    """B30: whatever else comes to hold."""
    talk = {
        "solution": voting,
        "passes": lambda: Conversation(panel("Ann", maximum_no_action_loops=1)),
        "rounds": lambda: Conversation(panel("Ann", maximum_rounds=1)),
    }.get(how, lambda: Conversation(panel("Ann", "Ben")))()
    match how:
        case "solution":
            talk.say("Ben", AGREE)
        case "stop":
            talk.stop()
        case "time":
            without_time(talk).settle()
        case "failure":
            talk.say("Ann", BAD_KEY)
        case "passes":
            talk.say("Ann", PASS)
        case _:
            talk.say("Ann", "Hm.")
    first = reason(talk)
    assert first is not None
    count = len(talk.items)
    talk.stopped_by, talk.deadline = "Eve", NOW
    talk.settle()
    assert (len(talk.items), reason(talk)) == (count, first)


def test_the_same_items_and_facts_give_the_same_steps() -> None:
    """state.md: 'If the same items and facts are given, the same steps come out'."""
    talk = Conversation(panel(seat("Ann", LOOK, WRITE), "Ben", "Cid"))
    for said in (reply("", call("look"), call("write")), None, None, reply("", call("call_vote", topic="A?"))):
        if said is None:
            talk.give("done")
        else:
            talk.say("Ann", said)
        again = decide.next_steps(talk.seating, talk.refolded(), talk.facts, talk.new_id)
        assert again == talk.steps
        assert all(isinstance(s, AskModel | RunCall) for s in again)


# stops and limits


def test_a_stop_closes_open_calls_and_says_who_asked() -> None:
    """B20: 'also after a stop': one result each; those that had begun may have happened."""
    talk = Conversation(panel(seat("Ann", LOOK, WRITE), "Ben"))
    talk.say("Ann", reply("", call("write"), call("look")))
    talk.begin("write")
    talk.stop("Dana")
    assert [type(i.detail).__name__ for i in talk.items[-3:]] == ["UnknownOutcome", "NotMade", "Ended"]
    begun, not_begun = talk.bodies(items.ToolResult)
    assert begun.is_error and "may or may not have happened" in begun.result
    assert not_begun.is_error and "This call has no result: the run was stopped." in not_begun.result
    assert talk.bodies(items.OrchestratorMessage)[-1].message == "The run was stopped by Dana."


def test_a_stop_during_a_question_closes_the_askers_calls_too() -> None:
    """B20: calls of the reply were done before the question was put; none is open."""
    talk = Conversation(panel(seat("Ann", LOOK), "Ben"))
    talk.say("Ann", reply("", call("look"), call("ask", participant="Ben", question="?")))
    talk.give("a door")
    talk.stop()
    calls = {b.tool_call_id for b in talk.bodies(items.ToolCall)}
    assert calls == {b.tool_call_id for b in talk.bodies(items.ToolResult)}


def test_the_time_limit_fails_the_run_and_says_which() -> None:
    """kernel.md, Time: 'Reached: the run is Failed'."""
    talk = Conversation(panel("Ann", "Ben", duration_auto_termination=timedelta(minutes=5)))
    talk.deadline = NOW + timedelta(minutes=5)
    talk.now = talk.deadline - timedelta(microseconds=1)
    talk.settle()
    assert talk.end is None
    talk.now = talk.deadline
    talk.settle()
    assert reason(talk) is EndReason.TIME
    assert talk.end is not None and talk.end.failure is not None
    assert talk.end.status is RunStatus.FAILED
    assert "0:05:00" in talk.end.failure


# calls of a lost worker


def test_a_lost_call_that_may_not_be_repeated_gets_an_unknown_outcome() -> None:
    """F04."""
    talk = Conversation(panel(seat("Ann", WRITE), "Ben"))
    talk.say("Ann", reply("", call("write")))
    talk.begin("write", lost=True)
    talk.settle()
    result = talk.items[-1]
    assert result.detail == items.UnknownOutcome()
    assert isinstance(result.body, items.ToolResult)
    assert result.body.is_error
    assert "may or may not have happened" in result.body.result
    assert [type(s) for s in talk.steps] == [AskModel]


def test_a_call_that_is_under_way_or_may_be_repeated_goes_on() -> None:
    """F05: begun, and not lost: the same step with the same key."""
    talk = Conversation(panel(seat("Ann", LOOK), "Ben"))
    talk.say("Ann", reply("", call("look")))
    before = talk.steps
    talk.begin("look")
    talk.settle()
    assert talk.steps == before


def test_three_calls_of_a_lost_worker_go_on_each_by_its_own_state() -> None:
    """F06: one done, one under way, one not begun."""
    talk = Conversation(panel(seat("Ann", LOOK, WRITE, tool("notify")), "Ben"))
    talk.say("Ann", reply("", call("look"), call("write"), call("notify")))
    talk.give("a door", of="look")
    talk.begin("write", lost=True)
    talk.calls["another run's"] = CallFact("another run's", CallState.ASKED)
    talk.settle()
    assert [b.is_error for b in talk.bodies(items.ToolResult)] == [False, True]
    assert [s.call.name for s in talk.steps if isinstance(s, RunCall)] == ["notify"]


# models that fail


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        (FailureClass.AUTHENTICATION, 200),
        (FailureClass.QUOTA_EXHAUSTED, 200),
        (FailureClass.NOT_FOR_KEY, 200),
        (FailureClass.NO_CREDENTIAL, 1),
        (FailureClass.CONTEXT_TOO_LONG, 1),
        (FailureClass.CONTENT_FILTERED, 1),
        (FailureClass.INVALID_REQUEST, 1),
        (FailureClass.TIMEOUT, 5),
        (FailureClass.UNAVAILABLE, 5),
        (FailureClass.RATE_LIMITED, 200),
        (FailureClass.OVERLOADED, 40),
    ],
)
def test_a_model_is_tried_as_often_as_its_failure_is_worth(failure: FailureClass, tries: int) -> None:
    """platform.md: 'invalid requests fail at once'; F61: 'bounded retries'."""
    talk = Conversation(panel("Ann", "Ben"))
    for n in range(1, tries + 1):
        assert talk.end is None
        assert talk.step_of("Ann").attempt == n
        talk.say("Ann", ModelFailure(failure, "It said no."))
    assert reason(talk) is EndReason.FAILURE
    assert talk.end is not None and talk.end.failure is not None
    assert talk.end.status is RunStatus.FAILED
    assert failure.value in talk.end.failure and "It said no." in talk.end.failure and "Ann" in talk.end.failure


def test_a_lost_reply_is_asked_for_again_and_counts_no_try() -> None:
    """F02; state.md: 'nothing counts as tried that was not'."""
    talk = Conversation(panel("Ann", "Ben"))
    for _ in range(20):
        talk.say("Ann", ModelFailure(FailureClass.LOST, "Gone."))
    for _ in range(4):
        talk.say("Ann", ModelFailure(FailureClass.TIMEOUT, "Too slow."))
    assert talk.end is None
    talk.say("Ann", ModelFailure(FailureClass.TIMEOUT, "Too slow."))
    assert reason(talk) is EndReason.FAILURE


def test_a_retry_waits_until_its_time() -> None:
    """platform.md: 'with the provider's retry-after': the step carries when it may begin."""
    talk = Conversation(panel("Ann", "Ben"))
    key = talk.step_of("Ann").key
    talk.model_calls[key] = (ModelCallFact(talk.new_id(), key, FailureClass.RATE_LIMITED, "Slowly.", 1234.5),)
    talk.settle()
    assert (talk.step_of("Ann").attempt, talk.step_of("Ann").not_before) == (2, 1234.5)


def test_what_befell_other_keys_is_not_counted_against_a_call() -> None:
    """B44: four keys fail, and the fifth's timeout is the first of its kind."""
    talk = Conversation(panel("Ann", "Ben"))
    for failure in (FailureClass.AUTHENTICATION, FailureClass.QUOTA_EXHAUSTED, FailureClass.NOT_FOR_KEY) * 3:
        talk.say("Ann", ModelFailure(failure, "It said no."))
    for _ in range(4):
        talk.say("Ann", ModelFailure(FailureClass.TIMEOUT, "Too slow."))
    assert talk.end is None
    talk.say("Ann", ModelFailure(FailureClass.TIMEOUT, "Too slow."))
    assert reason(talk) is EndReason.FAILURE


def test_a_new_reply_begins_a_new_count_of_tries() -> None:
    """state.md: 'a refused or empty reply makes a new key'."""
    talk = Conversation(panel("Ann", "Ben"))
    talk.say("Ann", ModelFailure(FailureClass.TIMEOUT, "Too slow."))
    talk.say("Ann", reply("", call("nothing")))
    assert talk.step_of("Ann").attempt == 1


def test_a_voter_that_cannot_be_asked_ends_the_run() -> None:
    """B30, 5: also in a ballot; votes that came in stay sealed."""
    talk = voting()
    talk.say("Ben", BAD_KEY)
    assert reason(talk) is EndReason.FAILURE
