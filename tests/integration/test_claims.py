"""Claims, leases and what becomes of a lost worker's runs, against a real database. Guards have controls that must fail."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from importlib.resources import files
from typing import Any
from uuid import UUID, uuid4

import aiosql
import panels
import pytest
import pytest_asyncio
from crews import until
from panels import Started
from waiting_at_hand import waits_for_a_lock

from folkmoot.domain import items
from folkmoot.domain.items import ORCHESTRATOR, Author, AuthorKind, Item
from folkmoot.domain.run_status import FINAL, TRANSITIONS, WAITING, Move, RunStatus
from folkmoot.domain.runs import STATE_VERSION, Claim, ClaimedRun
from folkmoot.kernel.errors import LeaseLost
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.timekeeper import Timekeeper
from folkmoot.store import runs, workers
from folkmoot.store.appends import Append, Appender, CallAsked, End, HandBack
from folkmoot.store.database import Database

SKIP_LOCKED = "for update skip locked limit :batch"
LIVE_LEASE = "and lease_until > folkmoot_now() for key share"


@pytest_asyncio.fixture
async def appender(database: Database) -> AsyncIterator[Appender]:
    made = Appender(database)
    yield made
    await made.close()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes a guard out of the claim's statement."""

    def take_out(guard: str, instead: str = "") -> None:
        text = files("folkmoot.store").joinpath("sql/runs.sql").read_text(encoding="utf-8")
        assert guard in text
        statements: Any = aiosql.from_str(
            text.replace(guard, instead), "asyncpg", kwargs_only=True, mandatory_parameters=False
        )
        monkeypatch.setattr(runs._sql, "claim", statements.claim)

    return take_out


async def sweep(database: Database, new_id: NewId, **options: Any) -> list[dict[str, Any]]:
    """One sweep; what it told."""
    told: list[dict[str, Any]] = []
    await Timekeeper(
        database, WorkerOptions(**options), lambda: 0.5, new_id, hear=told.append, tell=told.append
    ).sweep()
    return told


# one claim each


async def rounds_of_claims(database: Database, appender: Appender, new_id: NewId, rounds: int) -> list[str]:
    """Eight workers go for one run again and again: what is wrong with what they got."""
    started = await panels.start(database, new_id)
    crew = [await panels.register(database, new_id) for _ in range(8)]
    faults: list[str] = []
    for number in range(1, rounds + 1):
        got = await asyncio.gather(*(panels.claim(database, worker) for worker in crew))
        claims = [claimed for batch in got for claimed in batch]
        if [claimed.claim.number for claimed in claims] != [number]:
            faults.append(f"round {number}: claims {[claimed.claim.number for claimed in claims]}")
            break
        await appender.append(Append(claims[0].claim, 0, hand_back=HandBack()))
    assert (await panels.row_of(database, started))["claim_number"] >= 1
    return faults


async def test_many_workers_get_one_claim_each_round(database: Database, appender: Appender, new_id: NewId) -> None:
    """F12: one claim each, numbers strictly rising."""
    assert await rounds_of_claims(database, appender, new_id, 40) == []


