"""What comes in for a drive, in order: outcomes of steps, faults, and nudges to look at what happened outside.

What stands together and asks for one commit is given out together: starts of sub-runs, which are made together and would cost a
commit each, and nudges, of which the last sees all. Deliberately absent: what is done about any of it (`drive`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

from folkmoot.engine import awaits
from folkmoot.runtime.perform import Called, Performed

Arrival = Performed | Exception | None


class Arrivals:
    """A queue for one reader. Null is a nudge."""

    def __init__(self) -> None:
        self._waiting: deque[Arrival] = deque()
        self._wake = asyncio.Event()

    def put(self, arrival: Arrival) -> None:
        self._waiting.append(arrival)
        self._wake.set()

    async def next(self) -> Sequence[Performed] | Exception | None:
        """A fault, a nudge, or outcomes to be recorded together: one, or several starts of sub-runs."""
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        first = self._waiting.popleft()
        if first is None:
            while self._waiting and self._waiting[0] is None:
                self._waiting.popleft()
            return None
        if isinstance(first, Exception):
            return first
        together = [first]
        while _is_start(first) and self._waiting and isinstance(found := self._waiting[0], Called) and _is_start(found):
            together.append(found)
            self._waiting.popleft()
        return together


def _is_start(done: Performed) -> bool:
    return isinstance(done, Called) and awaits.is_start(done.step.tool)
