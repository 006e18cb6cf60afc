"""Connections, named SQL, migrations, and the sender that batches NOTIFY.

`Reader` and `Writer` are different types, so that a function's signature says whether it may write; a Writer is one open
transaction. Deliberately absent: anything about a noun.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import aiosql
import asyncpg

from folkmoot.kernel.errors import DatabaseFault, Unreachable

CHANNEL = "folkmoot"
OLDEST_SERVER = 160000  # PostgreSQL 16
WALL_ROLE = "folkmoot_api"  # migration 0005 makes it
_MIGRATION_LOCK = 0x666F6C6B
# Whether requests can be served behind the tenants' walls: they stand, and this user may take their role on.
_HAS_WALLS = f"""
select exists (select from pg_roles where rolname = '{WALL_ROLE}' and pg_has_role(oid, 'set'))
    and exists (select from pg_policies where schemaname = current_schema() and tablename = 'tenant' and policyname = 'tenant_wall')"""
_NOTIFY_BYTES = 7000
IDLE_IN_TRANSACTION_SECONDS = (
    30.0  # between two statements of a transaction, none of which waits for a network or a person
)
OUTAGES = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
    asyncpg.InsufficientResourcesError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,  # this process stood still
    asyncpg.InternalClientError,  # a connection that was cut while it was being used
    asyncpg.ReadOnlySQLTransactionError,  # a failover: this server is no longer the one that writes
)
FAILURES = (*OUTAGES, asyncpg.PostgresError)  # whatever a database may do to a statement


Connection = Any  # an asyncpg connection, from the pool or alone


@cache
def queries(noun: str) -> Any:
    """The statements of `noun.sql` by their names, each a coroutine function that takes a connection and its parameters by name.

    The file is read when the first of them is called for: a command needs few of the files, and starts sooner.
    """
    return _Queries(noun)


class _Queries:
    def __init__(self, noun: str) -> None:
        self._noun = noun

    def __getattr__(self, name: str) -> Any:
        statement = getattr(read_file(self._noun), name)
        setattr(self, name, statement)
        return statement


@cache
def read_file(noun: str) -> Any:
    """What `queries` reads later, now."""
    text = files("folkmoot.store").joinpath(f"sql/{noun}.sql").read_text(encoding="utf-8")
    return aiosql.from_str(text, "asyncpg", kwargs_only=True, mandatory_parameters=False)


async def _keep(_: Connection) -> None:
    """Nothing to reset when a connection goes back: what we set, we set for one transaction, or for good (`_bounded`)."""


class Reader:
    """A connection to read with; no transaction stays open between its statements."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @asynccontextmanager
    async def one_moment(self) -> AsyncIterator[None]:
        """All that is read inside is as it was at one moment."""
        async with self.connection.transaction(isolation="repeatable_read", readonly=True):
            yield

    async def plan_anew(self) -> None:
        """Within one moment, up to its end: a list's statement serves every filter, and one plan for all could use no index."""
        await self.connection.execute("set local plan_cache_mode = force_custom_plan")

    @asynccontextmanager
    async def outside_the_wall(self) -> AsyncIterator[None]:
        """For a statement that finds keys, and no more, by what PostgreSQL uses no index for behind a wall (ADR 0020)."""
        yield


class Writer(Reader):
    """A connection inside one transaction, committed when its block ends."""


def where(dsn: str) -> str:
    """The address in a DSN, without user and password."""
    parts = urlsplit(dsn)
    if not parts.hostname:
        return "the local socket"
    return f"{parts.hostname}:{parts.port or 5432}{parts.path}"


@asynccontextmanager
async def reaching(dsn: str) -> AsyncIterator[None]:
    """Turns a connection's failures into sentences."""
    try:
        yield
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise Unreachable(
            f"The database at {where(dsn)} refused the user or password: {error}. Check FOLKMOOT_DATABASE_URL."
        ) from error
    except asyncpg.InvalidCatalogNameError as error:
        raise Unreachable(
            f"The database at {where(dsn)} does not exist: {error}. Create it, or correct FOLKMOOT_DATABASE_URL."
        ) from error
    except OUTAGES as error:
        raise Unreachable(
            f"The database at {where(dsn)} cannot be reached ({error}). Start it, or correct FOLKMOOT_DATABASE_URL."
        ) from error


class Database:
    """A pool of connections to one database. `open` checks the server's version; it does not migrate."""

    def __init__(self, dsn: str, pool: asyncpg.Pool, *, has_walls: bool) -> None:
        self.dsn = dsn
        self.pool = pool
        self.has_walls = has_walls

    @staticmethod
    async def open(dsn: str, *, connections: int = 8) -> Database:
        async with reaching(dsn):
            pool = await asyncpg.create_pool(
                dsn, min_size=1, max_size=connections, command_timeout=60, reset=_keep, init=_bounded
            )
        async with pool.acquire() as connection:
            version = int(await connection.fetchval("show server_version_num"))
            has_walls = version >= OLDEST_SERVER and await connection.fetchval(_HAS_WALLS)
        if version < OLDEST_SERVER:
            await pool.close()
            raise DatabaseFault(
                f"The server at {where(dsn)} is PostgreSQL {version // 10000}; Folkmoot needs 16 or later."
            )
        return Database(dsn, pool, has_walls=has_walls)

    async def close(self) -> None:
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.pool.close(), 5)

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[Reader]:
        async with reaching(self.dsn):
            connection = await self.pool.acquire()
        try:
            async with reaching(self.dsn):
                yield Reader(connection)
        finally:
            # a connection that was cut cannot be reset; the pool has dropped it when it says so
            with suppress(*FAILURES):
                await self.pool.release(connection)

    @asynccontextmanager
    async def writer(self) -> AsyncIterator[Writer]:
        async with self.reader() as reader, reader.connection.transaction():
            yield Writer(reader.connection)

    async def check(self) -> None:
        """Raises Unreachable unless the database answers now."""
        async with self.reader() as reader:
            await reader.connection.fetchval("select 1")

    async def connect(self) -> asyncpg.Connection:
        """A connection of one's own, outside the pool: to listen, to ping, to append."""
        async with reaching(self.dsn):
            connection = await asyncpg.connect(self.dsn, command_timeout=60)
            await _bounded(connection)
            return connection


