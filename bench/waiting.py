"""Part d: the memory of a worker while the database holds 0, and then 5,000, runs that are not its work at the moment.

They have ended, wait for a person, or are to begin in a year. The worker looks and sweeps several times before it is weighed.
"""

from __future__ import annotations

import asyncio

from bench.clocks import cpu_seconds, resident_mb
from bench.course import Course
from bench.figures import OURS
from bench.roundtable import Driver, driver, new_id, roundtable, scripted
from bench.workers import worker

RUNS = 5000
_SETTLE_SECONDS = 3.0
_INSERT = """
insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at,
    tree_root_id, swarm_root_id, state_version, status, ready_at, started_at, ended_at)
select $1, id, 'Interaction', $2, $2, 1, $2, now(), now(), id, id, 1,
    (array['Completed', 'Failed', 'PendingHuman', 'New']::run_status[])[n % 4 + 1],
    case when n % 4 = 3 then now() + interval '1 year' end, case when n % 4 < 3 then now() end, case when n % 4 < 2 then now() end
from (select n, gen_random_uuid() as id from generate_series(1, $3::int) n) rows
"""


async def waiting_runs(course: Course) -> None:
    settle = 1.0 if course.is_quick else _SETTLE_SECONDS
    for repeat in range(1, course.repeats + 1):
        async with (
            course.ground.database() as dsn,
            driver(dsn) as drive,
            worker(course.ground, dsn, drive, POLL_SECONDS="0.2", SWEEP_SECONDS="0.2") as process,
        ):
            await drive.ended(await drive.start(roundtable(scripted(), rounds=10)), turns=30)
            await asyncio.sleep(settle)
            before = resident_mb(process.pid)
            await _insert(drive)
            drive.notifier.tell({"to": "workers"})
            await asyncio.sleep(settle)
            cpu = cpu_seconds(process.pid)
            await asyncio.sleep(settle)
            after, idle_cpu = resident_mb(process.pid), cpu_seconds(process.pid) - cpu
            course.record(
                "d", OURS, repeat, rss_mb_0=before, rss_mb_5000=after, kb_per_run=(after - before) * 1024 / RUNS,
                idle_cpu_percent=idle_cpu / settle * 100,
            )  # fmt: skip


async def _insert(drive: Driver) -> None:
    async with drive.database.writer() as writer:
        await writer.connection.execute(_INSERT, drive.tenant_id, new_id(), RUNS)
