"""Raising the tenants' walls: on servers with several databases, and where the database's user may make no role (platform.md, Tenancy)."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
from api_at_hand import RUNS, served

from folkmoot.store.database import migrations

CALL = "select folkmoot_raise_walls()"


def function_of_its_own(*, is_looked_at: bool = True) -> tuple[str, str]:
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


async def test_several_databases_that_migrate_at_once_share_the_role(
    server_dsn: str, empty_dsn: str, database_dsn: str
) -> None:
    """The one is about to commit the role while the other makes it; without the look at that error the other fails."""
    for is_looked_at in (True, False):
        text, role = function_of_its_own(is_looked_at=is_looked_at)
        bare = "create table if not exists worker (); create table if not exists clock_shift ();"
        async with made(empty_dsn, bare + text) as first, made(database_dsn, text) as second:
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
            await first.execute(f"grant {role} to current_user with inherit true")
            for connection in (first, second):
                await connection.execute(f"drop owned by {role}")
            await second.execute(f"drop role {role}")


async def test_where_no_role_may_be_made_all_is_as_it_was_and_the_log_says_what_to_grant(
    database_dsn: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text, role = function_of_its_own()
    plain = f"folkmoot_plain_{secrets.token_hex(4)}"
    async with made(database_dsn, f"create role {plain}; grant {plain} to current_user; {text}") as connection:
        await connection.execute(
            f"create schema apart authorization {plain}; set search_path = apart, public; set role {plain}; "
            "create table owned (tenant_id uuid); create table worker (); create table clock_shift ();"
        )
        assert await connection.fetchval(CALL) is False
        assert not await connection.fetchval("select count(*) from pg_roles where rolname = $1", role)
        assert not await connection.fetchval("select relrowsecurity from pg_class where oid = 'owned'::regclass")
        # an administrator does what the log asks for
        await connection.execute(
            f"reset role; create role {role}; grant {role} to {plain} with set true, inherit false; set role {plain}"
        )
        assert await connection.fetchval(CALL) is True
        assert await connection.fetchval("select relrowsecurity from pg_class where oid = 'owned'::regclass")
        await connection.execute(f"reset role; drop schema apart cascade; drop role {plain}; drop role {role}")
    with caplog.at_level(logging.WARNING):
        async with served(database_dsn, data_dir=tmp_path) as server:
            assert "Row-level security is off" not in caplog.text
        async with made(database_dsn, "drop policy tenant_wall on tenant"):
            pass
        async with served(database_dsn, data_dir=tmp_path, key=server.key) as server:
            assert not server.installation.database.has_walls
            assert caplog.text.count("grant folkmoot_api to") == 1
            assert (await server.client.get(RUNS)).status_code == 200
