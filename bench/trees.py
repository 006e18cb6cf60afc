"""Part t: 1,000 sub-runs under one root, 50 at a time, beside the same 1,000 runs without a root; and what waiting roots cost.

The tree: an agent starts 50 runs in a reply, awaits all in the next, and again until there are 1,000. Beside it a program starts the
same published interaction as the API does, 50 at once, and the next 50 when all of those have ended; it has a process and connections
of its own, where the tree's starts are made in the worker. Each has one worker, and they take turns to be first. Who waits for a
lock is asked of the server every few milliseconds. A root that waits is driven there by the worker, and then copied.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg

from bench.clocks import Used, Watch, resident_mb
from bench.course import Course
from bench.ground import Ground
from bench.roundtable import Driver, default_tenant, driver, new_id
from bench.workers import WorkerProcess, worker
from folkmoot import settings
from folkmoot.bootstrap.installation import bench_of, open_installation
from folkmoot.domain.definitions import AgentBinding, AgentVersion, AiModelVersion, InteractionVersion, Reference
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.domain.tenancy import Caller
from folkmoot.services import apply, starting
from folkmoot.services.apply import Document
from folkmoot.services.closure import StartFields, Workbench

TREE, SEPARATE, WAITING = "a tree", "separate runs", "a worker beside waiting roots"
SUB_RUNS, AT_ONCE, ROOTS = 1000, 50, 5000
_SAMPLE_SECONDS = 0.003
_SETTLE_SECONDS = 3.0
_LOOKS = 20
_LOOK_SECONDS = 0.002
_PATIENCE_SECONDS = 600.0
_LONGEST_WAIT = """
select coalesce(max(extract(epoch from clock_timestamp() - l.waitstart)), 0)::float8 * 1000
from pg_locks l join pg_stat_activity a using (pid) where not l.granted and a.datname = current_database()
"""
# a sub-run that is started from now on is to begin in a year
_LATER = """
create function bench_later() returns trigger language plpgsql as $$
begin
    new.ready_at := new.ready_at + interval '1 year';
    return new;
end $$;
create trigger bench_later before insert on process for each row when (new.parent_id is not null) execute function bench_later();
"""
# so many more roots that wait like the one that does, each for a sub-run of its own
_COPIES = """
with n as materialized (select gen_random_uuid() as root_id, gen_random_uuid() as child_id from generate_series(1, $1::int)),
roots as (
    insert into process select r.* from process p, n, jsonb_populate_record(null::process, to_jsonb(p) || jsonb_build_object(
        'run_id', n.root_id, 'tree_root_id', n.root_id, 'swarm_root_id', n.root_id)) r where p.parent_id is null),
children as (
    insert into process select r.* from process p, n, jsonb_populate_record(null::process, to_jsonb(p) || jsonb_build_object(
        'run_id', n.child_id, 'parent_id', n.root_id, 'tree_root_id', n.root_id, 'swarm_root_id', n.root_id)) r where p.parent_id is not null)
insert into sub_run_await select r.* from sub_run_await a, n, jsonb_populate_record(null::sub_run_await, to_jsonb(a) || jsonb_build_object(
    'run_id', n.root_id, 'sub_run_ids', jsonb_build_array(n.child_id))) r
