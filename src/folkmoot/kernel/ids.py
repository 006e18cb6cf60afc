"""Time-ordered ids (UUID version 7, RFC 9562), made from a clock and a source of chance that are handed in."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

NewId = Callable[[], UUID]

_VERSION_AND_VARIANT = (7 << 76) | (2 << 62)
_COUNTER_BITS = 42
_RANDOM_BITS = 32


def id_source(milliseconds: Callable[[], int], random_bits: Callable[[int], int]) -> NewId:
    """A function that returns a new id at each call, strictly rising within one process.

    `milliseconds` gives Unix time; `random_bits(n)` n random bits. A clock that stands still or steps back does not
    break the order: the counter below the time goes on.
    """
    last_time = 0
    counter = 0

    def new_id() -> UUID:
        nonlocal last_time, counter
        now = milliseconds()
        if now > last_time:
            last_time = now
            counter = random_bits(_COUNTER_BITS - 1)
        else:
            counter += 1
            if counter >> _COUNTER_BITS:
                last_time += 1
                counter = 0
        tail = (counter << _RANDOM_BITS) | random_bits(_RANDOM_BITS)
        return UUID(int=(last_time << 80) | ((tail >> 62) << 64) | (tail & ((1 << 62) - 1)) | _VERSION_AND_VARIANT)

    return new_id
