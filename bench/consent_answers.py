"""Part n, answers: from a person's answer to the call, beside thousands of runs that go on waiting.

Some answers come over the API, at random moments; some over the inbound address of the channel, signed and with the request's secret, as a program
of somebody's gives them: at a steady rate, or as fast as eight connections are served. The time is from the answer by the database's clock (written before its
commit) to the call itself, which notes its moment.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from uuid import UUID

import httpx2

from bench.clerks import Awaiting, Office
from bench.course import Course
from bench.figures import percentile
from bench.roundtable import new_id
from folkmoot.channels.signing import signed_headers

OVER_API = "over the API, at random moments"
STEADY = "over the channel, 50 a second"
AT_ONCE = "over the channel, at once"
WAYS = (OVER_API, STEADY, AT_ONCE)
ANSWERS, MANY_ANSWERS = 200, 500
CALL_MS = 2000.0  # the bound
_STEADY_SECONDS = 0.02
_MEAN_PAUSE_SECONDS = 0.1
_PATIENCE_SECONDS = 1200.0
_ANSWERED_AT = """
select w.pending_id, w.answered_at - s.shift as answered_at from pending w, clock_shift s
where w.tenant_id = $1 and w.outcome = 'Approved' and w.pending_id = any($2)
"""

Approve = Callable[[Awaiting], Awaitable[None]]
Pauses = AsyncIterator[None]


async def answers(course: Course, repeat: int, office: Office, client: httpx2.AsyncClient, *, waiting: int) -> None:
    """Each way in turn. `waiting`: how many there are before."""
    few, many = (5, 10) if course.is_quick else (ANSWERS, MANY_ANSWERS)

    async def over_api(one: Awaiting) -> None:
        await _approve(client, one)

    async def over_channel(one: Awaiting) -> None:
        await _approve_over_channel(office, client, one)

    chance = random.Random(repeat)
    for subject, approve, count, pause in (
        (OVER_API, over_api, few, lambda: chance.expovariate(1 / _MEAN_PAUSE_SECONDS)),
        (STEADY, over_channel, few, lambda: _STEADY_SECONDS),
        (AT_ONCE, over_channel, many, lambda: 0.0),
    ):
        waiting -= count
        await _measure(course, repeat, office, subject, approve, pause, count=count, left=waiting)


async def _measure(
    course: Course,
    repeat: int,
    office: Office,
    subject: str,
    approve: Approve,
    pause: Callable[[], float],
    *,
    count: int,
    left: int,
) -> None:
    """So many approvals, so long one after the other began, and how long after each the call was made."""
    asked, before = await office.awaiting(count), len(office.calls())
    loop = asyncio.get_running_loop()
    began = at = loop.time()
    async with asyncio.TaskGroup() as answering:
        for one in asked:
            answering.create_task(approve(one))
            at += pause()
            await asyncio.sleep(at - loop.time())
    seconds = loop.time() - began
    await asyncio.wait_for(office.settled(awaiting=left), _PATIENCE_SECONDS)
    found = await office.fetch(_ANSWERED_AT, [one.call_id for one in asked])
    answered = {row["pending_id"]: row["answered_at"].timestamp() for row in found}
    assert len(answered) == count, (len(answered), count)
    calls = [(UUID(call), moment) for call, moment in office.calls()[before:]]
    made = Counter(call for call, _ in calls)
    latencies = [(moment - answered[call]) * 1000 for call, moment in calls if call in answered]
    p95 = percentile(latencies, 0.95)
    course.record(
        "n", subject, repeat, answers=count, beside=left, answers_per_s=count / seconds, call_ms_p50=percentile(latencies, 0.5),
        call_ms_p95=p95, call_ms_longest=max(latencies), of_bound=p95 / CALL_MS, calls_lost=len(answered.keys() - made.keys()),
        calls_twice=sum(made.values()) - len(made), calls_unasked=len(made.keys() - answered.keys()),
    )  # fmt: skip


async def _approve(client: httpx2.AsyncClient, one: Awaiting) -> None:
    body = {"chatItemId": str(one.chat_item_id), "argumentsHash": one.shown_hash, "decision": "approve"}
    answer = await client.post(f"/agent-runs/{one.id}/consent", json=body)
    answer.raise_for_status()


async def _approve_over_channel(office: Office, client: httpx2.AsyncClient, one: Awaiting) -> None:
    token, secret = office.endpoint.asked[one.id]
    data = {"token": token, "secret": secret, "decision": "approve"}
    body = json.dumps({"type": "consent.answer", "data": data}).encode()
    headers = signed_headers(office.signing, message_id=str(new_id()), now=datetime.now(UTC), body=body)
    answer = await client.post(
        f"/channels/{one.channel_id}/inbound", content=body, headers={"content-type": "application/json", **headers}
    )
    answer.raise_for_status()
    assert answer.json()["outcomes"][0]["outcome"] == "done", answer.text
