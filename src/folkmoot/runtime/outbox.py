"""Sends what the outbox holds to webhooks, signed as Standard Webhooks has it: at least once, with the same id at each attempt.

A message is claimed, sent with no transaction open, and settled; one whose sender died is sent again. Each is sent apart, and no endpoint
has more than a few of the places: one that is slow holds up itself alone. An endpoint that does not take a message is tried for three
days, ever more rarely. Deliberately absent: connections and redirects, which `post` sees to, and what is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from uuid import UUID

from standardwebhooks import Webhook as Signer

from folkmoot.kernel.errors import FolkmootError
from folkmoot.services.webhooks import place_of
from folkmoot.store import webhooks
from folkmoot.store.database import FAILURES, Database
from folkmoot.store.webhooks import DueMessage
from folkmoot.vault.sealing import Vault

Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[int]]

_log = logging.getLogger("folkmoot.outbox")
_MINUTE, _HOUR = 60.0, 3600.0
# after the first attempt, the second, …; after the last it is given up, three days after it was written
WAITS = (5.0, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR, 10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR)
_JITTER = 0.2
# of what else waits for an endpoint that was not reached: it may be back long before the oldest message is tried again
_LONGEST_HOLD = 5 * _MINUTE
MOST_AT_ONCE = 16  # of a process
MOST_EACH = 4  # of these, to one endpoint
_LEASE_SECONDS = 120.0  # far longer than `post` may take
_GONE = 410
_MOST_CHARACTERS = 500
_AGAIN_SECONDS = 1.0
_CLOSING_SECONDS = 3.0


class Outbox:
    """`post` sends a body to a URL and gives the answer's status, without following redirects; it raises where there is none."""

    def __init__(
        self, database: Database, vault: Vault, post: Post, *, chance: Callable[[], float], poll_seconds: float
    ) -> None:
        self._database = database
        self._vault = vault
        self._post = post
        self._chance = chance
        self._poll_seconds = poll_seconds
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # what is under way, each with its endpoint's tenant and id
        self._sending: dict[asyncio.Task[None], tuple[UUID, UUID]] = {}

    def start(self) -> None:
        self._task = asyncio.create_task(self._send_on())

    def nudge(self) -> None:
        """There may be something to send."""
        self._news.set()

    async def close(self) -> None:
        """What is being sent has a moment to be settled, and is cut off then: whoever comes next sends it again."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._sending:
            _, left = await asyncio.wait(self._sending, timeout=_CLOSING_SECONDS)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _send_on(self) -> None:
        while True:
            try:
                await self.send_due()
            except (FolkmootError, *FAILURES) as error:
                _log.warning("The outbox cannot be read, and will be tried again: %s", error)
                await asyncio.sleep(_AGAIN_SECONDS)
            except Exception:  # one bad row must not end what sends the others
                _log.exception("Sending from the outbox failed, and will be tried again")
                await asyncio.sleep(_AGAIN_SECONDS)
            await self._wait_for_news()

    async def send_due(self) -> int:
        """Send until nothing is due and nothing under way: each message apart, in the places that get free. How many there were."""
        count = 0
        while True:
            self._news.clear()
            count += await self._begin()
            if not self._sending:
                return count
            await self._wait_for_news()

    async def _wait_for_news(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), self._poll_seconds)

    async def _begin(self) -> int:
        """Claim as many as there are places for, and begin to send them; how many."""
        places = MOST_AT_ONCE - len(self._sending)
        if places <= 0:
            return 0
        async with self._database.writer() as writer:
            due = await webhooks.claim(
                writer, limit=places, limit_each=MOST_EACH, busy=Counter(self._sending.values()), lease_seconds=_LEASE_SECONDS
            )  # fmt: skip
        for message in due:
            task = asyncio.create_task(self._send_alone(message))
            self._sending[task] = (message.tenant_id, message.webhook_id)
            task.add_done_callback(self._ended)
        return len(due)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._news.set()

    async def _send_alone(self, message: DueMessage) -> None:
        """One that cannot be settled is sent again when its lease is over."""
        try:
            await self._send(message)
        except (FolkmootError, *FAILURES) as error:
            _log.warning(
                "What became of the message %s cannot be written; it is sent again: %s", message.message_id, error
            )
        except Exception:  # one bad row must not end what sends the others
            _log.exception("Sending the message %s failed, and will be tried again", message.message_id)

    async def _send(self, message: DueMessage) -> None:
        if message.is_disabled:
            return await self._disable(message, "the endpoint was disabled")
        try:
            headers = self._headers(message)
            status = await self._post(message.url, message.body.encode(), headers)
        except Exception as error:  # whatever a network or an endpoint may do
            words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            return await self._fail(message, words[:_MOST_CHARACTERS], is_unreached=True)
        if 200 <= status < 300:
            async with self._database.writer() as writer:
                await webhooks.delivered(writer, message)
        elif status == _GONE:
            await self._disable(message, "the endpoint answered 410: it is gone")
        else:
            await self._fail(message, f"the endpoint answered {status}", is_unreached=False)

    async def _disable(self, message: DueMessage, error: str) -> None:
        async with self._database.writer() as writer:
            await webhooks.disable(writer, message, error=error)

    async def _fail(self, message: DueMessage, error: str, *, is_unreached: bool) -> None:
        if message.attempts > len(WAITS):
            async with self._database.writer() as writer:
                await webhooks.give_up(writer, message, error=error)
            return
        seconds = WAITS[message.attempts - 1] * (1 + _JITTER * (2 * self._chance() - 1))
        async with self._database.writer() as writer:
            await webhooks.try_later(writer, message, seconds=seconds, error=error)
        if is_unreached:
            async with self._database.writer() as writer:
                await webhooks.hold_others(writer, message, seconds=min(seconds, _LONGEST_HOLD))

    def _headers(self, message: DueMessage) -> dict[str, str]:
        """Signed with the endpoint's secret and, for a while after a change, with the one before it."""
        place = place_of(message.tenant_id, message.webhook_id)
        sealed = [message.sealed_secret, *([message.previous_secret] if message.previous_secret is not None else [])]
        secrets = [self._vault.open(secret, place).reveal() for secret in sealed]
        return {
            "content-type": "application/json",
            "webhook-id": str(message.message_id),
            "webhook-timestamp": str(int(message.now.timestamp())),
            "webhook-signature": " ".join(_signed(s, message.message_id, message.now, message.body) for s in secrets),
        }


def _signed(secret: str, message_id: UUID, now: datetime, body: str) -> str:
    return Signer(secret).sign(str(message_id), now, body)
