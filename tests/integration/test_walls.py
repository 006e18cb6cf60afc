"""The second wall: PostgreSQL's row-level security holds a request to the rows of its tenant (platform.md, Tenancy; F40)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import aiosql
import asyncpg
import pytest
from api_at_hand import RUNS, problem_of, publish_panel, served, start_run, stranger_key
from crews import until

import folkmoot.api.routes as routes
from folkmoot.domain.inbox import InboxStatus
from folkmoot.domain.tenancy import Caller
from folkmoot.services import starting
from folkmoot.store import conversations, pending, run_lists, runs
from folkmoot.store.database import WALL_ROLE, Database, queries, upgrade
from folkmoot.store.walls import walled

REFUSED = asyncpg.InsufficientPrivilegeError
LITERALS = {
    "uuid": "gen_random_uuid()", "text": "'x'", "timestamptz": "now()", "int4": "1", "int8": "1", "bool": "false", "bytea": "'x'",
    "jsonb": "'{}'", "_text": "'{x}'", "_uuid": "'{}'", "interval": "'1 s'", "float8": "1",
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
                "where a.attrelid = $1::regclass and a.attnum > 0 and a.attnotnull and not a.attisdropped and a.attname <> 'tenant_id' and a.attidentity = ''",
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
    # names, hashes and keys are unique, some across tenants
    text = (
        "gen_random_uuid()::text"
        if column["attname"] in ("name", "hash", "key", "address", "correlation_token", "token_hash")
        else LITERALS[column["typname"]]
    )
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
            if table not in ("tenant", "tenant_budget"):  # of which a tenant has one
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
        beside = await asyncpg.connect(database_dsn)

        async def is_asleep() -> bool:
            asleep = "select exists (select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')"
            return bool(await beside.fetchval(asleep))

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
            await until(is_asleep)  # a statement that has not begun is not ended by a request to end it
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await state() == before
        await beside.close()
        await database.close()

    async def _sleep(self, place: Any, is_inside: asyncio.Event) -> None:
        async with place() as inside:
            is_inside.set()
            await inside.connection.execute("select pg_sleep(60)")


class TestPlans:
    async def test_the_inbox_keeps_its_indexes(self, database: Database, caller: Caller) -> None:
        """B63. The same inside of the wall would read all that was ever asked; lists of runs are held so by test_run_lists."""
        await attempt(
            database,
            """insert into pending (tenant_id, run_id, pending_id, kind, asked_at, card, outcome, answered_at, answered_by)
               select $1::uuid, gen_random_uuid(), gen_random_uuid(), 'Vote', now(), '{}', o, case when o is not null then now() end, $1
               from generate_series(1, 5000) n, lateral (
                   select case when n % 500 = 0 then 'Expired' when n % 10 > 0 then 'Answered' end::pending_outcome as o) p""",
            caller.tenant_id,
        )
        await attempt(database, "analyze pending")
        cases = [
            ("waiting_keys", None, False, "pending_open"),
            ("page_keys", None, False, "pending_by_date"),
            ("page_keys", InboxStatus.EXPIRED, True, "pending_by_outcome"),
        ]
        for name, status, is_outside, index in cases:
            read, used = await self._read(walled(database, caller.tenant_id), name, status, is_outside=is_outside)
            assert read < 200 and index in used, (name, status, used)
        read, _ = await self._read(
            walled(database, caller.tenant_id), "page_keys", InboxStatus.EXPIRED, is_outside=False
        )
        assert read > 4000

    async def _read(
        self, wall: Database, name: str, status: InboxStatus | None, *, is_outside: bool
    ) -> tuple[int, str]:
        """How many rows the first page of 50 reads, and its plan."""
        values = {**dict.fromkeys(("kind", "run_id", "root", "below", "after_date", "after_id")), "limit": 51}
        if name == "page_keys":
            values = {"outcome": status, **values}
        literals = ", ".join("null" if value is None else f"'{value}'" for value in values.values())
        async with wall.reader() as reader:
            tenant = await reader.connection.fetchval("select current_setting('folkmoot.tenant')")
            await reader.plan_anew()
            async with reader.outside_the_wall() if is_outside else nullcontext():
                await reader.connection.execute("prepare keys as " + getattr(queries("pending"), name).sql)
                explained = await reader.connection.fetchval(
                    f"explain (analyze, format json) execute keys('{tenant}', {literals})"
                )
                await reader.connection.execute("deallocate keys")
        counts = re.findall(r'"(?:Actual Rows|Rows Removed by Filter)": (\d+)', explained)
        return sum(int(count) for count in counts), explained


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
