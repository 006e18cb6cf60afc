"""Text of servers made fit to be shown: nothing in it hides.

Deliberately absent: judging what a text says, and taking secrets out of it (`sent_secrets`).
"""

from __future__ import annotations

import re
import unicodedata

from folkmoot.domain.schemas import visible

MAX_DESCRIPTION_BYTES = 16_384
_HIDDEN = frozenset(("Cc", "Cf", "Co", "Cn"))
_PLAIN = re.compile(r"[\x20-\x7e\n\t]*+")


def unveiled(text: str) -> str:
    """The text with control characters and characters without a shape (marks of direction, tags, zero width) as escapes."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_shown(character) for character in visible(text))


def bounded(text: str) -> str:
    """An unveiled description, cut visibly where it is longer than 16 KB."""
    shown = unveiled(text[:MAX_DESCRIPTION_BYTES])
    if len(text) <= MAX_DESCRIPTION_BYTES and len(shown.encode()) <= MAX_DESCRIPTION_BYTES:
        return shown
    note = f"… [cut: the description has {len(text):,} characters]"
    return shown.encode()[: MAX_DESCRIPTION_BYTES - len(note.encode())].decode(errors="ignore") + note


def shortened(text: str, most: int) -> str:
    """The unveiled beginning of a text, of at most `most` characters."""
    text = unveiled(text[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
