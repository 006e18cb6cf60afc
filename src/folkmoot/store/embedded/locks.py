"""Locks on files (flock): held by an open file, so the system gives them back however its process ends.

Invariant: a lock file's content means nothing, and a lock file is never removed (two processes would then lock two files).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault

_POLL_SECONDS = 0.01


class FileLock:
    """One holder of a lock file. Two of them conflict also within one process. Not inherited unless its `fd` is passed on."""

    __slots__ = ("_is_open", "fd", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._is_open = True

    def try_exclusive(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        return self._try(fcntl.LOCK_SH)

    def release(self) -> None:
        """Gives the lock back, also on behalf of a process that inherited `fd`."""
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file; the lock ends with the last process that has it open. May be called twice."""
        if self._is_open:
            self._is_open = False
            os.close(self.fd)

    def _try(self, kind: int) -> bool:
        try:
            fcntl.flock(self.fd, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@asynccontextmanager
async def held(path: Path, *, within_seconds: float) -> AsyncIterator[None]:
    """Holds the lock of `path` alone. DatabaseFault if another process keeps it longer than `within_seconds`."""
    lock = FileLock(path)
    try:
        clock = asyncio.get_running_loop()
        deadline = clock.time() + within_seconds
        while not lock.try_exclusive():
            if clock.time() > deadline:
                raise DatabaseFault(
                    f"Another process has been starting or stopping the database server for {within_seconds:.0f} seconds:"
                    f" wait for it, or find it with `fuser {path}` and end it."
                )
            # Polled, not awaited in a thread: a blocked thread could not be cancelled and would take the lock later.
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        lock.close()
