"""Part i, second half: many approvals answered at once, each for a run of its own that waits for one gated call.

The time is from the answer, by the database's clock, to the call itself, which notes its moment. Answers come over HTTP, or from
tasks of one process beside the database, which is faster than people and programs are. Two lines of the log for one call, or none,
are counted and told.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

from bench.clocks import cpu_seconds
from bench.course import Course
from bench.desk import Desk, Waiting, function, open_desk, over_mcp
from bench.figures import percentile
from bench.workers import server
from folkmoot.domain.calls import Tool
from folkmoot.services import answers
from folkmoot.store.database import Database

AT_ONCE, AT_ONCE_MCP = 1000, 200
_CONNECTIONS = 8
_WARM = 20
_PATIENCE_SECONDS = 300.0
OVER_HTTP = "a function, answered over HTTP"
BESIDE = "a function, answered beside the database"
MCP = "an MCP tool, answered over HTTP"

Decide = Callable[[Waiting], Awaitable[None]]


async def approvals(course: Course) -> None:
    """Each subject once per repetition."""
    many, some = (40, 10) if course.is_quick else (AT_ONCE, AT_ONCE_MCP)
    for repeat in range(1, course.repeats + 1):
        await _function(course, repeat, OVER_HTTP, _over_http, count=many)
        await _function(course, repeat, BESIDE, _beside, count=many)
        await _mcp(course, repeat, count=some)


async def _function(
    course: Course, repeat: int, subject: str, way: Callable[[Desk], AsyncIterator[Decide]], *, count: int
) -> None:
    async with open_desk(course) as desk, desk.worker() as process, asynccontextmanager(way)(desk) as decide:
        await _measure(course, repeat, subject, desk, process.pid, function("sign"), decide, count=count)


async def _mcp(course: Course, repeat: int, *, count: int) -> None:
    async with (
        open_desk(course) as desk,
        server(course.ground, desk.dsn, "-m", "bench.mcp_server", str(desk.log)) as url,
        desk.worker() as process,
        asynccontextmanager(_over_http)(desk) as decide,
    ):
        await _measure(course, repeat, MCP, desk, process.pid, over_mcp(url.strip()), decide, count=count)


async def _over_http(desk: Desk) -> AsyncIterator[Decide]:
    async with desk.api(connections=_CONNECTIONS) as client:

        async def decide(one: Waiting) -> None:
            url = f"/interactions/processes/by-id/{one.run_id}/approvals/{one.call_id}"
            answer = await client.post(url, json={"decision": "Approve", "argumentsHash": one.shown_hash})
            answer.raise_for_status()

        yield decide


async def _beside(desk: Desk) -> AsyncIterator[Decide]:
    database = await Database.open(desk.dsn, connections=_CONNECTIONS)

    async def decide(one: Waiting) -> None:
        await answers.decide(
            database, desk.caller, run_id=one.run_id, call_id=one.call_id, approves=True, arguments_hash=one.shown_hash,
            reason=None, tell=desk.drive.notifier.tell,
        )  # fmt: skip

    try:
        yield decide
    finally:
        await database.close()


async def _measure(
    course: Course, repeat: int, subject: str, desk: Desk, pid: int, tool: Tool, decide: Decide, *, count: int
) -> None:
    await _answered(desk, pid, tool, decide, count=_WARM)
    warm = set(await desk.answered_at())
    seconds, cpu = await _answered(desk, pid, tool, decide, count=count)
    answered = {call: moment for call, moment in (await desk.answered_at()).items() if call not in warm}
    made = Counter(call for call, _ in desk.calls() if call not in warm)
    latencies = [(moment - answered[call]) * 1000 for call, moment in desk.calls() if call in answered]
    course.record(
        "i", subject, repeat, runs=count, answers_per_s=count / seconds, call_ms_p50=percentile(latencies, 0.5),
        call_ms_p95=percentile(latencies, 0.95), call_ms_longest=max(latencies), calls_lost=len(answered.keys() - made.keys()),
        calls_twice=sum(made.values()) - len(made), cpu_ms_each=cpu / count * 1000,
    )  # fmt: skip


async def _answered(desk: Desk, pid: int, tool: Tool, decide: Decide, *, count: int) -> tuple[float, float]:
    """Starts so many runs, answers once all wait, and waits until all have ended.

    Seconds that the answers took, and the worker's CPU seconds from the first answer to the last run's end.
    """
    await desk.start(desk.asking(tool), count=count)
    await asyncio.wait_for(desk.settled(waiting=count), _PATIENCE_SECONDS)
    waiting = iter(await desk.waiting())
    began, cpu = time.monotonic(), cpu_seconds(pid)
    await asyncio.gather(*(_decide_on(waiting, decide) for _ in range(_CONNECTIONS)))
    seconds = time.monotonic() - began
    await asyncio.wait_for(desk.settled(waiting=0), _PATIENCE_SECONDS)
    return seconds, cpu_seconds(pid) - cpu


async def _decide_on(waiting: Iterator[Waiting], decide: Decide) -> None:
    for one in waiting:
        await decide(one)
