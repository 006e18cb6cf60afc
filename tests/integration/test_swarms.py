"""Places in a tree under concurrency, and the end of a sub-run against the pause of its parent (B37; F58, F59; state.md, Waking).

Each has a negative control: without the lock it goes wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import panels
import pytest
from crews import until
from panels import Started
from waiting_at_hand import approval_card

from folkmoot.domain.pending import Pending, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ClaimedRun, Place, ProcessType
from folkmoot.domain.swarms import Await, SwarmLimits
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.timekeeper import Timekeeper
from folkmoot.services import runs
from folkmoot.store import appends, swarms
from folkmoot.store.append_parameters import parameters
from folkmoot.store.appends import Append, Appender, End, Pause
from folkmoot.store.database import Database, Writer
from folkmoot.store.walls import walled

COMPLETED = End(RunStatus.COMPLETED)
BLOCKED = "select 1 from pg_locks join pg_stat_activity using (pid) where not granted and datname = current_database()"


# places


async def spawn(database: Database, new_id: NewId, root: UUID, tenant_id: UUID, limits: SwarmLimits) -> bool:
    """One start, as the service makes it; whether it got a place."""
    async with database.writer() as writer:
        await swarms.make(writer, tenant_id, root=root, limits=limits)
        await swarms.lock(writer, tenant_id, root=root)
        if not await swarms.take_places(writer, tenant_id, root=root, depth=1, limits=limits, wanted=1):
            return False
        await writer.connection.execute(
            "insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at, "
            "tree_root_id, swarm_root_id, parent_id, parent_kind, depth, state_version) values ($1, $2, 'Interaction', $2, $2, 1, $2, now(), now(), "
            "$3, $3, $3, 'Interaction', 1, 0)", tenant_id, new_id(), root
        )  # fmt: skip
        return True


async def spawned(database: Database, new_id: NewId, limits: SwarmLimits) -> tuple[int, int]:
    """200 starts at once; how many got a place, and how many runs there are."""
    root, tenant_id = new_id(), new_id()
    async with database.writer() as writer:
        await swarms.make(writer, tenant_id, root=root, limits=limits)
    got = await asyncio.gather(*[spawn(database, new_id, root, tenant_id, limits) for _ in range(200)])
    rows = await panels.fetch(database, "select from process where swarm_root_id = $1", root)
    return sum(got), len(rows)


@pytest.mark.parametrize("limits", [SwarmLimits(3, 20, 500), SwarmLimits(3, 500, 20)])
async def test_two_hundred_starts_at_once_get_exactly_the_places_there_are(
    database: Database, new_id: NewId, limits: SwarmLimits
) -> None:
    assert await spawned(database, new_id, limits) == (20, 20)


async def test_control_without_the_lock_more_are_started(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: each counts before the others have written."""

    async def no_lock(writer: Writer, tenant_id: UUID, *, root: UUID) -> None: ...

    monkeypatch.setattr(swarms, "lock", no_lock)
    got, made = await spawned(database, new_id, SwarmLimits(3, 20, 500))
    assert got == made > 20


async def test_limits_of_the_starter_can_only_lower_those_of_the_tree(database: Database, new_id: NewId) -> None:
    root, tenant_id = new_id(), new_id()
    tree, low, high = SwarmLimits(3, 4, 5), SwarmLimits(9, 9, 1), SwarmLimits(9, 9, 9)
    async with database.writer() as writer:
        await swarms.make(writer, tenant_id, root=root, limits=tree)
        await swarms.make(writer, tenant_id, root=root, limits=high)  # it is there already
        take: Callable[[SwarmLimits, int], Awaitable[int]] = lambda limits, wanted: swarms.take_places(  # noqa: E731
            writer, tenant_id, root=root, depth=1, limits=limits, wanted=wanted
        )
        assert [await take(low, 2), await take(low, 1)] == [1, 0]
        full = await swarms.counts(writer, tenant_id, root=root)
        assert (full.limits, full.started) == (tree, 1)
        assert [await take(high, 3), await take(high, 3), await take(high, 1)] == [3, 1, 0]


# waking


