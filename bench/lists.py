"""Part h: pages of a list of 1,000,000 runs under each filter (B63), and by which index PostgreSQL finds them.

Rows are made by SQL: most runs have ended, a few interactions have most of them, some values are common and some rare.
The index names come from EXPLAIN ANALYZE of the very statement that the product sends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from bench.course import Course
from bench.figures import percentile
from bench.roundtable import new_id
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tenancy import Caller
from folkmoot.services import runs
from folkmoot.store import run_lists
from folkmoot.store.database import Database, Reader

_RUNS = 1_000_000
_CHUNK = 100_000
_LIMIT = 50
_CALLS = 20
_LONGEST_MS = 3000.0  # a filter that is far too slow is not asked 20 times

# every run but one in 50 is the first tenant's; parents have 8 sub-runs; the newest run was made a second ago
_INSERT = """
insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at,
    parent_id, parent_kind, tree_root_id, swarm_root_id, state_version, status, started_at, ended_at, tags, search)
select case when n % 50 = 0 then $2::uuid else $1::uuid end, bench_id(n), 'Interaction', bench_id(-1 - n % 3),
    bench_id(-100 - (case when n % 10 < 6 then n % 3 else n % 1000 end)), 1, $1, at, at,
    case when n % 9 > 0 then bench_id(n - n % 9) end, case when n % 9 > 0 then 'Interaction'::process_kind end,
    bench_id(n - n % 9), bench_id(n - n % 9), 1,
    (case when n % 5003 = 0 then 'PendingHuman' when n % 100 = 5 then 'Failed' when n % 1000 = 9 then 'Stopped' else 'Completed' end)::run_status,
    at, case when n % 5003 > 0 then at end,
    case when n % 20011 = 0 then array['rare'] when n % 10 = 3 then array['common', 'team' || n % 7] else '{}' end,
    'roundtable order ' || n || ' of customer' || n % 5000 || case when n % 2 = 0 then ' about invoices' else ' about parcels' end
from (select n, now() - interval '1 second' * ($4::int - n) as at from generate_series($3::int, $4::int) n where n < $5::int) rows
"""
_RESOLVED = """
insert into resolved_definition (tenant_id, run_id, body)
select tenant_id, run_id, '{"inputs": [["order", "17"]], "disabled_tools": []}' from process
"""


async def lists(course: Course) -> None:
    count = 20_000 if course.is_quick else _RUNS
    async with course.ground.database() as dsn:
        caller = Caller(new_id(), new_id(), "owner")
        began = time.monotonic()
        await _fill(dsn, caller.tenant_id, count)
        course.record("h", "rows", 1, runs=count, seconds=time.monotonic() - began)
        database = await Database.open(dsn, connections=2)
        connection = await asyncpg.connect(dsn)
        try:
            wanted = list(_filters(count, await connection.fetchval("select max(created_at) from process")))
            plans = {name: await _plan(connection, caller.tenant_id, *what) for name, *what in wanted}
            for repeat in range(1, course.repeats + 1):
                for name, filters, after in wanted:
                    found, times = 0, []
                    while len(times) < _CALLS and sum(times) < _LONGEST_MS:
                        start = time.perf_counter()
                        found = len(await runs.page(database, caller, wanted=filters, after=after, limit=_LIMIT))
                        times.append((time.perf_counter() - start) * 1000)
                    course.record(
                        "h",
                        name,
                        repeat,
                        ms_p50=percentile(times, 0.5),
                        ms_p95=percentile(times, 0.95),
                        rows=found,
                        plan=plans[name],
                    )
        finally:
            await connection.close()
            await database.close()


def _id(number: int) -> UUID:
    """What bench_id makes in the database."""
    return UUID(int=number % 2**64)


def _filters(count: int, newest: Any) -> Iterator[tuple[str, run_lists.RunFilter, run_lists.RunCursor | None]]:
    def one(name: str, **filters: Any) -> tuple[str, run_lists.RunFilter, None]:
        return name, run_lists.RunFilter(**filters), None

    yield one("no filter")
    middle = count // 2 - (count // 2) % 9
    yield (
        "a page in the middle",
        run_lists.RunFilter(),
        run_lists.RunCursor(newest - timedelta(seconds=middle), _id(middle)),
    )
    yield one("status, nearly all", status=RunStatus.COMPLETED)
    yield one("status, few", status=RunStatus.PENDING_HUMAN)
    yield one("interaction, a fifth", interaction_id=_id(-101))
    yield one("interaction, few", interaction_id=_id(-100 - 987))
    yield one("namespace", namespace_id=_id(-2))
    yield one("root", root=_id(middle))
    yield one("parent", parent=_id(middle))
    yield one("tag, a tenth", tag="common")
    yield one("tag, few", tag="rare")
    yield one("text, half", text="invoices")
    yield one("text, few", text="customer4321")
    yield one("text, one", text=f"order {middle}")
    yield one("text, none", text="nowhere")
    yield one(
        "dates",
        created_from=newest - timedelta(seconds=middle + 3600),
        created_before=newest - timedelta(seconds=middle),
    )
    yield one("status and interaction", status=RunStatus.FAILED, interaction_id=_id(-101))
    yield one("status and tag", status=RunStatus.PENDING_HUMAN, tag="common")
    yield one("interaction and text", interaction_id=_id(-100 - 987), text="parcels")


async def _fill(dsn: str, tenant_id: UUID, count: int) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "create function bench_id(bigint) returns uuid language sql immutable as"
            " $$ select lpad(to_hex($1), 32, '0')::uuid $$"
        )
        for first in range(0, count, _CHUNK):
            await connection.execute(_INSERT, tenant_id, new_id(), first, count, min(count, first + _CHUNK))
        await connection.execute(_RESOLVED)
        await connection.execute("vacuum (analyze) process")
        await connection.execute("vacuum (analyze) resolved_definition")
    finally:
        await connection.close()


async def _plan(
    connection: asyncpg.Connection, tenant_id: UUID, filters: run_lists.RunFilter, after: run_lists.RunCursor | None
) -> str:
    """The indexes by which the rows are found; `Seq Scan` where the whole table is read."""
    sent: list[Any] = []
    with connection.query_logger(sent.append):
        await run_lists.page(Reader(connection), tenant_id, wanted=filters, after=after, limit=_LIMIT)
    (statement,) = (record for record in sent if "from process" in record.query)
    async with connection.transaction():
        await connection.execute("set local plan_cache_mode = force_custom_plan")
        explained = await connection.fetchval(f"explain (analyze, format json) {statement.query}", *statement.args)
    scans = dict.fromkeys(_scans(json.loads(explained)[0]["Plan"]))
    return ", ".join(scans)


def _scans(node: dict[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Seq Scan" and node["Relation Name"] == "process":
        yield "Seq Scan"
    elif str(node.get("Index Name", "")).startswith("process_"):
        yield node["Index Name"]
    for child in node.get("Plans", ()):
        yield from _scans(child)
