"""Trees of runs: shown whole from any of their runs, and stopped level by level (kernel.md, Trees; state.md, Waking; F30)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import panels
import pytest
import pytest_asyncio
from api_at_hand import RUNS, Served, publish_panel, served, start_run
from apps_at_hand import SWARM, noted, opened, put_below, sweep, without
from crews import crew, until
from panels import Started
from waiting_at_hand import ask, row_of, waits_for_a_lock

from folkmoot.cli import tree as drawing
from folkmoot.domain.apps import Opening
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Place, ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.trees import Node, Tree, with_depths
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.drive import Drive
from folkmoot.services import apps, runs
from folkmoot.services.trees import stop_below
from folkmoot.store import run_lists, trees
from folkmoot.store.database import Database

PEOPLE = HumanSettings(chat_mode=ChatMode.EVERY_ROUND)


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is started stays New."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


async def below(database: Database, new_id: NewId, parent: Started | None, caller: Caller) -> Started:
    """A run that asks a person at the end of its round, and may have sub-runs; started by `parent`, if there is one."""
    resolved = panels.interaction(new_id, names=("Ann",), human_settings=PEOPLE, maximum_rounds=3, swarm=SWARM)
    place = None
    if parent is not None:
        row = await panels.row_of(database, parent)
        place = Place(
            row["tree_root_id"], row["swarm_root_id"], parent.run_id, ProcessType.INTERACTION, depth=row["depth"] + 1
        )
    return await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id, place=place)


async def status_of(database: Database, run: Started) -> str:
    return str((await panels.row_of(database, run))["status"])


async def to_look_at(database: Database) -> list[UUID]:
    """What the next sweep looks at: runs below which not all were asked to stop."""
    async with database.reader() as reader:
        return [run_id for _, run_id in await trees.ended_parents(reader, limit=10)]


class Family:
    """A run, one below it, and one below that; all wait for a person."""

    def __init__(self, database: Database, caller: Caller, generations: list[Started]) -> None:
        self.database, self.caller, self.generations = database, caller, generations

    @classmethod
    async def begun(cls, database: Database, caller: Caller, new_id: NewId) -> Family:
        generations: list[Started] = []
        for _ in range(3):
            generations.append(await below(database, new_id, generations[-1] if generations else None, caller))
        return cls(database, caller, generations)

    async def statuses(self) -> list[str]:
        return [await status_of(self.database, run) for run in self.generations]

    async def are(self, *statuses: str) -> bool:
        return await self.statuses() == list(statuses)

    async def stop(self, tell: Any) -> None:
        await runs.request_stop(self.database, self.caller, run_id=self.generations[0].run_id, tell=tell)


class TestStops:
    async def test_a_stop_goes_down_level_by_level(self, database: Database, caller: Caller, new_id: NewId) -> None:
        """state.md: 'a stop that goes down a tree only sets flags'; the questions of all are closed (B13). No sweep helps."""
        family = await Family.begun(database, caller, new_id)
        late = await below(database, new_id, family.generations[0], caller)
        await panels.execute(database, "update process set ready_at = null where run_id = $1", late.run_id)
        async with crew(database, new_id, sweep_seconds=1000.0) as made:
            await until(lambda: family.are(*["PendingHuman"] * 3))
            await family.stop(made.tell)
            await until(lambda: family.are(*["Stopped"] * 3))
        assert await status_of(database, late) == "Stopped", "nobody had begun it"
        found = await panels.fetch(database, "select run_id, outcome, answered_by_name as who from pending")
        closed = {row["run_id"]: (row["outcome"], row["who"]) for row in found}
        assert [closed[run.run_id] for run in family.generations] == [
            ("Stopped", "owner"), ("Stopped", "Orchestrator"), ("Stopped", "Orchestrator")
        ]  # fmt: skip
        for child, parent in zip(family.generations[1:], family.generations, strict=False):
            row = await panels.row_of(database, child)
            assert row["stopped_by"] == f"Orchestrator: its parent run {parent.run_id} was Stopped"
            assert await noted(database, child.run_id) == ["run.stop_requested"]

    async def test_what_a_crash_kept_from_going_down_the_sweep_finds(
        self, database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A worker that dies between a run's end and what follows from it; without the sweep the children wait for ever."""

        async def dies(_: Drive) -> None:
            pass

        monkeypatch.setattr(Drive, "_stop_below", dies)
        family = await Family.begun(database, caller, new_id)
        async with crew(database, new_id, sweep_seconds=1000.0) as made:
            await until(lambda: family.are(*["PendingHuman"] * 3))
            await family.stop(made.tell)
            for ended in (1, 2):
                expected = ["Stopped"] * ended + ["PendingHuman"] * (3 - ended)
                await until(lambda expected=expected: family.are(*expected))  # type: ignore[misc]
                await sweep(database)
            await until(lambda: family.are(*["Stopped"] * 3))

    async def test_only_the_children_of_a_run_that_ended_otherwise_than_completed(
        self, database: Database, caller: Caller, new_id: NewId
    ) -> None:
        parent = await below(database, new_id, None, caller)
        child = await below(database, new_id, parent, caller)

        async def stopped() -> list[UUID]:
            async with database.writer() as writer:
                found = await trees.stop_children(
                    writer, parent.tenant_id, ended_id=parent.run_id, parent_id=parent.run_id, limit=10
                )
            return [each.run_id for each in found]

        assert await stopped() == [], "it goes on"
        end = "update process set status = $2::run_status, ended_at = now(), ready_at = null where run_id = $1"
        await panels.execute(database, end, parent.run_id, "Completed")
        assert await stopped() == []
        await panels.execute(database, end, parent.run_id, "TimedOut")
        await panels.execute(database, "update process set status = 'Running' where run_id = $1", child.run_id)
        assert await stopped() == [child.run_id]
        assert await stopped() == [], "it was asked"
        assert await status_of(database, child) == "Running"

    @pytest.mark.parametrize("is_by_sweep", [False, True])
    async def test_a_stop_goes_through_those_that_are_completed(
        self, database: Database, caller: Caller, new_id: NewId, is_by_sweep: bool
    ) -> None:
        """kernel.md, Trees: a Completed run stops nobody by itself; a stop further up goes through it, to whatever goes on."""
        opening = Opening("nightly", None, (), (), timedelta(hours=1))
        app = (await apps.open_run(database, caller, opening=opening, new_id=new_id)).run_id
        above = Place(app, new_id(), app, ProcessType.APP)
        resolved = panels.interaction(new_id, names=("Ann",), swarm=SWARM)
        child = await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id, place=above)
        grandchild = await below(database, new_id, child, caller)
        last, new = [await below(database, new_id, grandchild, caller) for _ in range(2)]
        complete = "update process set status = 'Completed', ended_at = now(), ready_at = null where run_id = $1"
        for run in (child, grandchild):
            await panels.execute(database, complete, run.run_id)
        at_work = "update process set status = 'PendingHuman', ready_at = null where run_id = $1"
        await panels.execute(database, at_work, last.run_id)
        assert await to_look_at(database) == [], "the app's run goes on"
        if is_by_sweep:
            fail = "update process set status = 'Failed', ended_at = now(), lost_at = null where run_id = $1"
            await panels.execute(database, fail, app)
            await sweep(database)
        else:
            await runs.request_stop(database, caller, run_id=app, run_type=ProcessType.APP, tell=lambda _: None)
        row = await panels.row_of(database, last)
        ended = "Failed" if is_by_sweep else "Stopped"
        assert row["stopped_by"] == f"Orchestrator: the run {app} above it was {ended}"
        assert row["ready_at"] is not None, "a worker sees to its end"
        assert await status_of(database, new) == "Stopped", "nobody had begun it"
        assert [await status_of(database, run) for run in (child, grandchild)] == ["Completed"] * 2
        assert app not in await to_look_at(database)
        await sweep(database)
        assert await to_look_at(database) == [], "an idle sweep has nothing to look at"

    async def test_the_sweep_comes_back_for_what_was_locked(
        self, database: Database, caller: Caller, new_id: NewId
    ) -> None:
        """A run that ended is looked at again until all below it were asked."""
        parent = await below(database, new_id, None, caller)
        child = await below(database, new_id, parent, caller)
        end = "update process set status = 'Failed', ended_at = now(), ready_at = null where run_id = $1"
        await panels.execute(database, end, parent.run_id)
        async with database.writer() as starting:
            await starting.connection.execute("select from process where run_id = $1 for update", child.run_id)
            await sweep(database)
        assert await to_look_at(database) == [parent.run_id]
        await sweep(database)
        assert await status_of(database, child) == "Stopped" and parent.run_id not in await to_look_at(database)

    async def test_all_children_are_asked_however_many(self, database: Database, caller: Caller, new_id: NewId) -> None:
        """More than one statement asks."""
        parent = await below(database, new_id, None, caller)
        child = await below(database, new_id, parent, caller)
        more = """
            insert into process select (jsonb_populate_record(c, jsonb_build_object('run_id', gen_random_uuid()))).*
            from process c cross join generate_series(1, 100) where c.run_id = $1"""
        await panels.execute(database, more, child.run_id)
        end = "update process set status = 'Failed', ended_at = now(), ready_at = null where run_id = $1"
        await panels.execute(database, end, parent.run_id)
        await stop_below(database, tenant_id=parent.tenant_id, ended_id=parent.run_id, tell=lambda _: None)
        found = await panels.fetch(
            database, "select status, count(*) from process where parent_id = $1 group by 1", parent.run_id
        )
        assert [tuple(row.values()) for row in found] == [("Stopped", 101)]

    async def stop_beside_an_end(self, database: Database, caller: Caller, new_id: NewId) -> bool:
        """Whether a stop that goes down waits for a child's own end, which is under way."""
        parent = await below(database, new_id, None, caller)
        child = await below(database, new_id, parent, caller)
        end = "update process set status = 'Failed', ended_at = now(), ready_at = null where run_id = $1"
        await panels.execute(database, end, parent.run_id)
        async with database.writer() as ending:
            await ending.connection.execute("select from process where run_id = $1 for update", child.run_id)

            async def stop() -> None:
                async with database.writer() as writer:
                    await trees.stop_children(
                        writer, parent.tenant_id, ended_id=parent.run_id, parent_id=parent.run_id, limit=10
                    )

            stopping = asyncio.create_task(stop())

            async def is_over_or_waits() -> bool:
                return stopping.done() or await waits_for_a_lock(database)

            await until(is_over_or_waits)
            has_waited = not stopping.done()
        await stopping
        return has_waited

    async def test_it_waits_for_no_child(
        self, database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The child's end may wait for its parent: whoever waited for the child would wait in a circle. Without the guard it does."""
        assert not await self.stop_beside_an_end(database, caller, new_id)
        monkeypatch.setattr(trees, "_sql", without("trees", "    for update of c skip locked", "    for update of c"))
        assert await self.stop_beside_an_end(database, caller, new_id)


class TestShown:
    async def family(self, server: Served) -> tuple[str, str, str, str]:
        """An App run, two runs under it, and one below the first of these."""
        app = await opened(server)
        first, second = [(await start_run(server.client, {"parentProcessId": app}))["id"] for _ in range(2)]
        third = (await start_run(server.client))["id"]
        await put_below(server.installation.database, first, third)
        return app, first, second, third

    async def test_it_is_the_same_from_any_of_its_runs(self, server: Served) -> None:
        app, first, second, third = await self.family(server)
        await ask(server.installation.database, third, PendingKind.QUESTION)
        tree = (await server.client.get(f"/processes/App/{app}/tree")).json()
        for path in (f"{RUNS}/by-id/{third}/tree", f"/processes/Interaction/{second}/tree"):
            assert (await server.client.get(path)).json() == tree
        assert (tree["rootProcessId"], tree["isCut"]) == (app, False)
        assert tree["counts"] == {"total": 4, "active": 4, "ended": 0}
        shown = [
            (node["id"], node["parentProcessId"], node["depth"], node["type"], node["name"]) for node in tree["nodes"]
        ]
        assert shown == [
            (app, None, 0, "App", "nightly-import"),
            (first, app, 1, "Interaction", "panel"),
            (third, first, 2, "Interaction", "panel"),
            (second, app, 1, "Interaction", "panel"),
        ]
        assert [(node["children"], node["waiting"], node["startedBy"]) for node in tree["nodes"]] == [
            (2, 0, "owner"), (1, 0, "owner"), (0, 1, "owner"), (0, 0, "owner"),
        ]  # fmt: skip
        assert (await server.client.get(f"/processes/App/{first}/tree")).status_code == 404
        assert (await server.client.get(f"/processes/AgentRun/{first}/tree")).status_code == 404

    async def test_a_large_one_is_cut_and_says_so(self, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        app, first, _, _ = await self.family(server)
        monkeypatch.setattr(trees, "MOST_NODES", 2)
        tree = (await server.client.get(f"/processes/App/{app}/tree")).json()
        assert tree["isCut"] and [node["id"] for node in tree["nodes"]] == [app, first]
        assert tree["counts"]["total"] == 4

    async def test_no_more_runs_are_counted_than_is_said(self, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        """A tree of any size costs the same."""
        app, first, _, third = await self.family(server)
        await panels.execute(
            server.installation.database, "update process set status = 'Stopped', ended_at = now(), ready_at = null where run_id = $1", UUID(third)
        )  # fmt: skip
        for store in (trees, run_lists):
            monkeypatch.setattr(store, "MOST_COUNTED", 1)
        tree = (await server.client.get(f"/processes/App/{app}/tree")).json()
        assert tree["counts"] == {"total": 1, "active": 1, "ended": 0} and tree["nodes"][0]["children"] == 1
        details = (await server.client.get(f"{RUNS}/by-id/{first}/details")).json()
        assert details["treeCounts"] == {"total": 1, "active": 1, "ended": 0}

    async def test_any_run_is_stopped_by_its_type(self, server: Served) -> None:
        """api.md: `/processes/{type}/{id}/…/stop`."""
        _, first, _, third = await self.family(server)
        assert (await server.client.post(f"/processes/App/{first}/stop")).status_code == 404
        node = (await server.client.post(f"/processes/Interaction/{third}/stop")).json()
        assert (node["status"], node["depth"], node["parentProcessId"]) == ("Stopped", 2, first)
        assert (await server.client.post(f"/processes/Interaction/{third}/stop")).status_code == 409
        assert (await row_of(server.installation.database, first))["status"] == "New"

    def test_it_is_drawn_with_each_run_below_what_started_it(self) -> None:
        def node(number: int, parent: int | None, waiting: int = 0, *, is_to_stop: bool = False) -> Node:
            namespace = None if parent is None else "team"
            return Node(
                UUID(int=number), ProcessType.APP if parent is None else ProcessType.INTERACTION, UUID(int=parent) if parent else None,
                RunStatus.RUNNING, f"n{number}", namespace, None, None, UUID(int=9), "owner", datetime.now(UTC), None, None, 0, waiting,
                is_to_stop=is_to_stop,
            )  # fmt: skip

        nodes = with_depths(
            [node(1, None), node(2, 1), node(3, 1), node(4, 2, waiting=2), node(5, 4, is_to_stop=True), node(6, 2)]
        )
        drawn = [line.rpartition("  ")[0] for line in drawing.lines(Tree(UUID(int=1), 7, 7, nodes))]
        assert drawn[:-1] == [
            "n1 (App): Running",
            "├─ team/n2: Running",
            "│  ├─ team/n4: Running, asks 2",
            "│  │  └─ team/n5: Running, asked to stop",
            "│  └─ team/n6: Running",
            "└─ team/n3: Running",
        ]
        assert "1 later runs" in list(drawing.lines(Tree(UUID(int=1), 7, 7, nodes)))[-1]
