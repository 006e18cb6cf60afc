"""Ids: time-ordered, of version 7, distinct."""

from __future__ import annotations

import random

from folkmoot.kernel.ids import id_source


def test_ids_are_of_version_7_and_carry_their_time() -> None:
    new_id = id_source(lambda: 1_800_000_000_123, random.Random(1).getrandbits)
    made = new_id()
    assert made.version == 7
    assert made.int >> 80 == 1_800_000_000_123


def test_ids_rise_within_a_millisecond_and_when_the_clock_steps_back() -> None:
    times = iter([5, 5, 5, 4, 3, 6])
    new_id = id_source(lambda: next(times), random.Random(1).getrandbits)
    made = [new_id() for _ in range(6)]
    assert made == sorted(set(made))


def test_ids_rise_when_the_tail_is_used_up() -> None:
    new_id = id_source(lambda: 7, lambda bits: (1 << 74) - 1)
    first, second, third = new_id(), new_id(), new_id()
    assert first < second < third
    assert second.int >> 80 == 8 and second.version == 7
