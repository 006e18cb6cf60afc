"""Runs of a user's own programs: opened, pinged, ended, lost; and runs that are started under them (kernel.md, Trees)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import panels
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, PANEL, RUNS, Served, ended, problem_of, publish_panel, served, start_run, stranger_key
from apps_at_hand import IMPORT, noted, opened, sweep, without
from crews import until
from waiting_at_hand import ask, fetch, row_of, waits_for_a_lock

from folkmoot.domain.apps import Ending, Opening
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.rights import Right
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotPermitted, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import apps, runs
from folkmoot.store import apps as app_store
from folkmoot.store import trees as tree_store
from folkmoot.store.database import Database

NAME = "nightly-import"
COMPLETED, FAILED = Ending(RunStatus.COMPLETED, "done"), Ending(RunStatus.FAILED, failure_details="broken")


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is started stays New."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


class TestLife:
    async def test_a_run_is_at_work_from_its_opening_and_ends_once(self, server: Served) -> None:
        """kernel.md, Trees: opened, pinged, ended with an outcome."""
        client = server.client
        body = {
            "description": "All of it.",
            "inputs": [{"name": "day", "value": "monday"}],
            "tags": ["a"],
            "pingLimit": "00:02:00",
        }
        answer = await client.post(IMPORT, json=body)
        run = answer.json()
        assert answer.status_code == 201 and (run["name"], run["status"], run["pingLimit"]) == (
            NAME,
            "Running",
            "00:02:00",
        )
        assert (run["description"], run["inputs"], run["tags"]) == (body["description"], body["inputs"], body["tags"])
        path = f"{IMPORT}/{run['id']}"
        pinged = (await client.post(f"{path}/ping")).json()
        assert pinged["datePing"] > run["datePing"] and pinged["dateLost"] > run["dateLost"]
        done = (await client.post(f"{path}/end", json={"outcome": "Completed", "output": "120 rows."})).json()
        assert (done["status"], done["output"], done["dateLost"]) == ("Completed", "120 rows.", None)
        shown = (await client.get(path)).json()
        assert shown == done
        assert [each["id"] for each in (await client.get(IMPORT, params={"status": "Completed"})).json()["items"]] == [
            run["id"]
        ]
        assert (await client.get("/apps/other/runs")).json() == {"items": [], "next": None}
        for again in ("ping", "end"):
            body = {"json": {"outcome": "Failed", "failureDetails": "x"}} if again == "end" else {}
            refused = problem_of(await client.post(f"{path}/{again}", **body), 409, "run_ended")["detail"]
            assert "Completed since" in refused
        problem_of(await client.get(f"/apps/other/runs/{run['id']}"), 404, "not_found")
        assert await noted(server.installation.database, run["id"]) == ["run.opened", "run.ended"]

    async def test_a_page_of_runs_goes_on_where_the_one_before_ended(self, server: Served) -> None:
        ids = [await opened(server) for _ in range(3)]
        first = (await server.client.get(IMPORT, params={"limit": 2})).json()
        second = (await server.client.get(IMPORT, params={"limit": 2, "after": first["next"]})).json()
        assert [run["id"] for run in (*first["items"], *second["items"])] == ids[::-1] and second["next"] is None

    async def test_an_opening_with_a_key_opens_once(self, server: Served) -> None:
        headers = {"Idempotency-Key": "k"}
        first, again = [await server.client.post(IMPORT, json={}, headers=headers) for _ in range(2)]
        assert first.json()["id"] == again.json()["id"] and first.json()["pingLimit"] == "00:05:00"
        problem_of(await server.client.post(IMPORT, json={"tags": ["x"]}, headers=headers), 422, "key_reused")

    async def test_what_is_wrong_is_said(self, server: Served) -> None:
        client, inputs = server.client, [{"name": "a", "value": "1"}, {"name": "a", "value": "2"}]
        body = {"pingLimit": "00:00:01", "inputs": inputs, "tags": ["x"] * 1}
        problem = problem_of(await client.post(IMPORT, json=body), 422, "bad_input")
        assert [error["pointer"] for error in problem["errors"]] == ["/pingLimit", "/inputs/1/name"]
        problem_of(await client.post(IMPORT, json={"pingLimit": "1.00:00:01"}), 422, "bad_input")
        problem_of(await client.post("/apps/a@b/runs", json={}), 422, "bad_input")
        path = f"{IMPORT}/{await opened(server)}/end"
        for ending, pointer in (
            ({"outcome": "Failed"}, "/failureDetails"),
            ({"outcome": "Failed", "failureDetails": "x", "output": "y"}, "/output"),
            ({"outcome": "Completed", "failureDetails": "x"}, "/failureDetails"),
        ):
            problem = problem_of(await client.post(path, json=ending), 422, "bad_input")
            assert [error["pointer"] for error in problem["errors"]] == [pointer]
        problem_of(await client.post(path, json={"outcome": "Stopped"}), 422, "bad_input")

    @pytest.mark.parametrize(
        "name", ["a%00b", "%00", "%ED%A0%80", "a%1B%5B31m%E2%80%AE", "%F0%9F%98%80" * 200, "x" * 201, "a%2Fb"]
    )
    async def test_a_hostile_name_is_a_name_that_nobody_used(self, server: Served, name: str) -> None:
        """F25: in the path, where no body's checks are."""
        client, run = server.client, f"/apps/{name}/runs/{await opened(server)}"
        for answer in (
            await client.get(f"/apps/{name}/runs"), await client.get(run), await client.post(f"{run}/ping"),
            await client.post(f"{run}/end", json={"outcome": "Completed"}), await client.post(f"/apps/{name}/runs", json={}),
        ):  # fmt: skip
            assert answer.status_code < 500, answer.text

    async def test_it_is_listed_by_its_root_alone_and_has_no_conversation(self, server: Served) -> None:
        client, app = server.client, await opened(server, inputs=[{"name": "day", "value": "monday"}])
        run = await start_run(client, {"parentProcessId": app})
        for query in ({}, {"status": "Running"}, {"text": "monday"}):
            assert app not in [shown["id"] for shown in (await client.get(RUNS, params=query)).json()["items"]]
        whole = (await client.get(RUNS, params={"root": app})).json()["items"]
        assert [shown["id"] for shown in whole] == [run["id"], app]
        assert whole[1]["interaction"] == {"id": str(UUID(int=0)), "version": 0} and whole[1]["status"] == "Running"
        for method, path in (
            ("GET", ""),
            ("GET", "/details"),
            ("GET", "/items"),
            ("GET", "/events"),
            ("GET", "/tree"),
            ("POST", "/stop"),
        ):
            problem_of(await client.request(method, f"{RUNS}/by-id/{app}{path}"), 404, "not_found")
        problem_of(await client.post(f"{RUNS}/by-id/{app}/messages", json={"message": "Hm."}), 404, "not_found")

    async def test_no_worker_ever_takes_it(self, database_dsn: str, tmp_path: Path) -> None:
        async with served(database_dsn, data_dir=tmp_path, works=True) as server:
            await publish_panel(server.client, tmp_path)
            app = await opened(server)
            run = await start_run(
                server.client, {"parentProcessId": app, "inputs": [{"name": "question", "value": "?"}]}
            )
            await ended(server.client, run["id"])
            row = await row_of(server.installation.database, app)
            assert (row["status"], row["claim_number"], row["worker_id"]) == ("Running", 0, None)

    async def test_another_tenant_finds_none_of_it(self, server: Served) -> None:
        """F40."""
        app = await opened(server)
        _, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            assert (await theirs.get(IMPORT)).json()["items"] == []
            for method, path in (
                ("GET", f"{IMPORT}/{app}"), ("POST", f"{IMPORT}/{app}/ping"), ("GET", f"/processes/App/{app}/tree"),
                ("POST", f"/processes/App/{app}/stop"),
            ):  # fmt: skip
                problem_of(await theirs.request(method, path), 404, "not_found")
            problem_of(await theirs.post(f"{IMPORT}/{app}/end", json={"outcome": "Completed"}), 404, "not_found")
        assert (await row_of(server.installation.database, app))["status"] == "Running"


