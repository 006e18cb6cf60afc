"""What a process sends and takes in as long as it works: messages to webhooks and over channels, and what has come in over channels."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from folkmoot.bootstrap.channels import channel_apps
from folkmoot.bootstrap.installation import Installation
from folkmoot.bootstrap.outside import Outside
from folkmoot.runtime.channel_reading import ChannelReading
from folkmoot.runtime.channel_sending import channel_sending
from folkmoot.runtime.outbox import outbox

_OFTEN_SECONDS = 2.0


@asynccontextmanager
async def sending(installation: Installation, outside: Outside) -> AsyncIterator[Callable[[], None]]:
    """What the outboxes hold is sent, and channels are looked into, as long as the block lasts. Yields what says that there may be something to
    send."""
    found = installation.settings
    poll_seconds = min(found.poll_seconds, _OFTEN_SECONDS)
    apps = channel_apps(outside, found)
    webhooks = outbox(
        installation.database, installation.vault, outside.post, chance=random.random, poll_seconds=poll_seconds
    )
    channels = channel_sending(
        installation.database,
        installation.vault,
        apps,
        chance=random.random,
        poll_seconds=poll_seconds,
        public_url=installation.settings.public_url,
    )
    reading = ChannelReading(
        installation.database, installation.vault, apps, chance=random.random, poll_seconds=found.channel_poll_seconds,
        tell=installation.notifier.tell,
    )  # fmt: skip

    def nudge() -> None:
        webhooks.nudge()
        channels.nudge()

    webhooks.start()
    channels.start()
    reading.start()
    try:
        yield nudge
    finally:
        await reading.close()
        await channels.close()
        await webhooks.close()
