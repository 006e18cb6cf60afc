"""Keeping a conversation within a model's window: what is trimmed and summarised, when, and what stays whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from engine_harness import Conversation, call, panel, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.contexts import CompactionType, ContextMode, ContextSettings, TrimmingMode, TrimmingStyle
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelChoice,
    ModelFailure,
    ModelReply,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    SystemText,
    Usage,
)
from folkmoot.domain.run_status import RunStatus
from folkmoot.engine.estimates import entry_tokens, tokens_of
from folkmoot.engine.step import AskModel, RunCall

LOOK = tool("look", is_read_only=True)
PAY = tool("pay", is_gated=True)
WRITE = tool("write")
WINDOW = 4000
LONG = "The harbour road costs less than the bridge, as the town has found out before. " * 12
SUMMARY = "They compared the harbour road and the bridge."
COMPACT = ContextSettings(mode=ContextMode.COMPACT)
TRIM = ContextSettings(mode=ContextMode.TRIM, trimming=TrimmingMode.ON_PRESSURE)


def talk(
    *tools: Any,
    context: ContextSettings = COMPACT,
    window: int = WINDOW,
    seats: tuple[str, ...] = ("Ben",),
    **settings: Any,
) -> Conversation:
    """Ann has the tools and the window; the others never run out of theirs."""
    ann = replace(seat("Ann", *tools), model=ModelChoice("scripted", "s", context_window=window))
    others = (replace(seat(name), model=ModelChoice("scripted", "s", context_window=10**6)) for name in seats)
    return Conversation(panel(ann, *others, context=context, **settings))


def go_on(run: Conversation, turns: int, *, summary: str | ModelFailure = SUMMARY) -> Conversation:
    """So many replies of the participants, each a long text; summaries come when they are asked for."""
    said = 0
    for _ in range(turns * 20):
        if said == turns or not run.steps:
            return run
        step = run.steps[0]
        assert isinstance(step, AskModel)
        if step.purpose is Purpose.COMPACTION:
            run.take(step, reply(summary) if isinstance(summary, str) else summary)
        else:
            run.take(step, reply(f"{said}: {LONG}"))
            said += 1
    raise AssertionError("the turns are not reached")


def reach(run: Conversation, name: str) -> AskModel:
    """All go on until a participant's model is the next to be asked, or what summarises for it."""
    while True:
        step = run.steps[0]
        assert isinstance(step, AskModel)
        if step.participant == name:
            return step
        go_on(run, 1)


def look(run: Conversation, result: str, name: str = "look") -> None:
    run.say("Ann", reply("", call(name)))
    run.give(result)


def sent_to(run: Conversation, name: str) -> tuple[Entry, ...]:
    return next(entries for step, entries in reversed(run.requests) if step.participant == name and step.cover is None)


def summaries(run: Conversation) -> list[items.Summary]:
    return run.bodies(items.Summary)


def text_of(entries: tuple[Entry, ...] | list[Entry]) -> str:
    return "\n".join(f"{e.name} {e.arguments_json} {e.result}" if isinstance(e, OwnCall) else e.text for e in entries)


