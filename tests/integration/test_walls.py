"""The second wall: PostgreSQL's row-level security holds a request to the rows of its tenant (platform.md, Tenancy; F40)."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiosql
import asyncpg
import pytest
from api_at_hand import RUNS, problem_of, publish_panel, served, start_run, stranger_key

import folkmoot.api.routes as routes
from folkmoot.services import starting
from folkmoot.store import conversations, pending, run_lists, runs
from folkmoot.store.database import WALL_ROLE, Database, migrations, upgrade
from folkmoot.store.walls import walled

REFUSED = asyncpg.InsufficientPrivilegeError
LITERALS = {
    "uuid": "gen_random_uuid()", "text": "'x'", "timestamptz": "now()", "int4": "1", "int8": "1", "bool": "false", "bytea": "'x'",
    "jsonb": "'{}'", "_text": "'{x}'", "interval": "'1 s'", "float8": "1",
}  # fmt: skip
OPEN_TO_ALL = {"clock_shift", "worker"}


async def tables(database: Database) -> dict[str, bool]:
    """Every table that has a tenant's rows; true where it stands behind the wall, and nothing else does for others."""
    async with database.reader() as reader:
        rows = await reader.connection.fetch(
            """
            select c.relname, c.relrowsecurity and has_table_privilege($1, c.oid, 'select') and (
                select count(*) = 1 and bool_and(p.polcmd = '*' and p.polpermissive and p.polroles = array[$1::regrole::oid]
                       and pg_get_expr(p.polqual, p.polrelid) like '(tenant_id = %'
                       and pg_get_expr(p.polqual, p.polrelid) = pg_get_expr(p.polwithcheck, p.polrelid))
                from pg_policy p where p.polrelid = c.oid) as is_behind
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant_id'
            where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') order by c.relname
            """,
            WALL_ROLE,
        )
    return {row["relname"]: bool(row["is_behind"]) for row in rows}


async def fill(database: Database, tenants: Iterable[UUID]) -> dict[str, str]:
    """A row of each tenant in every table that has tenants, whatever it means; how to insert another, for `TENANT`."""
    inserts: dict[str, str] = {}
    names = await tables(database)
    async with database.writer() as writer:
        for row in await writer.connection.fetch(
            "select conrelid::regclass::text as relation, conname from pg_constraint "
            "where contype in ('c', 'f') and connamespace = current_schema()::regnamespace and conrelid <> 0"
        ):
            await writer.connection.execute(f'alter table {row["relation"]} drop constraint "{row["conname"]}"')
        for table in names:
            columns = await writer.connection.fetch(
                "select a.attname, t.typname, (select enumlabel from pg_enum where enumtypid = t.oid limit 1) as label "
                "from pg_attribute a join pg_type t on t.oid = a.atttypid "
                "where a.attrelid = $1::regclass and a.attnum > 0 and a.attnotnull and not a.attisdropped and a.attname <> 'tenant_id'",
                table,
            )
            values = [literal_of(row) for row in columns]
            given = ", ".join(["tenant_id", *(row["attname"] for row in columns)])
            inserts[table] = f"insert into {table} ({given}) values ({', '.join(['$1::uuid', *values])})"
            for tenant in tenants:
                await writer.connection.execute(inserts[table], tenant)
    return inserts


def literal_of(column: Any) -> str:
    if column["label"]:
        return f"'{column['label']}'"
    # names and hashes are unique, some across tenants
    text = "gen_random_uuid()::text" if column["attname"] in ("name", "hash") else LITERALS[column["typname"]]
    return f"{text}::bytea" if column["typname"] == "bytea" else text


async def seen(database: Database, table: str) -> set[UUID]:
    async with database.reader() as reader:
        return {row["tenant_id"] for row in await reader.connection.fetch(f"select tenant_id from {table}")}


async def attempt(database: Database, statement: str, *values: Any) -> str:
    async with database.writer() as writer:
        return str(await writer.connection.execute(statement, *values))


