"""The second wall around a tenant: what is read and written behind it is done under a role that row-level security holds to one tenant.

The first wall is the condition that every statement has. Behind the second a statement that lost it sees no more than its tenant's
rows. The policies are migration 0005's; role and tenant hold for one transaction, so that no connection keeps them. Deliberately
absent: workers, sweeps and the look-up of keys, which are of no one tenant.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import UUID

import asyncpg

from folkmoot.store.database import WALL_ROLE, Connection, Database, Reader, Writer

# A reader's whole block is one moment: it costs nothing beside the transaction that it needs here anyway.
_READS = "begin isolation level repeatable read read only"
_WRITES = "begin"


class _WalledReader(Reader):
    """Inside the wall's transaction, which is of one moment already."""

    @asynccontextmanager
    async def one_moment(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def outside_the_wall(self) -> AsyncIterator[None]:
        await self.connection.execute("set local role none")
        try:
            yield
        finally:
            # a transaction that has failed takes no statement any more but its end
            with suppress(asyncpg.InFailedSQLTransactionError):
                await self.connection.execute(f"set local role {WALL_ROLE}")


class WalledDatabase(Database):
    """The same pool behind one tenant's wall. Whoever opened the database closes it."""

    def __init__(self, database: Database, tenant_id: UUID) -> None:
        super().__init__(database.dsn, database.pool, has_walls=True)
        self._enter = f"set local role {WALL_ROLE}; set local folkmoot.tenant = '{tenant_id}'"

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Reader]:
        async with super().reader() as reader, _transaction(reader.connection, f"{_READS}; {self._enter}"):
            yield _WalledReader(reader.connection)

    @asynccontextmanager
    async def writer(self) -> AsyncIterator[Writer]:
        async with super().reader() as reader, _transaction(reader.connection, f"{_WRITES}; {self._enter}"):
            yield Writer(reader.connection)


def walled(database: Database, tenant_id: UUID) -> Database:
    """The database as a request of this tenant may see it; the database itself where the server's user may raise no walls."""
    return WalledDatabase(database, tenant_id) if database.has_walls else database


@asynccontextmanager
async def _transaction(connection: Connection, begin: str) -> AsyncIterator[None]:
    """One transaction, begun by one message with what holds in it. The pool rolls back what could not be ended here."""
    try:
        await connection.execute(begin)
        yield
    except BaseException:
        await connection.execute("rollback")
        raise
    await connection.execute("commit")
