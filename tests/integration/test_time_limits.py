"""Time as participants are told of it, with a whole worker and a real database (B72; kernel.md, Time; state.md, Time)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import panels
import pytest
from crews import Listening, crew, until
from definitions_at_hand import AGENT, PANEL, bench, documents
from panels import Started

from folkmoot.api.mapping.runs import process
from folkmoot.domain import items
from folkmoot.domain.definitions import ChatMode, HumanSettings, Reference
from folkmoot.domain.model_calls import ModelFailure, ModelReply, ModelRequest, OnText, Purpose
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import BadInput
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, runs, starting
from folkmoot.services.closure import StartFields
from folkmoot.store.database import Database
from folkmoot.tools.functions import FunctionTools, function_tool

MINUTE = timedelta(minutes=1)
TIMED: dict[str, Any] = {
    "is_solution_proposal_allowed": True, "maximum_rounds": 99, "duration_auto_termination": 60 * MINUTE,
    "duration_warning_to_ai": 40 * MINUTE,
}  # fmt: skip
SETTLES: dict[str, Any] = {
    "rules": [
        {"when": {"offered": "agree"}, "reply": {"calls": [{"name": "agree"}]}},
        {"when": {"seen": "this is the last turn"}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": "keep"}}]}},
        {"reply": {"text": "Hm."}},
    ]
}  # fmt: skip
TOLD = (items.Task, items.TimeWarning, items.LastTurn, items.Ended, items.Tally)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    fault_points.disarm_all()


LASTING = {"lease_seconds": 10_000_000.0}  # though the clock is moved on


class Slow(Listening):
    """Each turn's call takes minutes of the database's clock. Of those the worker learns with its next commit."""

    def __init__(self, database: Database, *, minutes: float) -> None:
        super().__init__()
        self.database, self.minutes = database, minutes

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        if request.purpose is Purpose.TURN:
            await panels.shift_clock(self.database, 60 * self.minutes)
        return await super().ask(request, on_text)


async def told(database: Database, started: Started) -> list[type]:
    """What was told of time, and the end, in order."""
    found = [stored.item.detail for stored in await panels.items_of(database, started)]
    return [type(detail) for detail in found if isinstance(detail, TOLD)]


async def worked(database: Database, started: Started, minutes: float) -> None:
    """As if the run had been at work for so long already."""
    await panels.execute(database, "update process set execution_time = $1", timedelta(minutes=minutes))


async def test_time_is_told_in_its_order_and_the_last_turn_brings_the_answer(database: Database, new_id: NewId) -> None:
    started = await panels.start(database, new_id, panels.interaction(new_id, SETTLES, **TIMED))
    await worked(database, started, 33)
    async with crew(database, new_id, model=Slow(database, minutes=3), **LASTING):
        await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"]) == ("Completed", "keep")
    assert await told(database, started) == [items.Task, items.TimeWarning, items.LastTurn, items.Tally]
    assert timedelta(minutes=50) <= row["execution_time"] < timedelta(minutes=60)


@pytest.mark.parametrize("point", ["after_commit", "before_commit"])
async def test_a_worker_that_breaks_down_at_any_moment_tells_nothing_twice(
    database: Database, new_id: NewId, point: str
) -> None:
    """B72, state.md, Time: what is due follows from items and facts, whoever goes on with the run; one run for each moment."""
    silent = {"rules": [{"reply": {"text": "Hm."}}]}
    reached, claims = 0, list[int]()
    for nth in range(1, 14):
        reached, broken = 0, nth

        def break_down(broken: int = broken) -> None:
            nonlocal reached
            reached += 1
            if reached == broken:
                raise RuntimeError("out of paper")

        started = await panels.start(
            database, new_id, panels.interaction(new_id, silent, names=("Ann", "Ben"), **TIMED)
        )
        await worked(database, started, 33)
        fault_points.arm(point, break_down)
        async with crew(database, new_id, model=Slow(database, minutes=4), **LASTING):
            await until(lambda started=started: panels.has_ended(database, started))  # type: ignore[misc]
        fault_points.disarm_all()
        assert await told(database, started) == [items.Task, items.TimeWarning, items.LastTurn, items.Ended]
        claims.append((await panels.row_of(database, started))["claim_number"])
        if reached < nth:
            break
    assert reached < nth and claims.count(2) >= nth - 2  # the last commit is the end


class Stuck(Listening):
    """Ann's first call never comes back."""

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        self.held = {"Ann": asyncio.Event()} if request.attempt == 1 and request.purpose is Purpose.TURN else {}
        return await super().ask(request, on_text)


async def test_a_long_call_does_not_take_the_last_turn_away(database: Database, new_id: NewId) -> None:
    """The drive wakes by itself, cuts the call, counts it, and asks anew; the late reply is not waited for."""
    settings = {**TIMED, "duration_warning_to_ai": 60 * MINUTE - timedelta(seconds=10)}
    started = await panels.start(database, new_id, panels.interaction(new_id, SETTLES, **settings))
    await panels.execute(database, "update process set execution_time = $1", 60 * MINUTE - timedelta(seconds=7))
    async with crew(database, new_id, model=Stuck(), sweep_seconds=1000, poll_seconds=1000) as made:
        await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"]) == ("Completed", "keep")
    requests = made.model.requests
    assert [(r.participant, r.attempt, r.required) for r in requests[:2]] == [("Ann", 1, False), ("Ann", 2, True)]
    assert [(r.participant, r.attempt) for r in made.model.cancelled] == [("Ann", 1)]
    calls = [c for c in await panels.rows_of(database, started, "model_call") if c["participant"] == "Ann"]
    assert sorted((c["error_class"] or "", c["ended_at"] is not None) for c in calls) == [("", True), ("Lost", True)]
    (lost,) = [c for c in calls if c["error_class"]]
    assert '"estimated": true' in lost["usage"] and "last turn" in lost["error_message"]


