"""A worker's lease, pinged from its own thread and connection, so that a blocked event loop does not lose it.

`is_live` is by the monotonic clock of this machine and errs on the safe side: it is false before others may take over.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from uuid import UUID

from folkmoot.kernel.errors import FolkmootError
from folkmoot.runtime.options import WorkerOptions
from folkmoot.store import workers
from folkmoot.store.database import FAILURES, Database, Reader

_log = logging.getLogger("folkmoot.lease")


class Lease:
    """`began_at`: monotonic, before the worker's row was written. `on_lost` is called once, in the ping thread."""

    def __init__(
        self,
        database: Database,
        worker_id: UUID,
        options: WorkerOptions,
        *,
        began_at: float,
        on_lost: Callable[[], object],
    ) -> None:
        self.worker_id = worker_id
        self._database = database
        self._options = options
        self._on_lost = on_lost
        self._good_until = began_at + options.own_deadline_seconds
        self._stop = threading.Event()
        self._is_lost = False
        self._thread = threading.Thread(target=lambda: asyncio.run(self._ping_on()), name="folkmoot-ping", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def is_live(self) -> bool:
        """Whether a side effect may begin."""
        return not self._is_lost and time.monotonic() < self._good_until

    @property
    def is_lost(self) -> bool:
        """Whether a ping touched no row: this worker is taken for dead."""
        return self._is_lost

    def stop(self) -> None:
        """Stops the pings, and waits until the last one is through."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    async def _ping_on(self) -> None:
        connection = None
        while not await asyncio.to_thread(self._stop.wait, self._options.ping_seconds):
            asked_at = time.monotonic()
            try:
                # a ping that hangs is given up, so that the next one is not late
                async with asyncio.timeout(self._options.lease_seconds / 4):
                    if connection is None or connection.is_closed():
                        connection = await self._database.connect()
                    is_alive = await workers.ping(
                        Reader(connection), self.worker_id, lease_seconds=self._options.lease_seconds
                    )
            except (FolkmootError, *FAILURES) as error:
                _log.warning("The worker's lease could not be renewed, which is tried again: %s", error)
                if connection is not None:
                    connection.terminate()
                    connection = None
                continue
            if not is_alive:
                self._is_lost = True
                self._on_lost()
                break
            self._good_until = asked_at + self._options.own_deadline_seconds
        if connection is not None:
            with suppress(*FAILURES):
                await connection.close(timeout=2)
