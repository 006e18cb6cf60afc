"""Starts a worker process for suspects: runs that may have taken their worker down run one at a time, apart from others.

The process is waited for: when it dies otherwise than by draining, its lease is ended at once, so that what it held is seen
as a crash without waiting for the lease to run out. It ends when its standard input closes, so it does not outlive us.
"""

from __future__ import annotations

import asyncio
import sys
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress

from folkmoot.kernel.errors import FolkmootError
from folkmoot.kernel.ids import NewId
from folkmoot.store import workers
from folkmoot.store.database import FAILURES, Database

_MARGIN_SECONDS = 15.0
_AGAIN_SECONDS = 2.0


class Apart:
    """At most one such process at a time. `ended` is called when it has ended."""

    def __init__(self, database: Database, new_id: NewId, command: tuple[str, ...], ended: Callable[[], None]) -> None:
        self._database = database
        self._new_id = new_id
        self._command = command
        self._ended = ended
        self._is_draining = False
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if not self._is_draining and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run())

    def drain(self) -> None:
        """Have it hand back what it holds, and end."""
        self._is_draining = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def close(self, *, drain_seconds: float) -> None:
        """Wait for the drained process, and end it where it does not end by itself."""
        if self._task is None:
            return
        done, _ = await asyncio.wait({self._task}, timeout=max(0.0, drain_seconds) + _MARGIN_SECONDS)
        if not done and self._process is not None and self._process.returncode is None:
            self._process.kill()
        with suppress(OSError):
            await self._task

    async def _run(self) -> None:
        worker_id = self._new_id()
        began_at = time.monotonic()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *self._command,
            "--worker-id",
            str(worker_id),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        if self._is_draining:
            self.drain()
        try:
            code = await self._process.wait()
            if code != 0:
                with suppress(FolkmootError, *FAILURES):
                    async with self._database.writer() as writer:
                        await workers.end_lease(writer, worker_id)
                # one that dies at its start must not be started again and again without a pause
                if not self._is_draining:
                    await asyncio.sleep(began_at + _AGAIN_SECONDS - time.monotonic())
        finally:
            if self._process.returncode is None:
                self._process.kill()
            self._ended()
