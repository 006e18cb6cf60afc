"""Whether a participant's next prompt fits its model, what is trimmed of it, and what a summary is to stand for.

Sizes are guesses, corrected by what providers counted. Nothing that the participant has not seen is trimmed, no call is parted from
its result, and what is pinned (its instructions, the task, what people decided, unknown outcomes) stays as it was. A part that is too
large for the summariser is taken bit by bit, each with a summary of its own. Deliberately absent: cutting (`view`), and any I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from folkmoot.domain.contexts import (
    UNCORRECTED,
    ContextMode,
    ContextSettings,
    Correction,
    Cut,
    PromptFact,
    TrimmingMode,
)
from folkmoot.domain.model_calls import FailureClass, ModelCallFact
from folkmoot.engine.seating import Seating
from folkmoot.engine.shortening import shortened_calls
from folkmoot.engine.view import PINNED, View
from folkmoot.engine.views import Views

ModelCalls = Mapping[str, tuple[ModelCallFact, ...]]

_INSTRUCTION_TOKENS = 150  # what is added to a prompt for one call: a ballot's or a question's words
_RECENT_SHARE = 0.25  # of the window, kept as it is where nothing else is set
_SUMMARY_SHARE = 0.1
_SUMMARY_TOKENS = (64, 2_000)  # least and most, where nothing else is set
_REPLY_SHARE = 0.125  # of the window, left for the reply where the model's settings say nothing
_LARGEST_PART = 0.9  # of the summariser's window, with its reply
_MARGIN = 1.25  # a guess of a text may be so much too high
_AFTER_REFUSAL = 0.9  # a window that refused a prompt is taken to be smaller than the prompt by so much


@dataclass(frozen=True, slots=True)
class Room:
    """A participant's prompt against its model's window, all in guessed tokens. `fixed`: beside the view's entries."""

    window: int
    target: int
    low: int
    compact_at: int
    largest: int
    fixed: int
    recent: int
    summary: int
    part: int
    ratio: float


class Prompts(Mapping[str, PromptFact]):
    """Where each participant's next prompt stands; looked at only when it is asked for.

    `unread_tokens`: what has been decided and is not yet in the views.
    """

    def __init__(
        self, seating: Seating, views: Views, *, corrections: Mapping[str, Correction], model_calls: ModelCalls, unread_tokens: int = 0
    ) -> None:  # fmt: skip
        self._seating = seating
        self._views = views
        self._corrections = corrections
        self._model_calls = model_calls
        self._unread_tokens = unread_tokens

    def __iter__(self) -> Iterator[str]:
        return iter(self._views.of)

    def __len__(self) -> int:
        return len(self._views.of)

    def __getitem__(self, participant: str) -> PromptFact:
        view, settings = self._views.of[participant], self._seating.definition.context
        room = self._room(participant, settings)
        guessed = view.tokens + room.fixed
        if settings.mode is ContextMode.NONE:
            return PromptFact(guessed, round(guessed * room.ratio))
        trim_upto, saved = _trimming(view, settings, room, guessed)
        guessed -= saved
        cut = None
        if settings.mode is ContextMode.COMPACT:
            mark = room.low if view.is_settling else min(room.compact_at, room.largest)
            cut = _cut(view, room, guessed, settings) if guessed > mark else None
        return PromptFact(guessed, round(guessed * room.ratio), view.covered_upto, trim_upto, cut)

    def _room(self, participant: str, settings: ContextSettings) -> Room:
        seat = self._seating.participants[participant]
        correction = self._corrections.get(participant, UNCORRECTED)
        window = int(seat.model.context_window / correction.ratio)
        if correction.refused_tokens is not None:
            window = min(window, int(correction.refused_tokens * _AFTER_REFUSAL))
        bounds = [bound for bound in (seat.sampling.max_tokens, seat.model.largest_response) if bound is not None]
        reply = min([*bounds, int(seat.model.context_window * _REPLY_SHARE)]) / correction.ratio
        least, most = _SUMMARY_TOKENS
        kept = settings.keep_recent_tokens
        summariser = self._seating.summariser(participant)
        smaller = min(summariser.context_window, window)
        summary = min(max(int(smaller * _SUMMARY_SHARE), least), most)
        if settings.summary_tokens is not None:
            summary = max(int(settings.summary_tokens / correction.ratio), 1)
        part = int(smaller * _LARGEST_PART) - 2 * summary - _INSTRUCTION_TOKENS
        return Room(
            window=window,
            target=window * settings.target_utilization // 100,
            low=window * settings.low_water_utilization // 100,
            compact_at=window * settings.compact_at_utilization // 100,
            largest=window - int(reply),
            fixed=self._seating.tool_tokens(participant) + _INSTRUCTION_TOKENS + self._unread_tokens,
            recent=int(window * _RECENT_SHARE if kept is None else kept / correction.ratio),
            summary=summary,
            part=max(part >> self._refused_parts(participant), summary),
            ratio=correction.ratio,
        )

    def _refused_parts(self, participant: str) -> int:
        """How often a summariser's provider refused a part as too long since the last summary: each time half of it is tried."""
        prefix = key_prefix(participant, self._views.of[participant].covered_upto)
        return sum(
            fact.failure is FailureClass.CONTEXT_TOO_LONG
            for key, facts in self._model_calls.items()
            if key.startswith(prefix)
            for fact in facts
        )


