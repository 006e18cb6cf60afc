"""A worker that has nothing to do: its memory once it has looked for work and found none, and its CPU while nothing is told it."""

from __future__ import annotations

import asyncio
import time

from bench.clocks import cpu_seconds, resident_mb
from bench.course import Course
from folkmoot.store.database import Notifier

_IDLE_SECONDS = 10.0
_SETTLE_SECONDS = 3.0
_LOOKS = 20


async def weigh(
    course: Course, notifier: Notifier, pid: int, *, idle_seconds: float = _IDLE_SECONDS
) -> tuple[float, float]:
    """MB of a worker that has looked for work several times, and its CPU percent over some seconds after that."""
    settle, idle = (0.2, 0.2) if course.is_quick else (_SETTLE_SECONDS, idle_seconds)
    for _ in range(_LOOKS):
        notifier.tell({"to": "workers"})
        await asyncio.sleep(settle / _LOOKS)
    before, began = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(idle)
    percent = (cpu_seconds(pid) - before) / (time.monotonic() - began) * 100
    return resident_mb(pid), percent
