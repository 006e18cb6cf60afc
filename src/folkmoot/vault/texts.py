"""A secret's text in memory. It never prints: not by repr, not in a format, not in a traceback's values, not by pickling.

Deliberately absent: anything that a text can do. Whoever sends it somewhere says `reveal()` there.
"""

from __future__ import annotations

import hmac
from typing import NoReturn

MASK = "•••"


class SecretText:
    """Opened, and to be used at once; not to be kept."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"SecretText({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, _: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SecretText) and hmac.compare_digest(_bytes(self), _bytes(other))

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError("A secret's text is not to be written anywhere.")


def _bytes(text: SecretText) -> bytes:
    return text.reveal().encode("utf-8", "surrogatepass")
