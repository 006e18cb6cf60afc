"""Part n: agent runs. Thousands that await consent (`consents`, `consent_answers`); and what a run costs, beside interactions in the same repetition.

To where they wait: an agent run plans and asks, and its owner is told over a channel; an interaction asks for the same call and waits for its
approval. To the end: an agent run plans, calls, says so and verifies, and asks nobody; an interaction has as many turns, each one call of a model.
All are started over the services on eight connections, one worker drives them, and the kinds take turns to be first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.clerks import FREE_CLERK, MODEL_CALLS, SIGNING, TALK, Office, open_office
from bench.clocks import Used, Watch
from bench.consents import consents
from bench.course import Course

AGENT_WAITS, INTERACTION_WAITS = "agent runs, to consent", "interactions, to an approval"
AGENT_ENDS, INTERACTION_ENDS = "agent runs, to their end", f"interactions of {MODEL_CALLS} turns, to their end"
PACES = (INTERACTION_WAITS, AGENT_WAITS, INTERACTION_ENDS, AGENT_ENDS)
RUNS = 500
_WARM = 20
_LOOK_SECONDS = 0.01
_PATIENCE_SECONDS = 600.0
_SETTLED = """
select extract(epoch from max(updated_at))::float8 from process where tenant_id = $1 having count(*) = $2 and bool_and(
    worker_id is null and (ended_at is not null or status = 'PendingApproval' and ready_at is null))
"""
_MADE = (
    "select (select count(*) from process where tenant_id = $1), (select count(*) from model_call where tenant_id = $1)"
)

Start = Callable[[Office, int], Awaitable[None]]


async def agents(course: Course) -> None:
    for repeat in range(1, course.repeats + 1):
        await consents(course, repeat)
        await _paces(course, repeat)


async def _paces(course: Course, repeat: int) -> None:
    kinds: list[tuple[str, Start, int]] = [
        (INTERACTION_WAITS, lambda office, count: office.start_interactions(count, name=SIGNING), 1),
        (AGENT_WAITS, lambda office, count: office.start(count), 2),
        (INTERACTION_ENDS, lambda office, count: office.start_interactions(count, name=TALK), MODEL_CALLS),
        (AGENT_ENDS, lambda office, count: office.start(count, agent=FREE_CLERK), MODEL_CALLS),
    ]
    count, paces = 20 if course.is_quick else RUNS, {}
    async with open_office(course) as office, office.worker() as process:
        for subject, start, model_calls in kinds if repeat % 2 else reversed(kinds):
            await _pace(office, process.pid, start, _WARM, model_calls=model_calls)
            paces[subject] = await _pace(office, process.pid, start, count, model_calls=model_calls)
    for subject, beside in zip(PACES, (None, INTERACTION_WAITS, None, INTERACTION_ENDS), strict=True):
        used, start_seconds = paces[subject]
        other = paces[beside][0] if beside else None
        course.record(
            "n", subject, repeat, runs=count, starts_per_s=count / start_seconds, runs_per_s=count / used.wall,
            cpu_ms_per_run=used.cpu / count * 1000, machine_cpu_ms_per_run=used.machine_cpu / count * 1000,
            time_ratio=used.wall / other.wall if other else None, cpu_ratio=used.cpu / other.cpu if other else None,
        )  # fmt: skip


async def _pace(office: Office, pid: int, start: Start, count: int, *, model_calls: int) -> tuple[Used, float]:
    """What so many runs took one worker, from the first start until the last waits or has ended; and the seconds in which they were started."""
    ((runs, made),) = await office.fetch(_MADE)
    watch = Watch(pid)
    await start(office, count)
    start_seconds = time.time() - watch.began_at
    used = watch.used(until=await _settled(office, runs + count))
    ((_, now),) = await office.fetch(_MADE)
    if now - made != count * model_calls:
        raise RuntimeError(f"{now - made} calls of a model were made, where {count * model_calls} were wanted.")
    await office.settled()  # messages, too, lest their sending fall into what comes next
    return used, start_seconds


async def _settled(office: Office, count: int) -> float:
    """When so many runs wait or have ended, by the database's clock (Unix seconds)."""
    async with office.drive.database.reader() as reader, asyncio.timeout(_PATIENCE_SECONDS):
        statement = await reader.connection.prepare(_SETTLED)
        while (at := await statement.fetchval(office.caller.tenant_id, count)) is None:
            await asyncio.sleep(_LOOK_SECONDS)
        return float(at)
