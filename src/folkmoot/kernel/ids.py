"""Time-ordered ids (UUID version 7, RFC 9562), made from a clock and a source of chance that are handed in."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

NewId = Callable[[], UUID]

_VERSION_AND_VARIANT = (7 << 76) | (2 << 62)
_TAIL_BITS = 74
_LOW = (1 << 62) - 1


def id_source(milliseconds: Callable[[], int], random_bits: Callable[[int], int]) -> NewId:
    """A function that returns a new id at each call, strictly rising within one process.

    `milliseconds` gives Unix time; `random_bits(n)` n random bits. Within one millisecond the random tail counts up, as RFC
    9562 allows; so it does when the clock stands still or steps back.
    """
    time = 0
    tail = 0

    def new_id() -> UUID:
        nonlocal time, tail
        now = milliseconds()
        if now > time:
            time = now
            tail = random_bits(_TAIL_BITS - 1)
        else:
            tail += 1
            if tail >> _TAIL_BITS:
                time += 1
                tail = 0
        return UUID(int=(time << 80) | ((tail >> 62) << 64) | (tail & _LOW) | _VERSION_AND_VARIANT)

    return new_id
