"""The sender of messages to webhooks, as long as a process works."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from folkmoot.bootstrap.installation import Installation
from folkmoot.bootstrap.outside import Outside
from folkmoot.runtime.outbox import Outbox

_OFTEN_SECONDS = 2.0


@asynccontextmanager
async def sending(installation: Installation, outside: Outside) -> AsyncIterator[Outbox]:
    """What the outbox holds is sent as long as the block lasts."""
    outbox = Outbox(
        installation.database, installation.vault, outside.post, chance=random.random,
        poll_seconds=min(installation.settings.poll_seconds, _OFTEN_SECONDS),
    )  # fmt: skip
    outbox.start()
    try:
        yield outbox
    finally:
        await outbox.close()
