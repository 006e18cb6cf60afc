"""Looks for what has come in over channels whose apps are to be asked, such as a mailbox. One process looks into a channel at a time,
which is noted, so that nothing of the database is held meanwhile.

What was taken in twice, since a process died between taking it in and saying so, counts once. Deliberately absent: channels that call us.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

from folkmoot.channels.channel import ChannelError, ChannelRefused
from folkmoot.channels.registry import AppUnavailable, ChannelApps
from folkmoot.kernel.errors import FolkmootError
from folkmoot.runtime.rounds import Rounds
from folkmoot.services import inbound
from folkmoot.store import channels
from folkmoot.store.channels import FoundChannel
from folkmoot.store.database import FAILURES, Database
from folkmoot.vault.sealing import Vault

_log = logging.getLogger("folkmoot.channels")
_LONGEST_SECONDS = 120.0  # of a look
_LONGEST_REST_SECONDS = (
    900.0  # of a channel that refuses: who tries a wrong password at each look has the account locked
)
_MOST_DOUBLINGS = 16


class ChannelReading:
    """`chance`: from 0 to 1. `poll_seconds`: between two looks. `tell`: notifies all processes."""

    def __init__(
        self, database: Database, vault: Vault, apps: ChannelApps, *, chance: Callable[[], float], poll_seconds: float,
        tell: Callable[[dict[str, Any]], None],
    ) -> None:  # fmt: skip
        self._database = database
        self._vault = vault
        self._apps = apps
        self._poll_seconds = poll_seconds
        self._tell = tell
        self._rounds = Rounds(self.look, seconds=poll_seconds, chance=chance, log=_log, what="Looking into channels")
        self._failing: dict[UUID, str] = {}  # why, so that it is said once and not at each look
        self._refusals: dict[UUID, int] = {}  # how many in a row

    def start(self) -> None:
        self._rounds.start()

    async def close(self) -> None:
        await self._rounds.close()

    async def look(self) -> int:
        """Once into each channel that polls; how many answers were taken in."""
        async with self._database.reader() as reader:
            there = await channels.of_apps(reader, self._apps.names)
        found = [channel for channel in there if self._polls(channel.app)]  # only what is used is loaded
        counts = await asyncio.gather(*(self._look_into(channel) for channel in found))
        return sum(counts)

    def _polls(self, name: str) -> bool:
        try:
            return self._apps.find(name).polls
        except AppUnavailable:
            return False

    async def _look_into(self, channel: FoundChannel) -> int:
        async with self._database.writer() as writer:
            if not await channels.take_look(writer, channel, seconds=_LONGEST_SECONDS):
                return 0
        rest_seconds = self._poll_seconds / 2
        try:
            async with asyncio.timeout(_LONGEST_SECONDS):
                count = await inbound.look(
                    self._database, self._vault, self._apps, tenant_id=channel.tenant_id, channel_id=channel.channel_id, tell=self._tell
                )  # fmt: skip
            self._refusals.pop(channel.channel_id, None)
            if self._failing.pop(channel.channel_id, None) is not None:
                _log.warning("The channel %s (%s) can be looked into again", channel.name, channel.channel_id)
            return count
        except (ChannelError, FolkmootError, TimeoutError, *FAILURES) as error:
            if isinstance(error, ChannelRefused):
                rest_seconds = self._rest_seconds(channel)
            self._warn_once(channel, str(error) or type(error).__name__)
            return 0
        finally:
            with suppress(*FAILURES):
                async with self._database.writer() as writer:
                    await channels.put_off_look(writer, channel, seconds=rest_seconds)

    def _rest_seconds(self, channel: FoundChannel) -> float:
        """For how long nobody looks into a channel that refused once more."""
        times = self._refusals[channel.channel_id] = self._refusals.get(channel.channel_id, 0) + 1
        return min(_LONGEST_REST_SECONDS, self._poll_seconds * 2.0 ** min(times, _MOST_DOUBLINGS))

    def _warn_once(self, channel: FoundChannel, why: str) -> None:
        if self._failing.get(channel.channel_id) != why:
            _log.warning(
                "The channel %s (%s) could not be looked into, and will be again: %s",
                channel.name,
                channel.channel_id,
                why,
            )
        self._failing[channel.channel_id] = why
