"""One participant's view, as it goes to a model: entries with what each takes, which of them stay, and what was cut from it.

The list of entries only grows; a summary or a trimming makes a new list, so that whoever holds the old one still has all of it.
Deliberately absent: what is shown to whom (`views`), and when to cut (`context`).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import Entry, OtherText, OwnCall, OwnText, SystemText
from folkmoot.engine import instructions
from folkmoot.engine.estimates import entry_tokens
from folkmoot.engine.tools_offered import ASK


@dataclass(frozen=True, slots=True)
class Shortened:
    """What stands for an old call once it is trimmed: null where call and result go together."""

    entry: OwnCall | None
    tokens: int


@dataclass(frozen=True, slots=True)
class Trimmable:
    """On a call whose result may be trimmed. `result_id`: by which it can be read again."""

    result_id: str


class Pinned:
    """On an entry that stays as it is, whatever is summarised around it."""


PINNED = Pinned()
Note = Trimmable | Pinned | None


@dataclass(slots=True)
class Position:
    """The sequence of the item that is being shown; shared by all views of a conversation."""

    sequence: int = 0


class View:
    """`entries` only grows; `held` waits for the task, or behind a call without a result.

    Beside each entry: its size in tokens as guessed (`sizes`), the sequence at which it came in (`entered`), and a note.
    `seen`: how many of the entries the participant had before its newest reply, and so has seen for certain.
    """

    __slots__ = (
        "_calls", "_holds", "_last_reply", "_position", "_question", "_results", "_rounds", "covered_upto", "entered", "entries", "held",
        "is_settling", "notes", "seen", "sizes", "summary_tokens", "tokens", "trimmed_upto",
    )  # fmt: skip

    def __init__(self, position: Position) -> None:
        self.entries: list[Entry] = []
        self.sizes: list[int] = []
        self.entered: list[int] = []
        self.notes: list[Note] = []
        self.held: list[Entry] = []
        self.tokens = 0
        self.seen = 0
        self.covered_upto = 0
        self.summary_tokens = 0  # of the summary that stands for what is covered
        self.trimmed_upto = 0
        self.is_settling = False  # a summary has come, and no reply since
        self._position = position
        self._rounds: list[int] = []  # of each reply that called tools, the sequence at which its results came in
        self._last_reply: UUID | None = None
        self._holds = True  # until the task
        self._calls: list[tuple[Item, Note]] = []
        self._results: dict[str, items.ToolResult] = {}
        self._question: Item | None = None

    def instruct(self, text: str) -> None:
        """What the participant was given; it stands first, also before what people said before the run began."""
        if text.strip():
            self._enter(SystemText(text), note=PINNED)

    def reinstruct(self, text: str) -> None:
        """Another agent has the seat: what it was given stands first from now on."""
        entry = SystemText(text)
        if self.entries and self.entries[0] == entry:
            return
        size = entry_tokens(entry)
        if self.entries and isinstance(self.entries[0], SystemText):
            self.entries = [entry, *self.entries[1:]]
            self.tokens += size - self.sizes[0]
            self.sizes[0] = size

    def open(self, task: Entry) -> None:
        self._enter(task, note=PINNED)
        self._release()

    def show(self, entry: Entry, tokens: int | None = None) -> None:
        """`tokens`: of the entry, where they are known already."""
        if self._holds:
            self.held.append(entry)
        else:
            self._enter(entry, tokens=tokens)

    def call(self, item: Item, note: Note = None) -> None:
        self._calls.append((item, note))
        self._holds = True

    def is_waiting_for(self, body: items.ToolResult) -> bool:
        call_id = body.tool_call_id
        return any(isinstance(c.body, items.ToolCall) and c.body.tool_call_id == call_id for c, _ in self._calls)

    def result(self, body: items.ToolResult, *, is_unknown: bool = False) -> None:
        """Once the last open call has its result, all enter, in the order of the calls."""
        self._results[body.tool_call_id] = body
        if is_unknown or body.rejection_reason is not None:
            self._calls = [
                (item, PINNED if _call_id(item) == body.tool_call_id else note) for item, note in self._calls
            ]
        if len(self._results) < len(self._calls):
            return
        for item, note in self._calls:
            made = item.body
            assert isinstance(made, items.ToolCall)
            result = self._results[made.tool_call_id]
            if isinstance(note, Trimmable):
                note = Trimmable(str(result.tool_result_id or made.tool_call_id))
            self._enter(
                OwnCall(
                    made.tool_call_id,
                    made.function_name,
                    made.arguments_json,
                    result.result,
                    result.is_error,
                    item.model_call_id,
                ),
                note=note,
            )
        self._calls, self._results = [], {}
        self._release()

    def ask(self, item: Item) -> None:
        self._question = item
        self._holds = True

    @property
    def has_asked(self) -> bool:
        """Whether a question of the participant's own has no answer yet."""
        return self._question is not None

    def answered(self, result: str, *, is_error: bool) -> None:
        item, self._question = self._question, None
        if item is not None:
            body = item.body
            assert isinstance(body, items.DirectQuestionAsk)
            arguments = {"participant": body.other_agent_name, "question": body.question}
            self._enter(own_call(item, ASK, arguments, result, is_error=is_error))
            self._release()

    def _release(self) -> None:
        if not self._calls and self._question is None:
            self._holds = False
            for entry in self.held:
                self._enter(entry)
            self.held = []

    def _enter(self, entry: Entry, *, tokens: int | None = None, note: Note = None) -> None:
        if isinstance(entry, OwnText | OwnCall):
            is_new = entry.model_call_id is None or entry.model_call_id != self._last_reply
            if is_new:
                self.seen, self._last_reply, self.is_settling = len(self.entries), entry.model_call_id, False
            if isinstance(note, Trimmable) and (not self._rounds or self._rounds[-1] != self._position.sequence):
                self._rounds.append(self._position.sequence)
        size = entry_tokens(entry) if tokens is None else tokens
        self.entries.append(entry)
        self.sizes.append(size)
        self.entered.append(self._position.sequence)
        self.notes.append(note)
        self.tokens += size

    # looking ahead

    def standing(self) -> tuple[Any, ...]:
        """Where the view stands, to come `back` to. What is cut meanwhile does not come back."""
        return (
            self.entries[:1], len(self.entries), list(self.held), self.tokens, self.seen, self.is_settling, len(self._rounds), self._last_reply, self._holds,
            list(self._calls), dict(self._results), self._question,
        )  # fmt: skip

    def back(self, standing: tuple[Any, ...]) -> None:
        (
            first, length, self.held, self.tokens, self.seen, self.is_settling, rounds, self._last_reply, self._holds, self._calls, self._results,
            self._question,
        ) = standing  # fmt: skip
        for grown, upto in (
            (self.entries, length),
            (self.sizes, length),
            (self.entered, length),
            (self.notes, length),
            (self._rounds, rounds),
        ):
            del grown[upto:]
        if first and self.entries[0] != first[0]:  # another agent has had the seat meanwhile
            self.entries = [*first, *self.entries[1:]]
            self.sizes[0] = entry_tokens(first[0])

    # cutting

    def staying(self) -> list[bool]:
        """Of each entry whether no summary covers it now: it is pinned, or of the newest reply, whose results were not seen yet."""
        newest = zip(self.entries[self.seen :], self.notes[self.seen :], strict=True)
        is_awaited = any(isinstance(entry, OwnCall) and note is not None for entry, note in newest)
        first = self.seen if is_awaited else len(self.entries)
        return [
            note is PINNED or (index >= first and isinstance(entry, OwnText | OwnCall))
            for index, (entry, note) in enumerate(zip(self.entries, self.notes, strict=True))
        ]

    def round_upto(self, kept: int) -> int:
        """The sequence up to which results are older than the `kept` newest rounds of calls, and were seen; 0: none is."""
        if len(self._rounds) <= kept or not self.seen:
            return 0
        return min(self._rounds[-kept - 1], self.entered[self.seen - 1])

    def is_whole_before(self, index: int) -> bool:
        """Whether nothing is parted where the view is cut before this entry: no reply, and nothing that came in as one."""
        if index in (0, len(self.entries)):
            return True
        if self.entered[index] == self.entered[index - 1]:
            return False
        here, before = self.entries[index], self.entries[index - 1]
        if not (isinstance(here, OwnText | OwnCall) and isinstance(before, OwnText | OwnCall)):
            return True
        return here.model_call_id is None or here.model_call_id != before.model_call_id

    def trim(self, upto: int, shortened: Mapping[str, Shortened]) -> None:
        """Put what is `shortened` (by call id) in the place of the calls whose results came in up to a sequence."""
        if upto <= self.trimmed_upto:
            return
        before = list(zip(self.entries, self.sizes, self.entered, self.notes, strict=True))
        seen, self.seen = self.seen, 0
        self.entries, self.sizes, self.entered, self.notes = [], [], [], []
        for index, (entry, size, entered, note) in enumerate(before):
            if isinstance(note, Trimmable) and isinstance(entry, OwnCall) and entered <= upto:
                short = shortened.get(entry.call_id)
                if short is not None and short.entry is None:
                    continue
                if short is not None and short.entry is not None:
                    entry, size, note = short.entry, short.tokens, None
            self.entries.append(entry)
            self.sizes.append(size)
            self.entered.append(entered)
            self.notes.append(note)
            self.seen += index < seen
        self.tokens, self.trimmed_upto = sum(self.sizes), upto

    def cover(self, summary: items.Summary) -> None:
        """Put a summary in the place of all that came in up to its sequence, but for what stays: pinned before it, not seen after it."""
        upto = summary.covered_up_to_sequence
        end = bisect_right(self.entered, upto)
        staying = [index for index, stays in enumerate(self.staying()[:end]) if stays]
        before = [index for index in staying if index < self.seen]
        after = [index for index in staying if index >= self.seen]
        entry = summary_entry(summary.summary)
        self.summary_tokens = entry_tokens(entry)
        order = [*before, None, *after, *range(end, len(self.entries))]
        seen = len(before) + 1 + max(self.seen - end, 0)
        self.entries = [entry if index is None else self.entries[index] for index in order]
        self.notes = [None if index is None else self.notes[index] for index in order]
        self.sizes = [self.summary_tokens if index is None else self.sizes[index] for index in order]
        self.entered = [*(self.entered[index] for index in before), *[upto] * (1 + len(after)), *self.entered[end:]]
        self.tokens, self.seen, self.covered_upto, self.is_settling = sum(self.sizes), seen, upto, True


def summary_entry(summary: str) -> OtherText:
    """A summary, as it stands in a view."""
    return OtherText(None, instructions.summarised(summary))


def own_call(item: Item, name: str, arguments: Mapping[str, object], result: str, *, is_error: bool = False) -> OwnCall:
    """A protocol call as its author sees it: restored from its typed item."""
    return OwnCall(
        str(item.item_id), name, json.dumps(arguments, ensure_ascii=False), result, is_error, item.model_call_id
    )


def _call_id(item: Item) -> str:
    body = item.body
    assert isinstance(body, items.ToolCall)
    return body.tool_call_id