async def _bounded(connection: Connection) -> None:
    """A process that stands still in the middle of a transaction (stopped, swapped out, cut off) keeps its locks so long and no longer: it may hold
    the sweep's, without which nobody is taken over from, its own runs included."""
    await connection.execute(f"set idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_SECONDS * 1000:.0f}")


async def try_lock(writer: Writer, number: int) -> bool:
    """An advisory lock until the transaction ends; false if somebody else holds it."""
    return bool(await writer.connection.fetchval("select pg_try_advisory_xact_lock($1)", number))


def migrations() -> list[tuple[str, str]]:
    """Name and text of every migration, in order. Those named `_pre` run before new code starts, `_post` after the last old one is gone."""
    folder = files("folkmoot.store").joinpath("migrations")
    return sorted(
        (entry.name, entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".sql")
    )


async def applied(reader: Reader) -> list[str]:
    """Names of the migrations that this database has, in order; empty for a new one."""
    if await reader.connection.fetchval("select to_regclass('schema_migration')") is None:
        return []
    return [row["name"] for row in await reader.connection.fetch("select name from schema_migration order by name")]


async def upgrade(database: Database) -> list[str]:
    """Apply what is missing, under an advisory lock, so that several servers starting at once migrate once. Returns the new names."""
    new: list[str] = []
    async with database.writer() as writer:
        await writer.connection.execute("select pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
        await writer.connection.execute(
            "create table if not exists schema_migration (name text primary key, applied_at timestamptz not null)"
        )
        have = set(await applied(writer))
        known = migrations()
        unknown = have - {name for name, _ in known}
        if unknown:
            raise DatabaseFault(
                f"The database has migrations that this version does not know ({', '.join(sorted(unknown))}). Use a newer Folkmoot."
            )
        for name, text in known:
            if name not in have:
                await writer.connection.execute(text)
                await writer.connection.execute("insert into schema_migration values ($1, clock_timestamp())", name)
                new.append(name)
        has_walls = await writer.connection.fetchval("select folkmoot_raise_walls()")
    database.has_walls = has_walls
    await _validate(database)
    return new


async def _validate(database: Database) -> None:
    """Look whether all rows hold to the constraints that migrations add as not valid: apart, under a lock that nobody waits for."""
    async with database.reader() as reader:
        unproved = await reader.connection.fetch(
            "select conrelid::regclass::text as relation, quote_ident(conname) as name from pg_constraint "
            "where not convalidated and connamespace = current_schema()::regnamespace"
        )
    for row in unproved:
        async with database.writer() as writer:
            await writer.connection.execute(f"alter table {row['relation']} validate constraint {row['name']}")


class Notifier:
    """Sends what this process has to tell others, gathered: NOTIFY takes a lock that all commits share, so no append sends one.

    A lost message costs a poll interval, never data. Messages are small JSON objects with a `to` and what it needs.
    """

    def __init__(self, database: Database, *, gather_seconds: float = 0.0) -> None:
        self._database = database
        self._gather_seconds = gather_seconds
        self._waiting: list[str] = []
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def tell(self, message: dict[str, Any]) -> None:
        text = json.dumps(message, separators=(",", ":"))
        if len(text.encode("utf-8", "replace")) <= _NOTIFY_BYTES and text not in self._waiting[-8:]:
            self._waiting.append(text)
            self._wake.set()
        if self._task is None:
            self._task = asyncio.create_task(self._send())

    async def _send(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._gather_seconds:
                await asyncio.sleep(self._gather_seconds)
            batch, self._waiting = self._waiting, []
            with suppress(Unreachable, asyncpg.PostgresError):
                async with self._database.reader() as reader:
                    await reader.connection.execute("select pg_notify($1, m) from unnest($2::text[]) m", CHANNEL, batch)

    async def close(self) -> None:
        while self._waiting and self._task is not None and not self._task.done():
            await asyncio.sleep(0.005)
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task


class Listener:
    """Hears what other processes tell, on a connection of its own that is opened again when it is lost."""

    def __init__(
        self, database: Database, hear: Callable[[dict[str, Any]], None], *, reconnect_seconds: float = 1.0
    ) -> None:
        self._database = database
        self._hear = hear
        self._reconnect_seconds = reconnect_seconds
        self._task: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._listen())
        ready = asyncio.create_task(self.ready.wait())
        await asyncio.wait({ready, self._task}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()

    async def _listen(self) -> None:
        while True:
            lost = asyncio.Event()
            try:
                connection = await self._database.connect()
            except Unreachable:
                await asyncio.sleep(self._reconnect_seconds)
                continue
            try:
                connection.add_termination_listener(lambda _connection, lost=lost: lost.set())
                await connection.add_listener(
                    CHANNEL, lambda _c, _p, _ch, payload: self._hear(json.loads(str(payload)))
                )
                self.ready.set()
                await lost.wait()
            except OUTAGES:
                await asyncio.sleep(self._reconnect_seconds)
            finally:
                self.ready.clear()
                connection.terminate()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
