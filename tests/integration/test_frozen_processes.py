"""A process that stands still in the middle of a transaction keeps its locks for a bounded time (F10, F23)."""

from __future__ import annotations

import pytest
from crews import until

from folkmoot.kernel.errors import Unreachable
from folkmoot.store import database as database_module
from folkmoot.store.database import Database, try_lock

LOCK = 7


async def is_free(database: Database) -> bool:
    async with database.writer() as writer:
        return await try_lock(writer, LOCK)


async def test_a_frozen_transaction_gives_its_locks_back_and_its_connection_is_made_anew(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a worker that was stopped inside a sweep would keep all others from taking over what dead ones held, its own runs included."""
    monkeypatch.setattr(database_module, "IDLE_IN_TRANSACTION_SECONDS", 0.2)
    frozen = await Database.open(database.dsn, connections=1)
    with pytest.raises(Unreachable):
        async with frozen.writer() as writer:
            assert await try_lock(writer, LOCK) and not await is_free(database)
            await until(lambda: is_free(database), seconds=10)
            await writer.connection.fetchval("select 1")
    assert await is_free(frozen)
    await frozen.close()


async def test_control_a_frozen_transaction_keeps_its_locks_without_the_bound(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "IDLE_IN_TRANSACTION_SECONDS", 0.0)
    frozen = await Database.open(database.dsn, connections=1)
    async with frozen.writer() as writer:
        assert await try_lock(writer, LOCK)
        with pytest.raises(TimeoutError):
            await until(lambda: is_free(database), seconds=1)
    await frozen.close()


async def test_every_connection_has_the_bound(database: Database) -> None:
    alone = await database.connect()
    async with database.reader() as reader:
        for connection in (alone, reader.connection):
            assert await connection.fetchval("show idle_in_transaction_session_timeout") == "30s"
    await alone.close()