@dataclass
class Family:
    """A parent at work with children at work, all claimed by one worker."""

    database: Database
    new_id: NewId
    parent: ClaimedRun
    started: Started
    children: list[ClaimedRun]

    def pause(self, *, is_all: bool = True) -> Append:
        """The parent's pause, decided while its signal is what the claim knew."""
        return self.pause_for(self.awaits(*range(len(self.children)), is_all=is_all))

    def awaits(self, *numbers: int, is_all: bool = True) -> Await:
        ids = tuple(self.children[number].claim.run_id for number in numbers)
        return Await(self.new_id(), ids, is_all, "Ann", "main", self.new_id())

    def pause_for(self, *awaits: Await, pending: Pending | None = None) -> Append:
        status = RunStatus.PENDING_APPROVAL if pending is not None else RunStatus.PENDING_SUB_INTERACTIONS
        return Append(self.parent.claim, self.parent.signal_number, pause=Pause(status, pending, awaits))

    def end(self, number: int = 0) -> Append:
        child = self.children[number]
        return Append(child.claim, child.signal_number, end=COMPLETED, ends_under=self.started.run_id)

    async def row(self) -> dict[str, Any]:
        return await panels.row_of(self.database, self.started)


async def family(database: Database, new_id: NewId, *, children: int = 1) -> Family:
    worker_id = await panels.register(database, new_id)
    started = await panels.start(database, new_id)
    (parent,) = await panels.claim(database, worker_id)
    place = Place(started.run_id, started.run_id, started.run_id, ProcessType.INTERACTION, 1, "Ann")
    for _ in range(children):
        await panels.start(database, new_id, tenant_id=started.tenant_id, place=place)
    claimed = await panels.claim(database, worker_id, batch=children)
    assert {child.parent_id for child in claimed} == {started.run_id}
    return Family(database, new_id, parent, started, claimed)


@asynccontextmanager
async def appending(database: Database) -> AsyncIterator[Appender]:
    appender = Appender(database)
    try:
        yield appender
    finally:
        await appender.close()


async def test_an_await_of_all_wakes_with_the_last_end_and_one_of_any_with_the_first(
    database: Database, new_id: NewId
) -> None:
    for is_all, wakes in ((True, [False, False, True]), (False, [True, True, True])):
        found = await family(database, new_id, children=3)
        async with appending(database) as appender:
            assert (await appender.append(found.pause(is_all=is_all))).is_whole
            ready = []
            for number in range(3):
                await appender.append(found.end(number))
                row = await found.row()
                ready.append(row["ready_at"] is not None)
                assert row["status"] == "PendingSubInteractions" and row["signal_number"] == number + 1
        assert ready == wakes
        assert (await panels.claim(database, await panels.register(database, new_id)))[
            0
        ].claim.run_id == found.started.run_id


@pytest.mark.parametrize(
    ("ends", "ready", "left"),
    [((2,), [True], [0, 2]), ((0, 1), [False, True], [0, 1]), ((1, 2), [False, True], [0, 1]), ((3,), [False], [1, 2])],
)
async def test_of_several_awaits_the_first_that_is_over_wakes_whichever_it_is(
    database: Database, new_id: NewId, ends: tuple[int, ...], ready: list[bool], left: list[int]
) -> None:
    """Agents at work side by side, each with sub-runs of its own."""
    found = await family(database, new_id, children=4)
    async with appending(database) as appender:
        assert (await appender.append(found.pause_for(found.awaits(0, 1), found.awaits(2)))).is_whole
        seen = []
        for number in ends:
            await appender.append(found.end(number))
            seen.append((await found.row())["ready_at"] is not None)
    assert seen == ready
    awaits = await panels.rows_of(database, found.started, "sub_run_await")
    assert sorted(row["waits_for"] for row in awaits) == left


async def test_a_run_that_two_await_lowers_both(database: Database, new_id: NewId) -> None:
    found = await family(database, new_id, children=2)
    async with appending(database) as appender:
        await appender.append(found.pause_for(found.awaits(0, 1), found.awaits(1, 0)))
        await appender.append(found.end(0))
        assert (await found.row())["ready_at"] is None
        await appender.append(found.end(1))
    assert {row["waits_for"] for row in await panels.rows_of(database, found.started, "sub_run_await")} == {0}
    row = await found.row()
    assert row["ready_at"] is not None and row["signal_number"] == 2


