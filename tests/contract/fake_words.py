"""What the fake providers have in common: what a model answers, how prompts are counted, what a cache holds, what is booked.

**The one rule of counting**: a token is up to six ASCII letters, up to three ASCII digits, or any other single character that
is no white space; a piece of a prompt (a message's text, a call, a result, a tool's definition) costs four more. Deliberately
absent: any provider's protocol (`fake_openai`, `fake_anthropic`, `fake_google`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

Json = Any

CUT_ARGUMENTS = '{"city":'
PIECE_TOKENS = 4
_TOKEN = re.compile(r"[A-Za-z]{1,6}|[0-9]{1,3}|[^\sA-Za-z0-9]")


@lru_cache(maxsize=65536)
def tokens_of(text: str) -> int:
    """The tokens of a text by the one rule."""
    return len(_TOKEN.findall(text))


@dataclass(frozen=True, slots=True)
class Counts:
    """Tokens of one call, each in one kind."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the fake model says. `calls`: names with arguments as JSON text. `finish`: stop, calls, length, filtered, refused, window.

    `counts` null: by the one rule; `is_uncounted`: nothing is told. `end`: whole; `cut` (ends too early, without an error);
    `drop` (the connection breaks); `held` (what was said comes, and then nothing); `error` (an error in place of the rest).
    """

    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    thinking: str = ""
    finish: str = "stop"
    counts: Counts | None = None
    is_uncounted: bool = False
    tier: str | None = None
    end: str = "whole"
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a prompt in the order of the provider's cache. `role`: tool, system, user, assistant, call or result; `name`: of a
    tool or call. `is_marked`: a cache mark stands here."""

    role: str
    text: str
    name: str = ""
    is_marked: bool = False

    @property
    def tokens(self) -> int:
        return tokens_of(self.text) + tokens_of(self.name) + PIECE_TOKENS


@dataclass(frozen=True, slots=True)
class Asked:
    """One accepted request, in a common form. `number`: from 1 in order of arrival. `must_call`: a tool must be called."""

    number: int
    model: str
    key: str
    pieces: tuple[Piece, ...]
    must_call: bool
    body: Json

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(piece.name for piece in self.pieces if piece.role == "tool")

    @property
    def prompt_tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    def said(self, *roles: str) -> str:
        """All text of these roles, in order; of all but tools if none is named."""
        return "\n".join(p.text for p in self.pieces if (p.role in roles if roles else p.role != "tool"))


@dataclass(frozen=True, slots=True)
class Booked:
    """A call that the provider counts. `arrived`: its reply went out whole."""

    model: str
    key: str
    counts: Counts
    arrived: bool


@dataclass
class Seen:
    """What reached a server, and what a test sets.

    `bodies`, `headers` (lower case), `paths`: of each request in order; of the last `keeps` only where that is set. `refused`: what
    was wrong with requests that broke the protocol. `too_long`: how many were refused for their length. `books`: one entry for each
    call that was answered. `answer`: called in the server's thread for each accepted request of a model that is no play; it gives an
    Answer or the name of a play. `window_tokens`: longer prompts are refused. `play_of_key`: what all calls with a key get.
    """

    answer: Callable[[Asked], Answer | str] | None = None
    window_tokens: int | None = None
    keeps: int | None = None
    play_of_key: dict[str, str] = field(default_factory=dict)
    bodies: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    too_long: int = 0
    accepted: int = 0
    books: list[Booked] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)

    def add(self, path: str, headers: dict[str, str], body: Json) -> None:
        for kept, new in ((self.paths, path), (self.headers, headers), (self.bodies, body)):
            kept.append(new)  # type: ignore[attr-defined]
            if self.keeps is not None and len(kept) > self.keeps:  # type: ignore[arg-type]
                del kept[0]  # type: ignore[attr-defined]

    def sums(self, *, arrived: bool | None = True) -> Counts:
        """All that was booked, of replies that arrived (true), did not (false), or both (null)."""
        booked = [entry.counts for entry in self.books if arrived is None or entry.arrived is arrived]
        return Counts(
            input=sum(counts.input for counts in booked),
            cached_input=sum(counts.cached_input for counts in booked),
            cache_write=sum(counts.cache_write for counts in booked),
            output=sum(counts.output for counts in booked),
            reasoning=sum(counts.reasoning for counts in booked),
        )


