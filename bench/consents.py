"""Part n, first half: 10,000 agent runs that await their owner's consent, 1,000 that nobody answers in time; then answers beside the others.

Two workers with the usual timing drive all of them there. Memory is compared twice, as in part i: a worker that begins beside none and beside
all of them; and the two that paused them, idle, with half of them and with all: by the half what a worker keeps of having driven runs, such as the
scripts of the newest 1,024, is there. The oldest 1,000 are of an agent that waits for an hour. While no worker runs, the database's clock is set to
later; the rest is the sweep's and the workers' own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence

from bench.clerks import HASTE, HASTY_CLERK, Office, open_office
from bench.consent_answers import answers
from bench.course import Course
from bench.idle import weigh
from bench.workers import WorkerProcess

RUNS, EXPIRING = 10_000, 1_000
PAUSED = "the two workers that paused them"
BEGINS = "a worker that begins beside them"
EXPIRED = "1,000 that expire"
SWEEP_SECONDS = 5.0  # the bound
_IDLE_SECONDS = 25.0  # more than two sweeps
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 1200.0
_HELD = """
select count(p.worker_id), count(p.ready_at), count(*) from agent_run a
join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id where a.tenant_id = $1 and a.status = 'awaiting_consent'
"""
_IDLE = "select xact_commit from pg_stat_database where datname = current_database()"
_SWEPT = "select count(*) = $2, folkmoot_now() from agent_run where tenant_id = $1 and status = 'expired'"
_TIMES = """
select (select min(w.answered_at) from pending w where w.tenant_id = $1 and w.run_id = any($2)) as began_at,
    (select max(w.answered_at) from pending w where w.tenant_id = $1 and w.run_id = any($2)) as decided_at,
    (select max(p.ended_at) from process p where p.tenant_id = $1 and p.run_id = any($2)) as ended_at,
    (select max(m.delivered_at) from channel_message m where m.tenant_id = $1 and m.run_id = any($2) and m.kind = 'consent.expired') as announced_at
"""
# runs of which not each of these is there once: the consent that expired, its audit entry, its announcement, which was delivered, and its end
_NOT_ONCE = """
select count(*) from agent_run a where a.tenant_id = $1 and a.run_id = any($2) and not (
    a.status = 'expired' and a.completed_at is not null
    and 1 = (select count(*) from chat_item c where c.tenant_id = $1 and c.run_id = a.run_id and c.kind = 'consent' and c.status = 'expired')
    and 1 = (select count(*) from audit u where u.tenant_id = $1 and u.subject_id = a.run_id and u.action = 'pending.expired')
    and 1 = (select count(*) from channel_message m where m.tenant_id = $1 and m.run_id = a.run_id and m.kind = 'consent.expired'
             and m.delivered_at is not null)
    and 2 = (select count(*) from channel_message m where m.tenant_id = $1 and m.run_id = a.run_id)
    and 1 = (select count(*) from item i where i.tenant_id = $1 and i.run_id = a.run_id and i.detail ->> 'type' = 'ended'))
