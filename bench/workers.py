"""Child processes: `folkmoot worker`, ready, and ended again; and servers that say when they are ready."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from bench.ground import Ground
from bench.roundtable import Driver

_ROOT = Path(__file__).parent.parent
_START_SECONDS = 60.0
_STOP_SECONDS = 20.0
FOLKMOOT_WORKER = ("-m", "folkmoot", "worker")


class WorkerProcess:
    """`ready_seconds`: from its start until its lease was in the database."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid
        self.ready_seconds = 0.0

    @property
    def lines(self) -> asyncio.StreamReader:
        """What it prints on its standard output."""
        assert self._process.stdout is not None
        return self._process.stdout

    async def wait_ready(self, driver: Driver, began: float) -> None:
        async with driver.database.reader() as reader:
            while not await reader.connection.fetchval("select exists (select from worker where pid = $1)", self.pid):
                if self._process.returncode is not None or time.monotonic() - began > _START_SECONDS:
                    raise RuntimeError(f"The worker did not become ready:\n{self._log.read_text()}")
                await asyncio.sleep(0.005)
        self.ready_seconds = time.monotonic() - began

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> None:
        if self._process.returncode is None:
            self._process.terminate()
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_SECONDS)
            except TimeoutError:
                await self.kill()


@asynccontextmanager
async def worker(
    ground: Ground,
    dsn: str,
    driver: Driver,
    *,
    command: tuple[str, ...] = FOLKMOOT_WORKER,
    beside: Mapping[str, str] = MappingProxyType({}),
    **settings: str,
) -> AsyncIterator[WorkerProcess]:
    """A worker that is ready to claim. `settings`: names without FOLKMOOT_. `beside`: what else its environment has."""
    began = time.monotonic()
    log = ground.folder / f"worker-{time.time_ns()}.log"
    with log.open("wb") as log_file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=_ROOT, env={**ground.environment(dsn, **settings), **beside},
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log_file,
        )  # fmt: skip
    made = WorkerProcess(process, log)
    try:
        await made.wait_ready(driver, began)
        yield made
    finally:
        await made.stop()


@asynccontextmanager
async def server(ground: Ground, dsn: str, *command: str, **settings: str) -> AsyncIterator[str]:
    """A Python process that is ready once it has printed a line, which is given; ended with the block."""
    log = ground.folder / f"server-{time.time_ns()}.log"
    with log.open("wb") as log_file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=_ROOT, env=ground.environment(dsn, **settings),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log_file,
        )  # fmt: skip
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_SECONDS)
        if not line:
            raise RuntimeError(f"{' '.join(command)} did not become ready:\n{log.read_text()}")
        yield line.decode()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()
