"""Webhooks: signed messages through the outbox, at least once, to where the operator allows (api.md; F46, F50)."""

from __future__ import annotations

import asyncio
import itertools
import json
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import UUID

import aiosql
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, RUNS, Served, problem_of, publish_panel, served, start_run, stranger_key, working_beside
from crews import until
from standardwebhooks import Webhook, WebhookVerificationError
from waiting_at_hand import ask, fetch, hash_of, row_of, waits_for_a_lock

from folkmoot.bootstrap.connections import Connections
from folkmoot.domain.pending import PendingKind
from folkmoot.kernel.errors import SecretFault
from folkmoot.runtime import outbox as webhook_outbox
from folkmoot.runtime import sending
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.sending import WAITS, Sending
from folkmoot.runtime.timekeeper import Timekeeper
from folkmoot.services import webhooks as services
from folkmoot.store import pending, runs, webhooks
from folkmoot.store.database import Writer
from folkmoot.store.webhooks import DueMessage
from folkmoot.vault.keys import key_of
from folkmoot.vault.sealing import Vault

APPROVE = {"decision": "Approve", "argumentsHash": hash_of('{"path": "a.txt"}').hex()}
BOTH = ["approval.requested", "approval.decided"]


@dataclass
class Receiver:
    """A server of somebody's: keeps what it is sent, and answers with the next of `answers`, else 204."""

    url: str = ""
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)
    goes_on: asyncio.Event | None = None

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
        originals = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in lines if ": " in line}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.got.append((head.split()[1], originals, body))
        if self.goes_on is not None:
            await self.goes_on.wait()
        answer = self.answers.pop(0) if self.answers else b"204 No Content"
        writer.write(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving(made: Receiver) -> AsyncIterator[Receiver]:
    server = await asyncio.start_server(made.take, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/told"
    try:
        yield made
    finally:
        if made.goes_on is not None:
            made.goes_on.set()
        server.close()


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving(Receiver()) as made:
        yield made


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


async def hook(server: Served, url: str, kinds: list[str] = BOTH) -> Any:
    answer = await server.client.post("/webhooks", json={"url": url, "kinds": kinds})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def decide_one(server: Served) -> tuple[str, UUID]:
    """Something is asked and decided; the run's id and that of the approval."""
    run_id = (await start_run(server.client))["id"]
    id_ = await ask(server.installation.database, run_id, PendingKind.APPROVAL)
    assert (await server.client.post(f"{RUNS}/by-id/{run_id}/approvals/{id_}", json=APPROVE)).status_code == 200
    return run_id, id_


@asynccontextmanager
async def outbox(
    server: Served, *, allow: tuple[str, ...] = ("127.0.0.1",), after: asyncio.Event | None = None
) -> AsyncIterator[Sending[DueMessage]]:
    """What sends, when it is told to, and not before `after`."""
    installation = server.installation
    connections = Connections(allow, is_stdio_allowed=False)

    async def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
        if after is not None:
            await after.wait()
        return await connections.post(url, body, headers)

    try:
        yield webhook_outbox.outbox(
            installation.database, installation.vault, post, chance=lambda: 0.5, poll_seconds=60
        )
    finally:
        await connections.close()


async def messages(server: Served, webhook: Any) -> list[Any]:
    """The newest first."""
    answer = await server.client.get(f"/webhooks/by-id/{webhook['id']}/messages")
    items: list[Any] = answer.json()["items"]
    return items


async def make_due(server: Served) -> None:
    async with server.installation.database.writer() as writer:
        await writer.connection.execute("update outbox set ready_at = folkmoot_now() where ready_at is not null")


async def test_a_decision_is_told_signed_and_once(server: Served, receiver: Receiver) -> None:
    """F46: the library of the standard verifies it; another secret, an altered body and another id do not."""
    made = await hook(server, receiver.url)
    run_id, id_ = await decide_one(server)
    async with outbox(server) as sender:
        assert await sender.send_due() == 1
        assert await sender.send_due() == 0
    ((_, headers, body),) = receiver.got
    told = Webhook(made["secret"]).verify(body, headers)
    assert (told["type"], told["data"]["id"], told["data"]["runId"]) == ("approval.decided", str(id_), run_id)
    shown = (await server.client.get(f"{RUNS}/by-id/{run_id}/approvals/{id_}")).json()["receipt"]
    assert told["data"] == shown and told["timestamp"] == shown["dateAnswered"]
    assert (shown["status"], shown["answeredByName"], shown["kind"]) == ("Approved", "owner", "Approval")
    (message,) = await messages(server, made)
    assert (message["status"], message["attempts"], message["id"]) == ("Delivered", 1, headers["webhook-id"])
    for secret, sent, marks in (
        ("whsec_" + "A" * 43 + "=", body, headers),
        (made["secret"], body.replace(b"Approved", b"Rejected"), headers),
        (made["secret"], body, headers | {"webhook-id": str(id_)}),
        (made["secret"], body, headers | {"webhook-timestamp": "1600000000"}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(secret).verify(sent, marks)


async def test_a_webhook_is_told_only_what_it_asked_for_and_of_its_own_tenant(
    server: Served, receiver: Receiver
) -> None:
    """F40."""
    await hook(server, receiver.url, ["approval.requested"])
    _, key = await stranger_key(server.installation.database)
    async with server.of(key) as theirs:
        assert (await theirs.post("/webhooks", json={"url": receiver.url, "kinds": BOTH})).status_code == 201
    await decide_one(server)
    assert await fetch(server.installation.database, "select from outbox") == []


async def test_a_stop_and_an_expiry_are_told_too(server: Served, receiver: Receiver) -> None:
    await hook(server, receiver.url)
    database = server.installation.database
    run_id = (await start_run(server.client))["id"]
    await ask(database, run_id, PendingKind.QUESTION)
    await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
    await ask(database, (await start_run(server.client))["id"], PendingKind.TURN, expires_in=-1)
    async with database.writer() as writer:
        (tenant_id,) = await runs.tenants_due(writer)
        assert len(await runs.expire(writer, tenant_id)) == 1
    async with outbox(server) as sender:
        await sender.send_due()
    told = [json.loads(body)["data"] for _, _, body in receiver.got]
    for data in told:
        shown = (await server.client.get(f"{RUNS}/by-id/{data['runId']}/approvals/{data['id']}")).json()
        assert data == shown["receipt"]
    assert sorted((data["status"], data["answeredByName"]) for data in told) == [
        ("Expired", None),
        ("Stopped", "owner"),
    ]


async def test_what_a_run_asks_is_told_by_its_worker(server: Served, receiver: Receiver, tmp_path: Path) -> None:
    """Written with the pause, as the API shows it (F33); sent by the worker's process through its guard, which lets nothing inside (F50)."""
    made = await hook(server, receiver.url)
    await publish_panel(server.client, tmp_path, humanSettings={"chatMode": "EveryRound"})
    async with asyncio.timeout(30), working_beside(server.installation):
        run_id = (await start_run(server.client))["id"]
        while not (told := await messages(server, made)) or told[0]["lastError"] is None:
            await asyncio.sleep(0.05)
    assert (told[0]["kind"], told[0]["attempts"]) == ("approval.requested", 1)
    assert "address inside" in told[0]["lastError"] and receiver.got == []
    await make_due(server)
    async with outbox(server) as sender:
        await sender.send_due()
    ((_, headers, body),) = receiver.got
    data = Webhook(made["secret"]).verify(body, headers)["data"]
    (waiting,) = (await server.client.get("/approvals", params={"status": "Pending"})).json()["items"]
    assert (data["runId"], data["kind"]) == (run_id, "Turn") and data == waiting


async def test_what_is_not_taken_is_sent_again_the_same_and_given_up_at_last(
    server: Served, receiver: Receiver
) -> None:
    """At least once: the same id and body, ever more rarely, for about three days."""
    made = await hook(server, receiver.url)
    await decide_one(server)
    receiver.answers = [b"500 No"] * (len(WAITS) + 1)
    assert 2.5 < sum(WAITS) / 86400 < 3.5
    async with outbox(server) as sender:
        for _ in WAITS:
            assert await sender.send_due() == 1
            assert await sender.send_due() == 0  # not before its time
            (message,) = await messages(server, made)
            assert (message["status"], message["lastError"]) == ("Waiting", "the endpoint answered 500")
            await make_due(server)
        await sender.send_due()
    (message,) = await messages(server, made)
    assert (message["status"], message["attempts"], message["dateNextAttempt"]) == ("GivenUp", len(WAITS) + 1, None)
    assert len({(headers["webhook-id"], body) for _, headers, body in receiver.got}) == 1
    for _, headers, body in receiver.got:
        assert Webhook(made["secret"]).verify(body, headers)


async def test_a_redirect_is_not_followed(server: Served, receiver: Receiver) -> None:
    """F46."""
    made = await hook(server, receiver.url)
    away = b"\r\nLocation: " + receiver.url.replace("told", "elsewhere").encode()
    async with outbox(server) as sender:
        for status in (b"301 Moved", b"303 See Other", b"307 Temporary", b"308 Permanent"):
            await decide_one(server)
            receiver.answers = [status + away]
            await sender.send_due()
            assert [path for path, _, _ in receiver.got] == ["/told"]
            receiver.got.clear()
            (message, *_) = await messages(server, made)
            assert message["lastError"] == f"the endpoint answered {status[:3].decode()}"


async def test_nothing_inside_is_reached_unless_allowed(server: Served, receiver: Receiver) -> None:
    """F50: and an endpoint that is not reached is not tried with every message."""
    made = await hook(server, receiver.url)
    await decide_one(server)
    await decide_one(server)
    async with outbox(server, allow=()) as sender:
        await sender.send_due()
    assert receiver.got == []
    assert all("address inside" in message["lastError"] for message in await messages(server, made))


async def test_an_endpoint_that_is_gone_is_told_nothing_any_more(server: Served, receiver: Receiver) -> None:
    made = await hook(server, receiver.url)
    await decide_one(server)
    receiver.answers = [b"410 Gone"]
    async with outbox(server) as sender:
        await sender.send_due()
        await decide_one(server)
        assert await sender.send_due() == 0
    shown = (await server.client.get(f"/webhooks/by-id/{made['id']}")).json()
    assert shown["dateDisabled"] is not None
    assert [message["status"] for message in await messages(server, made)] == ["GivenUp"]


async def test_a_changed_secret_signs_beside_the_old_one_for_a_while(server: Served, receiver: Receiver) -> None:
    made = await hook(server, receiver.url)
    changed = (await server.client.post(f"/webhooks/by-id/{made['id']}/rotate")).json()
    assert changed["secret"] != made["secret"]
    await decide_one(server)
    async with outbox(server) as sender:
        await sender.send_due()
        ((_, headers, body),) = receiver.got
        for secret in (made["secret"], changed["secret"]):
            assert Webhook(secret).verify(body, headers)
        async with server.installation.database.writer() as writer:
            await writer.connection.execute("update webhook set previous_until = folkmoot_now()")
        await decide_one(server)
        await sender.send_due()
    _, headers, body = receiver.got[-1]
    with pytest.raises(WebhookVerificationError):
        Webhook(made["secret"]).verify(body, headers)


async def test_secrets_are_shown_once_and_kept_sealed(server: Served, receiver: Receiver) -> None:
    """F44, F45: and everything that is done with webhooks is in the audit log, without what a URL's query may hold."""
    made = await hook(server, f"{receiver.url}?key=canary")
    path = f"/webhooks/by-id/{made['id']}"
    await server.client.post(f"{path}/rotate")
    shown = [(await server.client.get(place)).text for place in ("/webhooks", path)]
    assert made["secret"].startswith("whsec_") and not any("secret" in text for text in shown)
    (row,) = await fetch(server.installation.database, "select sealed_secret from webhook")
    assert made["secret"].encode() not in row["sealed_secret"]
    assert (await server.client.delete(path)).status_code == 204
    problem_of(await server.client.get(path), 404, "not_found")
    rows = await fetch(
        server.installation.database, "select action, detail from audit where subject_kind = 'webhook' order by at"
    )
    assert [row["action"] for row in rows] == ["webhook.created", "webhook.rotated", "webhook.deleted"]
    assert [json.loads(row["detail"]) for row in rows] == [{"url": receiver.url, "kinds": BOTH}] * 3


async def test_secrets_are_sealed_again_under_another_key(server: Served, receiver: Receiver) -> None:
    """F45: both of an endpoint's secrets; what it is told afterwards is signed as before."""
    made = await hook(server, receiver.url)
    await server.client.post(f"/webhooks/by-id/{made['id']}/rotate")
    database = server.installation.database
    old = server.installation.vault
    fresh = key_of(secrets.token_bytes(32))
    both = Vault((fresh, key_of(bytes(range(32)))), random_bytes=secrets.token_bytes)
    assert await services.reseal(database, both) == 1
    assert await services.reseal(database, both) == 0
    server.installation.vault = Vault((fresh,), random_bytes=secrets.token_bytes)
    await decide_one(server)
    async with outbox(server) as sender:
        await sender.send_due()
    ((_, headers, body),) = receiver.got
    assert Webhook(made["secret"]).verify(body, headers)
    with pytest.raises(SecretFault):
        (row,) = await fetch(database, "select tenant_id, webhook_id, sealed_secret from webhook")
        old.open(row["sealed_secret"], services.place_of(row["tenant_id"], row["webhook_id"]))


async def test_what_is_no_endpoint_is_refused(server: Served) -> None:
    cases: tuple[tuple[Any, str], ...] = (
        ({"url": "ftp://example.com", "kinds": BOTH}, "/url"),
        ({"url": "https://", "kinds": BOTH}, "/url"),
        ({"url": "https://u:p@example.com", "kinds": BOTH}, "/url"),
        ({"url": "https://example.com/\n", "kinds": BOTH}, "/url"),
        ({"url": "https://example.com", "kinds": []}, "/kinds"),
        ({"url": "https://example.com", "kinds": ["run.ended"]}, "/kinds/0"),
    )
    for body, pointer in cases:
        problem = problem_of(await server.client.post("/webhooks", json=body), 422, "bad_input")
        assert [error["pointer"] for error in problem["errors"]][:1] == [pointer], body


class TestTwoSenders:
    async def told(self, server: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> list[int]:
        """How often each of four messages is sent, where a second sender looks while the first one's claim is not committed yet.

        Nothing is sent before both have looked.
        """
        await hook(server, receiver.url)
        for _ in range(4):
            await decide_one(server)
        database = server.installation.database
        claim, numbers = webhooks.claim, itertools.count(1)
        has_claimed, have_looked = asyncio.Event(), asyncio.Event()

        async def is_passed() -> bool:
            return have_looked.is_set() or await waits_for_a_lock(database)

        async def look(writer: Writer, **named: Any) -> list[DueMessage]:
            number = next(numbers)
            if number == 2:
                await has_claimed.wait()
            due = await claim(writer, **named)
            if number == 1:
                has_claimed.set()
                await until(is_passed)
            if number == 2:
                have_looked.set()
            return due

        monkeypatch.setattr(webhooks, "claim", look)
        async with outbox(server, after=have_looked) as one, outbox(server, after=have_looked) as other:
            await asyncio.gather(one.send_due(), other.send_due())
        return list(Counter(headers["webhook-id"] for _, headers, _ in receiver.got).values())

    async def test_each_message_is_sent_by_one(
        self, server: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert await self.told(server, receiver, monkeypatch) == [1] * 4

    async def test_without_the_claim_both_send(
        self, server: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above: whoever finds messages taken waits, and takes them too."""
        text = files("folkmoot.store").joinpath("sql/webhooks.sql").read_text(encoding="utf-8")
        bare = text.replace(
            "for update of o skip locked)\nupdate outbox o set ready_at", ")\nupdate outbox o set ready_at"
        )
        assert bare != text
        monkeypatch.setattr(
            webhooks, "_sql", aiosql.from_str(bare, "asyncpg", kwargs_only=True, mandatory_parameters=False)
        )
        assert await self.told(server, receiver, monkeypatch) == [2] * 4


async def test_an_endpoint_that_is_back_is_soon_told_of_what_waited(server: Served) -> None:
    """api.md: a message that was tried for long, and now waits for hours, holds up the newer ones for minutes alone."""
    await hook(server, "http://127.0.0.1:9/told", ["approval.decided"])
    database = server.installation.database
    for _ in range(2):
        await decide_one(server)
    async with database.writer() as writer:
        await writer.connection.execute(
            "update outbox set attempts = 5, ready_at = folkmoot_now() + interval '1 minute'"
        )
        await writer.connection.execute(
            "update outbox set ready_at = folkmoot_now() where message_id = (select min(message_id::text)::uuid from outbox)"
        )
    async with outbox(server) as sender:
        assert await sender.send_due() == 1
    rows = await fetch(database, "select attempts, ready_at - folkmoot_now() as wait from outbox order by attempts")
    held, tried = [row["wait"].total_seconds() for row in rows]
    assert 240 < held <= 300 and tried > 3_600


async def write(server: Served, webhook: Any, count: int, *, settled: str = "null", days: int = 0) -> None:
    """So many messages to an endpoint, of so long ago; `settled`: when they were delivered, in SQL."""
    async with server.installation.database.writer() as writer:
        await writer.connection.execute(
            f"""
            insert into outbox (tenant_id, message_id, webhook_id, kind, body, created_at, ready_at, delivered_at)
            select tenant_id, gen_random_uuid(), webhook_id, 'approval.decided', '{{}}', folkmoot_now() - make_interval(days => $3),
                   case when {settled} is null then folkmoot_now() end, {settled}
            from webhook, generate_series(1, $2) where webhook_id = $1
            """,
            UUID(webhook["id"]), count, days,
        )  # fmt: skip


class TestSlowEndpoint:
    """F61: whoever takes long to answer, or never does, holds up itself alone."""

    async def told_beside(self, server: Served, receiver: Receiver) -> tuple[int, int]:
        """How many calls a slow endpoint has at once, and what another is told of six messages meanwhile, with five places."""
        async with receiving(Receiver(goes_on=asyncio.Event())) as slow:
            await write(server, await hook(server, slow.url), 30)
            async with outbox(server) as sender:
                sender.start()
                await until(lambda: len(slow.got) >= sending.MOST_EACH)
                await write(server, await hook(server, receiver.url), 6)
                sender.nudge()
                with suppress(TimeoutError):
                    await until(lambda: len(receiver.got) == 6, seconds=10 if sending.MOST_EACH < 5 else 0.5)
                began_at = asyncio.get_running_loop().time()
                await sender.close()
                assert asyncio.get_running_loop().time() - began_at < 5
                return len(slow.got), len(receiver.got)

    async def test_others_are_told_meanwhile_and_closing_does_not_wait_for_it(
        self, server: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Places are filled as they get free; what is cut off stays claimed, and is sent again by its lease."""
        monkeypatch.setattr(sending, "MOST_AT_ONCE", 5)
        monkeypatch.setattr(sending, "_CLOSING_SECONDS", 0.1)
        assert await self.told_beside(server, receiver) == (4, 6)
        (cut_off,) = await fetch(
            server.installation.database,
            "select count(*) as number from outbox where attempts = 1 and ready_at > folkmoot_now() + interval '1 minute'",
        )
        assert cut_off["number"] == 4

    async def test_without_its_own_limit_a_slow_one_takes_all_places(
        self, server: Served, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above."""
        monkeypatch.setattr(sending, "MOST_AT_ONCE", 5)
        monkeypatch.setattr(sending, "MOST_EACH", 5)
        monkeypatch.setattr(sending, "_CLOSING_SECONDS", 0.1)
        assert await self.told_beside(server, receiver) == (5, 0)


async def test_each_endpoint_has_its_turn(server: Served, receiver: Receiver) -> None:
    """F61: a message that came last is sent before the second of another endpoint, and none to whom has enough under way."""
    full, other = await hook(server, receiver.url), await hook(server, receiver.url)
    await write(server, full, 20)
    await write(server, other, 3)
    ids = [UUID(made["id"]) for made in (full, other)]
    (row,) = await fetch(server.installation.database, "select distinct tenant_id from webhook")

    async def claimed(limit: int, **busy: int) -> list[int]:
        counts = {
            (row["tenant_id"], id_): busy[name]
            for id_, name in zip(ids, ("full", "other"), strict=True)
            if name in busy
        }
        async with server.installation.database.writer() as writer:
            due = await webhooks.claim(writer, limit=limit, limit_each=4, busy=counts, lease_seconds=60)
        return [[message.webhook_id for message in due].count(id_) for id_ in ids]

    assert await claimed(2) == [1, 1]
    assert await claimed(1, full=1) == [0, 1]
    assert await claimed(16, full=4, other=2) == [0, 1]
    assert await claimed(16) == [4, 0]


async def test_what_was_settled_long_ago_is_deleted_by_the_sweep(server: Served, receiver: Receiver) -> None:
    """30 days after it was written, a thousand at a time; what still waits stays, however old."""
    made = await hook(server, receiver.url)
    database = server.installation.database
    await write(server, made, 1_001, settled="folkmoot_now()", days=31)
    await write(server, made, 2, settled="folkmoot_now()", days=29)
    await write(server, made, 3, days=31)
    keeper = Timekeeper(database, WorkerOptions(), lambda: 0.5, NEW_ID, hear=lambda _: None, tell=lambda _: None)
    counts = []
    for _ in range(2):
        await keeper.sweep()
        counts.append((await fetch(database, "select count(*) as number from outbox"))[0]["number"])
    assert counts == [6, 5]


class TestDeletedMeanwhile:
    async def status(self, server: Served) -> int:
        """Of a decision that is made while an endpoint is being deleted and is told of it."""
        database = server.installation.database
        made = await hook(server, "https://example.com/told")
        run_id = (await start_run(server.client))["id"]
        id_ = await ask(database, run_id, PendingKind.APPROVAL)
        async with database.writer() as writer:
            await webhooks.delete(writer, (await row_of(database, run_id))["tenant_id"], webhook_id=UUID(made["id"]))
            deciding = asyncio.create_task(server.client.post(f"{RUNS}/by-id/{run_id}/approvals/{id_}", json=APPROVE))
            await until(lambda: waits_for_a_lock(database))
        return int((await deciding).status_code)

    async def test_a_decision_counts(self, server: Served) -> None:
        """F30, B67: what a program no longer wants to hear is no fault of whoever decides."""
        assert await self.status(server) == 200
        assert await fetch(server.installation.database, "select from outbox") == []

    async def test_without_the_lock_the_decision_fails(self, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        """The negative control of the test above."""
        text = files("folkmoot.store").joinpath("sql/pending.sql").read_text(encoding="utf-8")
        bare = text.replace("for key share of w", "")
        assert bare != text
        monkeypatch.setattr(
            pending, "_sql", aiosql.from_str(bare, "asyncpg", kwargs_only=True, mandatory_parameters=False)
        )
        assert await self.status(server) == 500
