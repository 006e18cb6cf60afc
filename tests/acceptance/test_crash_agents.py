"""The crash matrix of agent runs: workers die at phases' boundaries, gates, delegations, messages to the owner, and as a consent expires."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import checker
import crash_agents
import panels
import pytest
import pytest_asyncio
from crash_agents import MATRIX, PHASES, Office, office
from panels import Started
from processes import Hands, hands

from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.tenancy import Caller
from folkmoot.engine.calls import UNKNOWN
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database


REACHED = {  # how often an undisturbed run reaches each point
    "after_claim": 5, "before_model_call": 17, "after_model_call": 17, "before_commit": 31, "after_commit": 31, "after_pause": 3,
    "before_call": 6, "after_call": 4, "before_delegation": 1, "after_delegation": 1, "before_channel_send": 5, "after_channel_send": 5,
    "before_release": 5,
}  # fmt: skip
SAID = [  # the boss's part, then the clerk's
    ("boss: toolCall look", "seen prices"),
    ("boss: agentMessage They are cheap.",),
    ("boss: toolCall make_plan", "The plan is taken."),
    ("boss: toolCall pay", "paid 5"),
    ("boss: agentMessage Paid.",),
    ("boss: toolCall delegate", "Signed."),
    ("boss: agentMessage Delegated.",),
    ("boss: toolCall verdict", "The verdict is taken."),
    ("boss: toolCall make_plan", "The plan is taken."),
    ("boss: toolCall note", "noted the deed is signed"),
    ("boss: agentMessage Noted.",),
    ("boss: toolCall verdict", "The verdict is taken."),
    ("boss: agentMessage All is done.",),
    ("clerk: agentMessage Nothing.",),
    ("clerk: toolCall make_plan", "The plan is taken."),
    ("clerk: toolCall sign", "signed the deed"),
    ("clerk: agentMessage Signed.",),
    ("clerk: toolCall verdict", "The verdict is taken."),
    ("clerk: agentMessage Signed.",),
]
MAY_BE_LOST = {"boss: toolCall pay", "clerk: toolCall sign"}  # with its worker: its result is 'outcome unknown' then
TOLD = {"consent.requested": 2, "consent.decided": 2, "run.ended": 1}


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


async def said(database: Database, run: AgentRun) -> list[tuple[str, ...]]:
    """What boss and clerk said, and what they called with what came of it, each in its order; without the orchestrator's own words."""
    found: list[tuple[str, ...]] = []
    for _, run_id in sorted((await crash_agents.runs_by_agent(database, run)).items()):
        for stored in await panels.items_of(database, Started(run.tenant_id, run_id)):
            body, name = stored.item.body, stored.item.author.name
            match body:
                case items.AgentMessage():
                    found.append((f"{name}: agentMessage {body.message}",))
                case items.ToolCall():
                    found.append((f"{name}: toolCall {body.function_name}",))
                case items.ToolResult():
                    found[-1] = (*found[-1], body.result)
    return found


async def phases(database: Database, run: AgentRun) -> dict[str, list[str]]:
    found = {}
    for name, run_id in (await crash_agents.runs_by_agent(database, run)).items():
        stored = await panels.items_of(database, Started(run.tenant_id, run_id))
        floors = [each.item.detail for each in stored if isinstance(each.item.detail, items.Floor)]
        found[name] = [str(floor.phase) for floor in floors]
    return found


async def told(database: Database) -> dict[str, int]:
    rows = await panels.fetch(database, "select kind, count(*)::int as n from channel_message group by 1")
    return {row["kind"]: row["n"] for row in rows}


async def test_an_undisturbed_run_reaches_each_point_so_often(crew: Hands, caller: Caller, new_id: NewId) -> None:
    """faults.md, head: the matrix uses points that are reached."""
    reached: Counter[str] = Counter()
    for point in fault_points.POINTS:
        fault_points.arm(point, partial(reached.update, [point]))
    try:
        async with office(crew, caller, new_id) as made:
            made.owner.is_there.set()
            run = await made.start()
            async with made.others():
                await made.ended(run)
    finally:
        fault_points.disarm_all()
    assert await crash_agents.faults(made) == []
    assert reached == REACHED
    assert all(nth <= reached[point] for point, nth in MATRIX)
    assert await said(crew.database, run) == SAID
    assert await phases(crew.database, run) == PHASES
    assert await told(crew.database) == TOLD


async def check_crash(crew: Hands, caller: Caller, new_id: NewId, *, point: str, nth: int) -> None:
    async with office(crew, caller, new_id) as made:
        run = await made.start()
        first = await made.hire(fault=f"{point}:exit:{nth}")
        if not (point.endswith("channel_send") and nth == 1):  # else the request is sent before it is answered
            made.owner.is_there.set()
        assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
        made.owner.is_there.set()
        await made.let_messages_lapse()
        async with made.others():
            await made.ended(run)
    assert await crash_agents.faults(made) == []
    row = await panels.row_of(crew.database, Started(run.tenant_id, run.run_id))
    assert (row["status"], row["output"], row["crash_count"]) == ("Completed", "All is done.", 0), row["failure_details"]
    found = await said(crew.database, run)
    log = Counter(entry.name for entry in checker.log_of(crew.log))
    lost = [line[0].split()[-1] for line, wanted in zip(found, SAID, strict=True) if line != wanted]
    assert [line[0] for line in found] == [line[0] for line in SAID]
    assert all(line in SAID or (line[0] in MAY_BE_LOST and line[1] == UNKNOWN) for line in found), found
    assert all(log[name] <= 1 if name in lost else log[name] == 1 for name in ("pay", "sign"))
    assert await phases(crew.database, run) == PHASES
    assert await told(crew.database) == TOLD
    heard = Counter(each["id"] for each in made.owner.heard())
    assert len(heard) == 5
    assert point != "after_channel_send" or max(heard.values()) == 2, "at least once, with the same id"


@pytest.mark.parametrize(("point", "nth"), MATRIX)
async def test_crash_at_a_boundary_of_an_agent_run_loses_and_repeats_nothing(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """F01 to F07, B02: nothing is asked again, nothing is delegated twice, and an approved call runs once, as it was shown."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)


@pytest.mark.chaos
@pytest.mark.parametrize(("point", "nth"), [(point, n) for point, most in REACHED.items() for n in range(1, most + 1)])
async def test_crash_each_time_an_agent_run_reaches_a_point(
    crew: Hands, caller: Caller, new_id: NewId, point: str, nth: int
) -> None:
    """The whole matrix."""
    await check_crash(crew, caller, new_id, point=point, nth=nth)