class TestSummaries:
    def test_nothing_is_cut_unless_it_is_asked_for(self) -> None:
        run = go_on(talk(context=ContextSettings()), 40)
        assert not summaries(run)
        assert sum(entry_tokens(entry) for entry in sent_to(run, "Ann")) > WINDOW

    def test_prompt_stays_within_its_window_and_the_summary_is_where_the_old_was(self) -> None:
        """Context: summary items say what they cover; the items stay."""
        run = go_on(talk(), 60)
        made = summaries(run)
        assert len(made) >= 3
        assert all(step.participant == "Ann" for step, _ in run.requests if step.purpose is Purpose.COMPACTION)
        assert all(s.tokens_after < s.tokens_before and s.model == "s" for s in made)
        assert [s.covered_up_to_sequence for s in made] == sorted({s.covered_up_to_sequence for s in made})
        for step, entries in run.requests:
            if step.participant == "Ann":
                assert sum(entry_tokens(entry) for entry in entries) < WINDOW
        view = sent_to(run, "Ann")
        assert isinstance(view[0], SystemText) and "The task" in text_of(view[1:2])
        assert SUMMARY in text_of(view[2:3])
        assert len(run.bodies(items.AgentMessage)) == 60  # the items are all still there

    def test_one_summary_gets_down_to_the_low_water(self) -> None:
        """Context: lowWaterUtilization, so that it does not run at every turn."""
        few = len(summaries(go_on(talk(context=replace(COMPACT, low_water_utilization=30)), 80)))
        many = len(summaries(go_on(talk(context=replace(COMPACT, low_water_utilization=75)), 80)))
        assert few < many < 40

    @pytest.mark.parametrize(
        "change",
        [
            {"compact_at_utilization": 55},
            {"keep_recent_tokens": 100},
            {"summary_tokens": 64},
            {"low_water_utilization": 20},
        ],
    )
    def test_each_setting_changes_what_is_covered(self, change: dict[str, Any]) -> None:
        def where(context: ContextSettings) -> list[tuple[int, str | None]]:
            run = go_on(talk(context=context, window=8000), 60)
            return [(step.cover.upto, step.instruction) for step, _ in run.requests if step.cover is not None]

        assert where(COMPACT) != where(replace(COMPACT, **change))

    def test_newest_words_stay_as_they_are(self) -> None:
        """Context: compactKeepRecentTokens."""
        run = go_on(talk(context=replace(COMPACT, keep_recent_tokens=600)), 41)
        assert summaries(run)
        view = sent_to(run, "Ann")
        assert sum(LONG in text_of([entry]) for entry in view) >= 2

    def test_summariser_sees_a_record_and_is_offered_nothing(self) -> None:
        run = go_on(talk(LOOK), 40)
        step, entries = next((s, e) for s, e in run.requests if s.purpose is Purpose.COMPACTION)
        assert step.offered == () and not step.required
        assert "harbour road" in text_of(entries)
        assert all(isinstance(entry, SystemText | OtherText) for entry in entries)
        assert {entry.speaker for entry in entries if isinstance(entry, OtherText)} >= {"Ann", "Ben"}

    def test_dedicated_model_gets_no_instructions_of_the_participants(self) -> None:
        """Context: compactionType."""
        run = talk(context=replace(COMPACT, compaction=CompactionType.DEDICATED_MODEL))
        go_on(run, 40)
        _, entries = next((s, e) for s, e in run.requests if s.purpose is Purpose.COMPACTION)
        assert not any(isinstance(entry, SystemText) for entry in entries)

    def test_small_summariser_takes_the_old_bit_by_bit(self) -> None:
        """B22: a summariser with a small window works in chunks."""
        run = talk(window=20_000)
        seating = run.seating
        small = replace(
            seating.participants["Ann"], compaction_model=ModelChoice("scripted", "small", context_window=2500)
        )
        seating.participants["Ann"] = small
        go_on(run, 120)
        parts = [entries for step, entries in run.requests if step.purpose is Purpose.COMPACTION]
        assert len(parts) >= 3
        assert all(sum(entry_tokens(entry) for entry in part) < 2500 for part in parts)
        assert all(s.model == "small" for s in summaries(run))

    def test_views_after_a_restart_are_the_same(self) -> None:
        """F08: the old or the new view, never a mix."""
        run = go_on(talk(LOOK, WRITE), 50)
        again = Conversation(run.seating.definition)
        again.items, again.protocol = [], type(run.protocol)()
        again.views = type(run.views)(run.seating.names, gated=run.seating.gated)
        for item in run.items:
            again.views.add(item)
        for name, view in run.views.of.items():
            assert again.views.of[name].entries == view.entries
            assert again.views.of[name].covered_upto == view.covered_upto

    def test_other_participants_views_are_left_alone(self) -> None:
        """A summary belongs to its author's view."""
        run = go_on(talk(), 40)
        assert summaries(run)
        assert SUMMARY not in text_of(run.view("Ben"))
        assert sum(LONG in text_of([entry]) for entry in run.view("Ben")) == 40


