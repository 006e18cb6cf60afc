"""Participants that go round in circles: warned once, then the run is ended as stuck (F57, B36)."""

from __future__ import annotations

from uuid import UUID

from engine_harness import Conversation, call, panel, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.model_calls import OtherText
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.step import RunCall

TOOLS = (tool("look"), tool("peek"))
MANY = 99


def pair() -> Conversation:
    return Conversation(panel(seat("Ann", *TOOLS), seat("Ben", *TOOLS), "Cid", max_tool_call_loops=MANY))


def use(
    talk: Conversation, who: str, function: str, result: str = "a door", *, is_error: bool = False, **arguments: object
) -> None:
    """One call with its result, by whoever has the floor."""
    talk.say(who, reply("", call(function, **arguments)))
    talk.give(result, is_error=is_error)


def warned(talk: Conversation) -> list[str]:
    return [detail.participant for detail in talk.details(items.StuckWarning)]


def is_stuck(talk: Conversation) -> bool:
    return talk.items[-1].detail == items.Ended(items.EndReason.STUCK)


def test_the_same_call_and_result_four_times_is_warned_of_once_then_ends_the_run() -> None:
    """F57."""
    talk = pair()
    for n in range(4):
        assert warned(talk) == [], n
        use(talk, "Ann", "look")
    assert warned(talk) == ["Ann"]
    warning = talk.items[-1]
    assert isinstance(warning.body, items.InjectedSystemMessage)
    assert talk.view("Ann")[-1] == OtherText(None, warning.body.message)
    assert "same call of look with the same result 4 times" in warning.body.message
    assert not any("circles" in text for text in talk.lines("Ben"))
    assert talk.end is None
    use(talk, "Ann", "look")
    assert is_stuck(talk)
    assert warned(talk) == ["Ann"]
    assert talk.end is not None and talk.end.failure is not None
    assert talk.end.status is RunStatus.FAILED
    assert "Ann made the same call of look" in talk.end.failure


def test_the_same_call_with_changing_results_is_no_circle() -> None:
    """F57: 'the same call and result'; a poll that sees something new goes on."""
    talk = pair()
    for n in range(8):
        use(talk, "Ann", "look", f"state {n}")
    assert warned(talk) == []


def test_a_large_result_is_the_same_though_each_time_it_is_kept_under_another_id() -> None:
    """F57: what is read on is named in the text that the conversation carries."""
    talk = pair()
    for n in range(4):
        assert warned(talk) == [], n
        talk.say("Ann", reply("", call("look")))
        (step,) = (step for step in talk.steps if isinstance(step, RunCall))
        text = f"a door [Read on with read_tool_result, id {UUID(int=n)}.] a wall"
        talk.take(step, CallResult(text, is_error=False, content_id=UUID(int=n), size=99_999))
    assert warned(talk) == ["Ann"]


def test_the_same_call_with_other_arguments_is_no_circle() -> None:
    """B36: 'with the same arguments'."""
    talk = pair()
    for n in range(8):
        use(talk, "Ann", "look", at=n)
    assert warned(talk) == []


def test_arguments_are_the_same_whatever_their_spelling() -> None:
    """B36."""
    talk = pair()
    for n in range(4):
        arguments = {"a": 1, "b": 2} if n % 2 else {"b": 2.0, "a": 1}
        use(talk, "Ann", "look", **arguments)
    assert warned(talk) == ["Ann"]


def test_the_same_failing_call_three_times_is_warned_of_whatever_it_says() -> None:
    """F57."""
    talk = pair()
    for n in range(3):
        assert warned(talk) == [], n
        use(talk, "Ann", "look", f"error {n}", is_error=True)
    assert warned(talk) == ["Ann"]
    use(talk, "Ann", "look", "error 4", is_error=True)
    assert is_stuck(talk)


def test_a_success_between_failures_starts_anew() -> None:
    """F57: in a row."""
    talk = pair()
    for n in range(8):
        use(talk, "Ann", "look", f"answer {n}", is_error=n % 3 != 2)
    assert warned(talk) == []


