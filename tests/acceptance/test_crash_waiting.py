"""The crash matrix of runs that wait for people: workers die at every point, what was answered is not asked again (F07)."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import checker
import crews
import panels
import pytest
import pytest_asyncio
import waiting_panel
from crews import until
from panel_with_tools import transcript
from panels import Started
from processes import Hands, hands

from folkmoot.domain.calls import Tool
from folkmoot.domain.tenancy import Caller
from folkmoot.engine import calls
from folkmoot.engine.open_parts import OpenCall, Turn
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import Step
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database

REACHED = {  # how often an undisturbed run reaches each point
    "after_claim": 6, "before_model_call": 8, "after_model_call": 8, "before_commit": 20, "after_commit": 20, "after_pause": 5,
    "before_call": 4, "after_call": 4, "after_content": 1, "before_release": 6,
}  # fmt: skip


_WANTED: list[str] = []  # the undisturbed conversation, made once


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


async def conversation(database: Database, started: Started) -> list[str]:
    """Who said and did what, in the order of the turns; results of calls by their first words."""
    lines = transcript(await panels.items_of(database, started))
    spoken = [line[:60] for line in lines if not line.startswith(("Orchestrator: orch", "Orchestrator: syst"))]
    # whether an outcome should be unknown is the checker's matter
    spoken = ["Orchestrator: toolResult signed the deed" if line.endswith("paid 5") else line for line in spoken]
    return sorted(spoken)  # reads and votes come in in any order


async def undisturbed(crew: Hands, caller: Caller, new_id: NewId) -> list[str]:
    started = await waiting_panel.start(crew.database, caller, new_id)
    async with crews.crew(crew.database, new_id, functions=crew.functions()):
        await until(lambda: panels.has_ended(crew.database, started))
    return await conversation(crew.database, started)


async def test_an_undisturbed_run_waits_five_times_and_reaches_each_point_so_often(
    crew: Hands, caller: Caller, new_id: NewId
) -> None:
    """faults.md, head: the matrix uses points that are reached."""
    reached: Counter[str] = Counter()
    for point in fault_points.POINTS:
        fault_points.arm(point, partial(reached.update, [point]))
    try:
        async with waiting_panel.a_person(crew.database, caller, new_id):
            await undisturbed(crew, caller, new_id)
    finally:
        fault_points.disarm_all()
    # A person who answers just before a commit has it decided and written once more.
    again = reached["before_commit"] - REACHED["before_commit"]
    assert 0 <= again <= 5 and again == reached["after_commit"] - REACHED["after_commit"]
    assert {**reached, "before_commit": 20, "after_commit": 20} == REACHED
    assert all(nth <= reached[point] for point, nth in waiting_panel.MATRIX)
    assert await checker.faults(crew.database, crew.log) == []


async def check_crash(crew: Hands, caller: Caller, new_id: NewId, *, point: str, nth: int) -> None:
    async with waiting_panel.a_person(crew.database, caller, new_id):
        if not _WANTED:
            _WANTED.extend(await undisturbed(crew, caller, new_id))
        started = await waiting_panel.start(crew.database, caller, new_id)
        first = await crew.hire(fault=f"{point}:exit:{nth}")
        assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
        async with crews.rescuers(crew.database, new_id, crew.functions()):
            await until(lambda: panels.has_ended(crew.database, started), seconds=60)
    assert await checker.faults(crew.database, crew.log) == []
    row = await panels.row_of(crew.database, started)
    assert (row["status"], row["output"], row["crash_count"]) == ("Completed", "red", 0)
    asked = await panels.rows_of(crew.database, started, "pending")
    assert Counter(r["kind"] for r in asked) == {"Approval": 1, "Question": 1, "Turn": 1, "Vote": 2}
    assert await conversation(crew.database, started) == _WANTED


@pytest.mark.parametrize(("point", "nth"), waiting_panel.MATRIX)
async def test_crash_while_people_are_waited_for_asks_and_does_nothing_twice(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """F03 to F07, B02, B08: kill -9 at every point around a pause, an answer and a resumption."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)


@pytest.mark.chaos
@pytest.mark.parametrize(("point", "nth"), [(point, n) for point, most in REACHED.items() for n in range(1, most + 1)])
async def test_crash_each_time_a_waiting_run_reaches_a_point(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """The whole matrix."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)


async def test_control_a_gate_that_is_not_kept_is_noticed(
    crew: Hands, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker must report a gated call that was made without an approval."""

    def open_gate(seating: Seating, turn: Turn, open_call: OpenCall, tool: Tool) -> Step:
        return calls._run(open_call, tool, turn)

    monkeypatch.setattr(calls, "_gate", open_gate)
    started = await waiting_panel.start(crew.database, caller, new_id)
    async with crews.crew(crew.database, new_id, functions=crew.functions()):
        await until(lambda: any(entry.name == "sign" for entry in checker.log_of(crew.log)))
        assert any("without an approval" in fault for fault in await checker.faults(crew.database, crew.log))
        await panels.stop(crew.database, started)
