"""Text of models and tools as a person is shown it before deciding: what hides, reorders or breaks text is written out (F33).

Shown as escapes: control characters, bidirectional marks, zero-width and other invisible characters, tags, variation selectors,
lone surrogates, private and unassigned code points. Line ends and tabs stay. A cut is made in the middle and says how much is
left out: an end is where an attacker would hide something. Deliberately absent: markup, and what a terminal or a page needs beyond.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

# Of what hides, in a text and in a name: Cc are controls; Cf has the marks of direction, zero-width characters and tags; Cs are
# lone surrogates; Co and Cn have no agreed look; Zl and Zp break lines unseen.
HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Letters and marks that are drawn as nothing: fillers, joiners, blanks, variation selectors.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_KEPT = "\n\t"


@dataclass(frozen=True, slots=True)
class ShownText:
    """`text` is safe to show; `characters`: how many there were to show before a cut."""

    text: str
    characters: int
    is_cut: bool


def shown(text: str, *, limit: int | None = None) -> ShownText:
    """Plain text with its hidden characters as `\\u202e` or `\\U000e0041`, its middle left out beyond `limit` characters."""
    return _cut(_escaped(text, in_json=False), limit)


def shown_json(text: str, *, limit: int | None = None) -> ShownText:
    """JSON with its hidden characters as JSON's own escapes: uncut it means the very same value."""
    return _cut(_escaped(text, in_json=True), limit)


def _escaped(text: str, *, in_json: bool) -> str:
    if text.isascii() and text.isprintable():
        return text
    return "".join(_written(character, in_json=in_json) if is_hidden(character) else character for character in text)


def is_hidden(character: str) -> bool:
    if character in _KEPT:
        return False
    return unicodedata.category(character) in HIDDEN_CATEGORIES or _INVISIBLE.match(character) is not None


def _written(character: str, *, in_json: bool) -> str:
    number = ord(character)
    if number < 0x10000:
        return f"\\u{number:04x}"
    if not in_json:
        return f"\\U{number:08x}"
    high, low = divmod(number - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _cut(text: str, limit: int | None) -> ShownText:
    if limit is None or len(text) <= limit:
        return ShownText(text, len(text), is_cut=False)
    tail = limit // 3
    head = limit - tail
    left_out = len(text) - limit
    cut = f"{text[:head]} … [{left_out:,} of {len(text):,} characters are not shown here] … {text[len(text) - tail :]}"
    return ShownText(cut, len(text), is_cut=True)
