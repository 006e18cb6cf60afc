"""Runs over HTTP: started, listed, read, spoken to, stopped (api.md; B61, B63, F47)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_at_hand import (
    NAMESPACE,
    NEW_ID,
    PANEL,
    RUNS,
    Served,
    count_runs,
    document,
    ended,
    problem_of,
    publish_panel,
    put,
    served,
    start_run,
    stranger_key,
    working_beside,
)

JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is started stays New."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


class TestStarts:
    async def test_a_start_gives_the_whole_run(self, server: Served) -> None:
        """api.md: 201 and the run; every field of the type is there."""
        panel = (await server.client.get(PANEL)).json()
        body = {
            "inputs": [{"name": "question", "value": "Why?"}],
            "tags": ["a", "b"],
            "durationAutoTermination": "00:05:00",
        }
        by_name = await server.client.put(f"{PANEL}/start", json=body)
        by_id = await server.client.put(f"{RUNS}/by-id/{panel['id']}/start", json=body)
        assert by_name.status_code == by_id.status_code == 201
        fields = document()["components"]["schemas"]["InteractionProcess"]["properties"]
        for run in (by_name.json(), by_id.json()):
            assert set(run) == set(fields)
            assert (run["status"], run["interaction"]) == ("New", {"id": panel["id"], "version": 1})
            assert run["inputs"] == body["inputs"]
            assert run["durationAutoTermination"] == "00:05:00"
            assert all(run["context"][kind] == [] for kind in run["context"])
            assert (await server.client.get(f"{RUNS}/by-id/{run['id']}")).json() == run

    async def test_a_start_says_everything_that_is_wrong(self, server: Served) -> None:
        """Issue 2, Bad input: unknown input, wrong field, and fields of later parts."""
        body = {"inputs": [{"name": "nothing", "value": "x"}], "disabledTools": ["none"], "tags": [""]}
        problem = problem_of(await server.client.put(f"{PANEL}/start", json=body), 422, "bad_input")
        assert [error["pointer"] for error in problem["errors"]] == ["/tags/0"]
        body["tags"] = []
        problem = problem_of(await server.client.put(f"{PANEL}/start", json=body), 422, "bad_input")
        assert {error["pointer"] for error in problem["errors"]} == {"/inputs/0", "/disabledTools/0"}
        problem = problem_of(await server.client.put(f"{PANEL}/start", json={"lane": "slow"}), 422, "not_yet_built")
        assert [error["pointer"] for error in problem["errors"]] == ["/lane"]
        assert await count_runs(server) == 0

    async def test_what_cannot_be_started_is_said(self, server: Served) -> None:
        client = server.client
        problem_of(await client.put(f"{PANEL}/start", json={"version": 7}), 404, "not_found")
        problem_of(await client.put(f"{RUNS}/by-id/{NEW_ID()}/start", json={}), 404, "not_found")
        assert (await client.post(f"{PANEL}/versions/1/disable")).status_code == 200
        assert "disabled" in problem_of(await client.put(f"{PANEL}/start", json={}), 422, "bad_input")["detail"]
        assert (await client.delete(PANEL)).status_code == 204
        problem_of(await client.put(f"{PANEL}/start", json={}), 404, "not_found")
        assert await count_runs(server) == 0


class TestIdempotencyKeys:
    async def test_the_same_key_and_body_give_the_same_run(self, server: Served) -> None:
        """F47: another body is refused; a key is of one route and one user."""
        client, headers = server.client, {"Idempotency-Key": "k-1"}
        first = await client.put(f"{PANEL}/start", json={"tags": ["a"]}, headers=headers)
        again = await client.put(f"{PANEL}/start", content=b'{ "tags" : ["a"], "inputs": [] }', headers=headers | JSON)
        assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, first.json())
        problem_of(await client.put(f"{PANEL}/start", json={"tags": ["b"]}, headers=headers), 422, "key_reused")
        by_id = f"{RUNS}/by-id/{first.json()['interaction']['id']}/start"
        other = await client.put(by_id, json={"tags": ["b"]}, headers=headers)
        assert other.status_code == 201 and other.json()["id"] != first.json()["id"]
        stranger, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            await publish_panel(theirs, server.installation.data_dir)
            run = (await theirs.put(f"{PANEL}/start", json={"tags": ["c"]}, headers=headers)).json()
        assert run["tenantId"] == str(stranger.tenant_id)
        assert await count_runs(server) == 3

    async def test_of_twenty_at_once_one_makes_the_run(self, server: Served) -> None:
        """B61, F47: the others are given it, or told that it is being made. Without a key there are twenty."""

        async def start(headers: dict[str, str]) -> Any:
            return await server.client.put(f"{PANEL}/start", json={}, headers=headers)

        answers = await asyncio.gather(*(start({"Idempotency-Key": "one"}) for _ in range(20)))
        made = {answer.json()["id"] for answer in answers if answer.status_code == 201}
        assert len(made) == 1
        for answer in answers:
            if answer.status_code != 201:
                problem_of(answer, 409, "in_flight")
        assert await count_runs(server) == 1
        assert (await start({"Idempotency-Key": "one"})).json()["id"] in made
        # the negative control
        assert {answer.status_code for answer in await asyncio.gather(*(start({}) for _ in range(20)))} == {201}
        assert await count_runs(server) == 21

    @pytest.mark.parametrize("path", [f"{PANEL}/start", "/namespaces/a%00b/interactions/by-name/x%00/start"])
    async def test_a_key_is_a_short_text(self, server: Served, path: str) -> None:
        for key in ("", "k" * 201):
            problem_of(await server.client.put(path, json={}, headers={"Idempotency-Key": key}), 422, "bad_input")
        for good in (b"k" * 200, b"\xff\x01 ;"):
            answer = await server.client.put(path, json={}, headers=[(b"Idempotency-Key", good)])
            assert answer.status_code in (201, 404)


class TestLists:
    async def walk(self, server: Served, limit: int, **filters: Any) -> AsyncIterator[list[str]]:
        """The ids of each page, to the last."""
        after: str | None = None
        while True:
            params = {"limit": limit, **filters} | ({"after": after} if after else {})
            page = (await server.client.get(RUNS, params=params)).json()
            yield [run["id"] for run in page["items"]]
            after = page["next"]
            if after is None:
                return

    async def test_a_walk_meets_every_run_once_while_others_are_added(self, server: Served) -> None:
        """B63: the newest first; what is added meanwhile is before the first page."""
        there = [(await start_run(server.client))["id"] for _ in range(13)]
        met: list[str] = []
        async for page in self.walk(server, 3):
            assert len(page) <= 3
            met += page
            await start_run(server.client)
        assert met == there[::-1]

    async def test_a_row_has_no_conversation_and_no_usage(self, server: Served) -> None:
        """B63."""
        run = await start_run(server.client)
        await server.client.post(f"{RUNS}/by-id/{run['id']}/messages", json={"message": "Hello."})
        (row,) = (await server.client.get(RUNS)).json()["items"]
        assert all(items == [] for items in row["context"].values()) and row["tokenUsage"] == []
        whole = (await server.client.get(f"{RUNS}/by-id/{run['id']}")).json()
        assert [item["message"] for item in whole["context"]["humanMessage"]] == ["Hello."]

    async def test_filters_choose(self, server: Served) -> None:
        client = server.client
        tagged = await start_run(client, {"tags": ["red", "x"]})
        asked = await start_run(client, {"inputs": [{"name": "question", "value": "Should cats vote?"}]})
        await put(client, "/namespaces/elsewhere/interactions/by-name/other", self.other())
        other = (await client.put("/namespaces/elsewhere/interactions/by-name/other/start", json={})).json()
        await client.post(f"{RUNS}/by-id/{other['id']}/stop")
        cases: list[tuple[dict[str, str], list[Any]]] = [
            ({}, [other, asked, tagged]),
            ({"status": "New"}, [asked, tagged]),
            ({"status": "Stopped"}, [other]),
            ({"status": "Running"}, []),
            ({"tag": "red"}, [tagged]),
            ({"tag": "re"}, []),
            ({"text": "cats"}, [asked]),
            ({"text": "\x00 &|!:*()"}, []),
            ({"namespace": "elsewhere"}, [other]),
            ({"namespace": "nowhere"}, []),
            ({"interaction": other["interaction"]["id"]}, [other]),
            ({"root": asked["id"]}, [asked]),
            ({"parent": asked["id"]}, []),
            ({"createdFrom": asked["dateCreated"]}, [other, asked]),
            ({"createdBefore": asked["dateCreated"]}, [tagged]),
            ({"createdFrom": "9999-01-01T00:00:00+14:00"}, []),
            ({"tag": "red", "text": "cats"}, []),
        ]
        for params, expected in cases:
            page = (await client.get(RUNS, params=params)).json()
            assert [run["id"] for run in page["items"]] == [run["id"] for run in expected], params

    def other(self) -> dict[str, Any]:
        return {"agents": [{"agent": f"{NAMESPACE}/optimist"}], "prompt": "Well?", "maximumRounds": 1}

    async def test_what_is_no_filter_is_refused(self, server: Served) -> None:
        wrong = [
            ("limit", "0"), ("limit", "201"), ("limit", "9" * 5000), ("limit", "x"), ("status", "new"), ("root", "x"), ("after", "x"),
            ("after", "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwiMDFhMjJjNTQtMjhhZi03M2Y1LWJhYTUtZWZiNzVhNmM0NjU1Il0"),
            ("createdFrom", "yesterday"), ("createdFrom", "2026-01-01T00:00:00"), ("createdBefore", "0001-01-01T00:00:00+01:00"),
            ("tag", "t" * 201), ("text", "t" * 1001),
        ]  # fmt: skip
        for name, value in wrong:
            problem = problem_of(await server.client.get(RUNS, params={name: value}), 422, "bad_input")
            assert name in problem["detail"] + problem["errors"][0]["pointer"], problem


class TestReading:
    async def test_items_come_in_pages_by_sequence(self, database_dsn: str, tmp_path: Path) -> None:
        async with served(database_dsn, data_dir=tmp_path, works=True) as server:
            await publish_panel(server.client, tmp_path)
            run_id = (await start_run(server.client))["id"]
            await ended(server.client, run_id)
            path = f"{RUNS}/by-id/{run_id}/items"
            met: list[Any] = []
            after: str | None = "0"
            while after is not None:
                page = (await server.client.get(path, params={"after": after, "limit": 3})).json()
                met += page["items"]
                after = page["next"]
            whole = (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()
            assert [item["sequence"] for item in met] == list(range(1, len(met) + 1))
            assert len(met) == sum(len(items) for items in whole["context"].values()) >= 6
            for item in met:
                kind = item.pop("kind")
                assert item in whole["context"][kind]
            beyond = await server.client.get(path, params={"after": 2**53})
            assert beyond.json() == {"items": [], "next": None}
            problem_of(await server.client.get(path, params={"after": -1}), 422)
            problem_of(await server.client.get(path, params={"after": 2**53 + 1}), 422)

    async def test_details_name_what_the_run_has_ids_of(self, server: Served) -> None:
        run = await start_run(server.client)
        details = (await server.client.get(f"{RUNS}/by-id/{run['id']}/details")).json()
        assert {name: details[name] for name in run} == run
        assert details["interactionName"] == "panel" and details["namespaceName"] == NAMESPACE
        assert details["userCreatedByName"] == "owner"
        assert details["treeCounts"] == {"total": 1, "active": 1, "ended": 0}


class TestMessages:
    async def test_a_message_is_in_the_record_at_once(self, server: Served) -> None:
        run_id = (await start_run(server.client))["id"]
        for sequence, text in enumerate(("First.", "a\x00b \u202e \U0001f600 \u2028"), 1):
            answer = await server.client.post(f"{RUNS}/by-id/{run_id}/messages", json={"message": text})
            item = answer.json()
            assert (answer.status_code, item["kind"], item["sequence"]) == (201, "humanMessage", sequence)
            assert item["message"] == text.replace("\x00", "\u2400")
            assert (item["author"]["kind"], item["author"]["name"]) == ("Human", "owner")
        assert (await server.client.get(f"{RUNS}/by-id/{run_id}/items")).json()["items"][1] == item

    async def test_where_no_person_may_speak_a_message_is_a_conflict(self, server: Served, tmp_path: Path) -> None:
        for settings in (None, {"chatMode": "Excluded"}):
            await publish_panel(server.client, tmp_path, humanSettings=settings)
            run_id = (await start_run(server.client))["id"]
            answer = await server.client.post(f"{RUNS}/by-id/{run_id}/messages", json={"message": "Hello."})
            problem_of(answer, 409, "conflict")

    async def test_an_ended_run_takes_no_message(self, server: Served) -> None:
        run_id = (await start_run(server.client))["id"]
        await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
        answer = await server.client.post(f"{RUNS}/by-id/{run_id}/messages", json={"message": "Hello."})
        assert "Stopped" in problem_of(answer, 409, "run_ended")["detail"]


class TestStops:
    async def test_a_run_that_nobody_has_begun_is_stopped_at_once(self, server: Served) -> None:
        run_id = (await start_run(server.client))["id"]
        answer = await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
        assert (answer.status_code, answer.json()["status"]) == (200, "Stopped")
        assert answer.json()["dateEnded"] is not None
        problem_of(await server.client.post(f"{RUNS}/by-id/{run_id}/stop"), 409, "run_ended")

    async def test_a_run_at_work_stops_when_its_worker_hears_of_it(self, server: Served, tmp_path: Path) -> None:
        script = {"rules": [{"reply": {"text": "Never said.", "delay": "1h"}}]}
        await publish_panel(server.client, tmp_path, script)
        run_id = (await start_run(server.client))["id"]
        async with working_beside(server.installation):
            await until(server, run_id, lambda run: bool(run["context"]["orchestratorMessage"]))
            assert (await server.client.post(f"{RUNS}/by-id/{run_id}/stop")).json()["status"] in ("Running", "Stopped")
            events = await ended(server.client, run_id)
        assert events[-1].data == {"status": "Stopped", "output": None, "failureDetails": None}
        problem_of(await server.client.post(f"{RUNS}/by-id/{run_id}/stop"), 409, "run_ended")


async def until(server: Served, run_id: str, holds: Callable[[Any], bool]) -> Any:
    """The run, once something is true of it."""
    while not holds(run := (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()):
        await asyncio.sleep(0.05)
    return run
