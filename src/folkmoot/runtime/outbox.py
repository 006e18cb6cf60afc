"""Messages to webhooks, signed as Standard Webhooks has it: sent at least once, with the same id at each attempt.

An endpoint that does not take a message is tried for three days, ever more rarely. Deliberately absent: connections and redirects, which
`post` sees to, what is told, and the order in which messages go (`sending`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from standardwebhooks import Webhook as Signer

from folkmoot.runtime import sending
from folkmoot.runtime.sending import LEASE_SECONDS, Receiver, Sending, wait_after
from folkmoot.services.webhooks import place_of
from folkmoot.store import webhooks
from folkmoot.store.database import Database
from folkmoot.store.webhooks import DueMessage
from folkmoot.vault.sealing import Vault

Post = Callable[[str, bytes, Mapping[str, str]], Awaitable[int]]

# of what else waits for an endpoint that was not reached: it may be back long before the oldest message is tried again
_LONGEST_HOLD = 300.0
_GONE = 410
_MOST_CHARACTERS = 500


def outbox(
    database: Database, vault: Vault, post: Post, *, chance: Callable[[], float], poll_seconds: float
) -> Sending[DueMessage]:
    """What sends to webhooks. `post` sends a body to a URL and gives the answer's status, without following redirects; it raises where there
    is none."""
    return Sending(WebhookMessages(database, vault, post, chance), poll_seconds=poll_seconds)


class WebhookMessages:
    """The outbox of webhooks, as `sending` takes it."""

    def __init__(self, database: Database, vault: Vault, post: Post, chance: Callable[[], float]) -> None:
        self._database = database
        self._vault = vault
        self._post = post
        self._chance = chance

    async def claim(self, *, limit: int, busy: Mapping[Receiver, int]) -> Sequence[DueMessage]:
        async with self._database.writer() as writer:
            return await webhooks.claim(
                writer, limit=limit, limit_each=sending.MOST_EACH, busy=busy, lease_seconds=LEASE_SECONDS
            )

    def receiver_of(self, message: DueMessage) -> Receiver:
        return message.tenant_id, message.webhook_id

    async def send(self, message: DueMessage) -> None:
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
        seconds = wait_after(message.attempts, self._chance())
        if seconds is None:
            async with self._database.writer() as writer:
                await webhooks.give_up(writer, message, error=error)
            return
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
