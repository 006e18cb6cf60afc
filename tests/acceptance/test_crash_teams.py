"""The crash matrix of a team: workers die over dispatches, a router's decision, a gated call of dispatched work and its resumption."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import checker
import crash_team
import crews
import panels
import pytest
import pytest_asyncio
import waiting_panel
from crews import until
from panel_with_tools import transcript
from panels import Started
from processes import Hands, hands

from folkmoot.domain import items
from folkmoot.domain.tenancy import Caller
from folkmoot.engine import routing
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database

# point, and the how manieth time it is reached: over the dispatches, the choice, the gate and the resumption
MATRIX = (
    ("after_model_call", 1),
    ("after_model_call", 3),
    ("after_pause", 1),
    ("after_claim", 2),
    ("after_call", 3),
)
REACHED = {"after_claim": 2, "after_model_call": 8, "after_pause": 1, "after_call": 3, "before_call": 3}


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


async def said(database: Database, started: Started) -> list[str]:
    lines = transcript(await panels.items_of(database, started))
    return sorted(line for line in lines if not line.startswith(("Orchestrator: orch", "Orchestrator: syst")))


async def test_an_undisturbed_team_reaches_each_point_so_often(crew: Hands, caller: Caller, new_id: NewId) -> None:
    """faults.md, head: the matrix uses points that are reached."""
    reached: Counter[str] = Counter()
    for point in fault_points.POINTS:
        fault_points.arm(point, partial(reached.update, [point]))
    try:
        async with waiting_panel.a_person(crew.database, caller, new_id):
            started = await crash_team.start(crew.database, caller, new_id)
            async with crews.crew(crew.database, new_id, functions=crew.functions()):
                await until(lambda: panels.has_ended(crew.database, started))
    finally:
        fault_points.disarm_all()
    assert {point: reached[point] for point in REACHED} == REACHED
    assert all(nth <= reached[point] for point, nth in MATRIX)
    assert await said(crew.database, started) == crash_team.SAID
    assert await checker.faults(crew.database, crew.log) == []


async def check_crash(crew: Hands, caller: Caller, new_id: NewId, *, point: str, nth: int) -> None:
    async with waiting_panel.a_person(crew.database, caller, new_id):
        started = await crash_team.start(crew.database, caller, new_id)
        first = await crew.hire(fault=f"{point}:exit:{nth}")
        assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
        async with crews.rescuers(crew.database, new_id, crew.functions()):
            await until(lambda: panels.has_ended(crew.database, started), seconds=60)
    assert await checker.faults(crew.database, crew.log) == []
    row = await panels.row_of(crew.database, started)
    assert (row["status"], row["output"], row["crash_count"]) == ("Completed", "keep", 0)
    assert len(await panels.rows_of(crew.database, started, "pending")) == 1
    found = [item.item for item in await panels.items_of(crew.database, started)]
    floors = [item.detail for item in found if isinstance(item.detail, items.Floor)]
    assert Counter(floor.participant for floor in floors) == {"Lead": 1, "Ann": 1, "Expert": 1, "Ben": 1}
    (expert,) = [floor for floor in floors if floor.participant == "Expert"]
    assert expert.agent == crash_team.CODER and not expert.router[0].is_fallback
    # a result that is lost with its worker is 'outcome unknown' where the call may not be repeated; that is the checker's matter
    known = [line for line in await said(crew.database, started) if "toolResult" not in line]
    assert known == [line for line in crash_team.SAID if "toolResult" not in line]
    calls = await panels.rows_of(crew.database, started, "model_call")
    answered = Counter(call["step_key"] for call in calls if call["error_class"] is None and call["voided_at"] is None)
    assert len(answered) == 8 and set(answered.values()) == {1}


@pytest.mark.parametrize(("point", "nth"), MATRIX)
async def test_crash_over_dispatches_and_choices_loses_and_repeats_nothing(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """F01 to F07, B02: a decided choice is not made again, and each dispatch is begun once."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)


@pytest.mark.chaos
@pytest.mark.parametrize(("point", "nth"), [(point, n) for point, most in REACHED.items() for n in range(1, most + 1)])
async def test_crash_each_time_a_team_reaches_a_point(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """The whole matrix."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)


async def test_control_a_choice_that_is_not_recorded_is_made_again(
    database: Database, caller: Caller, new_id: NewId, crew: Hands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision is an item of its own: without it the router's model is asked over and over."""

    def not_recorded(*args: object, **named: object) -> list[items.Item]:
        return []

    monkeypatch.setattr(routing, "items_of_choice", not_recorded)
    started = await crash_team.start(database, caller, new_id)

    async def is_asked_again() -> bool:
        calls = await panels.rows_of(database, started, "model_call")
        return len([call for call in calls if call["purpose"] == "route" and call["ended_at"] is not None]) > 1

    async with crews.crew(database, new_id, functions=crew.functions()):
        await until(is_asked_again)


async def test_a_poisonous_team_has_a_result_for_each_call_in_its_own_thread(
    database: Database, caller: Caller, new_id: NewId, crew: Hands
) -> None:
    """F13, B20: nobody drives it any more, and what is open in its threads is closed all the same."""
    started = await crash_team.start(database, caller, new_id)

    async def status_is(status: str) -> bool:
        return bool((await panels.row_of(database, started))["status"] == status)

    async with crews.crew(database, new_id, functions=crew.functions()):
        await until(partial(status_is, "PendingApproval"))
        await panels.execute(
            database,
            "update process set status = 'Running', pending_id = null, is_suspect = true, crash_count = 99, ready_at = folkmoot_now() "
            "where run_id = $1",
            started.run_id,
        )
        await until(partial(status_is, "Failed"))
    found = [stored.item for stored in await panels.items_of(database, started)]
    calls = {item.body.tool_call_id: item.thread_id for item in found if isinstance(item.body, items.ToolCall)}
    results = [(item.body.tool_call_id, item.thread_id) for item in found if isinstance(item.body, items.ToolResult)]
    assert len(results) == len(calls) and dict(results) == calls
