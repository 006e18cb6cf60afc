"""Every fault point, hit by a real worker that dies there as by kill -9; another one takes over, and the checker finds nothing."""

from __future__ import annotations

import asyncio
import random
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
from crash_agents import MATRIX as AGENTS_MATRIX
from crews import until
from keyed_models import CRASHES as KEYS_MATRIX
from panel_with_tools import panel, transcript
from panels import Started
from processes import Hands, hands
from swarm_at_hand import MATRIX as SWARM_MATRIX
from waiting_panel import MATRIX as WAITING_MATRIX

from folkmoot.domain.calls import CallFact, CallState
from folkmoot.engine.step import RunCall
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.runtime import perform
from folkmoot.runtime.drive import Drive
from folkmoot.runtime.transcript import Transcript
from folkmoot.store.database import Database

# point, and the how manieth time it is reached: places in the conversation that differ
MATRIX = (
    ("after_claim", 1),
    ("before_model_call", 2),
    ("after_model_call", 4),
    ("before_commit", 3),
    ("after_commit", 3),
    ("before_call", 3),
    ("after_call", 3),
    ("before_release", 1),
)
REACHED = {  # how often an undisturbed run reaches each point
    "after_claim": 1, "before_model_call": 8, "after_model_call": 8, "before_commit": 14, "after_commit": 14, "before_call": 3,
    "after_call": 3, "before_release": 1,
}  # fmt: skip


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


SPOKEN = [
    "Ann: agentMessage I look.",
    'Ann: toolCall look {"text": "prices"}',
    'Ann: toolCall note {"text": "cheap"}',
    'Ann: toolCall pay {"amount": 5}',
    "Orchestrator: toolResult noted cheap",
    "Orchestrator: toolResult paid 5",
    "Orchestrator: toolResult seen prices",
    "Ann: agentMessage I have nothing to add.",
    "Ben: agentMessage Let us vote.",
    "Ben: voteProposal Keep it?",
    "Ann: agree",
    "Cid: disagree No.",
    "Cid: solutionProposal keep",
    "Ann: agree",
    "Ben: agree",
]


def spoken(lines: list[str]) -> list[str]:
    """Without the orchestrator's own words."""
    return [
        line
        for line in lines
        if not line.startswith(("Orchestrator: orchestratorMessage", "Orchestrator: systemPrompt"))
    ]


async def survives(crew: Hands, new_id: NewId, started: Started, *, fault: str) -> list[str]:
    """A worker dies at `fault`; others end the run. What is wrong after that."""
    first = await crew.hire(fault=fault)
    assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
    async with crews.rescuers(crew.database, new_id, crew.functions()):
        await until(lambda: panels.has_ended(crew.database, started), seconds=60)
    return await checker.faults(crew.database, crew.log)


async def test_every_fault_point_is_used(database: Database, new_id: NewId, crew: Hands) -> None:
    """Faults.md, head: each registered point is used by the crash matrix, and is reached as often as it says."""
    used = (*MATRIX, *WAITING_MATRIX, *KEYS_MATRIX, *SWARM_MATRIX, *AGENTS_MATRIX)
    assert {point for point, _ in used} == set(fault_points.POINTS)
    reached: Counter[str] = Counter()
    started = await panels.start(database, new_id, panel(new_id))
    for point in fault_points.POINTS:
        fault_points.arm(point, partial(reached.update, [point]))
    try:
        async with crews.crew(database, new_id, functions=crew.functions()):
            await until(lambda: panels.has_ended(database, started))
    finally:
        fault_points.disarm_all()
    assert reached == REACHED  # what only a waiting run reaches is counted in test_crash_waiting
    assert all(nth <= reached[point] for point, nth in MATRIX)
    assert spoken(transcript(await panels.items_of(database, started))) == SPOKEN
    assert await checker.faults(database, crew.log) == []


async def check_crash(crew: Hands, new_id: NewId, point: str, nth: int) -> None:
    started = await panels.start(crew.database, new_id, panel(new_id))
    assert await survives(crew, new_id, started, fault=f"{point}:exit:{nth}") == []
    row = await panels.row_of(crew.database, started)
    assert (row["status"], row["output"], row["crash_count"]) == ("Completed", "keep", 0)
    conversation = await panels.items_of(crew.database, started)
    assert spoken(transcript(conversation)) == SPOKEN
    assert Counter(entry.name for entry in checker.log_of(crew.log))["pay"] <= 1