@pytest.mark.chaos
async def test_many_workers_get_one_claim_each_round_a_thousand_times(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """F12 in full."""
    assert await rounds_of_claims(database, appender, new_id, 1000) == []


async def claims_beside_one_another(database: Database, new_id: NewId) -> list[int]:
    """How many runs, of one, each of two workers gets, where the second looks before the first one's claim is committed."""
    await panels.start(database, new_id)
    first, second = [await panels.register(database, new_id) for _ in range(2)]
    async with database.writer() as writer:
        taken = await runs.claim(writer, first, batch=1, suspects=False)
        looking = asyncio.create_task(panels.claim(database, second))

        async def is_passed() -> bool:
            return looking.done() or await waits_for_a_lock(database)

        await until(is_passed)
    return [len(taken), len(await looking)]


async def test_claim_takes_nothing_that_another_is_taking(database: Database, new_id: NewId) -> None:
    """F12: nor does it wait for it."""
    assert await claims_beside_one_another(database, new_id) == [1, 0]


async def test_control_two_workers_get_the_same_run_without_skip_locked(
    database: Database, new_id: NewId, without: Any
) -> None:
    without(SKIP_LOCKED, "limit :batch")
    assert await claims_beside_one_another(database, new_id) == [1, 1]


async def test_batches_of_many_workers_share_no_run(database: Database, new_id: NewId) -> None:
    """Kernel.md 'Claims': SKIP LOCKED; all runs are taken, none twice, the higher priority first."""
    started = [await panels.start(database, new_id, priority=n % 3) for n in range(60)]
    first = await panels.claim(database, await panels.register(database, new_id), batch=20)
    assert {claimed.claim.run_id for claimed in first} == {s.run_id for s in started[2::3]}
    crew = [await panels.register(database, new_id) for _ in range(8)]
    got = await asyncio.gather(*(panels.claim(database, worker, batch=7) for worker in crew))
    taken = [claimed.claim.run_id for batch in [first, *got] for claimed in batch]
    assert sorted(taken) == sorted(s.run_id for s in started)


async def test_run_of_a_newer_state_is_left_to_newer_workers(database: Database, new_id: NewId) -> None:
    """F15, kernel.md 'Claims': an older worker never claims a run it cannot read, nor is it told that there is one."""
    started = await panels.start(database, new_id)
    await panels.execute(database, "update process set state_version = $1, is_suspect = true", STATE_VERSION + 1)
    worker_id = await panels.register(database, new_id)
    assert await panels.claim(database, worker_id, suspects=True) == []
    async with database.reader() as reader:
        assert (await runs.are_claimable(reader)).suspects is False
    await panels.execute(database, "update process set state_version = $1", STATE_VERSION)
    assert (await panels.claim(database, worker_id, suspects=True))[0].claim.run_id == started.run_id


# leases


async def test_worker_whose_lease_ran_out_claims_nothing(database: Database, new_id: NewId) -> None:
    """Kernel.md 'Claims': a claim is made under the worker's own live lease, by the database's clock (F22)."""
    await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id, lease_seconds=60)
    await panels.shift_clock(database, 61)
    assert await panels.claim(database, worker_id) == []
    assert len(await panels.claim(database, await panels.register(database, new_id))) == 1


async def test_control_dead_worker_claims_without_the_check_of_its_lease(
    database: Database, new_id: NewId, without: Any
) -> None:
    without(LIVE_LEASE)
    await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    await panels.shift_clock(database, 61)
    assert len(await panels.claim(database, worker_id)) == 1


async def test_ping_keeps_a_lease_and_does_not_revive_one(database: Database, new_id: NewId) -> None:
    """State.md, lease: a ping that touches no row means that the worker is taken for dead."""
    worker_id = await panels.register(database, new_id, lease_seconds=60)
    for seconds, is_alive in ((50, True), (50, True), (61, False), (0, False)):
        await panels.shift_clock(database, seconds)
        async with database.reader() as reader:
            assert await workers.ping(reader, worker_id, lease_seconds=60) is is_alive


async def test_claim_waits_for_no_ping_and_no_ping_for_a_claim(database: Database, new_id: NewId) -> None:
    """The claim's lock on the worker's row does not hold up its pings."""
    await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    async with database.writer() as writer:
        assert len(await runs.claim(writer, worker_id, batch=1, suspects=False)) == 1
        async with database.reader() as reader:
            assert await asyncio.wait_for(workers.ping(reader, worker_id, lease_seconds=60), 10)


async def test_lost_workers_runs_become_claimable_as_suspects(database: Database, new_id: NewId) -> None:
    """Kernel.md 'Claims', state.md 'Crashes and suspects': anybody may take them, apart; the last ping ends the stretch."""
    started = await panels.start(database, new_id)
    lost, other = await panels.register(database, new_id), await panels.register(database, new_id)
    await panels.claim(database, lost)
    await panels.shift_clock(database, 30)
    async with database.reader() as reader:
        assert await workers.ping(reader, lost, lease_seconds=60)
        assert await workers.ping(reader, other, lease_seconds=600)
    assert await sweep(database, new_id) == []
    await panels.shift_clock(database, 61)
    assert await sweep(database, new_id) == [{"to": "workers"}]
    row = await panels.row_of(database, started)
    assert (row["status"], row["is_suspect"], row["crash_count"], row["claimed_at"]) == ("Running", True, 0, None)
    assert timedelta(seconds=30) <= row["execution_time"] < timedelta(seconds=61)
    assert await panels.claim(database, other) == []
    assert (await panels.claim(database, other, suspects=True))[0].is_suspect
    assert [w["worker_id"] for w in await panels.fetch(database, "select worker_id from worker")] == [other]