"""


async def consents(course: Course, repeat: int) -> None:
    runs, expiring = (200, 20) if course.is_quick else (RUNS, EXPIRING)
    async with open_office(course) as office:
        none = await _weigh_new(course, office)
        async with office.worker() as one, office.worker() as other:
            await _pause(course, repeat, office, (one, other), runs, hasty=expiring)
        beside = await _weigh_new(course, office)
        _record_weights(course, repeat, none, beside, runs)
        await office.shift_clock(HASTE)
        # the first worker may be at it before the others are ready
        swept = asyncio.create_task(_swept(office, expiring))
        async with office.worker(), office.worker(), office.api() as client:
            await _expire(course, repeat, office, swept, runs=runs, count=expiring)
            await answers(course, repeat, office, client, waiting=runs - expiring)


async def _pause(
    course: Course, repeat: int, office: Office, workers: Sequence[WorkerProcess], count: int, *, hasty: int
) -> None:
    """So many runs to where they await consent, the hasty ones first, and how many of them a worker holds then."""
    half = count // 2
    await office.start(hasty, agent=HASTY_CLERK)
    await office.start(half - hasty)
    await asyncio.wait_for(office.settled(awaiting=half), _PATIENCE_SECONDS)
    before = await _weigh_all(course, office, workers)
    began = time.monotonic()
    await office.start(count - half)
    await asyncio.wait_for(office.settled(awaiting=count), _PATIENCE_SECONDS)
    seconds = time.monotonic() - began
    after = await _weigh_all(course, office, workers)
    ((held, ready, awaiting),) = await office.fetch(_HELD)
    assert awaiting == count, awaiting
    course.record(
        "n", PAUSED, repeat, runs=count, runs_per_s=(count - half) / seconds, held=held + ready, mb_half=before, mb_all=after,
        kb_per_run=(after - before) * 1024 / (count - half),
    )  # fmt: skip


async def _weigh_all(course: Course, office: Office, workers: Sequence[WorkerProcess]) -> float:
    weights = await asyncio.gather(*(weigh(course, office.drive.notifier, process.pid) for process in workers))
    return sum(mb for mb, _ in weights)


async def _weigh_new(course: Course, office: Office) -> tuple[float, float, float]:
    """MB, percent of CPU and transactions a second of a worker that has nothing to do."""
    async with office.worker() as process:
        mb, cpu = await weigh(course, office.drive.notifier, process.pid, idle_seconds=_IDLE_SECONDS)
        before, began = await _transactions(office), time.monotonic()
        await asyncio.sleep(0.2 if course.is_quick else _IDLE_SECONDS)
        return mb, cpu, (await _transactions(office) - before) / (time.monotonic() - began)


async def _transactions(office: Office) -> int:
    async with office.drive.database.reader() as reader:
        return int(await reader.connection.fetchval(_IDLE))


def _record_weights(
    course: Course, repeat: int, none: tuple[float, float, float], beside: tuple[float, float, float], runs: int
) -> None:
    course.record(
        "n", BEGINS, repeat, runs=runs, mb_none=none[0], mb_all=beside[0], kb_per_run=(beside[0] - none[0]) * 1024 / runs,
        cpu_percent_none=none[1], cpu_percent=beside[1], transactions_per_s_none=none[2], transactions_per_s=beside[2],
    )  # fmt: skip


async def _expire(
    course: Course, repeat: int, office: Office, swept: asyncio.Task[float], *, runs: int, count: int
) -> None:
    """The time of the oldest is over: how long the sweep took, and until when all had ended and been announced."""
    swept_at = await asyncio.wait_for(swept, _PATIENCE_SECONDS)
    await asyncio.wait_for(office.settled(awaiting=runs - count), _PATIENCE_SECONDS)
    rows = await office.fetch("select run_id, id from agent_run where tenant_id = $1 and status = 'expired'")
    run_ids, expired = [row["run_id"] for row in rows], {row["id"] for row in rows}
    began, decided, ended, announced = (at.timestamp() for at in (await office.fetch(_TIMES, run_ids))[0])
    received = Counter(run for _, kind, run in office.endpoint.received if kind == "consent.expired")
    not_received_once = sum(received[id_] != 1 for id_ in expired) + len(received.keys() - expired)
    ((not_once,),) = await office.fetch(_NOT_ONCE, run_ids)
    course.record(
        "n", EXPIRED, repeat, runs=count, decided_s=decided - began, sweep_s=swept_at - began,
        of_bound=(swept_at - began) / SWEEP_SECONDS, ended_s=ended - began, announced_s=announced - began,
        not_once=max(not_once, not_received_once),
    )  # fmt: skip


async def _swept(office: Office, count: int) -> float:
    """When all are seen to have expired, by the database's clock."""
    async with office.drive.database.reader() as reader:
        statement = await reader.connection.prepare(_SWEPT)
        while True:
            is_done, now = await statement.fetchrow(office.caller.tenant_id, count)
            if is_done:
                return float(now.timestamp())
            await asyncio.sleep(_LOOK_SECONDS)
