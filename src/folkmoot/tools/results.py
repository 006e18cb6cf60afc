"""What a call brought, as the text that the conversation keeps: made safe, and never larger than its limit.

Deliberately absent: cutting. A result that is too large is an error that says so; half a result would be taken for a whole.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pydantic_core import to_json, to_jsonable_python

from folkmoot.domain.schemas import canonical, visible

_MAX_FAILURE = 500


class TooLarge(Exception):
    """The text is larger than the limit; the message says by how much."""


class Unwritable(Exception):
    """The value cannot be written as JSON; the message names its type."""


def text_of(value: Any, *, limit_bytes: int) -> str:
    """Text as it is, anything else as JSON, NaN and infinities as null. Raises TooLarge, Unwritable."""
    text = visible(value) if isinstance(value, str) else _json(value)
    size = len(text.encode())
    if size > limit_bytes:
        raise TooLarge(f"it has {size:,} bytes, and the limit is {limit_bytes:,}. Ask for less at once.")
    return text


def failure_text(error: BaseException) -> str:
    """Class and message of an error, cut to size; no traceback, which tells of the operator's machine."""
    try:
        message = visible(str(error)).strip()
    except Exception:  # __str__ is the operator's code too
        message = ""
    if len(message) > _MAX_FAILURE:
        message = f"{message[: _MAX_FAILURE - 1]}…"
    name = type(error).__name__
    return f"{name}: {message}" if message else f"{name}."


def _json(value: Any) -> str:
    if isinstance(value, Iterator | AsyncIterator):
        # It might never end.
        raise Unwritable(f"it is of type {type(value).__name__}, which gives its parts one by one; return them all.")
    try:
        return to_json(value, inf_nan_mode="null").decode()
    except Exception:
        return _visible_json(value)


def _visible_json(value: Any) -> str:
    """The slower way, for text that UTF-8 cannot hold."""
    try:
        # json.dumps writes a lone surrogate as its escape, in keys too, which pydantic refuses.
        return canonical(json.loads(json.dumps(value, default=to_jsonable_python)))
    except Exception as error:  # serializers of the operator's types may raise anything
        raise Unwritable(f"it is of type {type(value).__name__}, which is not JSON ({type(error).__name__}).") from None
