"""Real workers that are killed, stopped, frozen or told to end (faults.md, Workers), and the ones that take over from them."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import checker
import crews
import panels
import pytest
import pytest_asyncio
from crews import until
from panel_with_tools import panel
from panels import Started
from processes import HERE, SHOP, Hands, Hired, hands

from folkmoot.domain import items
from folkmoot.engine.calls import UNKNOWN
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database

KILLED = -signal.SIGKILL
LONG = 60.0  # for what takes seconds on a machine that is not busy
PAY = {"name": "pay", "arguments": {"amount": 5}}
NOTE = {"name": "note", "arguments": {"text": "cheap"}}
WAIT = {"name": "wait", "arguments": {"text": "x"}}
LOOK = {"name": "look", "arguments": {"text": "prices"}}


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


async def ended(crew: Hands, started: Started) -> dict[str, Any]:
    """Waits for the run's end, and has everything checked; its row."""
    await until(lambda: panels.has_ended(crew.database, started), seconds=LONG)
    assert await checker.faults(crew.database, crew.log) == []
    return await panels.row_of(crew.database, started)


async def killed_at(crew: Hands, new_id: NewId, fault: str, calls: list[dict[str, Any]] | None = None) -> Started:
    """A worker dies at the fault, and others end the run."""
    started = await panels.start(crew.database, new_id, panel(new_id, calls))
    first = await crew.hire(fault=fault)
    assert await asyncio.wait_for(first.wait(), LONG) == KILLED
    async with crews.rescuers(crew.database, new_id, crew.functions()):
        row = await ended(crew, started)
    assert (row["status"], row["output"], row["crash_count"]) == ("Completed", "keep", 0)
    return started


async def calls_of(crew: Hands, started: Started, participant: str) -> list[str | None]:
    """How the participant's model calls ended, in order."""
    rows = await panels.rows_of(crew.database, started, "model_call")
    own = [row for row in rows if row["participant"] == participant and row["voided_at"] is None]
    return [row["error_class"] for row in sorted(own, key=lambda row: (row["started_at"], row["model_call_id"]))]


def made(crew: Hands, name: str) -> list[checker.Entry]:
    return [entry for entry in checker.log_of(crew.log) if entry.name == name]


async def results(crew: Hands, started: Started) -> list[str]:
    """Results of the calls in the order of the calls."""
    conversation = await panels.items_of(crew.database, started)
    bodies = [stored.item.body for stored in conversation]
    by_id = {body.tool_call_id: body.result for body in bodies if isinstance(body, items.ToolResult)}
    return [by_id[body.tool_call_id] for body in bodies if isinstance(body, items.ToolCall)]


async def test_killed_before_the_model_call_another_worker_takes_over(crew: Hands, new_id: NewId) -> None:
    """F01: one message for the step; the call that was recorded counts as lost. All workers are processes here."""
    started = await panels.start(crew.database, new_id, panel(new_id, [LOOK]))
    first = await crew.hire(fault="before_model_call:exit:1")
    assert await asyncio.wait_for(first.wait(), LONG) == KILLED
    await crew.hire()
    assert (await ended(crew, started))["output"] == "keep"
    assert (await calls_of(crew, started, "Ann"))[:3] == ["Lost", None, None]
    said = panels.texts(await panels.items_of(crew.database, started))
    assert said.count("Ann: I look.") == 1


async def test_killed_before_the_reply_is_saved_the_model_is_asked_again(crew: Hands, new_id: NewId) -> None:
    """F02, B45: one message; both calls in the usage, the lost one estimated and marked."""
    started = await killed_at(crew, new_id, "after_model_call:exit:1", [LOOK])
    assert (await calls_of(crew, started, "Ann"))[:3] == ["Lost", None, None]
    lost = [row for row in await panels.rows_of(crew.database, started, "model_call") if row["error_class"] == "Lost"]
    assert len(lost) == 1 and '"estimated": true' in lost[0]["usage"]
    said = panels.texts(await panels.items_of(crew.database, started))
    assert said.count("Ann: I look.") == 1


async def test_killed_between_the_reply_and_its_calls_the_model_is_not_asked_again(crew: Hands, new_id: NewId) -> None:
    """F03: the reply is in the conversation; its tools run once."""
    started = await killed_at(crew, new_id, "after_commit:exit:2")
    assert "Lost" not in await calls_of(crew, started, "Ann")
    assert sorted(entry.name for entry in checker.log_of(crew.log)) == ["look", "note", "pay"]
    assert await results(crew, started) == ["seen prices", "noted cheap", "paid 5"]


