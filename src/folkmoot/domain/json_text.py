"""JSON that others wrote, read into a normal form or refused with a sentence: arguments of models, answers, schemas (B33, B43, F25).

The normal form: the last of duplicate keys wins; NUL is the visible U+2400, a lone surrogate its escape (`\\ud83d`). Refused:
NaN, infinities, numbers and nesting beyond what other readers take. Deliberately absent: repair of broken JSON by guessing.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

Json = Any

MAX_CHARACTERS = 1_048_576
MAX_DEPTH = 128
MAX_DIGITS = 300  # a double ends at 309: longer integers are read differently by every reader

_UNSAFE = re.compile("[\x00\ud800-\udfff]")
# The closing quote is optional and the body possessive, so that a string that never ends is scanned once.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class Unreadable(ValueError):
    """The text is not read; the message is a sentence about `It`, the text."""


class NotJson(Unreadable):
    """The text is not JSON at all."""


def visible(text: str) -> str:
    """The text with NUL and lone surrogates, which neither UTF-8 nor PostgreSQL hold, made visible."""
    if not _has_unsafe(text):
        return text
    return _UNSAFE.sub(lambda m: "\u2400" if m.group() == "\x00" else f"\\u{ord(m.group()):04x}", text)


def is_deeper(text: str, *, than: int) -> bool:
    """Whether JSON text nests arrays and objects deeper than that; brackets inside strings do not count."""
    if text.count("[") + text.count("{") <= than:
        return False
    depth = 0
    for match in _STRUCTURE.finditer(text):
        character = text[match.start()]
        if character in "[{":
            depth += 1
            if depth > than:
                return True
        elif character != '"':
            depth -= 1
    return False


def read_json(text: str, *, max_characters: int = MAX_CHARACTERS, max_depth: int = MAX_DEPTH) -> Json:
    """The value that the text holds, in normal form. Control characters inside strings are let through. Raises Unreadable."""
    _within(text, max_characters, max_depth)
    try:
        return _made_visible(text, _DECODER.decode(text))
    except json.JSONDecodeError as error:
        raise NotJson(f"It is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise Unreadable("It is nested too deeply; make it flatter.") from None


def parse_arguments(text: str) -> dict[str, Json] | str:
    """The arguments of a call as a model wrote them, or a sentence that says why they are not read. Never raises.

    Empty text is `{}`. An object may stand in a code fence, in prose without other braces or brackets, or in a JSON string.
    """
    stripped = text.strip().strip("\ufeff").strip()
    if not stripped:
        return {}
    try:
        value = _read_leniently(stripped)
    except Unreadable as error:
        advice = " Send one JSON object." if isinstance(error, NotJson) else ""
        return f"The arguments were not read. {error}{advice}"
    if not isinstance(value, dict):
        return f"The arguments are {named(value)}, not an object. Send one JSON object, such as {{}}."
    return value


def normal(value: Json) -> Json:
    """The value so that two spellings of it are equal: 1.0 is 1, strings are visible, tuples are lists; NaN and infinities are null.

    Takes what JSON holds; the value must not be nested deeper than the interpreter's stack.
    """
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, dict):
        return {visible(str(key)): normal(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [normal(inner) for inner in value]
    return value


def canonical(value: Json) -> str:
    """The one text of a JSON value, for comparing and hashing: normal form, sorted keys, no blanks."""
    return json.dumps(normal(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def named(value: Json) -> str:
    """What kind of JSON value it is, in words: 'a string', 'null'."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list | tuple) else "an object"


def _has_unsafe(text: str) -> bool:
    # Most text is ASCII, and the pattern alone would be most of the cost of reading it.
    return "\x00" in text or (not text.isascii() and _UNSAFE.search(text) is not None)


def _within(text: str, max_characters: int, max_depth: int) -> None:
    if len(text) > max_characters:
        raise Unreadable(f"It has {len(text):,} characters; at most {max_characters:,} are read.")
    if is_deeper(text, than=max_depth):
        raise Unreadable(f"It is nested deeper than {max_depth} levels; make it flatter.")


def _read_leniently(text: str) -> Json:
    try:
        value = read_json(text)
    except NotJson as error:
        return _object_inside(text, error)
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            return read_json(value)
        except NotJson:
            return value
    return value


def _object_inside(text: str, error: NotJson) -> Json:
    """The one object of a text, where no other brace or bracket stands around it: which one is meant is never guessed."""
    start = text.find("{")
    if start < 0 or "[" in text[:start]:
        raise error
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (json.JSONDecodeError, RecursionError):
        raise error from None
    if any(character in text[end:] for character in "{}[]"):
        raise error
    return _made_visible(text, value)


def _made_visible(text: str, value: Json) -> Json:
    return _all_visible(value) if "\\u" in text or _has_unsafe(text) else value


def _all_visible(value: Json) -> Json:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): _all_visible(inner) for key, inner in value.items()}
    return [_all_visible(inner) for inner in value] if isinstance(value, list) else value


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Unreadable(
            f"It holds an integer of {len(digits):,} digits; at most {MAX_DIGITS} are read. Send it as a string."
        )
    return int(digits)


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise Unreadable(f"It holds the number {digits[:40]}, which is too large. Send it as a string.")
    return number


def _constant(name: str) -> NoReturn:
    raise Unreadable(f"It holds {name}, which JSON does not have. Use null or a string.")


# strict=False: models put raw line breaks into strings.
_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_float, parse_constant=_constant, strict=False)
