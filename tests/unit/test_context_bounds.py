"""Where keeping a conversation within its window comes to an end, whatever models and providers do: no call is made for ever."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from engine_harness import Conversation, call, reply, tool
from test_context import COMPACT, LONG, SUMMARY, TRIM, go_on, summaries, talk

from folkmoot.domain.contexts import TrimmingMode, effective
from folkmoot.domain.model_calls import (
    FailureClass,
    ModelChoice,
    ModelFailure,
    ModelReply,
    OwnCall,
    OwnText,
    Purpose,
    Sampling,
    Usage,
)
from folkmoot.engine.estimates import entry_tokens, tokens_of
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
        while isinstance(step, AskModel) and step.cover is not None:
            assert len(covered) < 8, "it is summarised again and again before one call"
            covered.append(step.cover.upto)
            text = ""
            while tokens_of(text) < step.cover.summary_tokens * of_the_wanted:
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


def with_seat(run: Conversation, **changes: object) -> Conversation:
    run.seating.participants["Ann"] = replace(run.seating.participants["Ann"], **changes)  # type: ignore[arg-type]
    return run


def test_reply_of_a_set_length_has_its_room() -> None:
    """A provider counts what is asked for: summarising starts earlier, and gets further down, so that it does not run each turn."""
    run = with_seat(talk(), sampling=Sampling(max_tokens=1800))
    go_on(run, 60)
    sizes = [
        sum(map(entry_tokens, entries))
        for step, entries in run.requests
        if step.participant == "Ann" and not step.cover
    ]
    assert max(sizes) <= 4000 - 1800
    assert 0 < len(summaries(run)) < len(sizes) // 2


def test_summariser_with_a_smaller_window_than_was_said_is_found_out_once() -> None:
    """B22: what it refused is not tried again with each summary."""
    run = with_seat(talk(window=20_000), compaction_model=ModelChoice("scripted", "small", context_window=20_000))
    refused = 0
    for _ in range(400):
        step = run.steps[0]
        assert isinstance(step, AskModel)
        if step.purpose is Purpose.COMPACTION and sum(map(entry_tokens, run.request(step))) > 2500:
            refused += 1
            run.take(step, ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
        else:
            run.take(step, reply(SUMMARY if step.purpose is Purpose.COMPACTION else LONG))
    assert len(summaries(run)) >= 8
    assert 1 <= refused <= 3


def test_numbers_of_a_summary_are_those_of_the_prompts() -> None:
    """Tokens before and after, by the provider's count: of the prompt that would have been sent, and of the one that is."""
    context = replace(COMPACT, trimming=TrimmingMode.ON_PRESSURE)
    run = talk(tool("look", is_read_only=True), context=replace(context, max_tool_call_loops=99))
    run.say("Ann", ModelReply("", (call("look"),), Usage(input=2 * run.sizes.of(run.step_of("Ann")).guessed)))
    run.give(LONG * 2)
    run.take(run.step_of("Ann"), ModelReply(LONG, (), Usage(input=2 * run.sizes.of(run.step_of("Ann")).guessed)))
    step = until_summarised(run)
    run.take(step, reply(SUMMARY))
    (made,) = summaries(run)
    left = run.steps[0]
    assert isinstance(left, AskModel) and left.purpose is Purpose.TURN
    assert made.tokens_before > made.tokens_after
    assert abs(made.tokens_after - run.sizes.of(left).tokens) < 20


def test_guess_counts_the_tools_and_the_last_words_of_its_call() -> None:
    """B22: a ballot offers other tools than a turn; what it is counted to take says nothing of a turn's."""
    large = tool("look", parameters={"type": "object", "description": LONG * 4, "properties": {}})
    run = talk(large)
    turn = run.sizes.of(run.step_of("Ann"))
    run.say("Ann", "I have said it.")
    run.say("Ben", reply("", call("propose_solution", solution=LONG * 2)))
    step = run.step_of("Ann")
    ballot = run.sizes.of(step)
    assert ballot.guessed >= sum(map(entry_tokens, run.request(step))) + tokens_of(LONG * 2)
    assert ballot.guessed < turn.guessed + 2 * tokens_of(LONG * 2) - tokens_of(LONG * 3), "without the tools of a turn"
    run.take(step, ModelReply("", (call("disagree", reason="No."),), Usage(input=ballot.guessed)))
    after = run.sizes.of(run.step_of("Ann"))
    assert after.tokens == after.guessed


def test_record_of_a_summary_tells_what_its_model_reads() -> None:
    """Whoever takes over trims up to where the records say: not what was only to be trimmed if no summary had come (F08)."""
    context = replace(COMPACT, trimming=TrimmingMode.ON_PRESSURE, target_utilization=40, max_tool_call_loops=99)
    run = talk(tool("look", is_read_only=True), context=context)
    go_on(run, 2)
    run.say("Ann", reply("", call("look")))
    run.give(LONG * 3)
    run.say("Ann", "Done.")
    while (step := run.step_of(run.steps[0].participant)).purpose is not Purpose.COMPACTION:  # type: ignore[union-attr]
        run.hear(LONG) if step.participant == "Ann" else go_on(run, 1)
    record = run.sizes.of(step)
    read = sum(map(entry_tokens, run.request(step)))
    assert read < record.guessed <= read + 200
    assert run.sizes.facts().of("Ann", seat="Ann", beside=0).trim_upto > 0
    assert record.trim_upto == 0, "a summariser is shown results as they stand"


