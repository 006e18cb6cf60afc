"""What stands in a prompt for an old tool result: a placeholder, its head and tail, or nothing.

Deliberately absent: which results are trimmed (`context`). The items stay; a result is read again by its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from folkmoot.domain.contexts import ContextSettings, TrimmingStyle
from folkmoot.domain.model_calls import OwnCall
from folkmoot.domain.tool_names import READ_RESULT_TOOL
from folkmoot.engine.estimates import entry_tokens
from folkmoot.engine.view import Shortened, Trimmable, View

REPLACEMENT = "This older result is left out here."
_HEAD, _TAIL = 300, 150  # characters


def shortened_calls(view: View, settings: ContextSettings, *, reads_on: bool) -> Mapping[str, Shortened]:
    """By call id, what would stand for each call that the participant has seen the result of, where it takes less than that.

    `reads_on`: whether the participant has the tool that reads it again, and is told so.
    """
    made: dict[str, Shortened] = {}
    for index, note in enumerate(view.notes[: view.seen]):
        entry = view.entries[index]
        if isinstance(note, Trimmable) and isinstance(entry, OwnCall):
            short = _shortened(entry, note, settings, reads_on=reads_on)
            if short.tokens < view.sizes[index]:
                made[entry.call_id] = short
    return made


def _shortened(entry: OwnCall, note: Trimmable, settings: ContextSettings, *, reads_on: bool) -> Shortened:
    if settings.trimming_style is TrimmingStyle.REMOVE:
        return Shortened(None, 0)
    again = f" Read it again with {READ_RESULT_TOOL}, id {note.result_id}." if reads_on else ""
    result = f"[{settings.replacement or REPLACEMENT}{again}]"
    if settings.trimming_style is TrimmingStyle.HEAD_TAIL:
        cut = len(entry.result) - _HEAD - _TAIL
        words = f"[{cut:,} characters are left out here.{again}]"
        result = f"{entry.result[:_HEAD]}\n{words}\n{entry.result[-_TAIL:]}" if cut > 0 else entry.result
    made = replace(entry, result=result)
    return Shortened(made, entry_tokens(made))