"""


@dataclass(frozen=True, slots=True)
class _Wood:
    """A database in which the interactions are published, and who starts them there."""

    ground: Ground
    dsn: str
    drive: Driver
    caller: Caller
    bench: Workbench

    async def start(self, name: str) -> UUID:
        return await starting.start(
            self.drive.database, self.caller, interaction=Reference(name, "default"), request=StartFields(), bench=self.bench,
            new_id=new_id, tell=self.drive.notifier.tell,
        )  # fmt: skip

    async def wave(self, count: int) -> list[UUID]:
        """So many separate runs at once, and all of them to their end."""
        run_ids = await asyncio.gather(*(self.start("leaf") for _ in range(count)))
        await self.drive.ended(run_ids, turns=1, poll_seconds=_LOOK_SECONDS)
        return list(run_ids)


@dataclass(frozen=True, slots=True)
class _Measured:
    """`longest_wait_ms`: for a lock, of any statement in the database."""

    used: Used
    longest_wait_ms: float


async def trees(course: Course) -> None:
    waves, at_once, roots = (3, 5, 100) if course.is_quick else (SUB_RUNS // AT_ONCE, AT_ONCE, ROOTS)
    for repeat in range(1, course.repeats + 1):
        first, second = (_tree, _separate) if repeat % 2 else (_separate, _tree)
        found = {each: await each(course, waves, at_once) for each in (first, second)}
        separate, tree = found[_separate], found[_tree]
        _record(course, repeat, SEPARATE, separate, runs=waves * at_once, ratio=None)
        _record(course, repeat, TREE, tree, runs=waves * at_once, ratio=tree.used.wall / separate.used.wall)
        await _weigh_waiting(course, repeat, roots)


def _record(course: Course, repeat: int, subject: str, found: _Measured, *, runs: int, ratio: float | None) -> None:
    course.record(
        "t", subject, repeat, seconds=found.used.wall, runs_per_s=runs / found.used.wall, ratio=ratio,
        cpu_ms_per_run=found.used.cpu / runs * 1000, machine_cpu_ms_per_run=found.used.machine_cpu / runs * 1000,
        longest_lock_wait_ms=found.longest_wait_ms,
    )  # fmt: skip


async def _tree(course: Course, waves: int, at_once: int) -> _Measured:
    async with _wood(course, waves, at_once) as wood, worker(course.ground, wood.dsn, wood.drive) as process:
        await wood.drive.ended([await wood.start("sapling")], turns=1)
        async with _watching_locks(wood.dsn) as waits:
            watch = Watch(process.pid)
            root = await wood.start("root")
            ended = await asyncio.wait_for(wood.drive.ended([root], turns=1), _PATIENCE_SECONDS)
            used = watch.used(until=ended.at)
        await _check(wood, root, waves * at_once)
        return _Measured(used, max(waits))


async def _check(wood: _Wood, root: UUID, count: int) -> None:
    """Raises if not as many sub-runs as were wanted came to their end."""
    async with wood.drive.database.reader() as reader:
        found = await reader.connection.fetchval(
            "select count(*) from process where parent_id = $1 and status = 'Completed'", root
        )
    if found != count:
        raise RuntimeError(f"{found} sub-runs came to their end, where {count} were to be started.")


async def _separate(course: Course, waves: int, at_once: int) -> _Measured:
    async with _wood(course, waves, at_once) as wood, worker(course.ground, wood.dsn, wood.drive) as process:
        await wood.wave(at_once)
        async with _watching_locks(wood.dsn) as waits:
            watch = Watch(process.pid)
            for _ in range(waves):
                last = await wood.wave(at_once)
            ended = await wood.drive.ended(last, turns=1)
            used = watch.used(until=ended.at)
        return _Measured(used, max(waits))


async def _weigh_waiting(course: Course, repeat: int, roots: int) -> None:
    """A worker's memory before and after so many roots wait, and how many of them it holds."""
    async with (
        _wood(course, 1, 1) as wood,
        worker(course.ground, wood.dsn, wood.drive, POLL_SECONDS="0.2", SWEEP_SECONDS="0.2") as process,
    ):
        await wood.drive.ended([await wood.start("sapling")], turns=1)
        async with wood.drive.database.writer() as writer:
            await writer.connection.execute("delete from sub_run_await; delete from process;" + _LATER)
        await wood.start("sapling")
        await asyncio.wait_for(_waits(wood), _PATIENCE_SECONDS)
        before = await _settled(course, wood, process)
        async with wood.drive.database.writer() as writer:
            await writer.connection.execute(_COPIES, roots)
        after = await _settled(course, wood, process)
        async with wood.drive.database.reader() as reader:
            waiting, held = await reader.connection.fetchrow(
                "select count(*), count(worker_id) from process where status = 'PendingSubInteractions'"
            )
        assert waiting == roots + 1, waiting
        course.record(
            "t", WAITING, repeat, roots=roots, rss_mb_1=before, rss_mb_all=after, kb_per_root=(after - before) * 1024 / roots, held=held
        )  # fmt: skip


