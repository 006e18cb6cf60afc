"""References inside one document (`#/components/…`), followed to what they mean. A way out of the document is refused by name.

Deliberately absent: any fetch, and schemas' own references, which stay references (`schemas`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

Json = Any

MAX_HOPS = 32
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


class Unsupported(Exception):
    """Why an operation cannot be called as its document says; a clause without a full stop."""


@dataclass(frozen=True, slots=True)
class References:
    """A document whose references can be followed."""

    document: dict[str, Json]

    def resolved(self, node: Json, what: str) -> dict[str, Json]:
        """The object that stands there, or that its `$ref` leads to. `what` names it in the reason. Raises Unsupported."""
        for _ in range(MAX_HOPS):
            if not isinstance(node, dict):
                raise Unsupported(f"{what} is no object")
            reference = node.get("$ref")
            if not isinstance(reference, str):
                return node
            node = self.at(reference)
        raise Unsupported(f"the $ref of {what} leads round in a circle")

    def at(self, reference: str) -> Json:
        """What a local reference leads to. Raises Unsupported."""
        node: Json = self.document
        for token in tokens_of(reference):
            if isinstance(node, dict) and token in node:
                node = node[token]
            elif isinstance(node, list) and token.isascii() and token.isdecimal() and int(token[:9]) < len(node):
                node = node[int(token)]
            else:
                raise Unsupported(f"its $ref '{shown(reference)}' leads nowhere")
        return node


def tokens_of(reference: str) -> tuple[str, ...]:
    """The steps of a local reference. Raises Unsupported for one that leads out of the document, or that names an anchor."""
    if not reference.startswith("#"):
        raise Unsupported(f"its $ref '{shown(reference)}' is outside the document and is not fetched; put it inside")
    if reference == "#":
        return ()
    if not reference.startswith("#/"):
        raise Unsupported(f"its $ref '{shown(reference)}' names an anchor; write it as '#/…'")
    return tuple(unquote(part).replace("~1", "/").replace("~0", "~") for part in reference[2:].split("/"))


def shown(text: Json, limit: int = 80) -> str:
    """Text of the document's for a message or a model: without characters that nobody sees, cut to size."""
    clean = _UNSEEN.sub("", str(text)[: limit * 2 + 100]).strip()
    return clean if len(clean) <= limit else f"{clean[: limit - 1]}…"


def has_unseen(text: str) -> bool:
    """Whether characters are in it that nobody sees: controls, zero-width ones, changes of direction."""
    return _UNSEEN.search(text) is not None