class PrefixCache:
    """Prompts seen before, by their beginnings. `by_marks`: only what ends at a mark is kept, and found from a mark back over 20
    pieces; else every beginning is, once it is `shortest` tokens long, in steps of `step`."""

    def __init__(self, *, by_marks: bool, shortest: int = 0, step: int = 1) -> None:
        self._by_marks = by_marks
        self._shortest = shortest
        self._step = step
        self._seen: set[int] = set()

    def split(self, pieces: Sequence[Piece]) -> Counts:
        """The prompt's tokens as fresh, cached and written; what is new is kept from now on."""
        ends: list[tuple[int, int]] = []
        chain = total = 0
        for piece in pieces:
            chain, total = hash((chain, piece.role, piece.name, piece.text)), total + piece.tokens
            ends.append((chain, total))
        if not self._by_marks:
            cached = max((upto for chain, upto in ends[:-1] if chain in self._seen), default=0)
            self._seen.update(chain for chain, _ in ends)
            cached = cached - cached % self._step if cached >= self._shortest else 0
            return Counts(input=total - cached, cached_input=cached)
        marks = [n for n, piece in enumerate(pieces) if piece.is_marked and ends[n][1] >= self._shortest]
        found = [ends[n][1] for mark in marks for n in range(max(mark - 19, 0), mark + 1) if ends[n][0] in self._seen]
        cached, marked = max(found, default=0), ends[marks[-1]][1] if marks else 0
        self._seen.update(ends[mark][0] for mark in marks)
        return Counts(input=total - max(marked, cached), cached_input=cached, cache_write=max(marked - cached, 0))


def counted(answer: Answer, prompt: Counts) -> Counts:
    """What the provider books for an answer."""
    if answer.counts is not None:
        return answer.counts
    output = tokens_of(answer.text) + sum(tokens_of(name) + tokens_of(arguments) for name, arguments in answer.calls)
    return Counts(prompt.input, prompt.cached_input, prompt.cache_write, output, tokens_of(answer.thinking))


def in_pieces(text: str) -> Iterable[str]:
    """A text as a stream brings it."""
    return [piece for piece in text.partition(" ") if piece]


_USAGE = Counts(input=36, cached_input=64, output=13, reasoning=7)
_CALLS = (("look", '{"city":"Oslo"}'), ("look", '{"city":"Rome"}'))

# What every provider can play, by the model's name.
PLAYS: dict[str, Answer] = {
    "text": Answer("Tea is fine.", counts=_USAGE),
    "quoted": Answer('I would call {"name": "agree", "arguments": {}} TERMINATE', counts=_USAGE),
    "calls": Answer("Let me look.", _CALLS, finish="calls", counts=_USAGE),
    "broken": Answer(calls=(("look", CUT_ARGUMENTS),), finish="calls", counts=_USAGE),
    "no-arguments": Answer(calls=(("pass", ""),), finish="calls", counts=_USAGE),
    "empty": Answer(counts=_USAGE),
    "uncounted": Answer("Tea is fine.", is_uncounted=True),
    "thinking": Answer("Tea is fine.", thinking="Hmm.", counts=_USAGE),
    "thinking-calls": Answer("Let me look.", _CALLS, thinking="Hmm.", finish="calls", counts=_USAGE),
    "only-thinking": Answer(thinking="Hmm.", counts=_USAGE),
    "tier": Answer("Tea is fine.", counts=_USAGE, tier="flex"),
    "filtered": Answer("Tea is", finish="filtered", counts=_USAGE),
    "refusal": Answer("No.", finish="refused", counts=_USAGE),
    "length": Answer(calls=(("pass", ""),), finish="length", counts=_USAGE),
    "error-in-stream": Answer("Tea is", end="error"),
    "cut": Answer("Let me look.", (("look", CUT_ARGUMENTS),), end="cut"),
    "drop": Answer("Let me look.", (("look", CUT_ARGUMENTS),), end="drop"),
    "held": Answer("Tea is fine.", end="held"),
    "say": Answer('{"say": "Tea is fine."}', counts=_USAGE),
    "fenced-call": Answer('```json\n{"agree": {}}\n```', counts=_USAGE),
}