async def test_claim_of_a_worker_whose_row_is_gone_is_not_lost(database: Database, new_id: NewId) -> None:
    """A run that names a worker without a row would be claimed by nobody for ever."""
    await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    await panels.claim(database, worker_id)
    await panels.execute(database, "delete from worker")
    assert await sweep(database, new_id) == [{"to": "workers"}]
    assert len(await panels.claim(database, await panels.register(database, new_id), suspects=True)) == 1


async def crash(database: Database, new_id: NewId, *, is_apart: bool) -> ClaimedRun:
    """A worker that claims the run and is gone."""
    worker_id = await panels.register(database, new_id, is_apart=is_apart)
    claimed = (await panels.claim(database, worker_id, suspects=is_apart))[0]
    async with database.writer() as writer:
        await workers.end_lease(writer, worker_id)
    await sweep(database, new_id)
    return claimed


async def crash_count(database: Database, started: Started) -> tuple[int, bool]:
    row = await panels.row_of(database, started)
    return row["crash_count"], row["is_suspect"]


async def test_crash_counts_only_while_apart(database: Database, appender: Appender, new_id: NewId) -> None:
    """State.md 'Crashes and suspects': only a worker's item takes the suspicion away, not a person's; the count with it."""
    started = await panels.start(database, new_id)
    await crash(database, new_id, is_apart=False)
    assert await crash_count(database, started) == (0, True)
    await crash(database, new_id, is_apart=True)
    await crash(database, new_id, is_apart=True)
    await panels.post(database, started, new_id)
    assert await crash_count(database, started) == (2, True)
    worker_id = await panels.register(database, new_id, is_apart=True)
    claimed = (await panels.claim(database, worker_id, suspects=True))[0]
    # no item, no acquittal
    assert (await appender.append(Append(claimed.claim, claimed.signal_number))).is_whole
    assert await crash_count(database, started) == (2, True)
    await appender.append(Append(claimed.claim, claimed.signal_number, [panels.said(new_id, "I live.")], 1))
    assert await crash_count(database, started) == (0, False)