async def test_killed_after_a_call_that_may_not_be_repeated_its_outcome_is_unknown(crew: Hands, new_id: NewId) -> None:
    """F04: the log has one entry; the model is told that it may or may not have happened."""
    started = await killed_at(crew, new_id, "after_call:exit:1", [PAY])
    assert len(made(crew, "pay")) == 1 and await results(crew, started) == [UNKNOWN]


@pytest.mark.parametrize("call", [NOTE, LOOK], ids=["idempotent", "read-only"])
async def test_killed_after_a_call_that_may_be_repeated_it_is_sent_again(
    crew: Hands, new_id: NewId, call: dict[str, Any]
) -> None:
    """F05: sent again with the same key; one result."""
    started = await killed_at(crew, new_id, "after_call:exit:1", [call])
    entries = made(crew, call["name"])
    assert len(entries) == 2 and len({(entry.key, entry.call_id) for entry in entries}) == 1
    assert await results(crew, started) == ["noted cheap" if call is NOTE else "seen prices"]


async def test_killed_with_one_call_done_one_under_way_and_one_not_begun(crew: Hands, new_id: NewId) -> None:
    """F06: each by its own state; order and pairing are kept."""
    crew.gate("pay").touch()
    started = await panels.start(crew.database, new_id, panel(new_id, [LOOK, PAY, NOTE]))
    first = await crew.hire()

    async def is_amid() -> bool:
        rows = await panels.rows_of(crew.database, started, "call")
        states = sorted((row["operation"], row["begun_at"] is not None, row["outcome"]) for row in rows)
        return bool(made(crew, "pay")) and states == [
            ("look", True, "done"),
            ("note", False, None),
            ("pay", True, None),
        ]

    await until(is_amid, seconds=LONG)
    first.kill()
    await first.wait()
    crew.gate("pay").unlink()
    await crew.hire()
    await ended(crew, started)
    assert sorted(entry.name for entry in checker.log_of(crew.log)) == ["look", "note", "pay"]
    assert await results(crew, started) == ["seen prices", UNKNOWN, "noted cheap"]


# taken for dead, and alive


async def taken_for_dead(
    crew: Hands, new_id: NewId, *, functions: tuple[Path, ...] = (SHOP,), **settings: str
) -> tuple[Hired, Hired, Started]:
    """A worker is stopped inside a call past its lease; another one is at work on the run when the first one wakes up."""
    crew.gate("pay").touch()
    crew.gate("wait").touch()
    started = await panels.start(crew.database, new_id, panel(new_id, [PAY, WAIT]))
    first = await crew.hire(functions=functions, **settings)
    await until(lambda: bool(made(crew, "pay")), seconds=LONG)
    first.send_signal(signal.SIGSTOP)
    second = await crew.hire()
    await until(lambda: bool(made(crew, "wait")), seconds=LONG)
    crew.gate("pay").unlink()
    first.send_signal(signal.SIGCONT)
    return first, second, started


async def test_stopped_past_its_lease_a_worker_changes_nothing_and_lives_on(crew: Hands, new_id: NewId) -> None:
    """F10: no row, no event, no further side effect of the first; it lives on for other runs."""
    first, second, started = await taken_for_dead(crew, new_id)
    # a new incarnation: by then it has dropped what it had
    await until(lambda: crew.is_at_work(first), seconds=LONG)
    crew.gate("wait").unlink()
    assert (await ended(crew, started))["output"] == "keep"
    second.terminate()
    assert await asyncio.wait_for(second.wait(), LONG) == 0
    other = await panels.start(crew.database, new_id, panel(new_id))
    assert (await ended(crew, other))["output"] == "keep"
    assert await results(crew, started) == [UNKNOWN, "waited x"]
    calls = [
        (entry.run_id == str(started.run_id), entry.name, entry.pid == first.pid) for entry in checker.log_of(crew.log)
    ]
    assert [call for call in calls if call[0]] == [(True, "pay", True), (True, "wait", False)]
    assert sorted(call for call in calls if not call[0]) == [(False, name, True) for name in ("look", "note", "pay")]


async def test_control_late_worker_is_noticed_without_the_fence(crew: Hands, new_id: NewId) -> None:
    """With the fence taken out, the checker must find what the first one writes when it wakes up."""
    careless = (SHOP, HERE / "functions" / "without_fence.py")
    # nor does it compare what it drives with what it holds, which is done once a poll interval
    await taken_for_dead(crew, new_id, functions=careless, POLL_SECONDS="1000")

    async def is_noticed() -> bool:
        return any("2 results" in fault for fault in await checker.faults(crew.database, crew.log))

    await until(is_noticed, seconds=LONG)


async def frozen(crew: Hands, new_id: NewId, *, functions: tuple[Path, ...] = (SHOP,)) -> dict[str, Any]:
    """A worker whose event loop stands still for more than two leases, beside one that would take over."""
    started = await panels.start(crew.database, new_id, panel(new_id))
    await crew.hire(fault="after_model_call:freeze=4", functions=functions)

    async def is_claimed() -> bool:
        return bool((await panels.row_of(crew.database, started))["claim_number"])

    await until(is_claimed, seconds=LONG)
    await crew.hire()
    return await ended(crew, started)