async def test_a_wait_for_a_person_is_woken_by_what_is_awaited_beside_it_and_is_no_time_at_work(
    database: Database, new_id: NewId
) -> None:
    """kernel.md: a wait for a person does not count. The approval stays open, and is the same one when the run waits again."""
    found = await family(database, new_id, children=2)
    card = approval_card(new_id())
    pending = Pending(UUID(card["toolCallId"]), PendingKind.APPROVAL, card, bytes.fromhex(card["argumentsHash"]))
    async with appending(database) as appender:
        awaits = found.awaits(0), found.awaits(1)
        assert (await appender.append(found.pause_for(*awaits, pending=pending))).is_whole
        row = await found.row()
        assert (row["status"], row["ready_at"], row["awaits_since"]) == ("PendingApproval", None, None)
        worked = row["execution_time"]
        await panels.shift_clock(database, 500)
        await appender.append(found.end(0))
        row = await found.row()
        assert row["status"] == "PendingApproval" and row["ready_at"] is not None and row["execution_time"] == worked
        (found.parent,) = await panels.claim(database, await panels.register(database, new_id))
        row = await found.row()
        assert row["execution_time"] == worked and row["await_ids"] is None
        assert (await appender.append(found.pause_for(awaits[1], pending=pending))).is_whole
        assert (await found.row())["await_ids"] == [awaits[1].await_id]
        await appender.append(found.end(1))
    (asked,) = await panels.rows_of(database, found.started, "pending")
    assert asked["outcome"] is None and (await found.row())["ready_at"] is not None


async def test_a_pause_of_which_one_await_is_over_already_is_no_wait(database: Database, new_id: NewId) -> None:
    found = await family(database, new_id, children=2)
    async with appending(database) as appender:
        await appender.append(found.end(1))
        late = found.pause_for(found.awaits(0), found.awaits(1))
        late.signal_number = (await found.row())["signal_number"]
        assert (await appender.append(late)).is_whole
    assert (await found.row())["ready_at"] is not None


async def test_a_pause_for_what_has_ended_already_is_no_wait(database: Database, new_id: NewId) -> None:
    """Though the worker had not read it: what is counted is what is in the database."""
    found = await family(database, new_id)
    async with appending(database) as appender:
        await appender.append(found.end())
        late = found.pause()
        late.signal_number = (await found.row())["signal_number"]
        assert (await appender.append(late)).is_whole
    assert (await found.row())["ready_at"] is not None


async def test_a_pause_decided_before_an_end_is_not_written(database: Database, new_id: NewId) -> None:
    found = await family(database, new_id)
    async with appending(database) as appender:
        await appender.append(found.end())
        assert not (await appender.append(found.pause())).is_whole
    assert (await found.row())["status"] == "Running"


async def at_the_same_moment(database: Database, new_id: NewId) -> dict[str, Any]:
    """The parent's pause is written and not committed when its child ends. The parent after both."""
    found = await family(database, new_id)
    connection = await database.connect()
    try:
        async with appending(database) as appender:
            transaction = connection.transaction()
            await transaction.start()
            await connection.fetch(appends._WHOLE, *parameters([found.pause()]))
            ending = asyncio.create_task(appender.append(found.end()))

            async def is_blocked_or_done() -> bool:
                return ending.done() or bool(await panels.fetch(database, BLOCKED))

            await until(is_blocked_or_done)
            await transaction.commit()
            await ending
    finally:
        await connection.close()
    return await found.row()


async def test_an_end_at_the_moment_of_the_pause_is_not_lost(database: Database, new_id: NewId) -> None:
    row = await at_the_same_moment(database, new_id)
    assert row["status"] == "PendingSubInteractions" and row["ready_at"] is not None


async def test_control_without_the_lock_the_end_is_lost(database: Database, new_id: NewId) -> None:
    """The negative control: what the parent awaits is read before its pause is there, and it is never woken."""
    (source,) = await panels.fetch(database, "select pg_get_functiondef('folkmoot_sub_run_ended'::regproc) as text")
    lock = "perform from process where tenant_id = new.tenant_id and run_id = new.parent_id for no key update;"
    assert lock in source["text"]
    await panels.execute(database, source["text"].replace(lock, ""))
    row = await at_the_same_moment(database, new_id)
    assert row["status"] == "PendingSubInteractions" and row["ready_at"] is None