async def test_run_that_crashes_three_times_apart_is_failed_with_a_reason(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """F13, B20: Failed with a reason a person understands, in the conversation too; its open calls have their results."""
    started = await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    claimed = (await panels.claim(database, worker_id))[0]
    begun, asked = new_id(), new_id()
    calls = [CallAsked(call_id, None, "pay", 1, b"hash") for call_id in (begun, asked)]
    turn_id, ann = new_id(), Author(AuthorKind.AGENT, "Ann", new_id())
    floor = Item(
        new_id(), ORCHESTRATOR, items.OrchestratorMessage("Ann has the floor."), items.Floor("Ann", 1), turn_id
    )
    made = [
        Item(new_id(), ann, items.ToolCall(str(call_id), "pay", "{}"), items.Called(leaves=True), turn_id)
        for call_id in (begun, asked)
    ]
    await appender.append(Append(claimed.claim, 0, [floor, *made], 3, calls_asked=calls))
    await appender.append(Append(claimed.claim, 0, calls_begun=[begun]))
    async with database.writer() as writer:
        await workers.end_lease(writer, worker_id)
    await sweep(database, new_id)
    for _ in range(3):
        await crash(database, new_id, is_apart=True)
    row = await panels.row_of(database, started)
    assert row["status"] == "Failed" and "took its worker down 3 times" in row["failure_details"]
    conversation = await panels.items_of(database, started)
    assert (
        [stored.sequence for stored in conversation] == list(range(1, row["last_sequence"] + 1)) == [1, 2, 3, 4, 5, 6]
    )
    results = {
        stored.item.body.tool_call_id: (stored.item.body.result, stored.item.detail)
        for stored in conversation
        if isinstance(stored.item.body, items.ToolResult)
    }
    assert "may or may not have happened" in results[str(begun)][0]
    assert results[str(begun)][1] == items.UnknownOutcome() and results[str(asked)][1] == items.NotMade()
    last = conversation[-1].item
    assert last.detail == items.Ended(items.EndReason.FAILURE)
    assert isinstance(last.body, items.OrchestratorMessage) and last.body.message == row["failure_details"]
    outcomes = {r["call_id"]: r["outcome"] for r in await panels.rows_of(database, started, "call")}
    assert outcomes == {begun: "unknown", asked: "error"}


# stops, waiting for time


async def test_run_that_nobody_began_is_stopped_at_once(database: Database, new_id: NewId) -> None:
    """Kernel.md 'States': New -> Stopped; nobody can claim it any more."""
    started = await panels.start(database, new_id)
    assert await panels.stop(database, started) is RunStatus.STOPPED
    assert await panels.stop(database, started) is None
    assert await panels.claim(database, await panels.register(database, new_id)) == []


async def test_stop_and_claim_at_the_same_moment_lose_neither(database: Database, new_id: NewId) -> None:
    """Either it is Stopped and nobody has it, or a worker has it and knows, or will learn, that it is to stop."""
    worker_id = await panels.register(database, new_id)
    for _ in range(40):
        started = await panels.start(database, new_id)
        status, claimed = await asyncio.gather(panels.stop(database, started), panels.claim(database, worker_id))
        row = await panels.row_of(database, started)
        assert (row["stopped_by"], row["signal_number"]) == ("Pat", 1)
        assert row["status"] == status == (RunStatus.RUNNING if claimed else RunStatus.STOPPED)


async def test_stop_does_not_wait_for_a_backoff_to_end(database: Database, appender: Appender, new_id: NewId) -> None:
    """A run that was handed back for a minute is claimable at once by the one who carries the stop out."""
    started = await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    claimed = (await panels.claim(database, worker_id))[0]
    await appender.append(Append(claimed.claim, 0, hand_back=HandBack(60)))
    assert await panels.claim(database, worker_id) == []
    async with database.reader() as reader:
        next_in = (await runs.are_claimable(reader)).next_in
    assert next_in is not None and 0 < next_in.total_seconds() <= 60
    assert await panels.stop(database, started) is RunStatus.RUNNING
    assert len(await panels.claim(database, worker_id)) == 1


async def test_time_limit_moves_the_signal_of_runs_at_work_alone(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Kernel.md 'Time': the limit counts the time at work; a run that is handed back has used up only its stretch."""
    limited = panels.interaction(new_id, duration_auto_termination=timedelta(seconds=100))
    at_work, handed_back = [await panels.start(database, new_id, limited) for _ in range(2)]
    worker_id = await panels.register(database, new_id, lease_seconds=10_000)
    claims = {c.claim.run_id: c for c in await panels.claim(database, worker_id, batch=2)}
    await panels.shift_clock(database, 60)
    await appender.append(Append(claims[handed_back.run_id].claim, 0, hand_back=HandBack()))
    await panels.shift_clock(database, 41)
    assert await sweep(database, new_id) == [{"to": "run", "run": str(at_work.run_id)}]
    again = (await panels.claim(database, worker_id))[0]
    assert again.work_deadline is not None and 30 < (again.work_deadline - again.now).total_seconds() < 40
    await panels.shift_clock(database, 41)
    assert len(await sweep(database, new_id)) == 2


# the whole table of moves


@dataclass(frozen=True)
class Stage:
    database: Database
    appender: Appender
    worker_id: UUID
    new_id: NewId


async def _put(stage: Stage, status: RunStatus) -> tuple[Started, Claim]:
    """A run in a status, as it would stand there; with the claim that its holder has, or one might forge."""
    started = await panels.start(stage.database, stage.new_id)
    claim_id = uuid4()
    is_held = status is RunStatus.RUNNING
    await panels.execute(
        stage.database,
        """update process set status = $2, claim_number = 1, worker_id = $3, claim_id = $4, claimed_at = folkmoot_now(),
               ended_at = case when $5 then folkmoot_now() end, ready_at = case when $6 then folkmoot_now() end
           where run_id = $1""",
        started.run_id, status.value, stage.worker_id if is_held else None, claim_id if is_held else None, status in FINAL,
        status not in FINAL and not is_held,
    )  # fmt: skip
    return started, Claim(started.tenant_id, started.run_id, 1, claim_id)


async def _claim(stage: Stage, started: Started, claim: Claim) -> bool:
    if (await panels.row_of(stage.database, started))["status"] == "Running":
        await stage.appender.append(Append(claim, 0, hand_back=HandBack()))
    return bool(await panels.claim(stage.database, stage.worker_id))


async def _append(stage: Stage, append: Append) -> bool:
    try:
        return (await stage.appender.append(append)).is_whole
    except LeaseLost:
        return False


async def _hand_back(stage: Stage, started: Started, claim: Claim) -> bool:
    return await _append(stage, Append(claim, 0, hand_back=HandBack()))


async def _complete(stage: Stage, started: Started, claim: Claim) -> bool:
    return await _append(stage, Append(claim, 0, end=End(RunStatus.COMPLETED, output="done")))


async def _fail(stage: Stage, started: Started, claim: Claim) -> bool:
    return await _append(stage, Append(claim, 0, end=End(RunStatus.FAILED, failure="It failed.")))


async def _stop(stage: Stage, started: Started, claim: Claim) -> bool:
    """Asked for by a person; where a worker has to carry it out, it does."""
    status = await panels.stop(stage.database, started)
    if status is None or status is RunStatus.STOPPED:
        return status is not None
    row = await panels.row_of(stage.database, started)
    held = claim if row["worker_id"] else (await panels.claim(stage.database, stage.worker_id))[0].claim
    return await _append(stage, Append(held, row["signal_number"], end=End(RunStatus.STOPPED)))


MOVES = {
    Move.CLAIM: _claim, Move.HAND_BACK: _hand_back, Move.COMPLETE: _complete, Move.FAIL: _fail, Move.STOP: _stop
}  # fmt: skip
LATER = {Move.PAUSE_HUMAN, Move.PAUSE_APPROVAL, Move.PAUSE_SUB_INTERACTIONS, Move.EXPIRE}


def test_every_move_is_walked_or_named_as_later() -> None:
    """A new move without a statement, or a statement that is not walked, is noticed."""
    assert set(MOVES) | LATER == set(Move) and not set(MOVES) & LATER


async def test_statements_leave_exactly_the_states_of_the_table(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Style.md habit 2: the code's table and the SQL's WHERE agree, walked over product(status, move)."""
    stage = Stage(database, appender, await panels.register(database, new_id), new_id)
    wrong: list[str] = []
    for status, (move, make) in itertools.product(RunStatus, MOVES.items()):
        started, claim = await _put(stage, status)
        made = await make(stage, started, claim)
        now = RunStatus((await panels.row_of(database, started))["status"])
        sources, target = TRANSITIONS[move]
        wanted = (True, target) if status in sources else (False, status)
        if (made, now) != wanted:
            wrong.append(f"{move} from {status}: {made}, {now}, not {wanted}")
        await panels.execute(database, "update process set ready_at = null, worker_id = null, claim_id = null")
    assert wrong == []


@pytest.mark.parametrize("status", sorted(FINAL | WAITING))
async def test_status_without_a_holder_admits_no_holder(database: Database, new_id: NewId, status: RunStatus) -> None:
    """Architecture, 'Storage': CHECK constraints say again what the code says."""
    started = await panels.start(database, new_id)
    refused = "update process set status = $2, worker_id = gen_random_uuid(), ended_at = case when $3 then now() end, ready_at = null where run_id = $1"
    with pytest.raises(Exception, match="check constraint"):
        await panels.execute(database, refused, started.run_id, status.value, status in FINAL)
