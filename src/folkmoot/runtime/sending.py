"""Sends what an outbox holds: each message apart, in a few places, of which no receiver has more than some.

A message is claimed, sent with no transaction open, and settled; one whose sender died is sent again. A receiver that is slow holds up
itself alone. Deliberately absent: what a message is, and what becomes of one that was not taken (`outbox`, `channel_sending`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from folkmoot.kernel.errors import FolkmootError
from folkmoot.store.database import FAILURES

_log = logging.getLogger("folkmoot.outbox")
_MINUTE, _HOUR = 60.0, 3600.0
# after the first attempt, the second, …; after the last it is given up, three days after it was written
WAITS = (5.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR)
JITTER = 0.2
MOST_AT_ONCE = 16  # of a process
MOST_EACH = 4  # of these, to one receiver
LEASE_SECONDS = 120.0  # far longer than an attempt may take
_AGAIN_SECONDS = 1.0
_CLOSING_SECONDS = 3.0

M = TypeVar("M")
Receiver = tuple[UUID, UUID]  # its tenant's id and its own


class Messages(Protocol[M]):
    """An outbox. `claim`: messages that are due, which nobody else gets meanwhile; `busy`: what is under way, by receiver. `send`: one attempt with
    what becomes of it; it raises only what the database raises."""

    async def claim(self, *, limit: int, busy: Mapping[Receiver, int]) -> Sequence[M]: ...
    async def send(self, message: M) -> None: ...
    def receiver_of(self, message: M) -> Receiver: ...


class Sending(Generic[M]):
    """Sends as long as it is started; `nudge` says that there may be something to send."""

    def __init__(self, messages: Messages[M], *, poll_seconds: float) -> None:
        self._messages = messages
        self._poll_seconds = poll_seconds
        self._news = asyncio.Event()
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None
        self._under_way: dict[asyncio.Task[None], Receiver] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._send_on())

    def nudge(self) -> None:
        self._news.set()

    async def close(self) -> None:
        """What is due by now, such as the end of a run that has ended here, and what is being sent have a moment to be settled, and are cut off
        then: whoever comes next sends them again."""
        if self._task is not None:
            self._is_closing = True
            self._news.set()
            await asyncio.wait({self._task}, timeout=_CLOSING_SECONDS)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        left = list(self._under_way)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _send_on(self) -> None:
        while True:
            is_last = self._is_closing
            try:
                await self.send_due()
            except (FolkmootError, *FAILURES) as error:
                _log.warning("The outbox cannot be read, and will be tried again: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)
            except Exception:  # one bad row must not end what sends the others
                _log.exception("Sending from the outbox failed, and will be tried again")
                await asyncio.sleep(_AGAIN_SECONDS)
            if is_last:
                return
            if not self._is_closing:
                await self._wait_for_news()

    async def send_due(self) -> int:
        """Send until nothing is due and nothing under way: each message apart, in the places that get free. How many there were."""
        count = 0
        while True:
            self._news.clear()
            count += await self._begin()
            if not self._under_way:
                return count
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        # `wait_for` would swallow a close that comes together with news (before Python 3.12)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll_seconds):
                await self._news.wait()

    async def _begin(self) -> int:
        """Claim as many as there are places for, and begin to send them; how many."""
        places = MOST_AT_ONCE - len(self._under_way)
        if places <= 0:
            return 0
        due = await self._messages.claim(limit=places, busy=Counter(self._under_way.values()))
        for message in due:
            task = asyncio.create_task(self._send_alone(message))
            self._under_way[task] = self._messages.receiver_of(message)
            task.add_done_callback(self._ended)
        return len(due)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
        self._news.set()

    async def _send_alone(self, message: M) -> None:
        """One that cannot be settled is sent again when its lease is over."""
        try:
            await self._messages.send(message)
        except (FolkmootError, *FAILURES) as error:
            _log.warning("What became of a message cannot be written; it is sent again: %s", error)
        except Exception:  # one bad row must not end what sends the others
            _log.exception("Sending a message failed, and will be tried again")


def wait_after(attempts: int, chance: float) -> float | None:
    """Seconds until the next attempt, with some jitter; null: there was the last one. `chance`: from 0 to 1."""
    return None if attempts > len(WAITS) else WAITS[attempts - 1] * (1 + JITTER * (2 * chance - 1))
