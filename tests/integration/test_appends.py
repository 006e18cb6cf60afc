"""The fenced append against a real database. Every test of a guard has a control that takes the guard out and must fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiosql
import asyncpg
import panels
import pytest
import pytest_asyncio
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.agent_runs import Phase
from folkmoot.domain.items import ORCHESTRATOR, Item
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Claim, ClaimedRun
from folkmoot.kernel.errors import LeaseLost, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.store import appends, conversations
from folkmoot.store.appends import AgentChange, Append, Appender, CallAsked, CallEnded, End, HandBack, ModelCallBegun
from folkmoot.store.database import Database

NUMBER_FENCE = "and p.claim_number = r.number"
ID_FENCE = "and p.claim_id = r.claim_id"
SIGNAL = "p.signal_number = r.signal"


@pytest_asyncio.fixture
async def appender(database: Database) -> AsyncIterator[Appender]:
    made = Appender(database)
    yield made
    await made.close()


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Takes a guard out of the append's statement."""

    def take_out(guard: str, instead: str = "") -> None:
        for statement in ("_WHOLE", "_LEAN"):
            text = getattr(appends, statement)
            assert guard in text
            monkeypatch.setattr(appends, statement, text.replace(guard, instead))

    return take_out


async def claimed_run(database: Database, new_id: NewId) -> tuple[Started, ClaimedRun]:
    started = await panels.start(database, new_id)
    worker_id = await panels.register(database, new_id)
    return started, (await panels.claim(database, worker_id))[0]


async def sequences(database: Database, started: Started) -> list[int]:
    return [stored.sequence for stored in await panels.items_of(database, started)]


# the claim


async def late_append(
    database: Database, appender: Appender, new_id: NewId, forge: Any
) -> tuple[int, Exception | None]:
    """A worker that lost its run appends with what `forge` makes of its claim: the items it got in, and the error."""
    started, first = await claimed_run(database, new_id)
    await panels.shift_clock(database, 61)
    async with database.writer() as writer:
        await panels.workers.take_from_lost(writer)
    second = (await panels.claim(database, await panels.register(database, new_id), suspects=True))[0]
    assert second.claim.number == first.claim.number + 1
    claim = forge(first.claim, second.claim)
    error: Exception | None = None
    try:
        await appender.append(Append(claim, first.signal_number, [panels.said(new_id, "I am late.")], 1))
    except LeaseLost as lost:
        error = lost
    return len(await panels.items_of(database, started)), error


def own(first: Claim, second: Claim) -> Claim:
    return first


def number_alone(first: Claim, second: Claim) -> Claim:
    return replace(second, claim_id=first.claim_id)


def id_alone(first: Claim, second: Claim) -> Claim:
    return replace(second, number=first.number)


@pytest.mark.parametrize("forge", [own, number_alone, id_alone])
async def test_late_worker_cannot_append(database: Database, appender: Appender, new_id: NewId, forge: Any) -> None:
    """F10, state.md 'Sequences': a write needs both the claim's number and its id."""
    written, error = await late_append(database, appender, new_id, forge)
    assert (written, type(error)) == (0, LeaseLost)


@pytest.mark.parametrize(
    ("forge", "guards"), [(own, [NUMBER_FENCE, ID_FENCE]), (number_alone, [ID_FENCE]), (id_alone, [NUMBER_FENCE])]
)
async def test_control_late_worker_can_append_without_the_fence(
    database: Database, new_id: NewId, without: Any, forge: Any, guards: list[str]
) -> None:
    for guard in guards:
        without(guard)
    appender = Appender(database)
    assert await late_append(database, appender, new_id, forge) == (1, None)
    await appender.close()


# firm and soft


async def append_over_a_message(
    database: Database, appender: Appender, new_id: NewId
) -> tuple[list[str], appends.Appended, dict[str, Any]]:
    started, claimed = await claimed_run(database, new_id)
    message = await panels.post(database, started, new_id)
    assert message is not None
    firm, soft = panels.said(new_id, "firm"), panels.said(new_id, "soft")
    begun = ModelCallBegun(new_id(), None, "turn:1", "Ann", "scripted", "rules")
    append = Append(claimed.claim, claimed.signal_number, [firm, soft], 1, model_calls_begun=[begun])
    appended = await appender.append(append)
    calls = await panels.rows_of(database, started, "model_call")
    return panels.texts(await panels.items_of(database, started)), appended, {"model_calls": len(calls)}


