"""Part f: a worker is killed (-9) in the middle of a run; how long until another one's first item, and what is lost.

The bound is lease + sweep + 0.5 s. Lost: items that had been committed and are not there in the end, or turns too many.
"""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from bench.course import Course
from bench.figures import OURS
from bench.roundtable import NAMES, Driver, driver, roundtable, scripted
from bench.workers import worker

LEASE_SECONDS, SWEEP_SECONDS = 2.0, 0.5
BOUND_SECONDS = LEASE_SECONDS + SWEEP_SECONDS + 0.5
_SETTINGS = {
    "LEASE_SECONDS": str(LEASE_SECONDS),
    "PING_SECONDS": "0.5",
    "SWEEP_SECONDS": str(SWEEP_SECONDS),
}
_TURN = "50ms"  # a model that takes its time, so that the kill falls into a call


async def takeover(course: Course) -> None:
    rounds = 50 if course.is_quick else 60
    for repeat in range(1, course.repeats + 1):
        async with course.ground.database() as dsn, driver(dsn) as drive:
            async with worker(course.ground, dsn, drive, **_SETTINGS) as first:
                (run_id,) = await drive.start(roundtable(scripted(delay=_TURN), rounds=rounds))
                await _wait_for_items(drive, run_id, more_than=20)
                async with worker(course.ground, dsn, drive, **_SETTINGS):
                    await first.kill()
                    killed_at = time.time()
                    before = await _items(drive, run_id)
                    await _wait_for_items(drive, run_id, more_than=len(before))
                    next_at = await _created_at(drive, run_id, sequence=len(before) + 1)
                    await drive.ended([run_id], turns=rounds * len(NAMES), poll_seconds=0.05)
                    after = await _items(drive, run_id)
            lost = len(set(before) - set(after))
            seconds = next_at - killed_at
            course.record("f", OURS, repeat, seconds=seconds, of_bound=seconds / BOUND_SECONDS, items_lost=lost)


async def _items(drive: Driver, run_id: UUID) -> list[UUID]:
    async with drive.database.reader() as reader:
        rows = await reader.connection.fetch(
            "select item_id from item where tenant_id = $1 and run_id = $2 order by sequence", drive.tenant_id, run_id
        )
    return [row["item_id"] for row in rows]


async def _created_at(drive: Driver, run_id: UUID, *, sequence: int) -> float:
    async with drive.database.reader() as reader:
        found = await reader.connection.fetchval(
            "select extract(epoch from created_at)::float8 from item where tenant_id = $1 and run_id = $2 and sequence = $3",
            drive.tenant_id, run_id, sequence,
        )  # fmt: skip
    return float(found)


async def _wait_for_items(drive: Driver, run_id: UUID, *, more_than: int) -> None:
    async with drive.database.reader() as reader:
        while (
            await reader.connection.fetchval(
                "select last_sequence from process where tenant_id = $1 and run_id = $2", drive.tenant_id, run_id
            )
            <= more_than
        ):
            await asyncio.sleep(0.02)
