"""The text of a document as plain JSON values, within bounds. JSON or YAML, whichever it is.

Takes about a second for each 10 MB of JSON, and longer for YAML: call it in a thread. Deliberately absent: what the values mean.
"""

from __future__ import annotations

from typing import Any

from folkmoot.domain.connectors import MAX_DOCUMENT_BYTES
from folkmoot.domain.json_text import NotJson, Unreadable, named, read_json
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.openapi.yaml_text import read_yaml

Json = Any

MAX_DEPTH = 100
MAX_VALUES = 4_000_000


def read_document(data: bytes | str, *, source: str) -> dict[str, Json]:
    """The document as an object. `source` names it in messages (a file's name or a URL without secrets). Raises ConnectorFault."""
    try:
        value = _read(data)
        if not isinstance(value, dict):
            raise Unreadable(f"It is {named(value)}; an OpenAPI document is an object.")
        _measure(value)
    except Unreadable as error:
        raise ConnectorFault(f"The document '{source[:200]}' was not read. {error}") from None
    return value


def _read(data: bytes | str) -> Json:
    size = len(data)
    if size > MAX_DOCUMENT_BYTES:
        raise Unreadable(
            f"It has {size:,} bytes; at most {MAX_DOCUMENT_BYTES:,} are read. Split it into smaller documents."
        )
    text = _text(data)
    if not text.strip():
        raise Unreadable("It is empty.")
    if text.lstrip()[0] not in "{[":
        return read_yaml(text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
    try:
        return read_json(text, max_characters=MAX_DOCUMENT_BYTES, max_depth=MAX_DEPTH)
    except NotJson as not_json:
        # YAML's flow style begins like JSON.
        try:
            return read_yaml(text, max_depth=MAX_DEPTH, max_values=MAX_VALUES)
        except Unreadable:
            raise not_json from None


def _text(data: bytes | str) -> str:
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    try:
        return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("It is no text in UTF-8; save it as UTF-8.") from None


def _measure(value: Json) -> None:
    left = MAX_VALUES
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        left -= 1
        if left < 0:
            raise Unreadable(f"It has more than {MAX_VALUES:,} values; split it into smaller documents.")
        if isinstance(inner, dict):
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
