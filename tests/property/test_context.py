"""Any conversation under any context settings: what is sent fits, in order, with nothing parted, nothing unseen dropped, nothing
pinned lost (B21, B22).

The oracle is a view of the same items that is never cut. The control takes out what keeps unseen results whole; it must fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest
from engine_harness import Conversation, call, panel, reply, seat, tool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_requests import a_request
from models_at_hand import HTTP_PROVIDERS, Subject, subject_of

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.contexts import CompactionType, ContextMode, ContextSettings, TrimmingMode, TrimmingStyle
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelChoice,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    SystemText,
)
from folkmoot.engine.estimates import entry_tokens
from folkmoot.engine.step import AskModel, RunCall, Wait
from folkmoot.engine.view import PINNED, View
from folkmoot.engine.views import Views

NAMES = ("Ann", "Ben")
TOOLS = (tool("look", is_read_only=True), tool("write"), tool("pay", is_gated=True))
WORDS = ("harbour ", "road ", "港の道", '{"price": 12.5}, ', "дорога ", "bridge. ")
SUMMARISED = "What was said up to here, in short:"

texts = st.builds(lambda word, times: word * times, st.sampled_from(WORDS), st.sampled_from([1, 40, 80, 120]))
moves = st.tuples(
    st.sampled_from(
        ["say", "say", "look", "look", "two looks", "look and vote", "write", "pay", "vote", "pass", "ask", "nothing"]
    ),
    texts,
)
summaries = st.sampled_from(
    [
        "They agree on the road.",
        "Short. " * 12,
        "Longer than wanted.\n" * 30,
        "Ann looked. " * 3,
        "",
        "much too long " * 3000,
        None,
    ]
)
cuts = st.builds(
    ContextSettings,
    mode=st.sampled_from([ContextMode.TRIM, ContextMode.COMPACT, ContextMode.COMPACT]),
    trimming=st.sampled_from(list(TrimmingMode)),
    trimming_cycles=st.integers(0, 3),
    trimming_style=st.sampled_from(list(TrimmingStyle)),
    target_utilization=st.integers(30, 90),
    low_water_utilization=st.integers(10, 70),
    compact_at_utilization=st.integers(30, 95),
    compaction=st.sampled_from(list(CompactionType)),
    keep_recent_tokens=st.sampled_from([None, 0, 100, 3000]),
    summary_tokens=st.sampled_from([None, 40, 300]),
    max_tool_call_loops=st.just(99),
)


class Watched(Conversation):
    """Beside each view one that is never cut. `stayed`: what of it a summary left alone, since it was not seen yet."""

    def __init__(self, definition: ResolvedInteraction) -> None:
        self.stayed: dict[str, set[int]] = {}
        super().__init__(definition)

    @property
    def whole(self) -> Views:
        made = Views(self.seating.names, gated=self.seating.gated)
        for item in self.items:
            if isinstance(item.body, items.Summary):
                nobodys = items.NoVote(item.item_id, "Ann", 1, "")  # takes its place, and is in no view
                made.add(replace(item, body=items.OrchestratorMessage(""), detail=nobodys))
            else:
                made.add(item)
        return made

    def note_covered(self, name: str) -> None:
        """A summary has come: of the newest reply, all stays whose results were not seen."""
        full = self.whole.of[name]
        unseen = range(before_newest_reply(full.entries), len(full.entries))
        own = {n for n in unseen if isinstance(full.entries[n], OwnText | OwnCall)}
        has_results = any(isinstance(full.entries[n], OwnCall) and full.notes[n] is not None for n in own)
        self.stayed[name] = own if has_results else set()


def play(run: Watched, move: tuple[str, str], summary: str | None, *, window: int) -> None:
    step = run.steps[0]
    if isinstance(step, Wait):
        return run.decide(approve=len(move[1]) % 2 == 0, reason="Not now.")
    if isinstance(step, RunCall):
        if step.call.name == "write" and len(move[1]) % 3 == 0:
            run.begin("write", lost=True)
            run.settle()
            return None
        run.take(step, CallResult(f"{len(run.items)} {move[1]}", False))
        return None
    assert isinstance(step, AskModel)
    if step.purpose is Purpose.COMPACTION:
        view = run.views.of[step.participant]
        before, tokens = view.covered_upto, view.tokens
        refusal = ModelFailure(FailureClass.INVALID_REQUEST, "No.")
        if run.take(step, reply(summary) if summary is not None else refusal):
            assert view.covered_upto >= before and view.tokens < tokens, "none goes back, and each is a gain"
            run.note_covered(step.participant)
        return None
    check(run, step, window=window)
    run.take(step, answer(step, move, n=len(run.items)))
    return None


def answer(step: AskModel, move: tuple[str, str], *, n: int) -> ModelReply:
    kind, text = move
    if step.purpose is Purpose.BALLOT:
        return reply(text if n % 2 else "", call("agree") if n % 3 else call("disagree", reason=text))
    if step.purpose is Purpose.ANSWER:
        return reply("", call("answer", text=text))
    other = "Ben" if step.participant == "Ann" else "Ann"
    replies = {
        "say": reply(f"{n} {text}"),
        "look": reply(f"{n} {text}", call("look", n=n)),
        "two looks": reply("", call("look", n=n), call("look", m=n)),
        "write": reply("", call("write", n=n)),
        "pay": reply("", call("pay", n=n)),
        "vote": reply("", call("call_vote", topic=f"{n} {text}")),
        "look and vote": reply(f"{n} {text}", call("look", n=n), call("call_vote", topic=f"{n} {text}")),
        "pass": reply("", call("pass")),
        "ask": reply("", call("ask", participant=other, question=f"{n} {text}")),
        "nothing": reply(""),
    }
    return replies[kind]


def check(run: Watched, step: AskModel, *, window: int) -> None:
    """What would be sent now, against all that there is."""
    name = step.participant
    prompt = run.sizes.of(step)
    sent = list(run.request(step))
    view, full = run.views.of[name], run.whole.of[name]
    covered, seen = view.covered_upto, before_newest_reply(full.entries)
    expected = [
        (entry, n >= seen)
        for n, entry in enumerate(full.entries)
        if full.entered[n] > covered or full.notes[n] is PINNED or n in run.stayed.get(name, ())
    ]
    compare([entry for entry in sent if not is_summary(entry)], expected, run)
    assert sum(is_summary(entry) for entry in sent) == (1 if covered else 0)
    nothing_is_parted(full, covered, run.stayed.get(name, set()))
    fits(run, sent, prompt.cover is None, window=window)


def before_newest_reply(entries: Sequence[Entry]) -> int:
    """How many entries the participant had before it last replied: it has seen those."""
    newest = next((e.model_call_id for e in reversed(entries) if isinstance(e, OwnText | OwnCall)), None)
    places = (n for n, e in enumerate(entries) if isinstance(e, OwnText | OwnCall) and e.model_call_id == newest)
    return next(places, 0)


def compare(sent: Sequence[Entry], expected: Sequence[tuple[Entry, bool]], run: Watched) -> None:
    at = 0
    for entry, is_unseen in expected:
        if at < len(sent) and sent[at] == entry:
            at += 1
        elif isinstance(entry, OwnCall) and not is_unseen and run.seating.definition.context.trims:
            short = sent[at] if at < len(sent) else None
            if isinstance(short, OwnCall) and short.call_id == entry.call_id:
                assert short == replace(entry, result=short.result)
                at += 1
            else:
                assert run.seating.definition.context.trimming_style is TrimmingStyle.REMOVE
        else:
            raise AssertionError(f"{entry} is not where it belongs")
    assert at == len(sent)


def nothing_is_parted(full: View, covered: int, stayed: set[int]) -> None:
    places: dict[object, set[bool]] = {}
    for n, (entry, entered, note) in enumerate(zip(full.entries, full.entered, full.notes, strict=True)):
        if isinstance(entry, OwnText | OwnCall) and entry.model_call_id is not None and note is not PINNED:
            places.setdefault(entry.model_call_id, set()).add(entered > covered or n in stayed)
    assert all(len(sides) == 1 for sides in places.values()), "a reply is in two"


def fits(run: Watched, sent: Sequence[Entry], is_all_cut: bool, *, window: int) -> None:
    """It fits, or nothing more can be cut: what is left is pinned, not seen yet, or its summaries fail."""
    total = sum(entry_tokens(entry) for entry in sent)
    if total <= window or not is_all_cut or run.seating.definition.context.mode is not ContextMode.COMPACT:
        return
    view = run.views.of[run.steps[0].participant]  # type: ignore[union-attr]
    loose = sum(size for size, stays in zip(view.sizes, view.staying(), strict=True) if not stays)
    assert loose <= max(window // 10, 300, 64, view.summary_tokens)


def is_summary(entry: Entry) -> bool:
    return isinstance(entry, OtherText) and entry.speaker is None and entry.text.startswith(SUMMARISED)


def conversation(context: ContextSettings, window: int) -> Watched:
    model = ModelChoice("scripted", "s", context_window=window)
    seats = (replace(seat(name, *TOOLS), model=model) for name in NAMES)
    return Watched(panel(*seats, context=context, maximum_no_action_loops=None, is_solution_proposal_allowed=False))


def live(context: ContextSettings, window: int, script: Sequence[tuple[tuple[str, str], str | None]]) -> None:
    run = conversation(context, window)
    for move, summary in script:
        if run.end is not None:
            break
        play(run, move, summary, window=window)
    assert isinstance(run.view("Ann")[0], SystemText)


scripts = st.lists(st.tuples(moves, summaries), min_size=25, max_size=90)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts, st.sampled_from([900, 1500, 4000]), scripts)
def test_what_is_sent_fits_in_order_and_whole(
    context: ContextSettings, window: int, script: list[tuple[tuple[str, str], str | None]]
) -> None:
    """B21, B22: for any conversation and any settings."""
    live(context, window, script)


@pytest.fixture(scope="module")
def providers() -> Iterator[tuple[asyncio.AbstractEventLoop, list[Subject]]]:
    loop = asyncio.new_event_loop()
    with ExitStack() as stack:
        made = [stack.enter_context(subject_of(name)) for name in HTTP_PROVIDERS if name != "openai"]
        yield loop, made
        for subject in made:
            loop.run_until_complete(subject.close())
    loop.close()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(cuts, st.sampled_from([1500, 4000]), scripts)
def test_what_is_sent_keeps_to_each_providers_protocol(
    providers: tuple[asyncio.AbstractEventLoop, list[Subject]],
    context: ContextSettings,
    window: int,
    script: list[tuple[tuple[str, str], str | None]],
) -> None:
    """B40: the servers check roles, their order, calls and results, names and the last word as the real ones do."""
    loop, subjects = providers
    run = conversation(context, window)
    for move, summary in script:
        if run.end is None:
            play(run, move, summary, window=window)
    for step in run.steps:
        for subject in subjects if isinstance(step, AskModel) else ():
            loop.run_until_complete(subject.outcome(asked_of(subject, run, step)))
            assert not subject.seen.refused


def asked_of(subject: Subject, run: Watched, step: AskModel) -> ModelRequest:
    return a_request(
        subject.play("text"), view=list(run.request(step)), offered=step.offered, required=step.required,
        instruction=step.instruction, participant=step.participant,
    )  # fmt: skip


def test_control_without_the_guard_of_what_is_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results that were not seen yet are trimmed, and the check above says so."""
    monkeypatch.setattr(View, "seen", property(lambda self: len(self.entries), lambda self, value: None), raising=False)
    context = ContextSettings(
        mode=ContextMode.TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, max_tool_call_loops=99
    )
    script = [(("look", "harbour " * 120), None)] * 8
    with pytest.raises(AssertionError):
        live(context, 4000, script)
