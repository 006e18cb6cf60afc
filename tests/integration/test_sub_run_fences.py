"""What starts and stops sub-runs is fenced by the claim, as all that a worker writes (F10; state.md, Claims). With negative controls."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import aiosql
import panels
import pytest
import pytest_asyncio
import swarm_at_hand as swarm
from panels import Started

from folkmoot.domain.runs import Claim, Place, ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import FolkmootError, LeaseLost
from folkmoot.kernel.ids import NewId
from folkmoot.services import sub_run_starts, sub_runs
from folkmoot.services.sub_run_starts import Wanted
from folkmoot.store import swarms, workers
from folkmoot.store.database import Database

GUARD = "claim_number = :number and claim_id = :claim_id and status = 'Running'"


@dataclass
class House:
    """A claimed run, with one sub-run that is at work, too."""

    database: Database
    caller: Caller
    new_id: NewId
    started: Started
    claim: Claim
    child: Started

    async def start(self, claim: Claim) -> None:
        (outcome,) = await sub_run_starts.start(
            self.database, claim, wanted=[Wanted(self.new_id(), "Ann", "child")], bench=swarm.bench(), new_id=self.new_id,
            tell=lambda _: None,
        )  # fmt: skip
        if isinstance(outcome, FolkmootError):
            raise outcome

    async def stop(self, claim: Claim) -> None:
        await sub_runs.stop(self.database, claim, run_id=self.child.run_id, participant="Ann", tell=lambda _: None)

    async def lose(self) -> None:
        """The worker's lease runs out, and a sweep takes the run from it."""
        await panels.execute(self.database, "update worker set lease_until = '-infinity'")
        async with self.database.writer() as writer:
            await workers.take_from_lost(writer)

    async def done(self) -> tuple[int, bool, list[str]]:
        """How many sub-runs there are, whether the child is to stop, and what the audit log has."""
        row = await panels.row_of(self.database, self.child)
        noted = await panels.fetch(self.database, "select action from audit where subject_kind = 'run' order by at")
        children = await swarm.children(self.database, self.started)
        return len(children), row["stopped_by"] is not None, [each["action"] for each in noted]


@pytest_asyncio.fixture
async def house(database: Database, caller: Caller, new_id: NewId) -> House:
    startable = await swarm.publish(database, caller, new_id)
    started = await swarm.start(database, caller, new_id, swarm.parent(new_id, [startable], swarm.TALK))
    worker_id = await panels.register(database, new_id)
    (parent,) = await panels.claim(database, worker_id)
    place = Place(started.run_id, started.run_id, started.run_id, ProcessType.INTERACTION, 1, "Ann")
    child = await panels.start(database, new_id, tenant_id=caller.tenant_id, place=place)
    await panels.claim(database, worker_id)
    return House(database, caller, new_id, started, parent.claim, child)


async def test_a_worker_that_lost_its_claim_starts_and_stops_nothing(house: House) -> None:
    """F10: taken by a sweep, claimed by another, waiting for a person."""
    await house.lose()
    for state in ("lost", "claimed again", "waiting"):
        if state == "claimed again":
            await panels.claim(
                house.database, await panels.register(house.database, house.new_id), batch=5, suspects=True
            )
        if state == "waiting":
            await panels.execute(
                house.database, "update process set worker_id = null, claim_id = null, status = 'PendingHuman' where run_id = $1",
                house.started.run_id,
            )  # fmt: skip
        for act in (house.start, house.stop):
            with pytest.raises(LeaseLost):
                await act(house.claim)
        assert await house.done() == (1, False, [])


@pytest.mark.parametrize("change", [{"number": 2}, {"claim_id": None}])
async def test_both_the_number_and_the_id_of_the_claim_must_be_right(house: House, change: dict[str, Any]) -> None:
    wrong = replace(house.claim, **{name: value or house.new_id() for name, value in change.items()})
    for act in (house.start, house.stop):
        with pytest.raises(LeaseLost):
            await act(wrong)
    assert await house.done() == (1, False, [])
    await house.start(house.claim)
    await house.stop(house.claim)
    assert await house.done() == (2, True, ["run.started", "run.stop_requested"])


async def test_control_without_the_guard_a_late_worker_starts_and_stops(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    await house.lose()
    text = files("folkmoot.store").joinpath("sql/swarms.sql").read_text(encoding="utf-8")
    assert GUARD in text
    text = text.replace(GUARD, f"({GUARD} or true)")
    monkeypatch.setattr(swarms, "_sql", aiosql.from_str(text, "asyncpg", kwargs_only=True, mandatory_parameters=False))
    await house.start(house.claim)
    await house.stop(house.claim)
    assert await house.done() == (2, True, ["run.started", "run.stop_requested"])

    return files("folkmoot.store").joinpath("sql/swarms.sql").read_text(encoding="utf-8")


async def test_the_audit_log_says_which_participant_of_which_run_started_and_stopped(house: House) -> None:
    """rights.md: over the channel `run`, for the user whom the run goes for."""
    await house.start(house.claim)
    await house.stop(house.claim)
    noted = await panels.fetch(house.database, "select * from audit where subject_kind = 'run' order by at")
    assert [(each["action"], each["channel"], each["user_id"]) for each in noted] == [
        ("run.started", "run", house.caller.user_id), ("run.stop_requested", "run", house.caller.user_id)
    ]  # fmt: skip
    for each in noted:
        detail = json.loads(each["detail"])
        assert (detail["parent"], detail["participant"]) == (str(house.started.run_id), "Ann")