class TestLost:
    async def test_a_run_that_is_not_pinged_within_its_own_limit_is_failed(self, server: Served) -> None:
        """kernel.md, Trees: 'it is Failed if it is not pinged for its own limit'; what comes after hears what happened."""
        database = server.installation.database
        hasty, patient = await opened(server, pingLimit="00:01:00"), await opened(server, pingLimit="00:03:00")
        await panels.shift_clock(database, 61)
        await sweep(database)
        lost = (await server.client.get(f"{IMPORT}/{hasty}")).json()
        assert lost["status"] == "Failed" and "did not ping this run for 00:01:00" in lost["failureDetails"]
        assert (await server.client.post(f"{IMPORT}/{patient}/ping")).status_code == 200
        for path, body in (("ping", None), ("end", {"outcome": "Completed"})):
            problem = problem_of(await server.client.post(f"{IMPORT}/{hasty}/{path}", json=body), 409, "run_ended")
            assert "did not ping this run for 00:01:00" in problem["detail"]
        assert await noted(database, hasty) == ["run.opened", "run.lost"]
        await panels.shift_clock(database, 121)
        await sweep(database)
        assert (await row_of(database, patient))["status"] == "Running", "its limit counts from the last ping"

    async def test_a_ping_that_comes_late_revives_nothing(self, server: Served) -> None:
        """Also before a sweep: the program hears of its loss from its own ping, and what it started is stopped."""
        database, app = server.installation.database, await opened(server, pingLimit="00:01:00")
        run = await start_run(server.client, {"parentProcessId": app})
        await panels.shift_clock(database, 60)
        problem = problem_of(await server.client.post(f"{IMPORT}/{app}/ping"), 409, "run_ended")
        assert "Failed since" in problem["detail"] and "did not ping" in problem["detail"]
        assert (await row_of(database, run["id"]))["status"] == "Stopped"


