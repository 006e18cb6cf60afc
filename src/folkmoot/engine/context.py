"""Whether a participant's next prompt fits its model, what is trimmed of it, and what a summary is to stand for.

Sizes are guesses, corrected by what providers counted. Nothing that the participant has not seen is trimmed, no call is parted from
its result, and what is pinned (its instructions, the task, what people decided, unknown outcomes) stays as it was. A part that is too
large for the summariser is taken bit by bit, each with a summary of its own. Deliberately absent: cutting (`view`), and any I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from folkmoot.domain.contexts import (
    UNCORRECTED,
    ContextMode,
    ContextSettings,
    Correction,
    Cover,
    PromptFact,
    PromptFacts,
    TrimmingMode,
)
from folkmoot.domain.definitions import Participant
from folkmoot.engine.estimates import tokens_of
from folkmoot.engine.seating import Seating
from folkmoot.engine.shortening import shortened_calls
from folkmoot.engine.step import AskModel
from folkmoot.engine.view import View
from folkmoot.engine.views import Views

_INSTRUCTION_TOKENS = 150  # of the words that ask for a summary
_RECENT_SHARE = 0.25  # of the window, kept as it is where nothing else is set
_SUMMARY_SHARE = 0.1
_SUMMARY_TOKENS = (64, 2_000)  # least and most, where nothing else is set
_LARGEST_SUMMARY = 0.25  # of the summariser's window, whatever is set; half of it for its reply
_REPLY_SHARE = 0.125  # of the window, left for the reply where the agent's settings say nothing
_LARGEST_REPLY = 0.5  # whatever they say
_LARGEST_PART = 0.9  # of the summariser's window, with its reply
_MARGIN = 1.25  # a guess of a text may be so much too high
_AFTER_REFUSAL = 0.9  # a window that refused a prompt is taken to be smaller than the prompt by so much


@dataclass(frozen=True, slots=True)
class Room:
    """A participant's prompt against its model's window, all in guessed tokens. `fixed`: beside the view's entries.

    `target`, `low`, `compact_at`: the marks that are set, below `largest`, what leaves room for the reply. `summary`, `summary_reply`:
    how long one should be, and its reply may be; `part`: what the summariser may be shown.
    """

    target: int
    low: int
    compact_at: int
    largest: int
    fixed: int
    recent: int
    summary: int
    summary_reply: int
    part: int
    ratio: float


class Prompts:
    """Where each view's next prompt stands. `corrections`: by participant and model; `unread_tokens`: what has been decided and is not yet in the
    views."""

    def __init__(
        self,
        seating: Seating,
        views: Views,
        *,
        corrections: Mapping[tuple[str, str], Correction],
        unread_tokens: int = 0,
    ) -> None:
        self._seating = seating
        self._views = views
        self._corrections = corrections
        self._unread_tokens = unread_tokens

    def of(self, view_key: str, *, seat: str, beside: int) -> PromptFact:
        view, settings = self._views.of[view_key], self._seating.definition.context
        correction, fixed = self._correction(seat), beside + self._unread_tokens
        guessed = view.tokens + fixed
        if settings.mode is ContextMode.NONE:
            return PromptFact(guessed, round(guessed * correction.ratio))
        room = self._room(seat, settings, correction, fixed=fixed)
        savings = _savings(view, settings, reads_on=self._seating.reads_on(seat))
        trim_upto, saved = _trimming(view, settings, room, guessed=guessed, savings=savings)
        guessed -= saved
        cover = None
        if settings.mode is ContextMode.COMPACT:
            mark = room.low if view.is_settling else room.compact_at
            cover = _cover(view, room) if guessed > mark else None
        return PromptFact(guessed, round(guessed * room.ratio), view.covered_upto, trim_upto, cover)

    def _correction(self, seat_key: str) -> Correction:
        """What is known of the guesses for a seat: of its own model, and of what its summariser was shown."""
        seat = self._seating.participants[seat_key]
        own = self._corrections.get((seat.name, seat.model.model_name), UNCORRECTED)
        summariser = self._seating.summariser(seat_key).model_name
        part = self._corrections.get((seat.name, summariser), UNCORRECTED).refused_part
        return own if part == own.refused_part else replace(own, refused_part=part)

    def _room(self, seat_key: str, settings: ContextSettings, correction: Correction, *, fixed: int) -> Room:
        seat = self._seating.participants[seat_key]
        ratio = correction.ratio
        window = int(seat.model.context_window / ratio)
        if correction.refused_tokens is not None:
            window = min(window, int(correction.refused_tokens * _AFTER_REFUSAL))
        largest = window - _reply(seat, window, ratio)
        wanted = window * settings.compact_at_utilization // 100
        compact_at = min(wanted, largest)
        # Where the reply's room makes it start earlier, it goes down further: else it would run at every turn.
        low = window * settings.low_water_utilization // 100 * compact_at // max(wanted, 1)
        kept = settings.keep_recent_tokens
        smaller = min(self._seating.summariser(seat_key).context_window, window)
        summary, summary_reply = _summary(settings, smaller, ratio)
        part = int(smaller * _LARGEST_PART) - summary_reply - _INSTRUCTION_TOKENS
        if correction.refused_part is not None:
            part = min(part, correction.refused_part // 2)
        return Room(
            target=min(window * settings.target_utilization // 100, largest),
            low=low,
            compact_at=compact_at,
            largest=largest,
            fixed=fixed,
            recent=int(window * _RECENT_SHARE if kept is None else kept / ratio),
            summary=summary,
            summary_reply=summary_reply,
            part=max(part, summary),
            ratio=ratio,
        )


def _reply(seat: Participant, window: int, ratio: float) -> int:
    """What is left of a window for the reply. What the agent's settings say is asked of the provider, which counts it."""
    if seat.sampling.max_tokens is not None:
        return int(min(seat.sampling.max_tokens / ratio, window * _LARGEST_REPLY))
    share = int(window * _REPLY_SHARE)
    largest = seat.model.largest_response
    return share if largest is None else min(int(largest / ratio), share)


