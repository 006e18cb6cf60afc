"""A control: a worker whose appends match no claim, and which does not learn that it is taken for dead."""

from __future__ import annotations

import asyncio
import time

from folkmoot.runtime.lease import Lease
from folkmoot.store import appends, workers
from folkmoot.store.database import Reader

_FENCE = "and p.claim_number = r.number and p.claim_id = r.claim_id\n        and p.status = 'Running'"

for _statement in ("_WHOLE", "_LEAN"):
    _text = getattr(appends, _statement)
    assert _FENCE in _text
    setattr(appends, _statement, _text.replace(_FENCE, ""))


async def _deaf(lease: Lease) -> None:
    """It pings, so that it may act for as long as it is awake, and does not take in that a ping touched no row."""
    connection, options = await lease._database.connect(), lease._options
    while not await asyncio.to_thread(lease._stop.wait, options.ping_seconds):
        asked_at = time.monotonic()
        if await workers.ping(Reader(connection), lease.worker_id, lease_seconds=options.lease_seconds):
            lease._good_until = asked_at + options.own_deadline_seconds
    await connection.close()


Lease._ping_on = _deaf  # type: ignore[method-assign]
