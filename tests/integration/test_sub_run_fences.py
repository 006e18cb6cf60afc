"""What a run may start and stop: under its own claim, for whoever started the tree, what it is pinned to (F10, F30; B09, B38).

Each test about concurrency has a negative control.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import aiosql
import panels
import pytest
import pytest_asyncio
import swarm_at_hand as swarm
from crews import until
from panels import Started
from waiting_at_hand import waits_for_a_lock

from folkmoot.domain.runs import Claim, Place, ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import FolkmootError, LeaseLost, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import runs, sub_run_starts, sub_runs
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


def put_in_place(monkeypatch: pytest.MonkeyPatch, part: str, other: str) -> None:
    """Another text in place of a part of the statements."""
    text = files("folkmoot.store").joinpath("sql/swarms.sql").read_text(encoding="utf-8")
    assert text.count(part) == 1
    changed = aiosql.from_str(text.replace(part, other), "asyncpg", kwargs_only=True, mandatory_parameters=False)
    monkeypatch.setattr(swarms, "_sql", changed)


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
    put_in_place(monkeypatch, GUARD, f"({GUARD} or true)")
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


# for whom


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("role = 'approver'", "{right}"),
        ("removed_at = now()", "who is no user here any more"),
    ],
)
async def test_rights_of_whoever_started_the_tree_are_those_they_have_now(house: House, change: str, says: str) -> None:
    """B38: they are asked for at each start and at each stop."""
    await panels.execute(house.database, f"update app_user set {change} where user_id = $1", house.caller.user_id)
    for act, right in ((house.start, "'start'"), (house.stop, "'stop'")):
        with pytest.raises(NotPermitted, match=says.format(right=right)):
            await act(house.claim)
    assert await house.done() == (1, False, [])
    await panels.execute(
        house.database,
        "update app_user set role = 'operator', removed_at = null where user_id = $1",
        house.caller.user_id,
    )
    await house.start(house.claim)
    await house.stop(house.claim)
    assert await house.done() == (2, True, ["run.started", "run.stop_requested"])


async def test_the_version_that_the_tree_was_pinned_to_is_started_whatever_was_published_since(house: House) -> None:
    """B09."""
    newer = replace(swarm.CHILD, prompt="Work otherwise.")
    assert (await swarm.publish(house.database, house.caller, house.new_id, version=newer)).version == 2
    await house.start(house.claim)
    versions = await panels.fetch(
        house.database, "select definition_version, body from process join resolved_definition using (tenant_id, run_id)"
        " where parent_id = $1 and run_id <> $2", house.started.run_id, house.child.run_id
    )  # fmt: skip
    assert [(each["definition_version"], json.loads(each["body"])["task"]) for each in versions] == [(1, "Work.")]


# a start against the stop of its run


async def is_held_off(house: House) -> bool:
    """Whether a stop of the run waits while a start in it is under way."""
    async with house.database.writer() as writer:
        await swarms.parent(writer, house.claim)
        asked = runs.request_stop(house.database, house.caller, run_id=house.started.run_id, tell=lambda _: None)
        stopping = asyncio.create_task(asked)

        async def is_blocked_or_done() -> bool:
            return stopping.done() or await waits_for_a_lock(house.database)

        await until(is_blocked_or_done)
        was_held_off = not stopping.done()
    await stopping
    return was_held_off


async def test_a_stop_of_a_run_waits_for_a_start_in_it_and_so_sees_what_that_started(house: House) -> None:
    """F30: else the stop could go down the tree past a run that is not there yet."""
    assert await is_held_off(house)


async def test_control_without_the_lock_the_stop_goes_past_the_start(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    put_in_place(monkeypatch, f"{GUARD} for share", GUARD)
    assert not await is_held_off(house)