class TestRaces:
    async def app(self, database: Database, caller: Caller, new_id: NewId) -> UUID:
        return (await apps.open_run(database, caller, opening=Opening(NAME), new_id=new_id)).run_id

    async def end_twice(self, database: Database, caller: Caller, app: UUID) -> list[str]:
        """Two ends side by side: the second begins while the first holds the row; what the two came to."""

        async def end(ending: Ending) -> str:
            try:
                return (
                    await apps.end(database, caller, name=NAME, run_id=app, ending=ending, tell=lambda _: None)
                ).status
            except RunEnded:
                return "refused"

        async with database.writer() as writer:
            await writer.connection.execute("select from process where run_id = $1 for update", app)
            both = asyncio.gather(end(COMPLETED), end(FAILED))
            await until(lambda: self._both_wait(database))
        return await both

    async def _both_wait(self, database: Database) -> bool:
        rows = await fetch(
            database, "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
        return len(rows) == 2

    async def test_of_two_ends_at_once_one_counts(
        self, database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F30; without the states in the WHERE both do."""
        results = await self.end_twice(database, caller, await self.app(database, caller, new_id))
        assert sorted(results).count("refused") == 1
        guard = (
            "p.app_name = :name and p.status = 'Running' and p.lost_at > t.now\nreturning p.*, t.now;\n\n-- name: lose"
        )
        monkeypatch.setattr(
            app_store, "_sql", without("apps", guard, "p.app_name = :name\nreturning p.*, t.now;\n\n-- name: lose")
        )
        results = await self.end_twice(database, caller, await self.app(database, caller, new_id))
        assert "refused" not in results

    async def lose_beside_a_ping(self, database: Database, caller: Caller, app: UUID) -> str:
        """The sweep looks while a ping that came in time is not committed yet; how the run stands after both."""
        async with database.writer() as writer:
            assert await app_store.ping(writer, caller.tenant_id, name=NAME, run_id=app) is not None
            async with database.writer() as clock:
                await clock.connection.execute("update clock_shift set shift = shift + interval '301 s'")

            async def lose() -> None:
                async with database.writer() as sweeping:
                    await app_store.lose(sweeping)

            losing = asyncio.create_task(lose())
            await until(lambda: self._is_over_or_waits(database, losing))
            # The ping's own time was before: it is moved on, as one that comes at the last moment would be.
            await writer.connection.execute(
                "update process set lost_at = lost_at + interval '301 s' where run_id = $1", app
            )
        await losing
        return str((await panels.fetch(database, "select status from process where run_id = $1", app))[0]["status"])

    async def _is_over_or_waits(self, database: Database, task: asyncio.Task[None]) -> bool:
        return task.done() or await waits_for_a_lock(database)

    async def test_of_a_ping_and_a_loss_at_once_one_counts(
        self, database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The row that is being pinged is left to the next sweep; without that a run that was just pinged is Failed."""
        assert await self.lose_beside_a_ping(database, caller, await self.app(database, caller, new_id)) == "Running"
        monkeypatch.setattr(app_store, "_sql", without("apps", "\n    for update of p skip locked"))
        assert await self.lose_beside_a_ping(database, caller, await self.app(database, caller, new_id)) == "Failed"

    async def end_beside_a_start(self, database: Database, caller: Caller, app: UUID) -> bool:
        """Whether an end waits for a start that has looked at the run and is not committed."""
        async with database.writer() as writer:
            assert await tree_store.lock_parent(writer, caller.tenant_id, run_id=app) is not None
            ending = asyncio.create_task(
                apps.end(database, caller, name=NAME, run_id=app, ending=FAILED, tell=lambda _: None)
            )
            await until(lambda: self._is_over_or_waits(database, ending))  # type: ignore[arg-type]
            has_waited = not ending.done()
        await ending
        return has_waited

    async def test_an_end_sees_what_is_being_started_under_the_run(
        self, database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It waits for the start's commit; without the lock it would not, and nothing would ever stop what was started."""
        assert await self.end_beside_a_start(database, caller, await self.app(database, caller, new_id))
        monkeypatch.setattr(tree_store, "_sql", without("trees", " for share;", ";"))
        assert not await self.end_beside_a_start(database, caller, await self.app(database, caller, new_id))


class TestStartedUnder:
    async def test_a_run_is_started_under_an_app_run(self, server: Served) -> None:
        """interactions.md, Starting: `parentProcessId` (an App run's)."""
        client, app = server.client, await opened(server)
        panel = (await client.get(PANEL)).json()["id"]
        by_name = await start_run(client, {"parentProcessId": app})
        by_id = (await client.put(f"{RUNS}/by-id/{panel}/start", json={"parentProcessId": app})).json()
        for run in (by_name, by_id):
            assert (run["parentProcessId"], run["parentProcessType"], run["rootProcessId"]) == (app, "App", app)
            row = await row_of(server.installation.database, run["id"])
            assert (row["tree_root_id"], row["swarm_root_id"]) == (UUID(app), UUID(run["id"]))
        found = (await client.get(RUNS, params={"parent": app})).json()["items"]
        assert [run["id"] for run in found] == [by_id["id"], by_name["id"]]
        counts = (await client.get(f"{RUNS}/by-id/{by_id['id']}/details")).json()["treeCounts"]
        assert counts == {"total": 3, "active": 3, "ended": 0}

    async def test_nothing_is_started_under_a_run_that_is_lost(self, server: Served) -> None:
        """As soon as its limit has run out, though no sweep has failed it yet."""
        app = await opened(server)
        await panels.shift_clock(server.installation.database, 301)
        answer = await server.client.put(f"{PANEL}/start", json={"parentProcessId": app})
        assert "was not pinged within its limit" in problem_of(answer, 409, "run_ended")["detail"]
        assert (await row_of(server.installation.database, app))["status"] == "Running"

    async def test_to_fail_what_somebody_else_opened_takes_the_right_to_stop(
        self, database: Database, caller: Caller, new_id: NewId
    ) -> None:
        """Its runs are stopped; one's own, and one that is completed, take the right to start alone."""
        starter = replace(caller, user_id=new_id(), rights=frozenset({Right.READ, Right.START}))
        theirs, own = [
            (await apps.open_run(database, who, opening=Opening(NAME), new_id=new_id)).run_id
            for who in (caller, starter)
        ]

        async def end(run_id: UUID, ending: Ending) -> RunStatus:
            return (
                await apps.end(database, starter, name=NAME, run_id=run_id, ending=ending, tell=lambda _: None)
            ).status

        with pytest.raises(NotPermitted, match="stop"):
            await end(theirs, FAILED)
        assert await end(own, FAILED) is RunStatus.FAILED and await end(theirs, COMPLETED) is RunStatus.COMPLETED

    @pytest.mark.parametrize(("told", "expected"), [("broken", ": broken."), ("It broke!", ": It broke!")])
    async def test_what_is_said_of_a_run_that_ended_is_a_sentence(
        self, database: Database, caller: Caller, new_id: NewId, told: str, expected: str
    ) -> None:
        run_id = (await apps.open_run(database, caller, opening=Opening(NAME), new_id=new_id)).run_id
        ending = Ending(RunStatus.FAILED, failure_details=told)
        await apps.end(database, caller, name=NAME, run_id=run_id, ending=ending, tell=lambda _: None)
        with pytest.raises(RunEnded) as refused:
            await apps.ping(database, caller, name=NAME, run_id=run_id, tell=lambda _: None)
        assert str(refused.value).endswith(expected)

    async def test_another_tenants_run_is_not_lost_by_a_request(
        self, database: Database, caller: Caller, new_id: NewId
    ) -> None:
        run = await apps.open_run(database, caller, opening=Opening(NAME), new_id=new_id)
        await panels.shift_clock(database, 301)
        async with database.writer() as writer:
            assert await app_store.lose(writer, tenant_id=new_id(), run_id=run.run_id) == []
            assert await app_store.lose(writer, tenant_id=caller.tenant_id, run_id=run.run_id) != []

    async def test_an_app_run_takes_no_answer_and_says_so_as_when_it_is_read(self, server: Served) -> None:
        client, path = server.client, f"{RUNS}/by-id/{await opened(server)}"
        read = problem_of(await client.get(path), 404, "not_found")
        for tail, body in (("pass", None), (f"votes/{NEW_ID()}", {"agree": True}), ("messages", {"message": "Hello."})):
            problem = problem_of(await client.post(f"{path}/{tail}", json=body), 404, "not_found")
            assert problem["detail"] == read["detail"], tail

    async def test_only_under_an_app_run_of_ones_own_that_is_at_work(self, server: Served) -> None:
        client, app = server.client, await opened(server)

        async def refused(parent: str, status: int, code: str, key: str | None = None) -> Any:
            return problem_of(await client.put(f"{PANEL}/start", json={"parentProcessId": parent}), status, code)

        await refused(str(NEW_ID()), 404, "not_found")
        run = await start_run(client)
        assert [error["pointer"] for error in (await refused(run["id"], 422, "bad_input"))["errors"]] == [
            "/parentProcessId"
        ]
        await client.post(f"{IMPORT}/{app}/end", json={"outcome": "Completed"})
        assert "is Completed" in (await refused(app, 409, "run_ended"))["detail"]
        database = server.installation.database
        stranger, _ = await stranger_key(database)
        foreign = await apps.open_run(database, stranger, opening=Opening(NAME), new_id=NEW_ID)
        await refused(str(foreign.run_id), 404, "not_found")

    async def test_what_it_started_is_stopped_with_it(self, server: Served) -> None:
        """A New one at once; of one that waits for a person the question is closed, and a worker is woken (B13)."""
        for how in ("failed", "stopped", "lost"):
            await self.is_stopped_with_it(server, how)

    async def is_stopped_with_it(self, server: Served, how: str) -> None:
        client, database, app = server.client, server.installation.database, await opened(server)
        new, waiting = [(await start_run(client, {"parentProcessId": app}))["id"] for _ in range(2)]
        question = await ask(database, waiting, PendingKind.QUESTION)
        if how == "failed":
            await client.post(f"{IMPORT}/{app}/end", json={"outcome": "Failed", "failureDetails": "broken"})
        elif how == "stopped":
            node = (await client.post(f"/processes/App/{app}/stop")).json()
            assert (node["id"], node["type"], node["status"], node["children"]) == (app, "App", "Stopped", 2)
            assert "Stopped since" in problem_of(await client.post(f"{IMPORT}/{app}/ping"), 409, "run_ended")["detail"]
        else:
            await panels.shift_clock(database, 301)
            await sweep(database)
        rows = {run: await row_of(database, run) for run in (new, waiting)}
        assert (rows[new]["status"], rows[waiting]["status"]) == ("Stopped", "PendingHuman")
        assert rows[waiting]["ready_at"] is not None, "its worker ends it"
        status = "Stopped" if how == "stopped" else "Failed"
        assert {row["stopped_by"] for row in rows.values()} == {f"Orchestrator: its parent run {app} was {status}"}
        (closed,) = await fetch(
            database, "select outcome, answered_by_name from pending where pending_id = $1", question
        )
        assert tuple(closed) == ("Stopped", "Orchestrator")
        assert (await noted(database, new))[-1] == (await noted(database, waiting))[-1] == "run.stop_requested"

    async def test_what_it_started_goes_on_if_it_is_completed(self, server: Served) -> None:
        app = await opened(server)
        run = await start_run(server.client, {"parentProcessId": app})
        await server.client.post(f"{IMPORT}/{app}/end", json={"outcome": "Completed"})
        await sweep(server.installation.database)
        row = await row_of(server.installation.database, run["id"])
        assert (row["status"], row["stopped_by"]) == ("New", None)

    async def test_an_app_run_is_stopped_once(self, database: Database, caller: Caller, new_id: NewId) -> None:
        app = (await apps.open_run(database, caller, opening=Opening(NAME), new_id=new_id)).run_id
        for expected in (RunStatus.STOPPED, None):
            try:
                status = await runs.request_stop(
                    database, caller, run_id=app, run_type=ProcessType.APP, tell=lambda _: None
                )
            except RunEnded:
                status = None
            assert status is expected