@pytest.mark.parametrize(
    "stored",
    [
        {"compactTargetTokens": 5_000},
        {"compactMaxTokens": 100_000},
        {"compactMaxTokens": 90},
        {"compactTargetTokens": 5_000, "compactMaxTokens": 100_000},
        {"compactKeepRecentTokens": 100_000},
        {"compactAtUtilization": 1},
        {"lowWaterUtilization": 1, "compactAtUtilization": 100},
    ],
    ids=lambda stored: "-".join(stored),
)
@pytest.mark.parametrize("window", [1_500, 4_000])
def test_settings_that_do_not_suit_a_window_are_taken_as_far_as_they_go(stored: dict[str, int], window: int) -> None:
    run = go_on(talk(context=effective({"mode": "Compact", **stored}), window=window), 40)
    assert summaries(run) and run.end is None
    for step, entries in (asked for asked in run.requests if asked[0].participant == "Ann"):
        if step.purpose is not Purpose.COMPACTION:
            assert sum(map(entry_tokens, entries)) <= window
        elif step.cover is not None:
            asked = sum(map(entry_tokens, entries)) + tokens_of(step.instruction or "")
            assert asked + step.cover.reply_tokens <= window
            assert step.cover.summary_tokens <= step.cover.reply_tokens


@pytest.mark.parametrize("disabled", [True, False])
def test_placeholder_names_the_tool_that_reads_on_only_where_there_is_one(disabled: bool) -> None:
    """disabledTools may hold read_tool_result."""
    context = replace(TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, max_tool_call_loops=99)
    tools = ("read_tool_result",) if disabled else ()
    run = talk(tool("look", is_read_only=True), context=context, disabled_tools=tools)
    for _ in range(2):
        run.say("Ann", reply("", call("look")))
        run.give(LONG)
    run.say("Ann", "Done.")
    view = run.view("Ann")
    assert any("left out here" in str(entry) for entry in view)
    assert any("read_tool_result" in str(entry) for entry in view) is not disabled


def test_refused_prompt_brings_a_summary_though_they_rest() -> None:
    """Context: 'context too long' triggers one forced compaction, also right after three that failed."""
    run = talk()
    while (step := until_summarised(run)).purpose is Purpose.COMPACTION:
        run.take(step, ModelFailure(FailureClass.UNAVAILABLE, "No."))
        if run.step_of("Ann").purpose is Purpose.TURN:
            break
    run.take(run.step_of("Ann"), ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
    forced = run.step_of("Ann")
    assert forced.purpose is Purpose.COMPACTION
    while (step := run.step_of("Ann")).purpose is Purpose.COMPACTION:
        run.take(step, reply(SUMMARY))
    assert step.attempt == 2 and run.end is None


@pytest.mark.parametrize("words", ["The harbour road. ", "港の道は橋より安い。", '{"price": 12.5}, '])
def test_text_larger_than_the_summarisers_window_is_cut_to_fit(words: str) -> None:
    """B22: right for CJK and JSON."""
    look = tool("look", is_read_only=True)
    small = ModelChoice("scripted", "small", context_window=2_000)
    run = with_seat(talk(look, window=40_000), compaction_model=small)
    said = words
    while tokens_of(said) < 8_000:
        said += words
    run.say("Ann", reply(said, call("look"), call("look", at=1), call("look", at=2)))
    for _ in range(3):
        run.give(said)
    run.say("Ann", "Well.")
    step = until_summarised(run)
    assert step.cover is not None and step.cover.covered > 20_000
    assert sum(map(entry_tokens, run.request(step))) <= step.cover.part_tokens < 2_000


def test_words_after_a_result_that_was_not_seen_are_summarised_and_it_stays() -> None:
    """B21: a call that ends its turn is seen in the next one, however much the others say in between."""
    book = tool("book", is_terminal=True)
    others = tuple(f"P{n}" for n in range(16))
    run = talk(book, seats=others, window=3_000)
    go_on(run, 17)
    while (step := run.step_of("Ann")).purpose is Purpose.COMPACTION:
        run.take(step, reply(SUMMARY))
    run.take(step, reply("I book it.", call("book", room=7)))
    run.give("Room 7 is booked.")
    go_on(run, 16)
    while (step := run.step_of("Ann")).purpose is Purpose.COMPACTION:
        run.take(step, reply(SUMMARY))
    view = run.request(step)
    assert sum(map(entry_tokens, view)) < 3_000
    own = [entry for entry in view if isinstance(entry, OwnText | OwnCall)]
    assert [getattr(entry, "result", None) or entry.text for entry in own] == ["I book it.", "Room 7 is booked."]  # type: ignore[union-attr]
    run.take(step, reply(LONG))
    for _ in range(3):
        go_on(run, 17)
    assert "Room 7 is booked." not in str(run.view("Ann")), "once it was seen it is summarised like anything else"