def test_after_the_warning_something_else_is_no_circle() -> None:
    """F57: 'warned once' gives a chance."""
    talk = pair()
    for _ in range(4):
        use(talk, "Ann", "look")
    use(talk, "Ann", "peek")
    for _ in range(3):
        use(talk, "Ann", "look")
    assert talk.end is None
    use(talk, "Ann", "look")
    assert is_stuck(talk)


def test_two_calls_in_turn_six_in_a_row_are_ping_pong() -> None:
    """F57; the results may change: the two calls alone go round."""
    talk = pair()
    for n in range(6):
        assert warned(talk) == [], n
        use(talk, "Ann", ("look", "peek")[n % 2], f"state {n}")
    assert warned(talk) == ["Ann"]
    use(talk, "Ann", "look", "state 6")
    assert is_stuck(talk)


def test_ping_pong_between_two_participants_warns_both() -> None:
    """B36: 'so is ping-pong between two'."""
    talk = pair()
    for n in range(6):
        who = ("Ann", "Ben")[n % 2]
        use(talk, who, "look" if who == "Ann" else "peek", f"state {n}")
        talk.say(who, "Next.")
        if who == "Ben":
            talk.say("Cid", "Go on.")
    assert sorted(warned(talk)) == ["Ann", "Ben"]
    assert any("circles" in text for text in talk.lines("Ann"))
    assert any("circles" in text for text in talk.lines("Ben"))
    use(talk, "Ann", "look", "state 6")
    assert is_stuck(talk)


def test_another_participants_calls_between_do_not_break_a_row() -> None:
    """B36: the same participant making the same call again and again."""
    talk = pair()
    for n in range(4):
        use(talk, "Ann", "look")
        talk.say("Ann", "Still there.")
        use(talk, "Ben", "peek", at=n)
        talk.say("Ben", "I see.")
        talk.say("Cid", "Go on.")
    assert warned(talk) == ["Ann"]


def test_another_participants_calls_between_do_not_hide_ping_pong() -> None:
    """F57, B36: Ann's own calls alternate, whatever Ben calls meanwhile."""
    talk = pair()
    for n in range(6):
        use(talk, "Ann", ("look", "peek")[n % 2], f"state {n}")
        talk.say("Ann", "Hm.")
        use(talk, "Ben", "peek", at=n)
        talk.say("Ben", "I see.")
        talk.say("Cid", "Go on.")
    assert warned(talk) == ["Ann"]


def test_one_participants_warning_is_not_the_others() -> None:
    """F57: who ends the run was warned before."""
    talk = pair()
    for _ in range(4):
        use(talk, "Ann", "look")
    talk.say("Ann", "All right.")
    for _ in range(4):
        use(talk, "Ben", "peek")
    assert warned(talk) == ["Ann", "Ben"]
    assert talk.end is None
    use(talk, "Ben", "peek")
    assert is_stuck(talk)


def test_repeated_words_and_refused_calls_are_no_circle() -> None:
    """A conversation may repeat itself; a call that was refused was not made, and its loops are bounded anyway."""
    talk = pair()
    for _ in range(6):
        talk.say("Ann", reply("", call("nothing")))
    talk.say("Ann", "Yes.")
    for _ in range(6):
        talk.say("Ben", "Yes.")
        talk.say("Cid", "Yes.")
        talk.say("Ann", "Yes.")
    assert warned(talk) == []


def test_a_worker_that_takes_over_counts_on() -> None:
    """F57: 'caps hold over restarts': the count is folded from items."""
    talk = pair()
    for _ in range(4):
        use(talk, "Ann", "look")
    talk.protocol = talk.refolded()
    talk.settle()
    assert warned(talk) == ["Ann"]
    use(talk, "Ann", "look")
    assert is_stuck(talk)


def test_tool_that_polls_may_be_called_again_and_again() -> None:
    """B36: polling tools, marked as such, are excepted; others beside them are not."""
    talk = Conversation(
        panel(seat("Ann", tool("poll", is_polling=True), tool("look")), "Ben", max_tool_call_loops=MANY)
    )
    for _ in range(12):
        use(talk, "Ann", "poll", "not yet")
    assert warned(talk) == []
    for _ in range(4):
        use(talk, "Ann", "look")
        use(talk, "Ann", "poll", "not yet")
    assert warned(talk) == ["Ann"]