async def test_frozen_event_loop_does_not_lose_the_lease(crew: Hands, new_id: NewId) -> None:
    """F11: the ping is not on the event loop: nobody takes over."""
    row = await frozen(crew, new_id)
    assert (row["status"], row["claim_number"], row["output"]) == ("Completed", 1, "keep")


async def test_control_frozen_worker_is_taken_for_dead_when_it_does_not_ping(crew: Hands, new_id: NewId) -> None:
    row = await frozen(crew, new_id, functions=(SHOP, HERE / "functions" / "without_pings.py"))
    assert (row["status"], row["output"]) == ("Completed", "keep") and row["claim_number"] > 1


async def test_poison_run_is_failed_and_harms_no_other(crew: Hands, new_id: NewId) -> None:
    """F13: 3 crashes while apart, Failed with a reason a person understands; the others of that worker live."""
    others = [await panels.start(crew.database, new_id, panel(new_id)) for _ in range(2)]
    poison = await panels.start(crew.database, new_id, panel(new_id, [{"name": "break_down", "arguments": {}}]))
    first = await crew.hire()
    assert await asyncio.wait_for(first.wait(), LONG) == KILLED
    second = await crew.hire()
    for started in others:
        assert (await ended(crew, started))["output"] == "keep"
    row = await ended(crew, poison)
    assert row["status"] == "Failed" and "took its worker down 3 times while it ran apart" in row["failure_details"]
    assert second.returncode is None and len(made(crew, "break_down")) == 4
    last = (await panels.items_of(crew.database, poison))[-1].item
    assert isinstance(last.body, items.OrchestratorMessage) and last.body.message == row["failure_details"]


@pytest.mark.parametrize("how", ["finishes", "has no time", "told twice"])
async def test_terminated_worker_hands_its_runs_back_and_exits_with_0(crew: Hands, new_id: NewId, how: str) -> None:
    """F14, B60: no new claims, step boundaries reached or runs handed back at once, exit 0, no crash counted."""
    crew.gate("wait").touch()
    started = await panels.start(crew.database, new_id, panel(new_id, [WAIT]))
    first = await crew.hire(DRAIN_SECONDS="0" if how == "has no time" else "50", LOG_LEVEL="info")
    await until(lambda: bool(made(crew, "wait")), seconds=LONG)
    first.terminate()
    await until(lambda: "This worker drains" in crew.words(), seconds=LONG)
    late = await panels.start(crew.database, new_id, panel(new_id))
    if how == "finishes":
        crew.gate("wait").unlink()
    if how == "told twice":  # two signals that come at once are one
        first.terminate()
    assert await asyncio.wait_for(first.wait(), 30) == 0
    row = await panels.row_of(crew.database, started)
    assert (row["status"], row["worker_id"], row["is_suspect"], row["crash_count"]) == ("Running", None, False, 0)
    assert row["ready_at"] is not None and (await panels.row_of(crew.database, late))["status"] == "New"
    assert await panels.fetch(crew.database, "select from worker") == []
    crew.gate("wait").unlink(missing_ok=True)
    async with crews.rescuers(crew.database, new_id, crew.functions()):
        for run in (started, late):
            assert (await ended(crew, run))["output"] == "keep"
    # a step that was finished is not done again; one that was given up is, since it may be
    assert len(made(crew, "wait")) == (1 if how == "finishes" else 2)


async def test_terminated_worker_takes_its_process_for_suspects_along(crew: Hands, new_id: NewId) -> None:
    """F14: what runs apart is handed back too, and the shutdown does not count as a crash of the run."""
    crew.gate("wait").touch()
    started = await panels.start(crew.database, new_id, panel(new_id, [WAIT]))
    first = await crew.hire()
    await until(lambda: bool(made(crew, "wait")), seconds=LONG)
    first.kill()
    await first.wait()
    second = await crew.hire(DRAIN_SECONDS="1")
    await until(lambda: len(made(crew, "wait")) == 2, seconds=LONG)
    assert made(crew, "wait")[1].pid not in (first.pid, second.pid)
    second.terminate()
    assert await asyncio.wait_for(second.wait(), LONG) == 0
    row = await panels.row_of(crew.database, started)
    assert (row["status"], row["worker_id"], row["is_suspect"], row["crash_count"]) == ("Running", None, True, 0)
    assert row["ready_at"] is not None
    # it has ended as well, and left no row
    assert await panels.fetch(crew.database, "select from worker where lease_until > folkmoot_now()") == []
