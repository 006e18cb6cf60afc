"""What a command shows: progress and errors on stderr, data on stdout, colours only where a terminal wants them.

A reader that has gone away is no error: what it would have read is dropped, and the command goes on to its own end. Deliberately
absent: raw text from a model or a person on a terminal; whatever would act on it is shown instead.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

_RESET = "\x1b[0m"
COLOURS = ("\x1b[36m", "\x1b[33m", "\x1b[35m", "\x1b[32m", "\x1b[34m", "\x1b[31m")
DIM = "\x1b[2m"
BOLD = "\x1b[1m"

# Marks that reorder or break the text around them: with them a text can look like another, or like another's.
_REORDERING = frozenset("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ACTING = frozenset({"Cc", "Cs"})


class Unwritable(Exception):
    """Data could not be written where stdout leads, for another reason than that nobody reads."""


def prepare() -> None:
    """Before the first word: streams that are closed lead nowhere, and what an encoding lacks is written as an escape."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        else:
            stream.reconfigure(errors="backslashreplace")


def is_capable(stream: TextIO) -> bool:
    """A terminal that knows more than lines."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def is_coloured(stream: TextIO) -> bool:
    """A terminal, and neither NO_COLOR nor a dumb one."""
    return is_capable(stream) and not os.environ.get("NO_COLOR")


def paint(text: str, colour: str) -> str:
    """For stderr."""
    return f"{colour}{text}{_RESET}" if colour and is_coloured(sys.stderr) else text


def printable(text: str) -> str:
    """The text with whatever would act on a terminal written as an escape; line breaks and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\t":
        return character
    acts = unicodedata.category(character) in _ACTING or character in _REORDERING
    return f"\\u{ord(character):04x}" if acts else character


def width(text: str) -> int:
    """Columns that a line of printable text takes."""
    if text.isascii():
        return len(text)
    return sum(_columns(character) for character in text)


def _columns(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shortened(text: str, columns: int) -> str:
    """The text on one line in so many columns, its middle left out where it is longer."""
    line = " ".join(text.split())
    if width(line) <= columns:
        return line
    head, tail = columns // 3, columns - columns // 3 - 3
    return f"{_fitting(line, head)} … {_fitting(line[::-1], tail)[::-1]}"


def _fitting(text: str, columns: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:index]
    return text


def say(text: str = "") -> None:
    """Progress: a line on stderr."""
    write(f"{text}\n")


def write(text: str) -> None:
    """Progress as it is; lost where nobody can read it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        lead_nowhere(sys.stderr)


def put(text: str) -> None:
    """Data: a line on stdout, as it is unless a terminal shows it. Raises Unwritable."""
    try:
        sys.stdout.write(f"{printable(text) if sys.stdout.isatty() else text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        lead_nowhere(sys.stdout)
    except OSError as error:
        lead_nowhere(sys.stdout)
        raise Unwritable(error.strerror or str(error)) from error


def lead_nowhere(stream: TextIO) -> None:
    """What is still buffered, and all that follows, is dropped; else the end of the process would try it again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def put_json(value: Any) -> None:
    put(json.dumps(value, ensure_ascii=False, default=str))


def put_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Columns as wide as their widest cell; cells are made printable and kept on one line."""
    cells = [head, *[tuple(" ".join(printable(cell).split()) for cell in row) for row in rows]]
    widths = [max(width(row[n]) for row in cells) for n in range(len(head))]
    for row in cells:
        put("  ".join(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=True)).rstrip())