class TestTables:
    async def test_every_table_of_tenants_is_behind_the_wall_and_a_new_one_is_found(self, database: Database) -> None:
        """Also one that a later migration forgets: it is seen to be open here, and closed by the next upgrade."""
        found = await tables(database)
        assert len(found) > 15 and all(found.values()), found
        await attempt(database, "create table forgotten (tenant_id uuid primary key)")
        assert (await tables(database))["forgotten"] is False
        await upgrade(database)
        assert all((await tables(database)).values()) and database.has_walls

    async def test_requests_may_use_no_other_table(self, database: Database) -> None:
        async with database.reader() as reader:
            rows = await reader.connection.fetch(
                "select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') "
                f"and has_table_privilege('{WALL_ROLE}', oid, 'select, insert, update, delete')"
            )
            names = {row["relname"] for row in rows}
        assert names - set(await tables(database)) == OPEN_TO_ALL

    async def test_behind_it_a_statement_without_a_condition_reaches_one_tenant(self, database: Database) -> None:
        """For every table; and once the policies are gone the same statements reach the others' rows."""
        ours, theirs = uuid4(), uuid4()
        inserts = await fill(database, (ours, theirs))
        wall = walled(database, ours)
        for table, insert in inserts.items():
            assert await seen(wall, table) == {ours}, table
            with pytest.raises(REFUSED):
                await attempt(wall, insert, theirs)
            if table in ("tenant", "audit"):
                with pytest.raises(REFUSED):
                    await attempt(wall, f"delete from {table}")
                continue
            with pytest.raises(REFUSED):
                await attempt(wall, f"update {table} set tenant_id = $1", theirs)
            assert await attempt(wall, f"update {table} set tenant_id = tenant_id") == "UPDATE 1", table
            assert await attempt(wall, f"delete from {table} where tenant_id = $1", theirs) == "DELETE 0", table
        for table, insert in inserts.items():
            await attempt(
                database, f"drop policy tenant_wall on {table}; alter table {table} disable row level security"
            )
            assert await seen(wall, table) == {ours, theirs}, table
            if table != "tenant":
                await attempt(wall, insert, theirs)


class TestTransactions:
    async def test_without_a_tenant_nobody_sees_anything(self, database: Database) -> None:
        async with walled(database, uuid4()).reader() as reader:
            assert await reader.connection.fetch("select * from process") == []
        async with database.writer() as writer:
            await writer.connection.execute(f"set local role {WALL_ROLE}")
            with pytest.raises((asyncpg.InvalidTextRepresentationError, asyncpg.UndefinedObjectError)):
                await writer.connection.fetch("select * from process")

    async def test_a_connection_leaves_the_wall_however_its_transaction_ends(self, database_dsn: str) -> None:
        """One connection serves requests of all tenants, the look-up of keys and workers: it keeps neither role nor tenant."""
        database = await Database.open(database_dsn, connections=1)
        wall = walled(database, uuid4())

        async def state() -> Any:
            async with database.reader() as reader:
                return await reader.connection.fetchval(
                    "select current_user || '/' || coalesce(current_setting('folkmoot.tenant', true), '')"
                )

        before = await state()
        assert WALL_ROLE not in before
        for place in (wall.reader, wall.writer):
            async with place() as inside:
                assert await inside.connection.fetchval("select current_user") == WALL_ROLE
                async with inside.outside_the_wall():
                    outside = await inside.connection.fetchval("select current_user")
                assert (outside == WALL_ROLE) == (place == wall.writer)
                assert await inside.connection.fetchval("select current_user") == WALL_ROLE
            assert await state() == before
            with pytest.raises(asyncpg.DivisionByZeroError):
                async with place() as inside, inside.outside_the_wall():
                    await inside.connection.fetchval("select 1 / 0")
            assert await state() == before
            is_inside = asyncio.Event()
            task = asyncio.create_task(self._sleep(place, is_inside))
            await is_inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await state() == before
        await database.close()

    async def _sleep(self, place: Any, is_inside: asyncio.Event) -> None:
        async with place() as inside:
            is_inside.set()
            await inside.connection.execute("select pg_sleep(60)")


