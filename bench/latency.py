"""Part e: an idle worker is given a run of one turn; how long until its model is called, and until its end is seen.

`seen`: by a client that looks every 0.5 ms; so the last commit is in it, and up to half a millisecond of looking.
"""

from __future__ import annotations

import asyncio
import time

from bench.course import Course
from bench.figures import OURS, percentile
from bench.roundtable import driver, roundtable, scripted
from bench.workers import worker

_TOLD_WORKER = ("-m", "bench.told_worker")
_LOOK_SECONDS = 0.0005
_IDLE_SECONDS = 0.03


async def latency(course: Course) -> None:
    samples = 5 if course.is_quick else 100
    for repeat in range(1, course.repeats + 1):
        async with (
            course.ground.database() as dsn,
            driver(dsn) as drive,
            worker(course.ground, dsn, drive, command=_TOLD_WORKER) as process,
        ):
            resolved = roundtable(scripted(), rounds=1, agents=1)
            calls, ends = [], []
            for number in range(samples + 3):
                await asyncio.sleep(_IDLE_SECONDS)
                began = time.time_ns()
                run_ids = await drive.start(resolved)
                called = int(await process.lines.readline())
                await drive.ended(run_ids, turns=1, poll_seconds=_LOOK_SECONDS)
                if number >= 3:  # the first ones warm up
                    calls.append((called - began) / 1e6)
                    ends.append((time.time_ns() - began) / 1e6)
            course.record(
                "e", OURS, repeat, first_call_ms_p50=percentile(calls, 0.5), first_call_ms_p95=percentile(calls, 0.95),
                end_ms_p50=percentile(ends, 0.5), end_ms_p95=percentile(ends, 0.95), samples=len(ends),
            )  # fmt: skip