async def _waits(wood: _Wood) -> None:
    async with wood.drive.database.reader() as reader:
        while not await reader.connection.fetchval(
            "select exists (select from process where status = 'PendingSubInteractions')"
        ):
            await asyncio.sleep(_LOOK_SECONDS)


async def _settled(course: Course, wood: _Wood, process: WorkerProcess) -> float:
    """MB of a worker that has looked for work several times, and swept."""
    for _ in range(_LOOKS):
        wood.drive.notifier.tell({"to": "workers"})
        await asyncio.sleep((1.0 if course.is_quick else _SETTLE_SECONDS) / _LOOKS)
    return resident_mb(process.pid)


@asynccontextmanager
async def _wood(course: Course, waves: int, at_once: int) -> AsyncIterator[_Wood]:
    async with course.ground.database() as dsn, driver(dsn) as drive:
        caller, _ = await default_tenant(drive)
        found = settings.read(course.ground.environment(dsn))
        async with open_installation(found, migrates=False) as installation:
            drive = Driver(installation.database, installation.notifier)
            drive.tenant_id, drive.user_id = caller.tenant_id, caller.user_id
            await apply.apply(
                drive.database, caller, _documents(course.ground, waves=waves, at_once=at_once), new_id=new_id
            )
            yield _Wood(course.ground, dsn, drive, caller, bench_of(installation))


def _documents(ground: Ground, *, waves: int, at_once: int) -> list[Document]:
    """`leaf`: one turn. `root`: so often so many leaves are started and awaited. `sapling`: once."""
    done = {"reply": {"text": "Done.", "usage": {"input": 100, "output": 10}}}
    swarm = SwarmSettings((Reference("leaf"),), ("Ada",), max_concurrent=at_once, max_total=waves * at_once)
    below = InteractionVersion((AgentBinding(Reference("doer"), "Bob"),), "Do it.", maximum_rounds=1)
    return [
        Document("default", "root", _above("starter", swarm)),
        Document("default", "sapling", _above("planter", swarm)),
        Document("default", "leaf", below),
        *_agent(ground, "starter", [*_starting(waves, at_once), done]),
        *_agent(ground, "planter", [*_starting(1, at_once), done]),
        *_agent(ground, "doer", [done]),
    ]


def _above(agent: str, swarm: SwarmSettings) -> InteractionVersion:
    return InteractionVersion(
        (AgentBinding(Reference(agent), "Ada"),), "Have it done.", swarm=swarm, maximum_rounds=1,
        context_settings={"maxToolCallLoops": 2 * SUB_RUNS},
    )  # fmt: skip


def _starting(waves: int, at_once: int) -> list[dict[str, Any]]:
    """Rules for the calls of a model that starts some and awaits all, in turn."""
    starts = [{"name": "start_interaction", "arguments": {"name": "leaf"}}] * at_once
    awaits = [{"name": "await_interactions", "arguments": {}}]
    replies = [starts, awaits] * waves
    return [{"when": {"call": n}, "reply": {"calls": calls}} for n, calls in enumerate(replies, 1)]


def _agent(ground: Ground, name: str, rules: list[dict[str, Any]]) -> tuple[Document, Document]:
    file = ground.folder / f"{name}.yaml"
    file.write_text(json.dumps({"rules": rules}), encoding="utf-8")
    model = AiModelVersion(provider="scripted", model_name="instant", path=str(file))
    agent = AgentVersion(model=Reference(f"{name}-model"), prompts=(f"You are a {name}.",))
    return Document("default", name, agent), Document("default", f"{name}-model", model)


@asynccontextmanager
async def _watching_locks(dsn: str) -> AsyncIterator[list[float]]:
    """Within the block the longest wait for a lock is looked at again and again, each in milliseconds."""
    connection = await asyncpg.connect(dsn)
    seen = [0.0]

    async def watch() -> None:
        statement = await connection.prepare(_LONGEST_WAIT)
        while True:
            seen.append(await statement.fetchval())
            await asyncio.sleep(_SAMPLE_SECONDS)

    watching = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        connection.terminate()
