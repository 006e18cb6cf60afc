"""The installation that a command works with, and as whom it acts.

Whatever starts on an empty database makes the first key, so whatever starts shows it: there is no second time. Deliberately
absent: keys. A command on this machine acts as the owner of the tenant `default`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap.installation import Installation, Settings
from folkmoot.cli import screen
from folkmoot.domain.tenancy import Caller
from folkmoot.services import keys

FIRST_KEY = "The tenant 'default' was made. Its key, shown this once:"


@asynccontextmanager
async def opened(found: Settings | None = None, *, connections: int = 8) -> AsyncIterator[tuple[Installation, Caller]]:
    """The installation, migrated, and the owner. A key that was made just now is told on stderr: it is not what was asked for."""
    settings = found if found is not None else installations.read_settings()
    async with installations.open_installation(settings, connections=connections) as installation:
        if installation.new_key:
            screen.say(f"{FIRST_KEY} {installation.new_key}")
        yield installation, await keys.owner(installation.database)