@pytest.mark.parametrize(("point", "nth"), MATRIX)
async def test_crash_at_every_point_loses_and_repeats_nothing(crew: Hands, new_id: NewId, point: str, nth: int) -> None:
    """F01 to F06 as a matrix: the same answer, the same transcript up to the order of sealed votes."""
    await check_crash(crew, new_id, point, nth)


@pytest.mark.chaos
@pytest.mark.parametrize(("point", "nth"), [(point, n) for point, most in REACHED.items() for n in range(1, most + 1)])
async def test_crash_each_time_a_point_is_reached(crew: Hands, new_id: NewId, point: str, nth: int) -> None:
    """The whole matrix: every point, each time it is reached."""
    await check_crash(crew, new_id, point, nth)


async def test_control_repeated_call_is_noticed_when_begun_marks_are_not_believed(
    crew: Hands, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker must report what a worker does that ignores begun marks."""

    def never_begun(transcript: Transcript, call_id: str, *, has_begun: bool) -> CallFact:
        return CallFact(call_id, CallState.ASKED)

    monkeypatch.setattr(Transcript, "_fact_of", never_begun)
    started = await panels.start(crew.database, new_id, panel(new_id))
    crew.gate("pay").touch()
    surviving = asyncio.create_task(survives(crew, new_id, started, fault="after_call:exit:3"))

    async def are_others_written() -> bool:
        return sum(bool(call["ended_at"]) for call in await panels.rows_of(crew.database, started, "call")) == 2

    await until(are_others_written, seconds=60)
    crew.gate("pay").unlink()  # it is the third that ends, and dies with its result
    assert any("of pay was made 2 times" in fault for fault in await surviving)


async def test_control_call_without_a_begun_mark_is_noticed(
    crew: Hands, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker must report a worker that sends before it marks."""

    async def begin_at_once(drive: Drive, calls: list[RunCall]) -> bool:
        for step in calls:
            drive._under_way.begin(step.key, perform.call(drive._workshop, drive.claim, step))
        return True

    monkeypatch.setattr(Drive, "_begin_calls", begin_at_once)
    started = await panels.start(crew.database, new_id, panel(new_id))
    async with crews.rescuers(crew.database, new_id, crew.functions()):
        await until(lambda: panels.has_ended(crew.database, started))
    assert sum("without a begun mark" in fault for fault in await checker.faults(crew.database, crew.log)) == 3


# killed at a random moment


async def check_random_kills(crew: Hands, new_id: NewId, *, times: int, seed: int) -> None:
    """One run after the other; each has its worker killed at a moment of its own, and is ended by the next."""
    chance = random.Random(seed)
    runs: list[Started] = []
    worker = await crew.hire()
    await until(lambda: crew.is_at_work(worker))
    for _ in range(times):
        started = await panels.start(crew.database, new_id, panel(new_id))
        runs.append(started)
        upto = chance.randrange(0, 24)

        async def has_come_so_far(started: Started = started, upto: int = upto) -> bool:
            row = await panels.row_of(crew.database, started)
            return bool(row["last_sequence"] >= upto and row["claim_number"]) or bool(row["ended_at"])

        await until(has_come_so_far)
        worker.send_signal(signal.SIGKILL)
        await worker.wait()
        worker = await crew.hire()
        await until(lambda started=started: panels.has_ended(crew.database, started), seconds=60)
    for started in runs:
        row = await panels.row_of(crew.database, started)
        assert (row["status"], row["output"]) == ("Completed", "keep")
        assert spoken(transcript(await panels.items_of(crew.database, started))) == SPOKEN
    assert await checker.faults(crew.database, crew.log) == []


async def test_killed_at_a_random_moment(crew: Hands, new_id: NewId) -> None:
    """F01 to F06: kill -9 at a random moment: the same answer and transcript, no item twice, nothing done twice."""
    await check_random_kills(crew, new_id, times=1, seed=random.randrange(1 << 30))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_killed_at_a_random_moment_many_times(crew: Hands, new_id: NewId) -> None:
    """The same, 50 times."""
    await check_random_kills(crew, new_id, times=50, seed=random.randrange(1 << 30))