class TestWhatStays:
    def test_decisions_refusals_and_unknown_outcomes_stay_word_by_word(self) -> None:
        """Context: pinned things survive verbatim."""
        run = talk(PAY, WRITE)
        run.say("Ann", reply("", call("pay", amount=7)))
        run.decide(approve=False, reason="Too much.")
        run.say("Ann", reply("", call("pay", amount=3)))
        run.decide(approve=True)
        run.give("paid 3", of="pay")
        run.say("Ann", reply("", call("write", line="x")))
        run.begin("write", lost=True)
        run.settle()
        go_on(run, 60)
        assert len(summaries(run)) >= 2
        text = text_of(sent_to(run, "Ann"))
        assert "Too much." in text and "paid 3" in text and '{"amount": 3}' in text
        assert "may or may not have" in text

    def test_open_vote_is_never_summarised(self) -> None:
        """Context: open votes and questions stay."""
        run = go_on(talk(window=WINDOW), 12)
        reach(run, "Ben")
        run.say("Ben", reply("", call("call_vote", topic="Shall it be the harbour road? " + LONG * 3)))
        for _ in range(10):
            step = run.steps[0]
            assert isinstance(step, AskModel)
            if step.purpose is Purpose.BALLOT:
                break
            run.take(step, reply(SUMMARY))
        assert step.purpose is Purpose.BALLOT
        assert "Shall it be the harbour road?" in text_of(list(run.request(step)))

    def test_result_that_was_not_seen_is_neither_trimmed_nor_summarised(self) -> None:
        """B21: never a result that the model has not yet seen."""
        context = replace(COMPACT, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0)
        run = go_on(talk(LOOK, context=context), 10)
        step = reach(run, "Ann")
        if step.cover is not None:
            run.take(step, reply(SUMMARY))
        look(run, "The answer is 42. " + LONG)
        for _ in range(5):
            step = run.steps[0]
            assert isinstance(step, AskModel)
            if step.purpose is Purpose.TURN:
                break
            run.take(step, reply(SUMMARY))
        newest = run.request(step)[-1]
        assert isinstance(newest, OwnCall) and newest.result.startswith("The answer is 42.")

    def test_what_was_not_seen_is_summarised_only_where_it_does_not_fit(self) -> None:
        run = talk(
            seats=(
                "Ben",
                "Cid",
                "Dan",
                "Eva",
                "Flo",
                "Gus",
                "Hal",
                "Ida",
                "Joe",
                "Kim",
                "Lea",
                "Max",
                "Nia",
                "Oda",
                "Pia",
            ),
            window=3000,
        )
        go_on(run, 40)
        assert all(
            sum(entry_tokens(e) for e in entries) < 3000 for s, entries in run.requests if s.participant == "Ann"
        )


class TestTrimming:
    @pytest.mark.parametrize("style", list(TrimmingStyle))
    def test_old_results_are_trimmed_in_each_style(self, style: TrimmingStyle) -> None:
        """Context: toolResultTrimmingStyle, with the call's id so that it can be read again."""
        context = replace(
            TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=1, trimming_style=style, max_tool_call_loops=99
        )
        run = talk(LOOK, context=context)
        for n in range(4):
            look(run, f"first line {n}\n" + LONG + f"\nlast line {n}")
        run.say("Ann", "Done.")
        calls = [entry for entry in sent_to(run, "Ann") if isinstance(entry, OwnCall)]
        whole = [entry for entry in calls if LONG in entry.result]
        assert [entry.result[:12] for entry in whole] == ["first line 3"]
        older = [entry for entry in calls if entry not in whole]
        if style is TrimmingStyle.REMOVE:
            assert not older
        else:
            assert len(older) == 3
            assert all(entry.call_id in entry.result and "read_tool_result" in entry.result for entry in older)
            assert all(("first line" in e.result) is (style is TrimmingStyle.HEAD_TAIL) for e in older)

    def test_number_of_rounds_that_stay_is_set(self) -> None:
        """Context: toolResultTrimmingMaxCycles."""
        for cycles in (1, 3):
            context = replace(TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=cycles, max_tool_call_loops=99)
            run = talk(LOOK, context=context)
            for n in range(6):
                look(run, f"{n} {LONG}")
            run.say("Ann", "Done.")
            assert sum(LONG in text_of([entry]) for entry in sent_to(run, "Ann")) == cycles

    def test_replacement_is_said_in_its_place(self) -> None:
        """Context: toolResultTrimmingReplacement."""
        context = replace(
            TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, replacement="(gone)", max_tool_call_loops=99
        )
        run = talk(LOOK, context=context)
        look(run, LONG)
        look(run, LONG)
        run.say("Ann", "Done.")
        assert text_of(sent_to(run, "Ann")).count("(gone)") == 1

    def test_pressure_trims_the_oldest_down_to_the_low_water(self) -> None:
        """Context: targetUtilization."""
        run = talk(LOOK, context=replace(TRIM, max_tool_call_loops=99))
        for n in range(14):
            look(run, f"{n} {LONG}")
        run.say("Ann", "Done.")
        whole = [LONG in text_of([entry]) for entry in sent_to(run, "Ann") if isinstance(entry, OwnCall)]
        assert whole == sorted(whole) and 0 < sum(whole) < 14
        for _, entries in run.requests:
            assert sum(entry_tokens(entry) for entry in entries) <= WINDOW * 0.7 + 300

    def test_what_a_person_decided_on_is_not_trimmed(self) -> None:
        context = replace(TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, max_tool_call_loops=99)
        run = talk(PAY, context=context)
        run.say("Ann", reply("", call("pay")))
        run.decide(approve=True)
        run.give(LONG, of="pay")
        run.say("Ann", reply("Well.", call("pay")))
        run.decide(approve=True)
        run.give("short", of="pay")
        run.say("Ann", "Done.")
        assert LONG in text_of(sent_to(run, "Ann"))

    def test_whoever_may_have_results_trimmed_may_read_on(self) -> None:
        run = talk(LOOK, context=TRIM)
        assert "read_tool_result" not in [t.name for t in run.step_of("Ann").offered]
        look(run, "short")
        assert "read_tool_result" in [t.name for t in run.step_of("Ann").offered]


