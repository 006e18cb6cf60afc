"""What every test may ask for: a migrated database of its own, and ids.

One PostgreSQL server serves the whole session, all of its worker processes included: an embedded one in a folder of its own, or
the server that FOLKMOOT_TEST_DATABASE_URL names (its user must be allowed to create databases). Each process migrates one
template, and each test gets a clone of it. Deliberately absent: fakes of anything of ours.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import itertools
import os
import secrets
import shutil
import sys
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId, id_source
from folkmoot.store import tenancy
from folkmoot.store.database import Database, upgrade
from folkmoot.store.embedded import open_server, stop_server
from folkmoot.vault.masks import OF_PROCESS, Mask

T = TypeVar("T")

EXTERNAL = "FOLKMOOT_TEST_DATABASE_URL"
GROUND = "TESTS_GROUND"  # the folder that all of a session's processes share
LOCAL_SETTINGS = "postgresql.local.conf"
HASTY = """\
fsync = off
full_page_writes = off
autovacuum = off
max_wal_size = 1GB
"""
# Each of the thousands of databases is seven hundred files: made in memory, a database takes a tenth of the time.
IN_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
DROPS_TRIED = 10
_GROUND = pytest.StashKey[Path]()
_HAS_NAMED_GROUND = pytest.StashKey[bool]()
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """The first process names the folder that all share, and its workers are told of it; whoever needs it first makes it."""
    # The hundreds of processes that tests start would each compile all of the project, and each of ours all of the tests.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    told: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[_HAS_NAMED_GROUND] = told is None
    if told is not None:
        config.stash[_GROUND] = Path(told["ground"])
        os.environ[GROUND] = told["ground"]
        return
    # Not pytest's own temporary folder: as root the server runs as another user, to whom that one is closed.
    has_room = IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > ROOM_BYTES
    config.stash[_GROUND] = (IN_MEMORY if has_room else Path("/tmp")) / f"folkmoot-tests-{secrets.token_hex(6)}"
    os.environ[GROUND] = str(config.stash[_GROUND])


def pytest_collection_finish() -> None:
    """What was collected stays: to look for garbage in it while tests run is work for nothing."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_others_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another test has kept secret is a word like any other to this one, and not masked."""
    fresh = Mask()
    for name in ("_lasting", "_of_one_use"):
        monkeypatch.setattr(OF_PROCESS, name, getattr(fresh, name))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["ground"] = str(node.config.stash[_GROUND])


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.stash.get(_HAS_NAMED_GROUND, False) and config.stash[_GROUND].exists():
        # The last user has stopped the server, unless it was a worker process that died.
        in_a_loop_of_its_own(stop_server(config.stash[_GROUND] / "data"))
        shutil.rmtree(config.stash[_GROUND])


@pytest.fixture(scope="session")
def server_dsn(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a running server and of a database on it from which others may be made."""
    external = os.environ.get(EXTERNAL)
    if external:
        yield external
        return
    ground = request.config.stash[_GROUND]
    ground.mkdir(exist_ok=True)
    ground.chmod(0o755)
    with (ground / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (ground / "data" / LOCAL_SETTINGS).exists():
            in_a_loop_of_its_own(_make_hasty(ground / "data"))
    server = in_a_loop_of_its_own(open_server(ground / "data"))
    yield server.dsn
    in_a_loop_of_its_own(server.close())


@pytest.fixture(scope="session")
def template(server_dsn: str) -> Iterator[str]:
    """The name of a migrated database, made once in this process, to which nobody is connected."""
    name = f"folkmoot_template_{os.getpid()}_{secrets.token_hex(4)}"

    async def make() -> None:
        await _execute(server_dsn, f'create database "{name}"')
        database = await Database.open(dsn_of(server_dsn, name), connections=1)
        try:
            await upgrade(database)
        finally:
            await database.close()

    in_a_loop_of_its_own(make())
    yield name
    in_a_loop_of_its_own(drop_database(server_dsn, name))


@pytest_asyncio.fixture
async def database_dsn(server_dsn: str, template: str) -> AsyncIterator[str]:
    """The address of a migrated, empty database, dropped after the test whoever is still connected."""
    name = f"{template.replace('template', 'test')}_{next(_numbers)}"
    await _execute(server_dsn, f'create database "{name}" template "{template}" strategy file_copy')
    yield dsn_of(server_dsn, name)
    await drop_database(server_dsn, name)


@pytest_asyncio.fixture
async def empty_dsn(server_dsn: str) -> AsyncIterator[str]:
    """The address of a database with nothing in it, not even migrations."""
    name = f"folkmoot_empty_{os.getpid()}_{secrets.token_hex(4)}"
    await _execute(server_dsn, f'create database "{name}"')
    yield dsn_of(server_dsn, name)
    await drop_database(server_dsn, name)


@pytest_asyncio.fixture
async def database(database_dsn: str) -> AsyncIterator[Database]:
    """A pool on a migrated, empty database of this test alone."""
    opened = await Database.open(database_dsn)
    yield opened
    await opened.close()


@pytest.fixture
def new_id() -> NewId:
    """Ids as the server makes them: by the clock, with chance."""
    return id_source(lambda: time.time_ns() // 1_000_000, secrets.randbits)


@pytest_asyncio.fixture
async def caller(database: Database, new_id: NewId) -> Caller:
    """The owner of the tenant `default`, which is made."""
    async with database.writer() as writer:
        await tenancy.ensure_default(writer, new_id=new_id, random_bytes=secrets.token_bytes)
        owner = await tenancy.owner(writer)
    assert owner is not None
    return owner


def dsn_of(server_dsn: str, name: str) -> str:
    """The server's address with another database's name."""
    return urlsplit(server_dsn)._replace(path=f"/{name}").geturl()


async def _make_hasty(data_dir: Path) -> None:
    """A server of throw-away databases need not survive a power cut: hundreds are made and dropped, each with its syncs.

    What must survive the end of a server is tested on servers of their own, with the settings that users have.
    """
    server = await open_server(data_dir)
    await server.close()
    (data_dir / LOCAL_SETTINGS).write_text(HASTY, encoding="utf-8")


async def drop_database(server_dsn: str, name: str) -> None:
    """Drops a database whoever is connected to it.

    Nobody but a superuser may end autovacuum's worker, which drop by force would do; a drop without it has the server send
    that one away. It is then refused for whoever else is connected, so the two take turns.
    """
    for tried in range(1, DROPS_TRIED + 1):
        how = " with (force)" if tried % 2 else ""
        try:
            await _execute(server_dsn, f'drop database if exists "{name}"{how}')
            return
        except (asyncpg.InsufficientPrivilegeError, asyncpg.ObjectInUseError):
            if tried == DROPS_TRIED:
                raise


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def in_a_loop_of_its_own(work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` to its end apart from the tests' loops, which come and go within a session."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