class TestRequests:
    async def test_a_service_that_lost_its_condition_still_finds_nothing(
        self, database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F40 by the second wall alone; without it the same requests show another tenant's run."""
        async with served(database_dsn, data_dir=tmp_path) as server:
            database = server.installation.database
            await publish_panel(server.client, tmp_path)
            run = (await start_run(server.client))["id"]
            _, key = await stranger_key(database)
            for module, noun in (
                (runs, "runs"),
                (run_lists, "runs"),
                (conversations, "conversations"),
                (pending, "pending"),
            ):
                monkeypatch.setattr(module, "_sql", without_conditions(noun))
            async with server.of(key) as theirs:
                problem_of(await theirs.get(f"{RUNS}/by-id/{run}"), 404, "not_found")
                problem_of(await theirs.post(f"{RUNS}/by-id/{run}/stop"), 404, "not_found")
                for query in ({}, {"status": "New"}, {"text": "panel"}):
                    assert (await theirs.get(RUNS, params=query)).json()["items"] == []
                database.has_walls = False
                assert (await theirs.get(f"{RUNS}/by-id/{run}")).json()["id"] == run
                for query in ({}, {"status": "New"}, {"text": "panel"}):
                    assert [shown["id"] for shown in (await theirs.get(RUNS, params=query)).json()["items"]] == [run]

    def test_no_route_goes_around_the_wall(self) -> None:
        """Each takes `doors.of(caller)`. Whether the database answers at all is of no tenant."""
        folder = Path(routes.__file__).parent
        around = [path.name for path in sorted(folder.glob("*.py")) if "doors.database" in path.read_text("utf-8")]
        assert around == ["system.py"]


def without_conditions(noun: str) -> Any:
    """The statements of a file as they would be if all had forgotten the tenant."""
    text = (Path(starting.__file__).parents[1] / "store" / "sql" / f"{noun}.sql").read_text("utf-8")
    text, count = re.subn(r"(\w+\.)?tenant_id = :tenant_id", ":tenant_id::uuid is not null", text)
    assert count > 3
    return aiosql.from_str(text, "asyncpg", kwargs_only=True, mandatory_parameters=False)


class TestRaising:
    async def test_several_databases_that_migrate_at_once_share_the_role(
        self, server_dsn: str, empty_dsn: str, database_dsn: str
    ) -> None:
        """The one is about to commit the role while the other makes it; without the look at that error the other fails."""
        for is_looked_at in (True, False):
            text, role = await function_of_its_own(is_looked_at=is_looked_at)
            async with made(empty_dsn, text) as first, made(database_dsn, text) as second:
                begun = first.transaction()
                await begun.start()
                assert await first.fetchval(CALL)
                other = asyncio.create_task(second.fetchval(CALL))
                async with made(server_dsn, "select 1") as watcher:
                    while not await watcher.fetchval(
                        "select count(*) from pg_locks where pid = $1 and not granted", second.get_server_pid()
                    ):
                        assert not other.done()
                await begun.commit()
                if is_looked_at:
                    assert await other
                else:
                    with pytest.raises((asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError)):
                        await other
                for connection in (first, second):
                    await connection.execute(f"drop owned by {role}")
                await second.execute(f"drop role {role}")

    async def test_where_no_role_may_be_made_all_is_as_it_was_and_the_log_says_what_to_grant(
        self, database: Database, database_dsn: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        text, role = await function_of_its_own()
        plain = f"folkmoot_plain_{secrets.token_hex(4)}"
        async with made(
            database_dsn, f"create role {plain}; grant {plain} to current_user with set true"
        ) as connection:
            await connection.execute(f"grant all on schema public to {plain}; set role {plain}; {text}")
            assert await connection.fetchval(CALL) is False
            assert not await connection.fetchval("select count(*) from pg_roles where rolname = $1", role)
            # an administrator does what the log asks for; the tables are another's here, so there is still no wall
            await connection.execute(
                f"reset role; create role {role}; grant {role} to {plain} with set true, inherit false"
            )
            await connection.execute(f"set role {plain}")
            assert await connection.fetchval(CALL) is False
            await connection.execute(f"reset role; drop owned by {plain}; drop role {plain}; drop role {role}")
        with caplog.at_level(logging.WARNING):
            async with served(database_dsn, data_dir=tmp_path):
                assert "Row-level security is off" not in caplog.text
            await attempt(database, "drop policy tenant_wall on tenant")
            async with served(database_dsn, data_dir=tmp_path) as server:
                assert not server.installation.database.has_walls
                assert caplog.text.count("grant folkmoot_api to") == 1
                assert (await server.client.get(RUNS)).status_code == 200


CALL = "select folkmoot_raise_walls()"


async def function_of_its_own(*, is_looked_at: bool = True) -> tuple[str, str]:
    """What raises walls, under a role of the test's own; whether it looks at others who make it at the same moment."""
    role = f"folkmoot_wall_{secrets.token_hex(4)}"
    ((_, text),) = [one for one in migrations() if "folkmoot_raise_walls" in one[1]]
    text = text.replace("create function", "create or replace function").replace("folkmoot_api", role)
    text = text.replace("tenant_wall", f"{role}_wall")
    if not is_looked_at:
        text = text.replace("duplicate_object or unique_violation", "sqlstate 'XX999'")
    return text, role


@asynccontextmanager
async def made(dsn: str, statements: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statements)
        yield connection
    finally:
        await connection.close()
