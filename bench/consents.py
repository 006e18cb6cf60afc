"""Part n: 10,000 agent runs that await their owner's consent; 1,000 that nobody answers in time; and 200 answers beside the others.

Two workers with the usual timing drive all of them there. Memory is compared twice, as in part i: a worker that begins beside none and beside
all of them; and the two that paused them, idle, with half of them and with all: by the half what a worker keeps of having driven runs, such as the
scripts of the newest 1,024, is there. Then the time of the oldest 1,000 is set to be over, which is all that the bench writes itself, and the rest
is the sweep's and the workers' own. Answers come over HTTP one by one, at random moments.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from uuid import UUID

import httpx2

from bench.clerks import Awaiting, Office, open_office
from bench.course import Course
from bench.figures import percentile
from bench.idle import weigh
from bench.workers import WorkerProcess

RUNS, EXPIRING, ANSWERS = 10_000, 1_000, 200
PAUSED = "the two workers that paused them"
BEGINS = "a worker that begins beside them"
EXPIRED, ANSWERED = "1,000 that expire", "200 that are answered"
SWEEP_SECONDS, CALL_MS = 5.0, 2000.0  # the bounds
_IDLE_SECONDS = 25.0  # more than two sweeps
_MEAN_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.02
_PATIENCE_SECONDS = 1200.0
_HELD = """
select count(p.worker_id), count(p.ready_at), count(*) from agent_run a
join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id where a.tenant_id = $1 and a.status = 'awaiting_consent'
"""
_IS_OVER = """
with a as (
    update agent_run set expires_at = clock_timestamp() where tenant_id = $1 and run_id = any($2)),
c as (
    update chat_item set expires_at = clock_timestamp() where tenant_id = $1 and run_id = any($2) and status = 'pending')
update pending set expires_at = clock_timestamp() where tenant_id = $1 and run_id = any($2) and outcome is null
"""
_SWEPT = "select count(*) = $2 from agent_run where tenant_id = $1 and status = 'expired'"
_TIMES = """
select (select min(w.answered_at) from pending w where w.tenant_id = $1 and w.run_id = any($2)) as began_at,
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
_ANSWERED_AT = "select pending_id, answered_at from pending where tenant_id = $1 and outcome = 'Approved'"


async def consents(course: Course) -> None:
    runs, expiring, answers = (60, 20, 10) if course.is_quick else (RUNS, EXPIRING, ANSWERS)
    for repeat in range(1, course.repeats + 1):
        async with open_office(course) as office:
            none = await _weigh_new(course, office)
            async with office.worker() as one, office.worker() as other:
                await _pause(course, repeat, office, (one, other), runs)
            beside = await _weigh_new(course, office)
            _record_weights(course, repeat, none, beside, runs)
            async with office.worker(), office.worker():
                await _expire(course, repeat, office, runs=runs, count=expiring)
                async with office.api() as client:
                    await _answer(course, repeat, office, client, runs=runs - expiring, count=answers)


async def _pause(course: Course, repeat: int, office: Office, workers: Sequence[WorkerProcess], count: int) -> None:
    """So many runs to where they await consent, and how many of them a worker holds then."""
    half = count // 2
    await office.start(half)
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


async def _weigh_new(course: Course, office: Office) -> tuple[float, float]:
    async with office.worker() as process:
        return await weigh(course, office.drive.notifier, process.pid, idle_seconds=_IDLE_SECONDS)


def _record_weights(
    course: Course, repeat: int, none: tuple[float, float], beside: tuple[float, float], runs: int
) -> None:
    course.record(
        "n", BEGINS, repeat, runs=runs, mb_none=none[0], mb_all=beside[0], kb_per_run=(beside[0] - none[0]) * 1024 / runs,
        cpu_percent_none=none[1], cpu_percent=beside[1],
    )  # fmt: skip


async def _expire(course: Course, repeat: int, office: Office, *, runs: int, count: int) -> None:
    """The time of the oldest is over: when the sweep came, how long it took, and until when all had ended and been announced."""
    expiring = await office.awaiting(count)
    run_ids = [run.run_id for run in expiring]
    async with office.drive.database.writer() as writer:
        await writer.connection.execute(_IS_OVER, office.caller.tenant_id, run_ids)
    over_at = time.time()
    await asyncio.wait_for(_swept(office, count), _PATIENCE_SECONDS)
    swept_at = time.time()
    await asyncio.wait_for(office.settled(awaiting=runs - count), _PATIENCE_SECONDS)
    began, ended, announced = (at.timestamp() for at in (await office.fetch(_TIMES, run_ids))[0])
    received = Counter(run for _, kind, run in office.endpoint.received if kind == "consent.expired")
    not_received_once = sum(received[run.id] != 1 for run in expiring) + len(received.keys() - {r.id for r in expiring})
    ((not_once,),) = await office.fetch(_NOT_ONCE, run_ids)
    course.record(
        "n", EXPIRED, repeat, runs=count, until_sweep_s=began - over_at, sweep_s=swept_at - began,
        of_bound=(swept_at - began) / SWEEP_SECONDS, ended_s=ended - began, announced_s=announced - began,
        not_once=max(not_once, not_received_once),
    )  # fmt: skip


async def _swept(office: Office, count: int) -> None:
    async with office.drive.database.reader() as reader:
        statement = await reader.connection.prepare(_SWEPT)
        while not await statement.fetchval(office.caller.tenant_id, count):
            await asyncio.sleep(_LOOK_SECONDS)


async def _answer(
    course: Course, repeat: int, office: Office, client: httpx2.AsyncClient, *, runs: int, count: int
) -> None:
    """So many approvals, each at a moment of its own, and how long after each the call was made."""
    chance, asked = random.Random(repeat), await office.awaiting(count)
    async with asyncio.TaskGroup() as answering:
        for one in asked:
            answering.create_task(_approve(client, one))
            await asyncio.sleep(chance.expovariate(1 / _MEAN_PAUSE_SECONDS))
    await asyncio.wait_for(office.settled(awaiting=runs - count), _PATIENCE_SECONDS)
    answered = {row["pending_id"]: row["answered_at"].timestamp() for row in await office.fetch(_ANSWERED_AT)}
    assert answered.keys() == {one.call_id for one in asked}
    calls = [(UUID(call), at) for call, at in office.calls()]
    made = Counter(call for call, _ in calls)
    latencies = [(at - answered[call]) * 1000 for call, at in calls if call in answered]
    p95 = percentile(latencies, 0.95)
    course.record(
        "n", ANSWERED, repeat, beside=runs - count, call_ms_p50=percentile(latencies, 0.5), call_ms_p95=p95,
        call_ms_longest=max(latencies), of_bound=p95 / CALL_MS, calls_lost=len(answered.keys() - made.keys()),
        calls_twice=sum(made.values()) - len(made), calls_unasked=len(made.keys() - answered.keys()),
    )  # fmt: skip


async def _approve(client: httpx2.AsyncClient, one: Awaiting) -> None:
    body = {"chatItemId": str(one.chat_item_id), "argumentsHash": one.shown_hash, "decision": "approve"}
    answer = await client.post(f"/agent-runs/{one.id}/consent", json=body)
    answer.raise_for_status()