async def test_a_long_tool_call_is_cut_for_the_last_turn_and_its_outcome_is_unknown(
    database: Database, new_id: NewId
) -> None:
    gate = asyncio.Event()

    @function_tool()
    async def pay() -> str:
        """Pay."""
        await gate.wait()
        return "paid"

    tools = {"Ann": (FunctionTools.discover({"pay": pay}).offered("pay"),)}
    script = {
        "rules": [{"when": {"participant": "Ann", "call": 1}, "reply": {"calls": [{"name": "pay"}]}}, *SETTLES["rules"]]
    }
    started = await panels.start(database, new_id, panels.interaction(new_id, script, tools=tools, **TIMED))
    async with crew(database, new_id, functions={"pay": pay}, **LASTING) as made:
        await until(lambda: panels.has_open_calls(database))
        await panels.shift_clock(database, 56 * 60)
        made.tell({"to": "run", "run": str(started.run_id)})
        await until(lambda: panels.has_ended(database, started))
        gate.set()
    assert (await panels.row_of(database, started))["output"] == "keep"
    (call,) = await panels.rows_of(database, started, "call")
    assert (call["outcome"], call["attempts"]) == ("unknown", 1)


async def test_waiting_for_a_person_uses_up_no_time(database: Database, caller: Caller, new_id: NewId) -> None:
    """kernel.md, Time: a day of a person is no minute of the run; what is told is told of the time at work."""
    settings = {**TIMED, "human_settings": HumanSettings(ChatMode.EVERY_ROUND), "maximum_rounds": 2}
    resolved = panels.interaction(new_id, {"rules": [{"reply": {"text": "Hm."}}]}, names=("Ann",), **settings)
    started = await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id)
    await worked(database, started, 39)

    async def waits_again(asked: int) -> bool:
        rows = await panels.rows_of(database, started, "pending")
        return len(rows) == asked and any(row["outcome"] is None for row in rows)

    async with crew(database, new_id, **LASTING) as made:
        for asked in (1, 2):
            await until(lambda asked=asked: waits_again(asked))  # type: ignore[misc]
            await panels.shift_clock(database, 86_400)
            await runs.post_message(
                database, caller, run_id=started.run_id, message="Go on.", new_id=new_id, tell=made.tell
            )
        await until(lambda: panels.has_ended(database, started))
    assert await told(database, started) == [items.Task, items.Ended]
    assert (await panels.row_of(database, started))["status"] == "Completed"


# a start


async def start(database: Database, caller: Caller, new_id: NewId, **fields: Any) -> Any:
    request = StartFields(inputs=(("question", "cats?"),), **fields)
    run_id = await starting.start(
        database, caller, interaction=Reference("panel", "examples"), request=request, bench=bench(), new_id=new_id,
        tell=lambda _: None,
    )  # fmt: skip
    return await runs.get(database, caller, run_id=run_id)


async def test_the_starts_warning_goes_before_the_definitions_and_is_shown(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md, Starting a run: `durationWarningToAi`."""
    panel = replace(PANEL, duration_auto_termination=10 * MINUTE, duration_warning_to_ai=5 * MINUTE)
    await apply.apply(database, caller, documents(panel=panel, agent=AGENT), new_id=new_id)
    assert process(await start(database, caller, new_id)).duration_warning_to_ai == 5 * MINUTE
    whole = await start(database, caller, new_id, duration_warning_to_ai=2 * MINUTE)
    assert process(whole).duration_warning_to_ai == whole.resolved.duration_warning_to_ai == 2 * MINUTE


@pytest.mark.parametrize(
    ("fields", "pointer", "words"),
    [
        ({"duration_warning_to_ai": MINUTE}, "/durationWarningToAi", "set durationAutoTermination"),
        ({"duration_warning_to_ai": timedelta(0)}, "/durationWarningToAi", "a longer time"),
        (
            {"duration_warning_to_ai": MINUTE, "duration_auto_termination": MINUTE},
            "/durationWarningToAi",
            "less than durationAutoTermination",
        ),
    ],
)
async def test_a_warning_without_time_after_it_is_refused(
    database: Database, caller: Caller, new_id: NewId, fields: dict[str, timedelta], pointer: str, words: str
) -> None:
    await apply.apply(database, caller, documents(), new_id=new_id)
    with pytest.raises(BadInput) as caught:
        await start(database, caller, new_id, **fields)
    (fault,) = caught.value.faults
    assert fault.pointer == pointer and words in fault.message


async def test_a_limit_before_the_definitions_warning_is_refused(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    panel = replace(PANEL, duration_auto_termination=10 * MINUTE, duration_warning_to_ai=5 * MINUTE)
    await apply.apply(database, caller, documents(panel=panel), new_id=new_id)
    with pytest.raises(BadInput) as caught:
        await start(database, caller, new_id, duration_auto_termination=4 * MINUTE)
    (fault,) = caught.value.faults
    assert fault.pointer == "/durationAutoTermination"
