"""What a sub-run asks shows on the runs above it, and is answered there, at that very call (behaviours.md, B10; B03, B15, F30)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import panels
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, RUNS, Served, problem_of, publish_panel, served, start_run, watching
from apps_at_hand import noted, opened, put_below
from waiting_at_hand import ask, fetch, hash_of, row_of

from folkmoot.cli.conversation import Printer
from folkmoot.domain.inbox import InboxEntry, PendingEntry
from folkmoot.domain.pending import Pending, PendingKind
from folkmoot.services import events as events_service
from folkmoot.services.events import ApprovalSnapshot
from folkmoot.store import trees

APPROVAL, VOTE, QUESTION, TURN = PendingKind
APPROVE = {"decision": "Approve", "argumentsHash": hash_of('{"path": "a.txt"}').hex()}
PEOPLE = {"chatMode": "EveryRound", "includeInVotes": True, "includeInSolutions": True}
HOOK = {"url": "https://receiver.example/", "kinds": ["approval.decided"]}
WAYS: dict[PendingKind, tuple[str, Any]] = {
    APPROVAL: ("approvals/{}", APPROVE),
    VOTE: ("votes/{}", {"agree": True}),
    QUESTION: ("questions/{}", {"answer": "By Friday."}),
    TURN: ("pass?turn={}", None),
}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is woken stays where it is."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path, humanSettings=PEOPLE)
        yield server


async def generations(server: Served, count: int, **body: Any) -> list[str]:
    """Runs, each below the one before."""
    made: list[str] = []
    for _ in range(count):
        made.append((await start_run(server.client, body if not made else None))["id"])
        if made[1:]:
            await put_below(server.installation.database, made[-2], made[-1])
    return made


async def answer(server: Served, run: str, kind: PendingKind, id_: Any) -> httpx2.Response:
    path, body = WAYS[kind]
    return await server.client.post(f"{RUNS}/by-id/{run}/{path.format(id_)}", json=body)


class TestAnswers:
    async def test_it_is_answered_at_any_run_above_and_counts_where_it_was_asked(self, server: Served) -> None:
        """Of every kind."""
        database = server.installation.database
        for kind in PendingKind:
            top, middle, low = await generations(server, 3)
            id_ = await ask(database, low, kind)
            shown = (await server.client.get(f"{RUNS}/by-id/{top}/approvals/{id_}")).json()
            assert (shown["runId"], shown["rootProcessId"], shown["status"]) == (low, top, "Pending")
            given = await answer(server, top, kind, id_)
            assert given.status_code == 200, given.text
            assert (given.json()["runId"], given.json()["rootProcessId"]) == (low, top)
            assert (await answer(server, middle, kind, id_)).json() == given.json(), "the identical one again"
            rows = [await row_of(database, run) for run in (top, middle, low)]
            assert [row["signal_number"] for row in rows] == [0, 0, 1]
            assert rows[2]["ready_at"] is not None and rows[2]["last_sequence"] == (0 if kind is APPROVAL else 1)
            assert len(await noted(database, low)) == 2 and len(await noted(database, top)) == 1

    async def test_a_run_knows_nothing_of_what_is_asked_above_or_beside_it(self, server: Served) -> None:
        top, low = await generations(server, 2)
        (other,) = await generations(server, 1)
        id_ = await ask(server.installation.database, top, QUESTION)
        for run in (low, other):
            problem_of(await answer(server, run, QUESTION, id_), 404, "not_found")
            problem_of(await server.client.get(f"{RUNS}/by-id/{run}/approvals/{id_}"), 404, "not_found")
        assert (await answer(server, top, QUESTION, id_)).json()["rootProcessId"] is None

    async def test_of_two_answers_by_two_ways_one_counts(self, server: Served) -> None:
        """F30: one at the root, one at the sub-run."""
        top, low = await generations(server, 2)
        id_ = await ask(server.installation.database, low, VOTE)
        against = {"agree": False, "reason": "No."}
        both = await asyncio.gather(
            answer(server, top, VOTE, id_), server.client.post(f"{RUNS}/by-id/{low}/votes/{id_}", json=against)
        )
        assert sorted(each.status_code for each in both) == [200, 409]
        assert {each.json().get("code") for each in both} == {None, "already_decided"}


class TestInbox:
    async def test_it_has_the_run_that_asks_and_the_root_and_is_found_by_both(self, server: Served) -> None:
        client, database = server.client, server.installation.database
        app = await opened(server)
        await client.post("/webhooks", json=HOOK)
        top, low = await generations(server, 2, parentProcessId=app)
        (alone,) = await generations(server, 1)
        asked = {run: str(await ask(database, run, QUESTION)) for run in (top, low, alone)}
        for query in ({"status": "Pending"}, {}):
            listed = (await client.get("/approvals", params={**query, "root": app})).json()["items"]
            assert {(e["id"], e["runId"], e["rootProcessId"]) for e in listed} == {
                (asked[top], top, app), (asked[low], low, app)
            }  # fmt: skip
        everything = (await client.get("/approvals", params={"status": "Pending"})).json()["items"]
        assert [e["rootProcessId"] for e in everything] == [app, app, None]
        problem_of(await client.get("/approvals", params={"root": str(NEW_ID())}), 404, "not_found")
        given = (await answer(server, top, QUESTION, asked[low])).json()
        (told,) = await fetch(database, "select body -> 'data' as data from outbox")
        assert given == httpx2.Response(200, text=told["data"]).json()

    async def test_a_run_anywhere_in_a_tree_lists_what_is_below_it(self, server: Served) -> None:
        """B10: the topmost run of an interaction under an App run, and one in the middle, show what waits below them, and no more."""
        client, database = server.client, server.installation.database
        app = await opened(server)
        top, middle, low = await generations(server, 3, parentProcessId=app)
        (beside,) = await generations(server, 1, parentProcessId=app)
        asked = {run: str(await ask(database, run, QUESTION)) for run in (top, low, beside)}
        below = {app: {top, middle, low, beside}, top: {top, middle, low}, middle: {middle, low}, low: {low}}
        for run, expected in below.items():
            listed = (await client.get(RUNS, params={"root": run})).json()["items"]
            assert {each["id"] for each in listed} == expected | ({app} if run == app else set())
            for query in ({"status": "Pending"}, {}):
                waiting = (await client.get("/approvals", params={**query, "root": run})).json()["items"]
                assert {each["id"] for each in waiting} == {asked[each] for each in expected if each in asked}
        missing = str(NEW_ID())
        for path in (RUNS, "/approvals", "/usage"):
            assert missing in problem_of(await client.get(path, params={"root": missing}), 404, "not_found")["detail"]
        problem = problem_of(await answer(server, middle, QUESTION, missing), 404, "not_found")
        assert f"GET /approvals?root={middle}, lists" in problem["detail"]


class TestStream:
    async def test_the_stream_of_a_root_says_what_waits_anywhere_below_it(
        self, server: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """api.md, Events: `approval` on connecting and on change; by notification, for nobody looks again in time."""
        assert events_service.follow.__kwdefaults__ is not None
        monkeypatch.setitem(events_service.follow.__kwdefaults__, "poll_seconds", 1000.0)
        monkeypatch.setattr(events_service, "LONGEST_POLL_SECONDS", 1000.0)
        database = server.installation.database
        top, middle, low = await generations(server, 3)
        first = str(await ask(database, low, QUESTION))
        async with asyncio.timeout(30), watching(server.client, top) as events:

            async def next_below() -> list[Any]:
                while (event := await anext(events)).name != "approval":
                    pass
                assert event.data["waitsFor"] is None
                return [(each["id"], each["runId"]) for each in event.data["below"]]

            assert await next_below() == [(first, low)]
            second = str(await ask(database, middle, VOTE))
            server.installation.notifier.tell(
                {"to": "inbox", "tenant": str((await row_of(database, top))["tenant_id"])}
            )
            assert await next_below() == [(first, low), (second, middle)]
            await answer(server, top, QUESTION, first)
            assert await next_below() == [(second, middle)]
            await answer(server, top, VOTE, second)
            assert await next_below() == []

    async def test_what_expired_below_waits_no_more(self, server: Served) -> None:
        """Though no sweep has closed it yet."""
        database = server.installation.database
        top, middle, low = await generations(server, 3)
        late, open_one = await ask(database, low, QUESTION), await ask(database, middle, QUESTION)
        statement = "update pending set expires_at = folkmoot_now() - interval '1 second' where pending_id = $1"
        await panels.execute(database, statement, late)
        async with database.reader() as reader:
            tenant_id = (await row_of(database, top))["tenant_id"]
            found = await trees.waiting_below(reader, tenant_id, run_id=UUID(top), limit=9)
        assert found == [(UUID(middle), open_one)]


class TestTerminal:
    def entry(self, number: int, question: str) -> InboxEntry:
        pending = Pending(NEW_ID(), QUESTION, {"asker": "Ann", "question": question})
        return InboxEntry(PendingEntry(NEW_ID(), pending, datetime.now(UTC), None, None), f"panel-{number}", "team")

    @pytest.mark.parametrize("is_typed_to", [True, False])
    def test_the_sub_run_that_asks_is_named(self, is_typed_to: bool, capfd: pytest.CaptureFixture[str]) -> None:
        """Where somebody types one thing at a time is asked, since the next line answers it; else all, with their commands."""
        own, first, second = self.entry(1, "Now?"), self.entry(2, "When?"), self.entry(3, "Where?")
        printer = Printer(is_typed_to=is_typed_to)
        for snapshot in (
            ApprovalSnapshot(None, (first, second)),
            ApprovalSnapshot(own, (first, second)),
            ApprovalSnapshot(None, (second,)),
        ):
            printer.show(snapshot)
        shown = capfd.readouterr().err
        order = [shown.index(text) for text in ("When?", "Where?", "Now?")]
        assert order == sorted(order) if not is_typed_to else order[0] < order[2] < order[1]
        for each in (first, second):
            assert f"The sub-run team/{each.interaction_name} {each.entry.run_id} asks:" in shown
        assert "The sub-run team/panel-1" not in shown
        assert ("To answer: folkmoot runs answer" in shown) == (not is_typed_to)
