"""Masks known secrets wherever they turn up, plain or encoded: the last line, behind code that never hands them out.

Each value that this process opened or sealed is known, up to a bound; the oldest are forgotten first. Deliberately absent: guesses
at what may be a secret, and values too short to be told from ordinary words.
"""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from folkmoot.vault.texts import MASK

SHORTEST = 6
MOST_CHARACTERS = 1_000_000
MOST_OF_ONE_USE = 200
_LONGEST_ESCAPED = 8_192
_ANY = r"\\*+"
_SHORT_ESCAPES = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r"}
_BACKSLASHES = re.compile(r"\\+|[^\\]", re.DOTALL)


class Mask:
    """The values that are known, each with all the forms in which it may be met.

    Values of one use are known apart, the newest few of them: there are as many as requests, and neither what masks a text nor its memory may
    grow with these, nor may they push out what stays a secret.
    """

    def __init__(self, *, most_characters: int = MOST_CHARACTERS, most_of_one_use: int = MOST_OF_ONE_USE) -> None:
        self._lasting = _Known(most_characters=most_characters)
        self._of_one_use = _Known(most_characters=most_characters, most_values=most_of_one_use)

    def add(self, value: str, *, is_of_one_use: bool = False) -> None:
        """Know this value from now on. Values shorter than 6 characters are not masked."""
        if len(value) >= SHORTEST:
            (self._of_one_use if is_of_one_use else self._lasting).add(value)

    def mask(self, text: str) -> str:
        """The text with every known value, in whichever form, as '•••'."""
        found = [*self._lasting.found_in(text), *self._of_one_use.found_in(text)]
        # The longest first, lest a value that is part of another leave the rest of it.
        for form in sorted(found, key=len, reverse=True):
            text = text.replace(form, MASK)
        return text


class _Known:
    """Values up to a bound, the oldest forgotten first; the last one stays, however long it is."""

    def __init__(self, *, most_characters: int, most_values: int | None = None) -> None:
        self._most_characters = most_characters
        self._most_values = most_values
        self._forms: dict[str, tuple[str, ...]] = {}
        self._escaped: dict[str, re.Pattern[str]] = {}
        self._characters = 0

    def add(self, value: str) -> None:
        if value in self._forms:
            return
        self._forms[value] = tuple(dict.fromkeys(_forms(value)))
        escaped = _escaped(value)
        if escaped is not None:
            self._escaped[value] = escaped
        self._characters += len(value)
        while self._has_too_many() and len(self._forms) > 1:
            oldest = next(iter(self._forms))
            del self._forms[oldest]
            self._escaped.pop(oldest, None)
            self._characters -= len(oldest)

    def _has_too_many(self) -> bool:
        is_over = self._most_values is not None and len(self._forms) > self._most_values
        return is_over or self._characters > self._most_characters

    def found_in(self, text: str) -> list[str]:
        """What of the values, in whichever form, stands in the text."""
        found = [form for forms in tuple(self._forms.values()) for form in forms if form in text]
        for escaped in tuple(self._escaped.values()):
            found += set(escaped.findall(text))
        return found


def _forms(value: str) -> Iterator[str]:
    yield value
    for is_ascii in (True, False):
        once = json.dumps(value, ensure_ascii=is_ascii)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=is_ascii)[1:-1]  # JSON as text in JSON, as a call's arguments are
    yield value.replace("~", "~0").replace("/", "~1")  # in a JSON pointer
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield _with_small_digits(quoted)
    yield base64.b64encode(data).decode("ascii")
    yield base64.urlsafe_b64encode(data).decode("ascii")
    for offset in range(3):
        yield from _encoded(data, offset)


def _escaped(value: str) -> re.Pattern[str] | None:
    """The value however often and by whomever its characters were escaped (`\\"`, `\\/`, `\\u002b`); null where none can be.

    What begins it has no backslashes before it, and each run of them is taken whole, so that no text takes long to look through.
    """
    inner = value.lstrip("\\")
    if not SHORTEST <= len(inner) <= _LONGEST_ESCAPED or (inner.isalnum() and inner.isascii()):
        return None
    first, *rest = _BACKSLASHES.findall(inner)
    return re.compile(_spelt(first, before="") + "".join(_spelt(part, before=_ANY) for part in rest))


def _spelt(part: str, *, before: str) -> str:
    """One character, or a run of backslashes, with any number of backslashes `before` it."""
    if part.isalnum() and part.isascii():
        return part
    if part[0] == "\\":
        return rf"(?:\\{{{len(part)},}}+|(?:{_ANY}u(?i:005c)){{{len(part)}}})"
    units = part.encode("utf-16-be", "surrogatepass").hex()
    codes = _ANY.join(f"u(?i:{units[at : at + 4]})" for at in range(0, len(units), 4))
    ways = [re.escape(part), codes]
    if part in _SHORT_ESCAPES:
        ways.append(_SHORT_ESCAPES[part])
    if part > "~" or part < " ":
        ways.append(_ANY.join(f"x{byte:02x}" for byte in part.encode("utf-8", "surrogatepass")))
    return f"{before}(?:{'|'.join(ways)})"


def _with_small_digits(quoted: str) -> str:
    """The same with `%2f` for `%2F`."""
    head, *rest = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _encoded(data: bytes, offset: int) -> Iterator[str]:
    """Base64 in both alphabets, as far as it does not depend on what stands before and after, `offset` bytes into a group of three."""
    encoded = base64.b64encode(b"\0" * offset + data)
    first = -(-offset * 8 // 6)
    whole = encoded[first : (offset + len(data)) * 8 // 6].decode("ascii")
    yield whole
    yield whole.translate({ord("+"): "-", ord("/"): "_"})


OF_PROCESS = Mask()
mask = OF_PROCESS.mask


class MaskingFormatter(logging.Formatter):
    """Masks a record as it will be written: its message, its values, and the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))
