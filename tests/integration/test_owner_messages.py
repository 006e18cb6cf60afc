"""What goes to a run's owner over a channel and what comes back: the outbox, real servers of mail, signed webhooks, the inbound address
(agent-runs.md, Consent and Channels; B14, B16, B71; F33, F35, F46)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from email.message import EmailMessage
from functools import partial
from typing import Any
from unittest.mock import Mock
from uuid import UUID

import agents_at_hand as agents
import panels
import pytest
import pytest_asyncio
from agents_at_hand import Deeds, call, met, plan, script, step
from api_at_hand import Served, served
from channels_at_hand import world
from crews import Crew, crew, until
from mail_at_hand import Post, PostOffice, mailbox, post_office
from recording_server import RecordingServer
from slack_at_hand import BOT, Workspace, click, clicked
from slack_at_hand import SIGNING as SLACK_SIGNING
from standardwebhooks import Webhook

from folkmoot.channels.channel import ChannelDown
from folkmoot.channels.mail import app as mail_app
from folkmoot.channels.registry import ChannelApps
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.references import Reference
from folkmoot.domain.rights import Role, rights_of
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.channel_reading import ChannelReading
from folkmoot.runtime.channel_sending import ChannelMessages, channel_sending
from folkmoot.runtime.sending import MOST_EACH, Sending
from folkmoot.services import apply, consent_secrets, inbound
from folkmoot.services import identities as identity_service
from folkmoot.services import secrets as secret_service
from folkmoot.services.apply import Document
from folkmoot.store import channel_messages
from folkmoot.store.channel_messages import DueChannelMessage
from folkmoot.store.database import Database, queries
from folkmoot.vault.keys import key_of
from folkmoot.vault.sealing import Vault
from folkmoot.vault.texts import SecretText

# to each message ten thousand more over its channel, and as many over another
_MORE_MESSAGES = """
insert into channel_message select m.* from channel_message c cross join generate_series(1, 20000) n,
jsonb_populate_record(null::channel_message, to_jsonb(c) || jsonb_build_object(
    'message_id', gen_random_uuid(), 'channel_id', case when n % 2 = 0 then c.channel_id else '00000000-0000-0000-0000-000000000007' end)) m
