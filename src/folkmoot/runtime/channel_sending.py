"""Messages to the owners of agent runs over their channels: sent at least once, with the same id at each attempt.

A channel that is down is tried for three days, ever more rarely, and the run goes on waiting meanwhile. Deliberately absent: what a
message says (`services.owner_messages`), and the order in which messages go (`sending`).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence

from folkmoot.channels.channel import ChannelDown, ChannelRefused
from folkmoot.channels.registry import AppUnavailable, ChannelApps
from folkmoot.domain.channels import OutgoingMessage
from folkmoot.domain.shown_text import shown
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import NotFound, SecretFault
from folkmoot.runtime import sending
from folkmoot.runtime.sending import LEASE_SECONDS, Receiver, Sending, wait_after
from folkmoot.services import channel_setups, owner_messages
from folkmoot.services.owner_messages import Later, Obsolete
from folkmoot.store import channel_messages
from folkmoot.store.channel_messages import DueChannelMessage
from folkmoot.store.database import FAILURES, Database
from folkmoot.vault.masks import OF_PROCESS
from folkmoot.vault.sealing import Vault

_log = logging.getLogger("folkmoot.channels")
_SOON_SECONDS = 2.0
_MOST_CHARACTERS = 500


def channel_sending(
    database: Database,
    vault: Vault,
    apps: ChannelApps,
    *,
    chance: Callable[[], float],
    poll_seconds: float,
    public_url: str | None,
) -> Sending[DueChannelMessage]:
    """What sends over channels."""
    return Sending(ChannelMessages(database, vault, apps, chance, public_url), poll_seconds=poll_seconds)


class ChannelMessages:
    """The outbox of channels, as `sending` takes it. `public_url`: under which people reach this server; null: messages have no links."""

    def __init__(
        self, database: Database, vault: Vault, apps: ChannelApps, chance: Callable[[], float], public_url: str | None
    ) -> None:
        self._database = database
        self._vault = vault
        self._apps = apps
        self._chance = chance
        self._public_url = public_url

    async def claim(self, *, limit: int, busy: Mapping[Receiver, int]) -> Sequence[DueChannelMessage]:
        async with self._database.writer() as writer:
            return await channel_messages.claim(
                writer, limit=limit, limit_each=sending.MOST_EACH, busy=busy, lease_seconds=LEASE_SECONDS
            )

    def receiver_of(self, message: DueChannelMessage) -> Receiver:
        return message.tenant_id, message.channel_id

    async def send(self, message: DueChannelMessage) -> None:
        try:
            channel = await channel_setups.ready(
                self._database, self._vault, message.tenant_id, channel_id=message.channel_id, now=message.now
            )
            app = self._apps.find(channel.app)
            made = await owner_messages.made(
                self._database, self._vault, message, app=channel.app, public_url=self._public_url
            )
        except (NotFound, SecretFault, AppUnavailable) as error:  # somebody may put it right
            return await self._fail(message, str(error))
        except FAILURES:
            raise
        except Exception as error:  # one bad row is tried like one that was not taken
            return await self._fail(message, f"It could not be made: {type(error).__name__}: {error}")
        if isinstance(made, Later):
            return await self._put_off(message, "The request that this is about is being sent.")
        if isinstance(made, Obsolete):
            return await self._give_up(message, made.why)
        assert isinstance(made, OutgoingMessage)
        fault_points.reach("before_channel_send")
        try:
            delivery = await app.send(channel.setup, made)
        except ChannelRefused as error:
            return await self._refuse(message, _safe(str(error), made))
        except ChannelDown as error:
            return await self._fail(message, _safe(str(error), made), at_least=error.retry_after_seconds)
        except Exception as error:  # an app may be anybody's
            return await self._fail(message, _safe(f"The app failed: {type(error).__name__}: {error}", made))
        fault_points.reach("after_channel_send")
        async with self._database.writer() as writer:
            await channel_messages.delivered(writer, message, reference=delivery.reference)

    async def _fail(self, message: DueChannelMessage, error: str, *, at_least: float | None = None) -> None:
        seconds = wait_after(message.attempts, self._chance())
        if seconds is None:
            return await self._refuse(message, error)
        seconds = max(seconds, at_least or 0.0)
        _log.warning("%s could not be sent, and is tried again in %.0f s: %s", _named(message), seconds, error)
        await self._later(message, seconds, error)

    async def _refuse(self, message: DueChannelMessage, error: str) -> None:
        _log.warning("%s is not sent any more: %s", _named(message), error)
        await self._give_up(message, error)

    async def _later(self, message: DueChannelMessage, seconds: float, error: str) -> None:
        async with self._database.writer() as writer:
            await channel_messages.try_later(writer, message, seconds=seconds, error=error[:_MOST_CHARACTERS])

    async def _put_off(self, message: DueChannelMessage, error: str) -> None:
        async with self._database.writer() as writer:
            await channel_messages.put_off(writer, message, seconds=_SOON_SECONDS, error=error)

    async def _give_up(self, message: DueChannelMessage, error: str) -> None:
        async with self._database.writer() as writer:
            await channel_messages.give_up(writer, message, error=error[:_MOST_CHARACTERS])


def _safe(error: str, made: OutgoingMessage) -> str:
    """What the other side said, without the request's secret in any spelling: whoever reads what became of a message could use it."""
    if made.secret is not None:
        error = re.sub(re.escape(made.secret), "•••", error, flags=re.IGNORECASE)
    return shown(OF_PROCESS.mask(error)).text


def _named(message: DueChannelMessage) -> str:
    """Its kind and its run, by which an operator finds it."""
    return f"The message {message.kind} of agent run {message.agent_run} over the channel {message.channel_name} ({message.message_id})"
