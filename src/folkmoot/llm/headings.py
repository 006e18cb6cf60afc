"""Who says what, in text: the heading above somebody's words, made so that nobody can speak as another.

A heading is a line of its own, `[Ben]:`. Within what anybody says, a line that looks like one is escaped. Deliberately
absent: any provider's message format, and any judgement of what is said.
"""

from __future__ import annotations

import re
import unicodedata

ORCHESTRATOR = "Orchestrator"

# What compatibility forms (NFKC) fold into an opening bracket: a cheap test before the thorough one.
_BRACKETS = ("[", "\uff3b", "\ufe47")
_HEADING_LIKE = re.compile(r"\[.*\]:")
_UNPRINTED = re.compile(r"[\s\x00-\x1f\x7f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]+")


def headed(speaker: str | None, text: str) -> str:
    """`text` under the speaker's heading; `speaker` null is the orchestrator."""
    return f"[{ORCHESTRATOR if speaker is None else safe_name(speaker)}]:\n{without_headings(text)}"


def safe_name(name: str) -> str:
    """The name as it stands in a heading: one line, no bare bracket, two names never alike, nobody the orchestrator."""
    # A backslash first, so that what is escaped differs from what only looks escaped.
    safe = name.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    safe = _UNPRINTED.sub(lambda found: " " if found[0] == " " else found[0].encode("unicode_escape").decode(), safe)
    return f"\\{safe}" if _folded(safe) == ORCHESTRATOR.lower() else safe


def without_headings(text: str) -> str:
    """`text` with a backslash before each line that could be read as a heading."""
    if not any(bracket in text for bracket in _BRACKETS):
        return text
    return "".join(f"\\{line}" if _is_heading_like(line) else line for line in text.splitlines(keepends=True))


def _is_heading_like(line: str) -> bool:
    return _HEADING_LIKE.match(_UNPRINTED.sub("", unicodedata.normalize("NFKC", line))) is not None


def _folded(name: str) -> str:
    return _UNPRINTED.sub("", unicodedata.normalize("NFKC", name)).lower()
