"""Where keeping a conversation within its window comes to an end, whatever models and providers do: no call is made for ever."""

from __future__ import annotations

from uuid import UUID

import pytest
from engine_harness import Conversation, reply
from test_context import LONG, SUMMARY, go_on, summaries, talk

from folkmoot.domain.model_calls import FailureClass, ModelFailure, Purpose
from folkmoot.engine.estimates import tokens_of
from folkmoot.engine.step import AskModel


def until_summarised(run: Conversation) -> AskModel:
    """Talk at length until something is to be summarised."""
    for _ in range(400):
        step = run.steps[0]
        assert isinstance(step, AskModel)
        if step.purpose is Purpose.COMPACTION:
            return step
        run.take(step, reply(LONG))
    raise AssertionError("nothing is ever summarised")


@pytest.mark.parametrize("of_the_wanted", [1.3, 1.7, 2.3])
@pytest.mark.parametrize("parting", [" ", "\n"])
def test_summary_that_is_longer_than_wanted_is_not_summarised_for_ever(of_the_wanted: float, parting: str) -> None:
    """B21: never twice without new items between; models do not count words well."""
    run = talk()
    for _ in range(12):
        step = until_summarised(run)
        covered: list[int] = []
        while isinstance(step, AskModel) and step.cut is not None:
            assert len(covered) < 8, "it is summarised again and again before one call"
            covered.append(step.cut.upto)
            text = ""
            while tokens_of(text) < step.cut.summary_tokens * of_the_wanted:
                text += f"word{parting}"
            before = run.views.of["Ann"].tokens
            if run.take(step, reply(text)):
                assert run.views.of["Ann"].tokens < before, "a summary takes less than what it stands for"
            step = run.steps[0]  # type: ignore[assignment]
        assert covered == sorted(set(covered)), "each covers something new"
        run.take(run.steps[0], reply(LONG))


@pytest.mark.parametrize("failure", [f for f in FailureClass if f is not FailureClass.LOST])
def test_summariser_that_always_fails_is_left_alone_in_the_end(failure: FailureClass) -> None:
    """F09: whatever it fails with, keys among it, the participant's own call comes."""
    run = talk()
    step = until_summarised(run)
    for _ in range(60):
        if step.purpose is not Purpose.COMPACTION:
            return
        run.take(step, ModelFailure(failure, "No."))
        step = run.step_of("Ann")
    raise AssertionError("it is asked for ever")


def test_call_that_is_under_way_is_not_preceded_by_a_summary() -> None:
    """A person's message never interrupts a model call: what it makes too long is summarised before the next one."""
    run = go_on(talk(), 8)
    step = run.step_of("Ann")
    assert step.purpose is Purpose.TURN
    run.under_way[step.key] = UUID(int=1)
    run.hear(LONG * 4)
    assert [s.key for s in run.steps if isinstance(s, AskModel)] == [step.key]
    run.under_way.clear()
    run.settle()
    assert run.step_of("Ann").purpose is Purpose.COMPACTION, "but for its being under way"


def test_window_that_was_found_to_be_smaller_leaves_room_for_a_reply() -> None:
    """A summary now and then, not before every turn."""
    run = talk(window=100_000)
    for _ in range(600):
        step = run.steps[0]
        assert isinstance(step, AskModel)
        size = run.views.of[step.participant].tokens
        if step.purpose is not Purpose.COMPACTION and step.participant == "Ann" and size > 3000:
            run.take(step, ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
        else:
            run.take(step, reply(SUMMARY if step.purpose is Purpose.COMPACTION else LONG))
        if run.protocol.calls.get("Ann", 0) >= 60:
            break
    assert 0 < len(summaries(run)) <= 60 // 2