def key_prefix(participant: str, covered_upto: int) -> str:
    """How the keys of a participant's compactions begin, from one summary to the next."""
    return f"compact:{participant}:{covered_upto}:"


def _trimming(view: View, settings: ContextSettings, room: Room, guessed: int) -> tuple[int, int]:
    """Up to which sequence results are trimmed, and how many tokens that saves beyond what is trimmed already."""
    upto, total = view.trimmed_upto, 0
    if settings.trimming is TrimmingMode.AFTER_CYCLES and (old := view.round_upto(settings.trimming_cycles)) > upto:
        return old, sum(saved for entered, saved in _savings(view, settings) if entered <= old)
    if settings.trimming is TrimmingMode.ON_PRESSURE and guessed > room.target:
        for entered, saved in _savings(view, settings):
            if guessed - total <= room.low and entered > upto:
                break
            upto, total = max(upto, entered), total + saved
    return upto, total


def _savings(view: View, settings: ContextSettings) -> Iterator[tuple[int, int]]:
    """Of each call that can be trimmed, oldest first: where its result came in, and what trimming it saves."""
    shortened = shortened_calls(view, settings)
    for index, entry in enumerate(view.entries[: view.seen]):
        short = shortened.get(getattr(entry, "call_id", ""))
        if short is not None:
            yield view.entered[index], view.sizes[index] - short.tokens


def _cut(view: View, room: Room, guessed: int, settings: ContextSettings) -> Cut | None:
    """What to summarise so that the prompt gets down to the low water; null where that would gain nothing."""
    loose = [0 if note is PINNED else size for note, size in zip(view.notes, view.sizes, strict=True)]
    pinned = view.tokens - sum(loose)
    kept = min(room.recent, max(room.low - room.fixed - pinned - room.summary, 0))
    end = _end(view, loose, kept=kept, most=view.seen)
    if sum(loose[end:]) + room.fixed + pinned + room.summary > room.largest:
        # What was not seen yet does not fit beside the rest: words may be summarised, results of the newest calls may not.
        end = max(end, _end(view, loose, kept=kept, most=view.unseen_calls))
    # The summariser is shown what is pinned, too.
    part = max(room.part - pinned, room.summary)
    # With the summary that stands there already something new is covered, or it would be summarised again and again.
    least = max(room.summary, view.summary_tokens)
    end = _within(view, loose, end, least=least, part=part)
    covered = sum(loose[:end])
    if covered <= least:
        return None
    reply = settings.summary_limit_tokens or round(2 * room.summary * room.ratio)
    return Cut(
        # What was trimmed away between the two goes with the words beside it.
        upto=view.entered[end] - 1 if end < len(loose) else view.entered[-1],
        tokens_before=round(guessed * room.ratio),
        tokens_covered=round(covered * room.ratio),
        summary_tokens=round(room.summary * room.ratio),
        reply_tokens=reply,
        most_tokens=round(reply / room.ratio * _MARGIN),
        covered=covered,
        part_tokens=part + pinned,
    )


def _end(view: View, loose: list[int], *, kept: int, most: int) -> int:
    """How many entries from the beginning are covered where the newest `kept` tokens stay, at most `most`: a place where nothing is parted."""
    end, left = len(loose), kept
    while end and loose[end - 1] <= left:
        end -= 1
        left -= loose[end]
    end = min(end, most)
    while not view.is_whole_before(end):
        end -= 1
    return end


def _within(view: View, loose: list[int], end: int, *, least: int, part: int) -> int:
    """The largest place up to `end` before which there are at most `part` tokens, and more than `least`; the first one with more than
    that, if it has more than `part`; 0: there is none."""
    best, total = 0, 0
    for index in range(1, end + 1):
        total += loose[index - 1]
        if total <= least or not view.is_whole_before(index):
            continue
        if best and total > part:
            break
        best = index
    return best
