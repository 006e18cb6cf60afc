"""What comes in for a drive, in order: outcomes of steps, faults, and nudges to look at what happened outside.

What stands together and asks for one commit is given out together: starts of sub-runs, which are made together and would cost a
commit each, and nudges, of which the last sees all. Deliberately absent: what is done about any of it (`drive`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from folkmoot.engine import awaits
from folkmoot.runtime.perform import Asked, Called, Performed

Arrival = Performed | Exception | None


class Arrivals:
    """A queue for one reader. Null is a nudge."""

    def __init__(self) -> None:
        self._waiting: deque[Arrival] = deque()
        self._wake = asyncio.Event()

    def put(self, arrival: Arrival) -> None:
        self._waiting.append(arrival)
        self._wake.set()

    async def next(self) -> Asked | Sequence[Called] | Exception | None:
        """A reply, a fault, a nudge, or results to be recorded together: one, or several of starts of sub-runs."""
        waiting = self._waiting
        while not waiting:
            self._wake.clear()
            await self._wake.wait()
        first = waiting.popleft()
        if first is None:
            while waiting and waiting[0] is None:
                waiting.popleft()
        if not isinstance(first, Called):
            return first
        together = [first]
        if awaits.is_start(first.step.tool):
            while waiting and isinstance(found := waiting[0], Called) and awaits.is_start(found.step.tool):
                together.append(found)
                waiting.popleft()
        return together
