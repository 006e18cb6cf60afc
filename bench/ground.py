"""Where figures are taken: an embedded server in a folder of its own, and a fresh, migrated database for each figure.

Durability is as the product has it; it is looked up and recorded. Deliberately absent: a setting that only the bench has.
"""

from __future__ import annotations

import itertools
import os
import platform
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

from folkmoot.store.database import Database, upgrade
from folkmoot.store.embedded import open_server

_TEMPLATE = "bench_template"


@dataclass(frozen=True, slots=True)
class Ground:
    """`dsn`: a database from which others may be made. `machine`: what the figures hold for."""

    folder: Path
    dsn: str
    machine: dict[str, str | int]
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    @asynccontextmanager
    async def database(self, *, is_migrated: bool = True) -> AsyncIterator[str]:
        """The address of a database of this figure's own, dropped afterwards."""
        name = f"bench_{next(self._numbers)}"
        template = f' template "{_TEMPLATE}"' if is_migrated else ""
        await _execute(self.dsn, f'create database "{name}"{template}')
        try:
            yield _address(self.dsn, name)
        finally:
            await _drop(self.dsn, name)

    def environment(self, dsn: str, **settings: str) -> dict[str, str]:
        """The environment of a Folkmoot process on that database, with nothing of the caller's settings."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
        ours = {"DATABASE_URL": dsn, "DATA_DIR": str(self.folder / "unused"), **settings}
        return kept | {f"FOLKMOOT_{name}": value for name, value in ours.items()}


@asynccontextmanager
async def open_ground(parent: Path | None) -> AsyncIterator[Ground]:
    """`parent`: where the data go; null: the system's folder for temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="folkmoot-bench-", dir=parent))
    folder.chmod(0o755)  # as root the server runs as another user, who must be able to enter
    try:
        server = await open_server(folder / "data")
        try:
            await _execute(server.dsn, f'create database "{_TEMPLATE}"')
            database = await Database.open(_address(server.dsn, _TEMPLATE), connections=1)
            await upgrade(database)
            await database.close()
            yield Ground(folder, server.dsn, await _machine(server.dsn))
        finally:
            await server.close()
    finally:
        shutil.rmtree(folder)


def _address(dsn: str, name: str) -> str:
    return urlsplit(dsn)._replace(path=f"/{name}").geturl()


async def _drop(dsn: str, name: str) -> None:
    """Whoever is connected. Autovacuum's worker is not ours to end: a drop without force has the server send it away."""
    try:
        await _execute(dsn, f'drop database if exists "{name}" with (force)')
    except asyncpg.InsufficientPrivilegeError:
        await _execute(dsn, f'drop database if exists "{name}"')


async def _execute(dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _machine(dsn: str) -> dict[str, str | int]:
    connection = await asyncpg.connect(dsn)
    try:
        found = {name: await connection.fetchval(f"show {name}") for name in ("server_version", "fsync")}
        commit = await connection.fetchval("show synchronous_commit")
    finally:
        await connection.close()
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cores": os.cpu_count() or 0,
        "cpu": models[0] if models else platform.processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "postgresql": found["server_version"],
        "fsync": found["fsync"],
        "synchronous_commit": commit,
    }
