"""The inbox for programs: what waits, listed, counted, followed; and what a run shows of it (api.md; B08, B14, F33)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest_asyncio
from api_at_hand import (
    NEW_ID,
    RUNS,
    EventReader,
    SentEvent,
    Served,
    problem_of,
    publish_panel,
    served,
    start_run,
    stranger_key,
    watching,
)
from waiting_at_hand import approval_card, ask, copies, hash_of

from folkmoot.domain.pending import PendingKind

APPROVAL, VOTE, QUESTION, TURN = PendingKind
HASH = hash_of('{"path": "a.txt"}').hex()
APPROVE = {"decision": "Approve", "argumentsHash": HASH}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


async def wait_for(server: Served, kind: PendingKind, **options: Any) -> tuple[str, str]:
    """A new run that waits for a person; its id, and that of what it asks."""
    run = await start_run(server.client)
    return run["id"], str(await ask(server.installation.database, run["id"], kind, **options))


class TestLists:
    async def test_what_waits_is_shown_with_all_that_a_person_needs(self, server: Served) -> None:
        run_id, id_ = await wait_for(server, APPROVAL, expires_in=3600)
        (entry,) = (await server.client.get("/approvals", params={"status": "Pending"})).json()["items"]
        assert (entry["id"], entry["runId"], entry["kind"], entry["status"]) == (id_, run_id, "Approval", "Pending")
        assert (entry["interactionName"], entry["namespaceName"]) == ("panel", "examples")
        assert entry["dateExpires"] is not None and entry["receipt"] is None
        card = entry["approval"]
        assert (card["functionName"], card["argumentsJson"], card["argumentsHash"]) == (
            "write_file",
            '{"path": "a.txt"}',
            HASH,
        )
        assert (card["connector"], card["operationVersion"], card["server"]) == ("files", 3, "https://files.example")
        assert [call["functionName"] for call in card["deferredToolCalls"]] == ["notify"]
        assert [entry[kind] for kind in ("vote", "question", "turn")] == [None] * 3

    async def test_filters_order_and_pages(self, server: Served) -> None:
        """What waits from the longest on; anything else from the newest on; a walk meets each once."""
        client = server.client
        made = [await wait_for(server, kind) for kind in (APPROVAL, VOTE, QUESTION, TURN, APPROVAL)]
        ids = [id_ for _, id_ in made]
        await client.post(f"{RUNS}/by-id/{made[0][0]}/approvals/{ids[0]}", json=APPROVE)
        await client.post(f"{RUNS}/by-id/{made[3][0]}/stop")
        cases: list[tuple[dict[str, Any], list[str]]] = [
            ({}, ids[::-1]),
            ({"status": "Pending"}, [ids[1], ids[2], ids[4]]),
            ({"status": "Approved"}, [ids[0]]),
            ({"status": "Stopped"}, [ids[3]]),
            ({"status": "Rejected"}, []),
            ({"kind": "Approval"}, [ids[4], ids[0]]),
            ({"kind": "Approval", "status": "Pending"}, [ids[4]]),
            ({"run": made[2][0]}, [ids[2]]),
            ({"run": str(NEW_ID())}, []),
        ]
        for params, expected in cases:
            met: list[str] = []
            after: str | None = None
            while True:
                page = (
                    await client.get("/approvals", params={**params, "limit": 2} | ({"after": after} if after else {}))
                ).json()
                met += [entry["id"] for entry in page["items"]]
                after = page["next"]
                if after is None:
                    break
            assert met == expected, params
        count = (await client.get("/approvals/count")).json()
        assert count == {"total": 3, "approvals": 1, "votes": 1, "questions": 1, "turns": 0}
        for name, value in (("status", "pending"), ("kind", "x"), ("run", "x"), ("after", "x")):
            problem_of(await client.get("/approvals", params={name: value}), 422, "bad_input")

    async def test_another_tenants_inbox_is_empty(self, server: Served) -> None:
        """F40."""
        run_id, id_ = await wait_for(server, APPROVAL)
        _, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            assert (await theirs.get("/approvals")).json() == {"items": [], "next": None}
            assert (await theirs.get("/approvals/count")).json()["total"] == 0
            problem_of(await theirs.get(f"{RUNS}/by-id/{run_id}/approvals/{id_}"), 404, "not_found")
            problem_of(await theirs.post(f"{RUNS}/by-id/{run_id}/approvals/{id_}", json=APPROVE), 404, "not_found")

    async def test_with_5000_waiting_a_page_and_the_count_stay_under_50_ms(self, server: Served) -> None:
        """Issue 3, Shown by 4. The best of five: other work of the machine is not what is measured."""
        database = server.installation.database
        run = (await start_run(server.client))["id"]
        ids = await copies(database, run, 5000)
        async with database.writer() as writer:
            await writer.connection.execute(
                """
                insert into pending (tenant_id, run_id, pending_id, kind, asked_at, card, binding_hash)
                select tenant_id, run_id, gen_random_uuid(), 'Approval', folkmoot_now(), $2, $3 from process where run_id = any($1)
                """,
                ids, json.dumps(approval_card(NEW_ID())), hash_of("{}"),
            )  # fmt: skip
            await writer.connection.execute("analyze pending; analyze process")
        assert (await server.client.get("/approvals/count")).json()["approvals"] == 5000
        page = (await server.client.get("/approvals", params={"status": "Pending", "limit": 200})).json()
        params = {"status": "Pending", "after": page["next"]}
        for path, query in (("/approvals", params), ("/approvals/count", {})):
            took: list[float] = []
            for _ in range(5):
                began_at = time.perf_counter()
                assert (await server.client.get(path, params=query)).status_code == 200
                took.append(time.perf_counter() - began_at)
            assert min(took) < 0.05, (path, took)


class TestCards:
    async def test_a_card_cannot_deceive(self, server: Served) -> None:
        """F33: bidi, zero-width and tag characters as escapes, of the same JSON; a list's cut is said, a reading by id is whole."""
        arguments = json.dumps(
            {"to": "\u202eevil\u200b", "tag": "\U000e0041", "long": "x" * 5000, "then": "all"}, ensure_ascii=False
        )
        card = approval_card(NEW_ID(), arguments, description="Writes\u202e a file\r.", functionName="write\u200b_file")
        run_id, id_ = await wait_for(server, APPROVAL, card=card)
        (listed,) = (await server.client.get("/approvals")).json()["items"]
        whole = (await server.client.get(f"{RUNS}/by-id/{run_id}/approvals/{id_}")).json()
        assert listed["isCut"] and not whole["isCut"]
        assert "characters are not shown here" in listed["approval"]["argumentsJson"]
        assert listed["approval"]["argumentsJson"].endswith('"then": "all"}')
        for entry in (listed, whole):
            assert (
                r"\u202eevil\u200b" in entry["approval"]["argumentsJson"]
                and r"\udb40\udc41" in entry["approval"]["argumentsJson"]
            )
            assert entry["approval"]["description"] == r"Writes\u202e a file\u000d."
            assert entry["approval"]["functionName"] == r"write\u200b_file"
        assert json.loads(whole["approval"]["argumentsJson"]) == json.loads(arguments)
        run = (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()
        assert run["pendingApproval"]["argumentsJson"] == whole["approval"]["argumentsJson"]

    async def test_a_run_shows_its_pending_approval_and_what_is_deferred(self, server: Served) -> None:
        """B08: from storage; also in lists; null unless the run waits for one."""
        run_id, id_ = await wait_for(server, APPROVAL)
        path = f"{RUNS}/by-id/{run_id}"
        for run in (
            (await server.client.get(path)).json(),
            (await server.client.get(f"{path}/details")).json(),
            (await server.client.get(RUNS)).json()["items"][0],
        ):
            assert run["status"] == "PendingApproval"
            assert (run["pendingApproval"]["id"], run["pendingApproval"]["status"]) == (id_, "Pending")
            assert [call["functionName"] for call in run["deferredToolCalls"]] == ["notify"]
        await server.client.post(f"{path}/approvals/{id_}", json=APPROVE | {"decision": "Reject"})
        assert (await server.client.get(path)).json()["pendingApproval"]["status"] == "Rejected"
        await ask(server.installation.database, run_id, QUESTION)
        run = (await server.client.get(path)).json()
        assert (run["status"], run["pendingApproval"], run["deferredToolCalls"]) == ("PendingHuman", None, None)


@asynccontextmanager
async def following(server: Served, *, last: str | None = None) -> AsyncIterator[EventReader]:
    headers = {"Last-Event-ID": last} if last is not None else {}
    async with server.client.stream("GET", "/approvals/events", headers=headers, timeout=None) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield FeedReader(answer)


class FeedReader(EventReader):
    """Ids of a feed are no numbers."""

    async def __anext__(self) -> SentEvent:
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line and not line.startswith(":"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif fields:
                self.mark = fields.get("id", getattr(self, "mark", ""))
                return SentEvent(fields["event"], None, json.loads(fields["data"]))
        raise StopAsyncIteration


async def until_synced(events: EventReader) -> list[tuple[str, str]]:
    """Names and ids of what comes up to the next `synced`."""
    met: list[tuple[str, str]] = []
    while (event := await anext(events)).name != "synced":
        met.append((event.name, event.data["id"]))
    return met


class TestFeed:
    async def test_all_that_waits_comes_first_and_then_each_change(self, server: Served) -> None:
        run_id, first = await wait_for(server, APPROVAL)
        async with asyncio.timeout(30), following(server) as events:
            assert await until_synced(events) == [("waiting", first)]
            _, second = await wait_for(server, VOTE)
            server.installation.notifier.tell({"to": "inbox", "tenant": str((await row(server, run_id))["tenant_id"])})
            assert await until_synced(events) == [("waiting", second)]
            await server.client.post(f"{RUNS}/by-id/{run_id}/approvals/{first}", json=APPROVE)
            assert await until_synced(events) == [("closed", first)]

    async def test_it_goes_on_from_where_all_was_known(self, server: Served) -> None:
        """Whatever changed meanwhile comes; near that moment a thing may come twice, and none is missed."""
        run_id, first = await wait_for(server, APPROVAL)
        async with asyncio.timeout(30), following(server) as events:
            await until_synced(events)
            mark = events.mark  # type: ignore[attr-defined]
        async with server.installation.database.writer() as writer:  # long ago, but for what comes now
            await writer.connection.execute("update pending set asked_at = asked_at - interval '1 hour'")
        _, second = await wait_for(server, QUESTION)
        await server.client.post(f"{RUNS}/by-id/{run_id}/approvals/{first}", json=APPROVE)
        async with asyncio.timeout(30), following(server, last=mark) as events:
            assert await until_synced(events) == [("closed", first), ("waiting", second)]
        problem_of(await server.client.get("/approvals/events", headers={"Last-Event-ID": "x"}), 422, "bad_input")

    async def test_many_come_in_pages_and_no_connection_is_held(self, server: Served) -> None:
        """B64."""
        database = server.installation.database
        run = (await start_run(server.client))["id"]
        ids = await copies(database, run, 250)
        for id_ in ids:
            await ask(database, id_, TURN)
        async with asyncio.timeout(60), following(server) as one, following(server) as other:
            assert len(await until_synced(one)) == len(await until_synced(other)) == 250
            assert database.pool.get_idle_size() == database.pool.get_size()


async def row(server: Served, run_id: str) -> Any:
    async with server.installation.database.reader() as reader:
        return await reader.connection.fetchrow("select * from process where run_id = $1", UUID(run_id))


async def test_a_runs_stream_says_what_it_waits_for_and_when_it_does_no_more(server: Served) -> None:
    """api.md, Events: `approval` is a snapshot without an id, sent on connecting and on change."""
    run_id, id_ = await wait_for(server, APPROVAL)
    async with asyncio.timeout(30), watching(server.client, run_id) as events:
        shown = await next_of(events, "approval")
        assert shown.id is None
        assert (shown.data["waitsFor"]["id"], shown.data["waitsFor"]["status"]) == (id_, "Pending")
        await server.client.post(f"{RUNS}/by-id/{run_id}/approvals/{id_}", json=APPROVE)
        answered = await next_of(events, "approval")
        assert answered.data["waitsFor"]["receipt"]["answeredByName"] == "owner"
        async with server.installation.database.writer() as writer:
            await writer.connection.execute("update process set pending_id = null, status = 'Running', ready_at = null")
        server.installation.notifier.tell({"to": "run", "run": run_id})
        assert (await next_of(events, "approval")).data == {"waitsFor": None, "below": []}


async def next_of(events: EventReader, name: str) -> SentEvent:
    while (event := await anext(events)).name != name:
        pass
    return event