async def test_ends_and_pauses_at_once_lose_no_wake_in_a_hundred_rounds(database: Database, new_id: NewId) -> None:
    """Woken exactly once, by the pause that finds all ended or by the last end; a refused pause finds its signal moved."""
    worker_id = await panels.register(database, new_id)
    refused = 0
    async with appending(database) as appender:
        for n in range(100):
            found = await family(database, new_id, children=2)
            pause = found.pause() if n % 2 else found.pause_for(found.awaits(0), found.awaits(1))
            paused, *_ = await asyncio.gather(
                appender.append(pause), appender.append(found.end(0)), appender.append(found.end(1))
            )
            row = await found.row()
            assert row["signal_number"] == 2
            if not paused.is_whole:
                refused += 1
                assert row["status"] == "Running" and row["ready_at"] is None
                await appender.append(Append(found.parent.claim, row["signal_number"], end=COMPLETED))
                continue
            assert row["status"] == "PendingSubInteractions" and row["ready_at"] is not None
            (claimed,) = await panels.claim(database, worker_id)
            assert claimed.claim.number == 2
            await appender.append(Append(claimed.claim, claimed.signal_number, end=COMPLETED))
    assert refused < 100


async def test_an_end_that_belongs_to_no_wait_of_now_wakes_nobody(database: Database, new_id: NewId) -> None:
    """A former await that was cut stays as it was; its runs end later."""
    found = await family(database, new_id, children=2)
    worker_id = await panels.register(database, new_id)
    async with appending(database) as appender:
        await appender.append(found.pause())
        await panels.execute(database, "update process set ready_at = now() where run_id = $1", found.started.run_id)
        (found.parent,) = await panels.claim(database, worker_id)
        one, found.children = found.children, found.children[:1]
        await appender.append(found.pause())
        found.children = one
        await appender.append(found.end(1))
        assert (await found.row())["ready_at"] is None
        await appender.append(found.end(0))
        assert (await found.row())["ready_at"] is not None


async def test_an_await_that_is_paused_for_again_counts_anew(database: Database, new_id: NewId) -> None:
    """Woken for nothing (a stop that came to nothing, a time that was not yet up), the run waits for what is left."""
    found = await family(database, new_id, children=3)
    worker_id = await panels.register(database, new_id)
    async with appending(database) as appender:
        first = found.pause()
        await appender.append(first)
        await appender.append(found.end(0))
        await panels.execute(database, "update process set ready_at = now() where run_id = $1", found.started.run_id)
        (found.parent,) = await panels.claim(database, worker_id)
        await appender.append(found.end(1))
        again = Append(found.parent.claim, (await found.row())["signal_number"], pause=first.pause)
        assert (await appender.append(again)).is_whole
        (awaited,) = await panels.rows_of(database, found.started, "sub_run_await")
        assert (awaited["waits_for"], (await found.row())["ready_at"]) == (1, None)
        await appender.append(found.end(2))
        assert (await found.row())["ready_at"] is not None


async def test_ends_of_many_sub_runs_and_appends_of_their_parents_do_not_deadlock(
    database: Database, new_id: NewId
) -> None:
    """Two families whose parents are gathered in the same batches while their children end."""
    families = [await family(database, new_id, children=12) for _ in range(2)]
    async with appending(database) as appender:

        async def at_work(found: Family) -> None:
            for _ in range(12):
                await appender.append(Append(found.parent.claim, -1))

        ends = [appender.append(found.end(number)) for number in range(12) for found in families]
        await asyncio.wait_for(asyncio.gather(*ends, *map(at_work, families)), 30)
        for found in families:
            assert (await found.row())["signal_number"] == 12


async def deadlocks(database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch, *, is_under: bool) -> int:
    """How many PostgreSQL finds when the end of a child and an append of the other parent are handed in together, in two families at
    once: each lane has locked its rows before either locks the parent of what it ended. `is_under`: the ends say whose they are.

    A lane waits for a lock here for as long as it takes; else it would give up before PostgreSQL looks for a deadlock.
    """
    monkeypatch.setattr(appends, "_LOCK_MILLISECONDS", 0)
    families = [await family(database, new_id) for _ in range(2)]
    await panels.execute(database, _GATE)
    gate = await database.connect()
    try:
        await gate.execute("select pg_advisory_lock(1)")
        async with appending(database) as appender:
            under_way: list[asyncio.Task[Any]] = []
            for count, (one, other) in enumerate((families, families[::-1]), 1):
                end = one.end()
                end.ends_under = end.ends_under if is_under else None
                both = [end, Append(other.parent.claim, -1)]
                under_way += [asyncio.create_task(appender.append(each)) for each in both]
                await until(partial(has_blocked, database, count))
            await gate.execute("select pg_advisory_unlock(1)")
            await asyncio.wait_for(asyncio.gather(*under_way), 30)
    finally:
        await gate.close()
    for found in families:
        assert (await found.row())["signal_number"] == 1
    await until(partial(has_ended_appending, database))  # whoever leaves hands in its counts
    (row,) = await panels.fetch(database, "select deadlocks from pg_stat_database where datname = current_database()")
    return int(row["deadlocks"])


