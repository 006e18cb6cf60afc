"""What a process does again and again with no request behind it, such as the sweep, or a look into mailboxes.

No failure ends it. Deliberately absent: that only one process is at it, which each round sees to itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from folkmoot.kernel.errors import FolkmootError
from folkmoot.store.database import FAILURES

_JITTER = 0.2  # processes that began together do not stay together


class Rounds:
    """`what`: the beginning of a sentence for the log. `chance`: from 0 to 1."""

    def __init__(
        self, once: Callable[[], Awaitable[object]], *, seconds: float, chance: Callable[[], float], log: logging.Logger, what: str
    ) -> None:  # fmt: skip
        self._once = once
        self._seconds = seconds
        self._chance = chance
        self._log = log
        self._what = what
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._go_on())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _go_on(self) -> None:
        while True:
            try:
                await self._once()
            except (FolkmootError, *FAILURES) as error:
                self._log.warning("%s failed, and will be tried again: %s", self._what, error)
            except Exception:  # one bad row must not end what looks after all others
                self._log.exception("%s failed, and will be tried again", self._what)
            await asyncio.sleep(self._seconds * (1 + _JITTER * (2 * self._chance() - 1)))