"""
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HIDDEN = "Bo\u202egnp.exe"
RULES = script(
    clerk=[
        "Nothing.",
        plan(step("Tell Bo.", "tell")),
        [call("tell", who=HIDDEN, what="42")],
        "Told.",
        met("Bo knows that it is 42."),
    ]
)


class Died(BaseException):
    """A process is gone."""


@dataclass
class Receiver:
    """A server of webhooks: keeps what it is sent, and answers with `status`."""

    port: int = 0
    status: int = 204
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        self.got.append((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())
        await writer.drain()
        writer.close()


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


@dataclass
class Bureau:
    """A tenant whose agent `clerk` reaches its owner over the channel `line`."""

    database: Database
    caller: Caller
    new_id: NewId
    vault: Vault
    apps: ChannelApps
    deeds: Deeds

    @property
    def bench(self) -> Any:
        return self.deeds.bench(RULES)

    async def publish(
        self, app: str, settings: Mapping[str, Any], *, address: str | None = None, **secrets: str
    ) -> None:
        for name, value in secrets.items():
            await self.keep(name, value)
        links = {name: Reference(name=name) for name in secrets}
        version = ChannelVersion(app, dict(settings), links)
        await apply.apply(self.database, self.caller, [Document("default", "line", version)], new_id=self.new_id)
        if address is not None:
            await identity_service.put(
                self.database, self.caller, user_id=self.caller.user_id, app=app, address=address
            )
        await agents.publish(
            self.database, self.caller, self.new_id, bench=self.bench, settings=agents.ruled(channel="line")
        )

    async def keep(self, name: str, secret: str) -> None:
        await secret_service.put(
            self.database, self.vault, self.caller, namespace="default", name=name, value=SecretText(secret), new_id=self.new_id
        )  # fmt: skip

    async def start(self, **request: Any) -> AgentRun:
        return await agents.start(self.database, self.caller, self.new_id, bench=self.bench, **request)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[Crew]:
        async with crew(
            self.database, self.new_id, bench=self.bench, functions=self.deeds.functions, vault=self.vault
        ) as made:
            yield made

    async def waiting(self, **request: Any) -> AgentRun:
        run = await self.start(**request)
        async with self.at_work():
            await until(agents.awaits(self.database, self.caller, run))
        return run

    async def send(self) -> int:
        return await channel_sending(
            self.database,
            self.vault,
            self.apps,
            chance=lambda: 0.5,
            poll_seconds=60,
            public_url="https://moot.example.org/",
        ).send_due()

    def reading(self) -> ChannelReading:
        return ChannelReading(
            self.database, self.vault, self.apps, chance=lambda: 0.5, poll_seconds=60, tell=lambda _: None
        )

    async def look(self, reading: ChannelReading | None = None) -> int:
        await panels.execute(self.database, "delete from channel_look")
        return await (reading or self.reading()).look()

    async def messages(self) -> list[dict[str, Any]]:
        return await panels.fetch(self.database, "select * from channel_message order by created_at, message_id")

    async def finish(self, run: AgentRun) -> AgentRun:
        async with self.at_work():
            await until(agents.ended(self.database, self.caller, run))
        return await agents.now(self.database, self.caller, run)


@pytest_asyncio.fixture
async def bureau(database: Database, caller: Caller, new_id: NewId) -> AsyncIterator[Bureau]:
    vault = Vault((key_of(b"k" * 32),), random_bytes=lambda n: b"n" * n)
    async with world() as given:
        yield Bureau(database, caller, new_id, vault, ChannelApps(given, found=()), Deeds())


@pytest_asyncio.fixture
async def office() -> AsyncIterator[PostOffice]:
    async with post_office() as made:
        yield made


@pytest_asyncio.fixture
async def post() -> AsyncIterator[Post]:
    async with mailbox() as made:
        yield made


async def mails(bureau: Bureau, office: PostOffice, post: Post) -> None:
    settings = {
        "from": "Folkmoot <moot@example.org>", "replyAddress": "approvals@example.org", "smtpHost": "127.0.0.1", "smtpPort": office.port,
        "smtpSecurity": "none", "imapHost": "127.0.0.1", "imapPort": post.port, "imapSecurity": "none", "imapUser": "moot",
    }  # fmt: skip
    await bureau.publish("email", settings, address="Olga@Example.org", imapPassword="pass")


def reply_to(mail: EmailMessage, text: str, *, sender: str = "olga@example.org", id_: str = "<r1@x>") -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Message-ID"] = sender, str(mail["Reply-To"]), id_
    made["In-Reply-To"] = str(mail["Message-ID"])
    quoted = "\n".join(f"> {line}" for line in str(mail.get_body(("plain",)).get_content()).splitlines())  # type: ignore[union-attr]
    made.set_content(f"{text}\n\nOn Monday, Folkmoot wrote:\n{quoted}\n")
    return made.as_bytes()


async def test_an_owner_is_asked_by_mail_and_answers_by_a_reply(bureau: Bureau, office: PostOffice, post: Post) -> None:
    """The whole trip: request, reply, outcome, end; each mail in the request's thread; the card is the real call, hidden characters shown (F33)."""
    await mails(bureau, office, post)
    run = await bureau.waiting()
    assert await bureau.send() == 1
    (request,) = office.got
    text = str(request.get_body(("plain",)).get_content())  # type: ignore[union-attr]
    assert "tell" in text and '"what": "42"' in text and "\u202e" not in text and "Bo" in text
    assert f"https://moot.example.org/web/consent/{run.correlation_token}" in text
    assert [
        (each["kind"], each["sealed_secret"], each["delivered_at"] is not None) for each in await bureau.messages()
    ] == [("consent.requested", None, True)], "the secret is gone once it is delivered"
    await post.put(reply_to(request, "no way\nor maybe", id_="<r0@x>"))
    await post.put(reply_to(request, "Approve", sender="eve@example.org", id_="<r-eve@x>"))
    assert await bureau.look() == 2
    assert (await agents.now(bureau.database, bureau.caller, run)).status == "awaiting_consent"
    await post.put(reply_to(request, "Approve."))
    assert await bureau.look() == 1 and await bureau.look() == 0, "read once"
    done = await bureau.finish(run)
    assert done.status == "completed" and bureau.deeds.done == [("tell", (HIDDEN, "42"))]
    await bureau.send()
    told = [(mail["Subject"], mail["In-Reply-To"]) for mail in office.got]
    assert [reference for subject, reference in told if "approved" in subject] == [request["Message-ID"]]
    ended = [mail for mail in office.got if "completed" in mail["Subject"]]
    assert len(ended) == 1 and "Bo knows that it is 42." in str(ended[0].get_body(("plain",)).get_content())  # type: ignore[union-attr]
    outcomes = [
        str(mail.get_body(("plain",)).get_content())
        for mail in office.got
        if mail["In-Reply-To"] in ("<r0@x>", "<r-eve@x>", "<r1@x>")
    ]  # type: ignore[union-attr]
    assert (
        len(outcomes) == 2
        and any("could not be read" in each for each in outcomes)
        and any("Done" in each for each in outcomes)
    ), "B16"