async def test_message_in_between_keeps_the_soft_part_out(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """State.md 'Sequences': the outcome of I/O is appended whatever came between; what was decided from it is not."""
    said, appended, facts = await append_over_a_message(database, appender, new_id)
    assert said == ["Pat: A word from me.", "Ann: firm"]
    assert (appended.is_whole, appended.before, appended.signal_number) == (False, 1, 1)
    assert facts == {"model_calls": 0}


async def test_control_soft_part_is_written_when_the_signal_is_ignored(
    database: Database, new_id: NewId, without: Any
) -> None:
    without(SIGNAL, "true")
    appender = Appender(database)
    said, appended, facts = await append_over_a_message(database, appender, new_id)
    assert said[-1] == "Ann: soft" and appended.is_whole and facts == {"model_calls": 1}
    await appender.close()


async def accept_after_stop(database: Database, appender: Appender, new_id: NewId) -> tuple[Started, ClaimedRun, Any]:
    started, claimed = await claimed_run(database, new_id)
    assert await panels.stop(database, started) is RunStatus.RUNNING
    tally = panels.said(new_id, "accepted")
    appended = await appender.append(
        Append(claimed.claim, claimed.signal_number, [tally], 0, End(RunStatus.COMPLETED, output="yes"))
    )
    return started, claimed, appended


async def test_stop_before_an_acceptance_wins(database: Database, appender: Appender, new_id: NewId) -> None:
    """State.md 'Sequences': a stop that commits before an acceptance wins."""
    started, claimed, appended = await accept_after_stop(database, appender, new_id)
    row = await panels.row_of(database, started)
    assert (appended.is_whole, appended.stopped_by, row["status"], row["last_sequence"]) == (False, "Pat", "Running", 0)
    again = Append(claimed.claim, appended.signal_number, [panels.said(new_id, "stopped")], 0, End(RunStatus.STOPPED))
    assert (await appender.append(again)).is_whole
    assert (await panels.row_of(database, started))["status"] == "Stopped"


async def test_control_acceptance_wins_when_the_signal_is_ignored(
    database: Database, new_id: NewId, without: Any
) -> None:
    without(SIGNAL, "true")
    appender = Appender(database)
    started, _, appended = await accept_after_stop(database, appender, new_id)
    assert appended.is_whole and (await panels.row_of(database, started))["status"] == "Completed"
    await appender.close()


async def test_stop_and_acceptance_at_the_same_moment_have_one_winner(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """State.md 'Sequences': whoever commits first wins, and the other is told."""
    for _ in range(40):
        started, claimed = await claimed_run(database, new_id)
        end = Append(claimed.claim, claimed.signal_number, [], 0, End(RunStatus.COMPLETED, output="yes"))
        appended, stopped = await asyncio.gather(appender.append(end), panels.stop(database, started))
        row = await panels.row_of(database, started)
        assert appended.is_whole == (stopped is None) == (row["status"] == "Completed")
        assert (row["stopped_by"] is None) == appended.is_whole


# sequences


async def two_kinds_of_writers(database: Database, appender: Appender, new_id: NewId) -> list[str]:
    """50 messages of people and 50 outcomes of a worker, the first of each in turn and the others at once: what is wrong after it."""
    started, claimed = await claimed_run(database, new_id)

    async def say(n: int) -> None:
        await appender.append(Append(claimed.claim, 0, [panels.said(new_id, f"{n}{x}") for x in "ab"], 2))

    async def work() -> None:
        for n in range(1, 50):
            await say(n)

    await say(0)
    await panels.post(database, started, new_id, "m0")
    results = await asyncio.gather(
        work(), *(panels.post(database, started, new_id, f"m{n}") for n in range(1, 50)), return_exceptions=True
    )
    faults = [f"{type(r).__name__}" for r in results if isinstance(r, BaseException)]
    found = await sequences(database, started)
    if found != list(range(1, 151)):
        faults.append(f"{len(found)} items")
    said = [text.split(": ")[1] for text in panels.texts(await panels.items_of(database, started))]
    if [t for t in said if t[0] != "m"] != [f"{n}{x}" for n in range(50) for x in "ab"] or len(set(said)) != 150:
        faults.append("lost, double or out of order")
    return faults


async def test_two_kinds_of_writers_leave_no_gap(database: Database, appender: Appender, new_id: NewId) -> None:
    """State.md 'Sequences', B23: one allocation for workers and people."""
    assert await two_kinds_of_writers(database, appender, new_id) == []


async def test_control_writers_collide_without_the_allocation_in_the_row(
    database: Database, appender: Appender, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = """
    -- name: append_message^
    insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, author_id, thread_id, body)
    select :tenant_id, :run_id, coalesce((select max(sequence) from item where tenant_id = :tenant_id and run_id = :run_id), 0) + 1,
           folkmoot_now(), :item_id, 'humanMessage', 'Human', :author_name, :author_id, :thread_id, :body
    returning *;
    """
    statements: Any = aiosql.from_str(careless, "asyncpg", kwargs_only=True, mandatory_parameters=False)
    monkeypatch.setattr(conversations._sql, "append_message", statements.append_message)
    # the worker's second outcome meets the first message, if no other two meet before
    assert await two_kinds_of_writers(database, appender, new_id) != []


# gathering


async def gather_with(
    database: Database, appender: Appender, new_id: NewId, bad: Append
) -> tuple[list[Any], list[int]]:
    """The bad append and five good ones in one batch: all results, and how many items each good run has."""
    good = [await claimed_run(database, new_id) for _ in range(5)]
    made = [Append(c.claim, c.signal_number, [panels.said(new_id, "fine")], 1) for _, c in good]
    results = await asyncio.gather(*map(appender.append, [*made[:2], bad, *made[2:]]), return_exceptions=True)
    return results, [len(await panels.items_of(database, started)) for started, _ in good]


async def bad_append(database: Database, new_id: NewId) -> tuple[Started, Append]:
    """One that the server refuses: the same model call twice."""
    started, claimed = await claimed_run(database, new_id)
    begun = ModelCallBegun(new_id(), None, "turn:1", "Ann", "scripted", "rules")
    bad = Append(claimed.claim, 0, [panels.said(new_id, "bad")], 1, model_calls_begun=[begun, begun])
    return started, bad


async def test_bad_append_does_not_take_others_of_its_batch_along(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Decisions 3: when a gathered statement fails, its runs are tried singly."""
    started, bad = await bad_append(database, new_id)
    results, written = await gather_with(database, appender, new_id, bad)
    assert isinstance(results[2], asyncpg.UniqueViolationError) and written == [1] * 5
    assert await panels.items_of(database, started) == []


async def test_append_that_cannot_even_be_sent_does_not_stop_the_lane(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """F25: what cannot be encoded is that append's error, and everybody else goes on, also afterwards."""
    started, claimed = await claimed_run(database, new_id)
    surrogate = ModelCallBegun(new_id(), None, "turn:\ud800", "Ann", "scripted", "rules")
    unwritable = Append(claimed.claim, 0, [panels.said(new_id, "bad")], 1, model_calls_begun=[surrogate])
    for _ in range(3):
        results, written = await gather_with(database, appender, new_id, unwritable)
        assert isinstance(results[2], Exception) and not isinstance(results[2], Unreachable) and written == [1] * 5
    assert await panels.items_of(database, started) == []


async def test_control_bad_append_takes_its_batch_along_without_the_single_tries(
    database: Database, appender: Appender, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def all_or_nothing(lane: Any, batch: Any) -> list[Any]:
        appends._settle(batch, await lane._fetch([waiting.append for waiting in batch]))
        return []

    monkeypatch.setattr(appends._Lane, "_commit", all_or_nothing)
    _, bad = await bad_append(database, new_id)
    _, written = await gather_with(database, appender, new_id, bad)
    assert written != [1] * 5


_MAKE_AGENT_RUN = """
insert into agent_run (tenant_id, run_id, agent_id, owner_id, correlation_token, created_at, modified_at)
select tenant_id, run_id, definition_id, created_by, repeat('x', 20) || run_id, now(), now() from process where run_id = $1
"""


async def agent_appends(database: Database, new_id: NewId, *, count: int) -> list[tuple[Started, Append]]:
    """One for each of so many agent runs, with a firm item and a payload."""
    made = []
    for _ in range(count):
        started, claimed = await claimed_run(database, new_id)
        async with database.writer() as writer:
            await writer.connection.execute(_MAKE_AGENT_RUN, started.run_id)
        change = AgentChange(Phase.ACT, new_id(), {"of": str(started.run_id)})
        append = Append(claimed.claim, claimed.signal_number, [panels.said(new_id, "fine")], 1, agent=change)
        made.append((started, append))
    return made


async def revisions(database: Database, made: list[tuple[Started, Append]]) -> list[int]:
    async with database.reader() as reader:
        found = await reader.connection.fetch("select run_id, payload_revision from agent_run")
    by_run = {row["run_id"]: row["payload_revision"] for row in found}
    return [by_run[started.run_id] for started, _ in made]


async def test_agent_runs_are_gathered_and_each_has_what_belongs_to_its_own_append(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Beside an interaction's append, one that a message came before, whose payload is not written, and a bad one, which takes nobody along."""
    made = await agent_appends(database, new_id, count=5)
    assert await panels.post(database, made[1][0], new_id) is not None
    started, claimed = await claimed_run(database, new_id)
    _, bad = await bad_append(database, new_id)
    for others, expected in (([], [1, 0, 1, 1, 1]), ([bad], [2, 0, 2, 2, 2])):
        appends_ = [replace(append, items=[panels.said(new_id, "fine")]) for _, append in made]
        for append in appends_:
            assert append.agent is not None
            append.agent = replace(append.agent, payload_id=new_id())
        beside = Append(claimed.claim, claimed.signal_number, [panels.said(new_id, "fine")], 1)
        results = await asyncio.gather(
            *map(appender.append, [*appends_[:2], *others, beside, *appends_[2:]]), return_exceptions=True
        )
        assert sum(isinstance(result, Exception) for result in results) == len(others), results
        assert await revisions(database, made) == expected
    assert len(await panels.items_of(database, started)) == 2


async def test_control_what_was_not_written_is_noted_all_the_same_without_the_look_at_it(
    database: Database, appender: Appender, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def note_all(lane: Any, batch: Any) -> Any:
        async with lane._connection.transaction():
            rows = await lane._fetch(batch)
            await appends.agent_runs.note(lane._connection, batch)
        return rows

    monkeypatch.setattr(appends._Lane, "_fetch_and_note", note_all)
    made = await agent_appends(database, new_id, count=2)
    assert await panels.post(database, made[1][0], new_id) is not None
    await asyncio.gather(*(appender.append(append) for _, append in made))
    assert await revisions(database, made) == [1, 1]


async def test_gathered_agent_runs_commit_once(
    database: Database, appender: Appender, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each waits for those before it, five passages each."""
    batches: list[int] = []
    note = appends.agent_runs.note

    async def noted(connection: Any, batch: Any) -> None:
        batches.append(len(batch))
        await note(connection, batch)

    monkeypatch.setattr(appends.agent_runs, "note", noted)
    made = await agent_appends(database, new_id, count=5)
    await asyncio.gather(*(appender.append(append) for _, append in made))
    assert batches == [5] and await revisions(database, made) == [1] * 5


async def others_beside_a_locked_run(
    database: Database, appender: Appender, new_id: NewId, *, seconds: float
) -> tuple[bool, asyncio.Task[Any], asyncpg.Connection, Started]:
    """While one run's row is locked: whether appends of 20 others, gathered with its own, are through in time."""
    started, claimed = await claimed_run(database, new_id)
    others = [(await claimed_run(database, new_id))[1] for _ in range(20)]
    holder = await database.connect()
    await holder.execute("begin")
    await holder.execute("select from process where run_id = $1 for update".replace("$1", f"'{started.run_id}'"))
    made = [Append(c.claim, c.signal_number, [panels.said(new_id, "fine")], 1) for c in (claimed, *others)]
    locked, *free = [asyncio.create_task(appender.append(append)) for append in made]
    _, pending = await asyncio.wait(free, timeout=seconds)
    return not pending and not locked.done(), locked, holder, started


async def test_lock_on_one_run_does_not_hold_up_others(database: Database, appender: Appender, new_id: NewId) -> None:
    """Decisions 3: others are through while the lock is still held; the locked one is written when it is free."""
    are_through, locked, holder, started = await others_beside_a_locked_run(database, appender, new_id, seconds=20)
    assert are_through
    await holder.execute("rollback")
    assert (await asyncio.wait_for(locked, 20)).is_whole
    assert await sequences(database, started) == [1]
    await holder.close()


async def test_control_lock_on_one_run_holds_up_others_without_the_lock_timeout(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(appends, "_LOCK_MILLISECONDS", 0)
    appender = Appender(database)
    are_through, locked, holder, _ = await others_beside_a_locked_run(database, appender, new_id, seconds=1)
    assert not are_through
    await holder.execute("rollback")
    await locked
    await holder.close()
    await appender.close()


async def test_cancelled_caller_takes_nobody_along(database: Database, appender: Appender, new_id: NewId) -> None:
    """Spec/state.md 'Crashes': a task that is dropped leaves its batch to the others, and may hand its run back at once."""
    started, claimed = await claimed_run(database, new_id)
    _, other = await claimed_run(database, new_id)
    doomed = asyncio.create_task(appender.append(Append(claimed.claim, 0, [panels.said(new_id, "dropped")], 1)))
    beside = asyncio.create_task(appender.append(Append(other.claim, 0, [panels.said(new_id, "fine")], 1)))
    await asyncio.sleep(0)
    doomed.cancel()
    assert (await beside).is_whole
    assert (await appender.append(Append(claimed.claim, 0, hand_back=HandBack()))).is_whole
    assert (await panels.row_of(database, started))["worker_id"] is None


async def test_lost_connection_is_told_as_such_and_the_next_append_goes_through(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """F20: cut while the statement waits, the append is Unreachable and nothing is written; the lane connects anew."""
    started, claimed = await claimed_run(database, new_id)
    holder = await database.connect()
    await holder.execute(f"begin; select from process where run_id = '{started.run_id}' for update")
    waiting = asyncio.create_task(appender.append(Append(claimed.claim, 0, [panels.said(new_id, "cut")], 1)))
    cut = """select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and wait_event_type = 'Lock' and query like '%unnest($1%'"""
    while not waiting.done():
        await panels.fetch(database, cut)
        await asyncio.sleep(0.01)
    with pytest.raises(Unreachable):
        await waiting
    await holder.execute("rollback")
    assert await panels.items_of(database, started) == []
    assert (await appender.append(Append(claimed.claim, 0, [panels.said(new_id, "again")], 1))).before == 0
    await holder.close()


async def test_appends_that_wait_when_it_closes_are_told(database: Database, new_id: NewId) -> None:
    """Nobody waits for ever for a commit that will not come."""
    appender = Appender(database)
    _, claimed = await claimed_run(database, new_id)
    holder = await database.connect()
    await holder.execute(f"begin; select from process where run_id = '{claimed.claim.run_id}' for update")
    waiting = asyncio.create_task(appender.append(Append(claimed.claim, 0, [panels.said(new_id, "late")], 1)))
    await asyncio.sleep(0)
    await appender.close()
    with pytest.raises(Unreachable):
        await waiting
    with pytest.raises(Unreachable):
        await appender.append(Append(claimed.claim, 0, hand_back=HandBack()))
    await holder.close()


# letting go


async def test_hand_back_makes_the_run_claimable_and_counts_its_time(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Kernel.md 'States': dateRunnerClaimed is null after a hand-back, and the stretch counts as execution time."""
    started, claimed = await claimed_run(database, new_id)
    await panels.shift_clock(database, 10)
    # whatever came between: it is not soft
    await panels.post(database, started, new_id)
    appended = await appender.append(
        Append(claimed.claim, claimed.signal_number, hand_back=HandBack(5.0), driver_errors=2)
    )
    row = await panels.row_of(database, started)
    assert not appended.is_whole
    assert (row["status"], row["worker_id"], row["claim_id"], row["claimed_at"]) == ("Running", None, None, None)
    assert 10 <= row["execution_time"].total_seconds() < 70 and row["driver_errors"] == 2
    assert row["pinged_at"] is not None and row["ready_at"] > row["updated_at"]
    with pytest.raises(LeaseLost):
        await appender.append(Append(claimed.claim, 1, [panels.said(new_id, "late")], 1))


async def test_end_lets_go_of_the_run_and_keeps_its_output(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """Kernel.md 'States': output and dateEnded at the end; nobody holds it any more."""
    started, claimed = await claimed_run(database, new_id)
    await panels.shift_clock(database, 10)
    end = Append(claimed.claim, 0, [panels.said(new_id, "done")], 0, End(RunStatus.COMPLETED, output="a\x00b"))
    assert (await appender.append(end)).is_whole
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"], row["worker_id"], row["ready_at"]) == ("Completed", "a\u2400b", None, None)
    assert row["ended_at"] is not None and row["execution_time"].total_seconds() >= 10
    assert await panels.post(database, started, new_id) is None
    assert await panels.stop(database, started) is None


async def test_call_that_is_asked_for_and_closed_at_once_is_not_left_open(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """B20: a reply's calls are closed by the end that comes with it; if the end is not written, they stay open."""
    for is_whole in (True, False):
        started, claimed = await claimed_run(database, new_id)
        if not is_whole:
            await panels.post(database, started, new_id)
        call_id = new_id()
        call = Item(new_id(), ORCHESTRATOR, items.ToolCall(str(call_id), "look", "{}"), items.Called(leaves=True))
        result = Item(new_id(), ORCHESTRATOR, items.ToolResult(str(call_id), "The run has ended.", True, 18))
        asked = CallAsked(call_id, None, "look", 1, b"hash", closed_as="error")
        append = Append(claimed.claim, 0, [call, result], 1, End(RunStatus.STOPPED), calls_asked=[asked])
        assert (await appender.append(append)).is_whole is is_whole
        row = (await panels.rows_of(database, started, "call"))[0]
        assert (row["outcome"], row["ended_at"] is not None) == (("error", True) if is_whole else (None, False))


async def test_soft_end_of_a_call_is_not_written_over_a_message(
    database: Database, appender: Appender, new_id: NewId
) -> None:
    """F04: a call whose 'outcome unknown' was not written stays open and begun."""
    started, claimed = await claimed_run(database, new_id)
    call_id = new_id()
    asked = Append(claimed.claim, 0, calls_asked=[CallAsked(call_id, None, "pay", 1, b"hash")])
    await appender.append(asked)
    assert (await appender.append(Append(claimed.claim, 0, calls_begun=[call_id]))).is_whole
    await panels.post(database, started, new_id)
    for is_firm in (False, True):
        ended = CallEnded(call_id, "unknown", is_firm)
        await appender.append(Append(claimed.claim, 0, calls_ended=[ended]))
        row = (await panels.rows_of(database, started, "call"))[0]
        assert (row["begun_at"] is not None, row["outcome"]) == (True, "unknown" if is_firm else None)


# a rolling upgrade


async def test_a_worker_of_the_version_before_still_commits(database: Database, new_id: NewId) -> None:
    """F15; kernel.md: 'a rolling upgrade needs no pause'. `former/appends.sql` is the statement of the version before, as it was."""
    started, claimed = await claimed_run(database, new_id)
    former = (Path(__file__).parent / "former" / "appends.sql").read_text(encoding="utf-8")
    claim, item_id = claimed.claim, new_id()
    run = (
        0, claim.tenant_id, claim.run_id, claim.number, claim.claim_id, claimed.signal_number, 0, 1, "Completed", False, "42", None, None,
        None, None, None,
    )  # fmt: skip
    item = (
        0, 1, item_id, "agentMessage", "Agent", "Ann", None, "main", None, None, json.dumps({"text": "42"}), None,
    )  # fmt: skip
    async with database.writer() as writer:
        statement = await writer.connection.prepare(former)
        (row,) = await statement.fetch([run], [item], *[[] for _ in range(19)])
    assert row["is_whole"]
    stored = await panels.row_of(database, started)
    assert (stored["status"], stored["output"], stored["last_sequence"]) == ("Completed", "42", 1)


async def test_an_upgrade_leaves_no_constraint_unproved(database: Database) -> None:
    """They are added as not valid, so that no worker waits meanwhile."""
    assert await panels.fetch(database, "select conname from pg_constraint where not convalidated") == []