_GATE = """
create function gate() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock_shared(1); return null; end $$;
create trigger a_gate after update of ended_at on process for each row when (new.ended_at is not null) execute function gate();
"""


async def has_blocked(database: Database, count: int) -> bool:
    return len(await panels.fetch(database, f"{BLOCKED} and locktype = 'advisory'")) == count


async def has_ended_appending(database: Database) -> bool:
    looks = "select from pg_stat_activity where datname = current_database() and query like '%append_run%' and pid <> pg_backend_pid()"
    return not await panels.fetch(database, looks)


async def test_ends_that_are_gathered_by_their_parent_never_deadlock_with_appends_of_parents(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await deadlocks(database, new_id, monkeypatch, is_under=True) == 0


async def test_control_ends_in_mixed_batches_deadlock(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: each batch has one parent, and wants the other."""
    assert await deadlocks(database, new_id, monkeypatch, is_under=False) == 1


async def test_ends_under_one_parent_are_gathered_and_those_under_two_are_not(
    database: Database, new_id: NewId
) -> None:
    """A transaction that ends sub-runs of one parent alone locks that one last, and so waits for nobody that waits for it."""
    families = [await family(database, new_id, children=6) for _ in range(2)]
    async with appending(database) as appender:
        await asyncio.gather(*(appender.append(found.end(number)) for number in range(6) for found in families))
    rows = await panels.fetch(
        database, "select xmin::text as ended_in, array_agg(distinct parent_id) as parents, count(*) as ends from process"
        " where parent_id is not null group by xmin::text"
    )  # fmt: skip
    assert sum(row["ends"] for row in rows) == 12 and len(rows) <= 4
    assert all(len(row["parents"]) == 1 for row in rows)
    assert [(await found.row())["signal_number"] for found in families] == [6, 6]


async def test_a_sub_run_stopped_within_its_tenants_walls_wakes_its_parent(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """As a request is served: the trigger sees the rows of one tenant, which are all that it needs."""
    started = await panels.start(database, new_id, tenant_id=caller.tenant_id)
    (parent,) = await panels.claim(database, await panels.register(database, new_id))
    place = Place(started.run_id, started.run_id, started.run_id, ProcessType.INTERACTION, 1, "Ann")
    child = await panels.start(database, new_id, tenant_id=caller.tenant_id, place=place)
    awaits = Await(new_id(), (child.run_id,), True, "Ann", "main")
    pause = Pause(RunStatus.PENDING_SUB_INTERACTIONS, awaits=(awaits,))
    async with appending(database) as appender:
        await appender.append(Append(parent.claim, parent.signal_number, pause=pause))
    told: list[dict[str, Any]] = []
    inside = walled(database, caller.tenant_id)
    await runs.request_stop(inside, caller, run_id=child.run_id, tell=told.append)
    assert (await panels.row_of(database, started))["ready_at"] is not None
    assert {"to": "workers"} in told and {"to": "run", "run": str(started.run_id)} in told


async def test_a_poisonous_sub_run_wakes_its_parent(database: Database, new_id: NewId) -> None:
    """F13: whatever becomes of what it awaits, the parent goes on."""
    found = await family(database, new_id, children=2)
    async with appending(database) as appender:
        await appender.append(found.pause())
    poison = "update process set worker_id = null, claim_id = null, is_suspect = true, crash_count = 3, ready_at = now() where run_id = any($1)"
    await panels.execute(database, poison, [child.claim.run_id for child in found.children])
    told: list[dict[str, Any]] = []
    options = WorkerOptions(lease_seconds=1000.0)
    await Timekeeper(database, options, lambda: 0.5, new_id, hear=told.append, tell=told.append).sweep()
    row = await found.row()
    assert row["ready_at"] is not None and row["signal_number"] == 2 and told == [{"to": "workers"}] * 2