def _summary(settings: ContextSettings, window: int, ratio: float) -> tuple[int, int]:
    """How long a summary should be, and its reply may be, for a summariser's window."""
    least, most = _SUMMARY_TOKENS
    limit = settings.summary_limit_tokens
    if settings.summary_tokens is not None:
        tokens = settings.summary_tokens / ratio
    else:
        tokens = min(max(window * _SUMMARY_SHARE, least), most, most if limit is None else limit / ratio)
    summary = max(int(min(tokens, window * _LARGEST_SUMMARY)), 1)
    reply = 2 * summary if limit is None else limit / ratio
    return summary, max(int(min(reply, 2 * window * _LARGEST_SUMMARY)), 1)


def prompt_of(seating: Seating, prompts: PromptFacts, step: AskModel) -> PromptFact:
    """Where the prompt of a step stands, with the tools that it offers and its last words."""
    last_words = tokens_of(step.instruction) if step.instruction is not None else 0
    return prompts.of(step.view, seat=step.seat, beside=seating.tool_tokens(step.seat, step.offered) + last_words)


def _trimming(
    view: View, settings: ContextSettings, room: Room, *, guessed: int, savings: Iterable[tuple[int, int]]
) -> tuple[int, int]:
    """Up to which sequence results are trimmed, and how many tokens that saves beyond what is trimmed already."""
    upto, total = view.trimmed_upto, 0
    if settings.trimming is TrimmingMode.AFTER_CYCLES and (old := view.round_upto(settings.trimming_cycles)) > upto:
        return old, sum(saved for entered, saved in savings if entered <= old)
    if settings.trimming is TrimmingMode.ON_PRESSURE and guessed > room.target:
        for entered, saved in savings:
            if guessed - total <= room.low and entered > upto:
                break
            upto, total = max(upto, entered), total + saved
    return upto, total


def _savings(view: View, settings: ContextSettings, *, reads_on: bool) -> Iterator[tuple[int, int]]:
    """Of each call that can be trimmed, oldest first: where its result came in, and what trimming it saves."""
    shortened = shortened_calls(view, settings, reads_on=reads_on)
    for index, entry in enumerate(view.entries[: view.seen]):
        short = shortened.get(getattr(entry, "call_id", ""))
        if short is not None:
            yield view.entered[index], view.sizes[index] - short.tokens


def _cover(view: View, room: Room) -> Cover | None:
    """What to summarise so that the prompt gets down to the low water; null where that would gain nothing."""
    loose = [0 if stays else size for stays, size in zip(view.staying(), view.sizes, strict=True)]
    pinned = view.tokens - sum(loose)
    kept = min(room.recent, max(room.low - room.fixed - pinned - room.summary, 0))
    end = _end(view, loose, kept=kept, most=view.seen)
    rest = room.largest - room.fixed - pinned - room.summary
    if sum(loose[end:]) > rest:
        # What was not seen yet does not fit beside the rest: words may be summarised, results of the newest calls may not.
        end = max(end, _end(view, loose, kept=kept, most=len(loose)))
        left = sum(loose[end:])
        while end < len(loose) and (left > rest or not view.is_whole_before(end)):
            left -= loose[end]
            end += 1
    # The summariser is shown what is pinned, too.
    part = max(room.part - pinned, room.summary)
    # With the summary that stands there already something new is covered, or it would be summarised again and again.
    least = max(room.summary, view.summary_tokens)
    end = _within(view, loose, end, least=least, part=part)
    covered = sum(loose[:end])
    if covered <= least:
        return None
    return Cover(
        # What was trimmed away between the two goes with the words beside it.
        upto=view.entered[end] - 1 if end < len(loose) else view.entered[-1],
        tokens_before=round((view.tokens + room.fixed) * room.ratio),
        tokens_covered=round(covered * room.ratio),
        summary_tokens=round(room.summary * room.ratio),
        reply_tokens=round(room.summary_reply * room.ratio),
        most_tokens=round(room.summary_reply * _MARGIN),
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
