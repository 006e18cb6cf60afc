"""Part i, first half: what 5,000 runs that wait for people cost: a worker's memory and CPU, and reading the inbox.

Half wait for the approval of a call, half for a person's turn. Memory is compared twice, so that what an allocator keeps of
having driven runs does not count as waiting: a worker that begins beside none and beside all of them; and the worker that
paused them, idle, with itself after as many runs that went to their end.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import httpx2

from bench.approvals import approvals
from bench.course import Course
from bench.desk import Desk, function, open_desk
from bench.figures import percentile
from bench.idle import weigh

RUNS = 5000
BEGINS = "a worker that begins beside them"
PAUSED = "the worker that paused them"
FIRST, LATER, COUNT = "inbox, first page", "inbox, a later page", "inbox, count"
INBOX = (FIRST, LATER, COUNT)
_PAGE = 50
_WARM = 5
_PATIENCE_SECONDS = 600.0


async def people(course: Course) -> None:
    count = 100 if course.is_quick else RUNS
    for repeat in range(1, course.repeats + 1):
        await _wait(course, repeat, count)
    await approvals(course)


async def _wait(course: Course, repeat: int, count: int) -> None:
    async with open_desk(course) as desk:
        none = await _weigh_new(course, desk)
        async with desk.worker() as process:
            await _drive(desk, count, waits=False)
            ended = await weigh(course, desk.drive.notifier, process.pid)
            await _drive(desk, count, waits=True)
            paused = await weigh(course, desk.drive.notifier, process.pid)
        course.record(
            "i", PAUSED, repeat, runs=count, mb_none=ended[0], mb_waiting=paused[0], mb_more=paused[0] - ended[0],
            cpu_percent_none=ended[1], cpu_percent=paused[1],
        )  # fmt: skip
        beside = await _weigh_new(course, desk)
        course.record(
            "i", BEGINS, repeat, runs=count, mb_none=none[0], mb_waiting=beside[0], mb_more=beside[0] - none[0],
            cpu_percent_none=none[1], cpu_percent=beside[1],
        )  # fmt: skip
        async with desk.api() as client:
            await _read_inbox(course, repeat, client, count)


async def _drive(desk: Desk, count: int, *, waits: bool) -> None:
    """So many runs until they wait, or as many that are alike and end."""
    await desk.start(desk.asking(function("sign" if waits else "jot")), count=count // 2)
    await desk.start(desk.listening(has_person=waits), count=count - count // 2)
    await asyncio.wait_for(desk.settled(waiting=count if waits else 0), _PATIENCE_SECONDS)


async def _weigh_new(course: Course, desk: Desk) -> tuple[float, float]:
    async with desk.worker() as process:
        return await weigh(course, desk.drive.notifier, process.pid)


async def _read_inbox(course: Course, repeat: int, client: httpx2.AsyncClient, count: int) -> None:
    samples = 5 if course.is_quick else 100
    for _ in range(_WARM):
        await client.get("/approvals/count")
    times: dict[str, list[float]] = {subject: [] for subject in INBOX}
    for number in range(samples):
        found = await _timed(client, times[COUNT], "/approvals/count")
        assert found["total"] == count, found
        found = await _timed(client, times[FIRST], "/approvals", status="Pending", limit=_PAGE)
        following = found["next"]
        if number == 0:
            await _walk(client, times[LATER], following, expected=count - len(found["items"]))
    for subject, taken in times.items():
        course.record(
            "i", subject, repeat, requests=len(taken), ms_p50=percentile(taken, 0.5), ms_p95=percentile(taken, 0.95),
            ms_longest=max(taken),
        )  # fmt: skip


async def _walk(client: httpx2.AsyncClient, times: list[float], following: str | None, *, expected: int) -> None:
    """Every page but the first, which must hold all that the count tells of."""
    seen = 0
    while following is not None:
        found = await _timed(client, times, "/approvals", status="Pending", limit=_PAGE, after=following)
        seen += len(found["items"])
        following = found["next"]
    assert seen == expected, (seen, expected)


async def _timed(client: httpx2.AsyncClient, times: list[float], path: str, **query: Any) -> Any:
    began = time.perf_counter()
    answer = await client.get(path, params=query)
    times.append((time.perf_counter() - began) * 1000)
    answer.raise_for_status()
    return answer.json()