class TestFailures:
    def test_failed_summary_changes_nothing_and_rests_after_three(self) -> None:
        """F09: the summariser fails, returns nothing or too much; after 3 failures it rests."""
        bad = ["", " \n", "word " * 4000, ModelFailure(FailureClass.INVALID_REQUEST, "No.")]
        run = talk(window=3000)
        tries: list[int] = []
        for n in range(400):
            step = run.steps[0]
            assert isinstance(step, AskModel)
            before = list(run.view("Ann"))
            if step.purpose is Purpose.COMPACTION:
                outcome = bad[n % len(bad)]
                run.take(step, reply(outcome) if isinstance(outcome, str) else outcome)
                assert run.view("Ann") == before
                tries.append(run.protocol.calls["Ann"])
            else:
                run.take(step, reply(LONG))
            if run.protocol.calls.get("Ann", 0) > 40:
                break
        assert not summaries(run)
        assert len(tries) % 3 == 0 and len(tries) >= 6
        assert all(len(set(tries[n : n + 3])) == 1 for n in range(0, len(tries), 3)), "three in a row"
        assert all(later - earlier >= 8 for earlier, later in zip(tries[::3], tries[3::3], strict=False))

    def test_refusal_by_the_provider_brings_one_summary_and_one_retry(self) -> None:
        """Context: 'context too long' triggers one forced compaction and one retry."""
        run = go_on(talk(window=100_000), 9)
        step = reach(run, "Ann")
        run.take(step, ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
        compact = run.steps[0]
        assert isinstance(compact, AskModel) and compact.purpose is Purpose.COMPACTION
        while (again := run.steps[0]).key != step.key:
            assert isinstance(again, AskModel) and again.purpose is Purpose.COMPACTION
            run.take(again, reply(SUMMARY))
        run.take(again, ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
        assert run.end is not None and run.end.status is RunStatus.FAILED
        assert "Too long." in (run.end.failure or "")

    def test_refusal_without_compaction_ends_the_run_and_says_what_to_set(self) -> None:
        run = go_on(talk(context=ContextSettings()), 2)
        run.take(run.steps[0], ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
        assert run.end is not None and "contextSettings.mode" in (run.end.failure or "")

    def test_refusal_is_learnt_from(self) -> None:
        """Smaller windows than the definition says are found out once, not at every turn."""
        run = talk(window=100_000)
        refused = 0
        for _ in range(600):
            step = run.steps[0]
            assert isinstance(step, AskModel)
            size = sum(entry_tokens(entry) for entry in run.request(step))
            if step.participant == "Ann" and size > 3000:
                refused += 1
                run.take(step, ModelFailure(FailureClass.CONTEXT_TOO_LONG, "Too long."))
            else:
                run.take(step, reply(SUMMARY if step.purpose is Purpose.COMPACTION else LONG))
            if run.protocol.calls.get("Ann", 0) >= 60:
                break
        assert run.end is None and refused == 1


class TestGuesses:
    def test_counts_of_the_provider_correct_the_guess(self) -> None:
        """B22: by the size of the next prompt, as its provider counts it."""

        def first_summary(counted: float) -> int:
            run = talk()
            for _ in range(200):
                step = run.steps[0]
                assert isinstance(step, AskModel)
                if step.purpose is Purpose.COMPACTION:
                    return run.protocol.calls["Ann"]
                guessed = run.sizes.of(step).guessed
                run.take(step, ModelReply(LONG, (), Usage(input=int(guessed * counted))))
            raise AssertionError("never summarised")

        assert first_summary(2.0) < first_summary(1.0) < first_summary(0.6)

    @pytest.mark.parametrize(
        ("text", "least", "most"),
        [
            ("The harbour road is the better choice, because it costs less than the bridge.", 14, 22),
            ("港の道は橋より安いので、そちらを選ぶべきです。", 18, 30),
            ("항구 도로는 다리보다 저렴합니다.", 12, 24),
            ('{"items":[{"id":1,"price":12.5},{"id":2,"price":7.25}],"total":19.75}', 24, 42),
            ("Дорога через гавань дешевле моста.", 10, 24),
            ("", 1, 1),
        ],
    )
    def test_guess_is_right_for_words_cjk_and_json(self, text: str, least: int, most: int) -> None:
        """B22: between what common tokenizers give, a little apart."""
        assert least <= tokens_of(text) <= most

    def test_lone_surrogates_are_counted_like_other_text(self) -> None:
        assert tokens_of("a\ud83d" * 10) > 1


def test_call_that_was_removed_is_covered_with_the_words_beside_it() -> None:
    """B21: a reply of which only the words are left is covered to its end."""
    context = replace(
        COMPACT, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, trimming_style=TrimmingStyle.REMOVE, keep_recent_tokens=600,
        max_tool_call_loops=99,
    )  # fmt: skip
    run = talk(LOOK, context=context)
    covered: list[tuple[int, int]] = []
    for _ in range(80):
        step = run.steps[0]
        if isinstance(step, RunCall):
            run.take(step, CallResult("seen", False))
        elif isinstance(step, AskModel) and step.purpose is Purpose.COMPACTION:
            assert step.cover is not None
            following = run.items[step.cover.upto]  # the first item that is not covered
            covered.append((step.cover.upto, step.cover.upto if isinstance(following.body, items.ToolCall) else 0))
            run.take(step, reply(SUMMARY))
        elif isinstance(step, AskModel) and step.participant == "Ann":
            run.take(step, reply(f"{step.call} {LONG}", *([call("look", n=step.call)] if step.call % 4 else [])))
        else:
            run.take(step, reply(LONG))
    assert len(covered) >= 3
    assert not any(parted for _, parted in covered), "the words are covered, and the call beside them is not"


def test_own_words_and_calls_of_one_reply_stay_together() -> None:
    """B21: no call is parted from its result, and no reply in two."""
    run = talk(LOOK)
    for n in range(60):
        step = run.steps[0]
        if isinstance(step, RunCall):
            run.take(step, CallResult(f"{n} {LONG[:300]}", False))
        elif isinstance(step, AskModel) and step.purpose is Purpose.COMPACTION:
            run.take(step, reply(SUMMARY))
        elif isinstance(step, AskModel) and step.participant == "Ann" and n % 3:
            run.take(step, reply(f"Let me look. {n}", call("look"), call("look", n=n)))
        else:
            run.take(step, reply(LONG))
    replies: dict[Any, list[str]] = {}
    for entry in run.view("Ann"):
        if isinstance(entry, OwnText | OwnCall):
            replies.setdefault(entry.model_call_id, []).append(type(entry).__name__)
    assert summaries(run)
    for parts in replies.values():
        assert parts in (["OwnText"], ["OwnText", "OwnCall", "OwnCall"])