async def test_a_mailbox_that_cannot_be_read_is_told_of_once_by_its_channels_name(
    bureau: Bureau, office: PostOffice, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it is looked into, the log says it when it begins and when it is over."""
    await mails(bureau, office, post)
    reading = bureau.reading()
    await bureau.keep("imapPassword", "another")

    async def rest() -> float:
        await bureau.look(reading)
        (row,) = await panels.fetch(
            bureau.database, "select extract(epoch from until - folkmoot_now())::float8 as s from channel_look"
        )
        return float(row["s"])

    # a wrong password is tried less and less often, lest the account is locked
    rests = [await rest() for _ in range(5)]
    assert [round(seconds / 60) for seconds in rests] == [2, 4, 8, 15, 15]
    assert caplog.text.count("could not be looked into, and will be again: The mailbox") == 1
    assert "The channel default/line (" in caplog.text
    await bureau.keep("imapPassword", "pass")
    assert await rest() < 31
    assert caplog.text.count("can be looked into again") == 1


async def test_a_no_above_a_quoted_yes_declines(bureau: Bureau, office: PostOffice, post: Post) -> None:
    await mails(bureau, office, post)
    run = await bureau.waiting()
    await bureau.send()
    await post.put(reply_to(office.got[0], "No\nNot in my name.\n\n> APPROVE"))
    await bureau.look()
    item = await agents.asked(bureau.database, bureau.caller, run)
    assert item.consent is not None and (item.consent.status, item.consent.reason) == ("declined", "Not in my name.")


async def test_a_channel_that_is_down_for_an_hour_loses_nothing(bureau: Bureau, receiver: Receiver) -> None:
    """Consent 1: if the request cannot be sent it is tried again with backoff; the run stays awaiting. replyParams are handed back untouched."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    params = '{"a":  [1, 2]}'
    receiver.status = 503
    run = await bureau.waiting(reply_params=params)
    await bureau.send()
    (failed,) = await bureau.messages()
    assert failed["attempts"] == 1 and "503" in failed["last_error"] and failed["sealed_secret"] is not None
    for seconds in (10, 400, 2000):
        await panels.shift_clock(bureau.database, seconds)
        await bureau.send()
    assert (
        len(receiver.got) == 4 and (await agents.now(bureau.database, bureau.caller, run)).status == "awaiting_consent"
    )
    receiver.status = 204
    await panels.shift_clock(bureau.database, 3 * 3600)
    await bureau.send()
    assert len({headers["webhook-id"] for headers, _ in receiver.got}) == 1, "deduplicated by its id"
    data = receiver.bodies[-1]["data"]
    assert (data["runId"], data["token"], data["replyParams"]) == (run.id, run.correlation_token, params) and len(
        data["secret"]
    ) == 16
    (sent,) = await bureau.messages()
    assert sent["delivered_at"] is not None and sent["sealed_secret"] is None and sent["last_error"] is None


async def test_a_channel_that_refuses_for_good_is_given_up_and_the_owner_can_still_answer(
    bureau: Bureau, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever runs the server reads why."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    receiver.status = 302
    run = await bureau.waiting()
    await bureau.send()
    (message,) = await bureau.messages()
    assert (
        message["given_up_at"] is not None and message["sealed_secret"] is None and "redirects" in message["last_error"]
    )
    assert "of agent run 1 over the channel default/line (" in caplog.text and "is not sent any more" in caplog.text
    await agents.consent(bureau.database, bureau.caller, run)
    assert (await bureau.finish(run)).status == "completed"


async def test_a_request_that_is_settled_before_it_is_sent_holds_up_nothing(bureau: Bureau, receiver: Receiver) -> None:
    """Consent 4, Channels: while a channel is down what became of a request is tried as often as any message, and is told once it is up."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    receiver.status = 503
    run = await bureau.waiting()
    for seconds in (0, 10, 400):
        await panels.shift_clock(bureau.database, seconds)
        await bureau.send()
    await agents.consent(bureau.database, bureau.caller, run, approves=False, reason="No.")
    for _ in range(15):
        await panels.shift_clock(bureau.database, 3)
        await bureau.send()
    request, decided = await bureau.messages()
    assert request["given_up_at"] is not None and "settled before" in request["last_error"]
    assert decided["attempts"] == 2 and decided["given_up_at"] is None, "after 5 seconds, and not yet after 5 minutes"
    receiver.status = 204
    await panels.shift_clock(bureau.database, 600)
    await bureau.send()
    kinds = [(each["kind"], each["delivered_at"] is not None) for each in await bureau.messages()]
    assert kinds == [("consent.requested", False), ("consent.decided", True)]


async def test_what_follows_a_request_waits_while_that_is_being_sent(bureau: Bureau, receiver: Receiver) -> None:
    """Else the request would come after its outcome, and stand there as if it were open. To wait is no try."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    run = await bureau.waiting()
    async with bureau.database.writer() as writer:  # another sender, which is at it
        (request,) = await channel_messages.claim(writer, limit=1, limit_each=MOST_EACH, busy={}, lease_seconds=120)
    await agents.consent(bureau.database, bureau.caller, run, approves=False, reason="No.")
    for _ in range(5):
        await panels.shift_clock(bureau.database, 3)
        await bureau.send()
    assert receiver.got == [] and [each["attempts"] for each in await bureau.messages()] == [1, 0]
    async with bureau.database.writer() as writer:
        await channel_messages.delivered(writer, request, reference="r")
    await panels.shift_clock(bureau.database, 3)
    await bureau.send()
    assert [body["type"] for body in receiver.bodies] == ["consent.decided"]


async def test_a_reply_that_cannot_be_marked_as_read_is_told_of_once(
    bureau: Bureau, office: PostOffice, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B71: what is found at each look makes no mail at each look."""
    await mails(bureau, office, post)
    await bureau.waiting()
    await bureau.send()
    monkeypatch.setattr(mail_app, "mark_seen", lambda *_: None)
    await post.put(reply_to(office.got[0], "Approve."))
    assert [await bureau.look() for _ in range(3)] == [1, 1, 1]
    assert len([mail for mail in office.got if mail["In-Reply-To"] == "<r1@x>"]) == 1
    send = mail_app.send_mail

    async def cut(*arguments: Any, **named: Any) -> None:
        await send(*arguments, **named)
        raise ChannelDown("The connection was cut when the mail was there.")

    monkeypatch.setattr(mail_app, "send_mail", cut)
    await post.put(reply_to(office.got[0], "no way\nor maybe", id_="<r2@x>"))
    assert [await bureau.look() for _ in range(3)] == [2, 2, 2]
    assert len([mail for mail in office.got if mail["In-Reply-To"] == "<r2@x>"]) == 1


async def test_a_reply_whose_outcome_a_process_died_before_telling_is_told_of_by_the_next(
    bureau: Bureau, office: PostOffice, post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B16, B71: the answer counted, and nobody knew; it is found again, counts no more, and its sender is told."""
    await mails(bureau, office, post)
    run = await bureau.waiting()
    await bureau.send()
    await post.put(reply_to(office.got[0], "no way\nor maybe"))
    with monkeypatch.context() as broken:
        broken.setattr(mail_app, "send_mail", Mock(side_effect=Died))
        with pytest.raises(Died):
            await bureau.look()
    assert [mail for mail in office.got if mail["In-Reply-To"] == "<r1@x>"] == []
    assert [await bureau.look() for _ in range(2)] == [1, 0]
    assert len([mail for mail in office.got if mail["In-Reply-To"] == "<r1@x>"]) == 1
    assert (await agents.now(bureau.database, bureau.caller, run)).status == "awaiting_consent"


async def test_a_look_loads_no_app_of_which_there_is_no_channel(
    bureau: Bureau, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it imports an app takes megabytes of each worker."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    asked: list[str] = []
    find = bureau.apps.find
    monkeypatch.setattr(bureau.apps, "find", lambda name: (asked.append(name), find(name))[1])
    await bureau.look()
    assert asked == ["webhook"]


async def test_a_request_is_known_for_as_long_as_it_waits(bureau: Bureau, receiver: Receiver) -> None:
    """Channels: the message is updated after the decision, however late that is. What has ended is forgotten after a month."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    for_ever = agents.ruled(channel="line", consent_time=None)
    await agents.publish(bureau.database, bureau.caller, bureau.new_id, bench=bureau.bench, settings=for_ever)
    run = await bureau.waiting()
    await bureau.send()

    async def a_month_later() -> int:
        await panels.shift_clock(bureau.database, 31 * 24 * 3600)
        async with bureau.database.writer() as writer:
            await channel_messages.forget_old(writer)
        return len(await bureau.messages())

    assert await a_month_later() == 1
    await agents.consent(bureau.database, bureau.caller, run)
    await bureau.finish(run)
    await bureau.send()
    assert await a_month_later() == 0


async def test_two_senders_share_what_there_is_and_each_message_has_one(bureau: Bureau, receiver: Receiver) -> None:
    """At least once, and once where nobody dies: a claim moves the message's time. Without it both would send."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    for _ in range(3):
        await bureau.start()
    async with bureau.at_work():
        await until(partial(_all_wait, bureau, 3))
    sent = await asyncio.gather(bureau.send(), bureau.send())
    assert sum(sent) == 3 and len(receiver.got) == 3
    await panels.execute(bureau.database, "update channel_message set ready_at = folkmoot_now(), delivered_at = null")
    async with bureau.database.writer() as one, bureau.database.writer() as other:
        claims = [
            await channel_messages.claim(w, limit=16, limit_each=MOST_EACH, busy={}, lease_seconds=60)
            for w in (one, other)
        ]
    assert [len(each) for each in claims] == [3, 0]


async def test_a_claim_reads_what_it_takes_however_much_is_due(bureau: Bureau, receiver: Receiver) -> None:
    """With each message that is sent the next is claimed: to read all that is due each time would take the square of it."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    await bureau.waiting()
    async with bureau.database.writer() as writer:
        await writer.connection.execute(_MORE_MESSAGES)
        await writer.connection.execute("prepare claim as " + queries("channel_messages").claim.sql)
        plan = await writer.connection.fetchval(
            f"explain (analyze, format json) execute claim('{{}}', '{{}}', '{{}}', {MOST_EACH}, 16, 60)"
        )
        await writer.connection.execute("deallocate claim")
        taken = await writer.connection.fetch(
            "select count(*) from channel_message where attempts > 0 group by channel_id"
        )
    counts = re.findall(r'"(?:Actual Rows|Rows Removed by [A-Za-z ]+)": (\d+)', plan)
    assert [row["count"] for row in taken] == [MOST_EACH, MOST_EACH], "from each of two channels"
    assert max(map(int, counts)) == 2 * MOST_EACH, plan


async def test_without_the_claim_both_senders_send(
    bureau: Bureau, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    await bureau.waiting()
    claim = channel_messages.claim

    async def unclaimed(writer: Any, **named: Any) -> list[DueChannelMessage]:
        found = await claim(writer, **named)
        await writer.connection.execute(
            "update channel_message set ready_at = folkmoot_now() where ready_at is not null"
        )
        return found

    monkeypatch.setattr(channel_messages, "claim", unclaimed)
    both = [ChannelMessages(bureau.database, bureau.vault, bureau.apps, lambda: 0.5, None) for _ in range(2)]
    due = [(each, await each.claim(limit=16, busy={})) for each in both]
    await asyncio.gather(*(each.send(message) for each, messages in due for message in messages))
    assert len(receiver.got) == 2


@pytest.mark.parametrize("is_closed", [True, False])
async def test_what_is_due_when_a_process_ends_is_sent_before_it_does(
    bureau: Bureau, receiver: Receiver, is_closed: bool
) -> None:
    """The last word of a run that ended here needs no other process. The negative control is cut off where it waits for news."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    messages = ChannelMessages(bureau.database, bureau.vault, bureau.apps, lambda: 0.5, None)
    sending = Sending(messages, poll_seconds=600)
    has_looked = asyncio.Event()
    claim = messages.claim

    async def watched(**named: Any) -> Any:
        found = await claim(**named)
        has_looked.set()
        return found

    messages.claim = watched  # type: ignore[method-assign]
    sending.start()
    await has_looked.wait()
    await bureau.waiting()
    if is_closed:
        await sending.close()
    else:
        assert sending._task is not None
        sending._task.cancel()
    assert len(receiver.got) == is_closed


async def _all_wait(bureau: Bureau, count: int) -> bool:
    rows = await panels.fetch(bureau.database, "select count(*) as n from agent_run where status = 'awaiting_consent'")
    return int(rows[0]["n"]) == count


async def test_an_expiry_is_announced_once_over_the_channel_it_came_by(bureau: Bureau, receiver: Receiver) -> None:
    """Consent 4: with replyParams; also by two sweeps at once."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    run = await bureau.waiting(reply_params='{"x": 1}')
    await bureau.send()
    await panels.shift_clock(bureau.database, 3 * 24 * 3600 + 5)
    assert (await bureau.finish(run)).status == "expired"
    await bureau.send()
    assert [(each["type"], each["data"]["replyParams"]) for each in receiver.bodies] == [
        ("consent.requested", '{"x": 1}'), ("consent.expired", '{"x": 1}')
    ]  # fmt: skip
    assert "secret" not in receiver.bodies[1]["data"] and bureau.deeds.done == []


class TestInbound:
    """`POST /channels/{id}/inbound` over real HTTP: public, and nothing that is not the channel's own has any effect."""

    @pytest_asyncio.fixture
    async def server(self, database_dsn: str, tmp_path: Any) -> AsyncIterator[Served]:
        async with served(database_dsn, data_dir=tmp_path, allows="127.0.0.1") as made:
            yield made

    async def test_a_signed_answer_counts_and_everything_else_is_refused(
        self, server: Served, bureau: Bureau, receiver: Receiver
    ) -> None:
        """F35, F36, F46, B71: unsigned, altered, old and future requests; the same twice; another channel; GET decides nothing (B14)."""
        bureau = replace(bureau, vault=server.installation.vault)
        await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
        run = await bureau.waiting()
        await bureau.send()
        data = receiver.bodies[0]["data"]
        channel = (await bureau.messages())[0]["channel_id"]
        path = f"/channels/{channel}/inbound"
        answer = {"token": data["token"], "secret": data["secret"], "decision": "approve"}
        body = json.dumps({"type": "consent.answer", "data": answer}).encode()
        client = server.of(None)
        now = (await panels.fetch(bureau.database, "select folkmoot_now() as now"))[0]["now"]

        def signed(id_: str, *, seconds: int = 0, text: bytes = body) -> dict[str, str]:
            at = now.replace(microsecond=0) + timedelta(seconds=seconds)
            return {
                "webhook-id": id_, "webhook-timestamp": str(int(at.timestamp())), "content-type": "application/json",
                "webhook-signature": Webhook(SIGNING).sign(id_, at, text.decode()),
            }  # fmt: skip

        for headers in (
            {},
            signed("old", seconds=-400),
            signed("future", seconds=400),
            {**signed("x"), "webhook-id": "y"},
        ):
            assert (await client.post(path, content=body, headers=headers)).status_code == 401
        altered = body.replace(b"approve", b"decline")
        assert (await client.post(path, content=altered, headers=signed("altered"))).status_code == 401
        assert (await client.get(path)).status_code == 405
        assert (
            await client.post(f"/channels/{UUID(int=3)}/inbound", content=body, headers=signed("z"))
        ).status_code == 404
        assert (await client.post(path, content=b"{", headers=signed("json", text=b"{"))).status_code == 400
        assert (await agents.now(bureau.database, bureau.caller, run)).status == "awaiting_consent"
        told = [(await client.post(path, content=body, headers=signed("one"))).json() for _ in range(2)]
        assert told[0] == told[1] == {"outcomes": [{"outcome": "done", "detail": told[0]["outcomes"][0]["detail"]}]}
        late = (await client.post(path, content=body, headers=signed("two"))).json()
        assert late["outcomes"][0]["outcome"] == "already_decided"
        assert (await bureau.finish(run)).status == "completed" and len(bureau.deeds.done) == 1

    async def test_a_click_is_acknowledged_while_its_outcome_is_on_its_way_and_told_once(
        self, server: Served, bureau: Bureau
    ) -> None:
        """Slack waits three seconds and then sends a click again (B71), which is told only if it was not yet (B16)."""
        async with AsyncExitStack() as stack:
            recorder = await stack.enter_async_context(RecordingServer())
            workspace = Workspace(recorder, held=asyncio.Event())
            recorder.answer = workspace.answer
            given = await stack.enter_async_context(world(slack_api_url=f"{recorder.url}/api/"))
            bureau = replace(bureau, vault=server.installation.vault, apps=ChannelApps(given, found=()))
            tokens = {"botToken": BOT, "signingSecret": SLACK_SIGNING}
            await bureau.publish("slack", {"channel": "C0123456"}, address="T0TEAM:U0OWNER", **tokens)
            run = await bureau.waiting()
            await bureau.send()
            (posted,) = workspace.posted.values()
            (buttons,) = [block["elements"] for block in posted["blocks"] if block["type"] == "actions"]
            payload = click(buttons[0]["action_id"], response_url=f"{recorder.url}/clicked")
            payload["actions"][0]["value"] = buttons[0]["value"]
            now = (await panels.fetch(bureau.database, "select folkmoot_now() as now"))[0]["now"]
            request = clicked(payload, at=now)
            path = f"/channels/{(await bureau.messages())[0]['channel_id']}/inbound"
            client = server.of(None)
            for _ in range(2):  # the second is told as well: nobody knows yet whether the first one was
                async with asyncio.timeout(10):  # posting what became of it may take 20 seconds
                    answer = await client.post(path, content=request.body, headers=dict(request.headers))
                assert (answer.status_code, answer.content, workspace.told) == (200, b"", [])
            assert workspace.held is not None
            workspace.held.set()
            await until(partial(_are_told, bureau))
            assert [told["text"][:5] for told in workspace.told] == ["Done:"] * 2
            assert (await client.post(path, content=request.body, headers=dict(request.headers))).status_code == 200
            assert len(workspace.told) == 2, "it is known now"
        assert (await bureau.finish(run)).status == "completed" and len(bureau.deeds.done) == 1


async def _are_told(bureau: Bureau) -> bool:
    rows = await panels.fetch(bureau.database, "select told_at from inbound_message")
    return len(rows) > 0 and all(row["told_at"] is not None for row in rows)


async def test_a_request_on_its_way_is_sealed_again_when_the_key_changes(bureau: Bureau, receiver: Receiver) -> None:
    """F45: rotation while runs are live; the old key opens nothing any more, and the request is sent all the same."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    await bureau.waiting()
    before = (await bureau.messages())[0]["sealed_secret"]
    both = Vault((key_of(b"n" * 32), key_of(b"k" * 32)), random_bytes=lambda n: b"m" * n)
    assert (
        await secret_service.rotate(bureau.database, both, bureau.caller) == 2
    )  # the channel's own, and the request's
    assert (await bureau.messages())[0]["sealed_secret"] != before
    await replace(bureau, vault=Vault((key_of(b"n" * 32),), random_bytes=lambda n: b"o" * n)).send()
    assert len(receiver.bodies[0]["data"]["secret"]) == 16


async def test_a_channel_that_cannot_be_made_ready_is_not_there_for_strangers(
    bureau: Bureau, receiver: Receiver
) -> None:
    """Its own words are for its tenant: a deleted secret is a 404 outside, and the reason is on the message inside."""
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    await bureau.waiting()
    await panels.execute(bureau.database, "delete from secret")
    await bureau.send()
    (message,) = await bureau.messages()
    assert "secret" in message["last_error"] and message["ready_at"] is not None
    with pytest.raises(Exception, match="There is no channel"):
        await inbound.receive(
            bureau.database,
            bureau.vault,
            bureau.apps,
            channel_id=message["channel_id"],
            read=None,
            tell=lambda _: None,  # type: ignore[arg-type]
        )
    assert consent_secrets.seal(Vault((), random_bytes=bytes), bureau.caller.tenant_id, UUID(int=1), "s") is None


async def test_what_the_other_side_says_of_a_failure_gives_no_secret_away(
    bureau: Bureau, office: PostOffice, post: Post
) -> None:
    """B52: a server that repeats the reply address in its refusal; whoever may read what became of a message could use the secret."""
    await mails(bureau, office, post)
    await bureau.waiting()
    (message,) = await bureau.messages()
    secret = consent_secrets.opened(
        bureau.vault, bureau.caller.tenant_id, message["message_id"], message["sealed_secret"]
    )
    office.refusals.append(f"451 bad Reply-To approvals+x.{secret.upper()}@example.org")
    await bureau.send()
    (failed,) = await bureau.messages()
    assert "451" in failed["last_error"] and secret not in failed["last_error"].lower()


async def test_a_channels_secret_is_changed_by_who_may_say_whose_an_address_is(
    bureau: Bureau, receiver: Receiver
) -> None:
    await bureau.publish("webhook", {"url": f"http://127.0.0.1:{receiver.port}/hook"}, signing=SIGNING)
    developer = replace(bureau.caller, role=Role.DEVELOPER, rights=rights_of(Role.DEVELOPER, None))
    with pytest.raises(NotPermitted):
        await secret_service.put(
            bureau.database, bureau.vault, developer, namespace="default", name="signing", value=SecretText(SIGNING), new_id=bureau.new_id
        )  # fmt: skip
    with pytest.raises(NotPermitted):
        await secret_service.delete(bureau.database, developer, namespace="default", name="signing")
