"""The mail app, against real servers of SMTP and IMAP on loopback (B16, B71, F35, F37)."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from channels_at_hand import MESSAGE_ID, SECRET, TOKEN, message, setup_of, tls_at, world
from mail_at_hand import Post, PostOffice, authenticated, mailbox, post_office, scripted_mailbox
from standardwebhooks import Webhook

from folkmoot.channels.channel import Channel, ChannelDown, ChannelRefused, Forged
from folkmoot.channels.mail import app as mail_app
from folkmoot.channels.mail.app import make
from folkmoot.channels.mail.mailbox import MOST_BYTES_READ, MOST_READ
from folkmoot.channels.mail.reading import MOST_BYTES
from folkmoot.domain.channels import (
    Answer,
    AnswerOutcome,
    ChannelSetup,
    InboundRequest,
    MessageKind,
    OutcomeKind,
    ReceivedAnswer,
)

REQUEST_ID = f"<folkmoot.{MESSAGE_ID.hex}.{TOKEN}@example.org>"
ADDRESS = f"approvals+{TOKEN}.{SECRET}@example.org"
INBOUND = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
WIDE = SMTP_POLICY.clone(max_line_length=998)


@pytest_asyncio.fixture
async def office() -> AsyncIterator[PostOffice]:
    async with post_office() as made:
        yield made


@pytest_asyncio.fixture
async def app() -> AsyncIterator[Channel]:
    async with world() as given:
        yield make(given)


def setup(office: PostOffice | None = None, *, secrets: dict[str, str] | None = None, **more: Any) -> ChannelSetup:
    settings = {
        "from": "Folkmoot <moot@example.org>",
        "replyAddress": "approvals@example.org",
        "smtpHost": "127.0.0.1",
        "smtpPort": office.port if office else 9,
        "smtpSecurity": "none",
    }
    return setup_of({**settings, **more}, secrets or {}, now=datetime(2026, 3, 1, 12, tzinfo=UTC))


def text_in(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    assert isinstance(part, EmailMessage)
    return str(part.get_content())


# sending


async def test_a_request_says_how_to_answer_and_where_to(app: Channel, office: PostOffice) -> None:
    delivery = await app.send(setup(office), message())
    await app.send(setup(office), message())  # once more, as after a lost answer
    mail, again = office.got
    assert delivery.reference == REQUEST_ID == mail["Message-ID"] == again["Message-ID"]
    assert office.envelopes[0] == ("moot@example.org", ["owner@example.org"])
    assert (mail["Reply-To"], mail["X-Folkmoot-Token"]) == (ADDRESS, TOKEN)
    assert (mail["From"], mail["To"]) == ("Folkmoot <moot@example.org>", "owner@example.org")
    assert (mail["Auto-Submitted"], mail["Subject"]) == ("auto-generated", message().title)
    plain = text_in(mail, "plain")
    assert message().text in plain and "APPROVE or DECLINE alone on the first line" in plain
    assert message().link and message().link in plain
    assert TOKEN not in plain and SECRET not in plain  # a mail that is passed on gives no secret away with its text


@pytest.mark.parametrize("kind", [MessageKind.CONSENT_DECIDED, MessageKind.CONSENT_EXPIRED, MessageKind.RUN_ENDED])
async def test_what_follows_stands_in_the_requests_thread(app: Channel, office: PostOffice, kind: MessageKind) -> None:
    await app.send(setup(office), message(kind, request_reference=REQUEST_ID))
    (mail,) = office.got
    assert mail["In-Reply-To"] == mail["References"] == REQUEST_ID
    assert mail["Reply-To"] == f"approvals+{TOKEN}@example.org"  # no secret
    assert "APPROVE" not in text_in(mail, "plain")


async def test_what_a_model_wrote_is_inert(app: Channel, office: PostOffice) -> None:
    """No header of its own, and no markup."""
    hostile = "<img src=x onerror=alert(1)></div><a href='https://evil.example'>&"
    await app.send(setup(office), message(title="May I?\r\nBcc: evil@example.org\r\n\r\nhi", text=hostile))
    (mail,) = office.got
    assert mail["Bcc"] is None and mail["Subject"] == "May I? Bcc: evil@example.org hi"
    assert "<img" not in text_in(mail, "html") and "&lt;img" in text_in(mail, "html")
    assert hostile in text_in(mail, "plain")
    assert office.envelopes[0][1] == ["owner@example.org"]


async def test_a_request_that_is_quoted_without_a_mark_is_no_answer(app: Channel, office: PostOffice) -> None:
    """An empty reply above it, and a text that a model begins with a word of ours."""
    await app.send(setup(office), message(text="APPROVE\nas before"))
    got = await answered(app, reply(text_in(office.got[0], "plain")))
    assert got.answer is None and got.token == TOKEN


async def test_text_of_any_script_arrives(app: Channel, office: PostOffice) -> None:
    await app.send(setup(office), message(title="Dürfen wir? 承認", text="Größe: 5 €, 承認\n" + "x" * 3_000))
    (mail,) = office.got
    assert mail["Subject"] == "Dürfen wir? 承認" and "5 €, 承認" in text_in(mail, "plain")


@pytest.mark.parametrize(
    "to", [None, "owner@example.org, evil@example.org", "a@example.org\r\nBcc: b@example.org", "x"]
)
async def test_without_one_address_nothing_is_sent(app: Channel, office: PostOffice, to: str | None) -> None:
    with pytest.raises(ChannelRefused, match="address"):
        await app.send(setup(office), message(to=to))
    assert office.got == []


@pytest.mark.parametrize(
    ("refusal", "error"), [("550 No such user", ChannelRefused), ("450 Busy", ChannelDown), ("421 Bye", ChannelDown)]
)
async def test_what_the_server_answers_says_whether_to_try_again(
    app: Channel, office: PostOffice, refusal: str, error: type[Exception]
) -> None:
    office.refusals.append(refusal)
    with pytest.raises(error, match=refusal[:3]):
        await app.send(setup(office), message())
    await app.send(setup(office), message())
    assert len(office.got) == 1


async def test_a_server_that_is_down_takes_the_same_mail_when_it_is_up(app: Channel) -> None:
    async with post_office() as office:
        pass
    with pytest.raises(ChannelDown, match="cannot be reached"):
        await app.send(setup(office), message())
    async with post_office(office.port) as office:
        await app.send(setup(office), message())
        assert office.got[0]["Message-ID"] == REQUEST_ID


async def test_a_mail_server_inside_is_reached_only_where_the_operator_allows_it(office: PostOffice) -> None:
    async with world(allow=()) as closed:
        app = make(closed)
        with pytest.raises(ChannelDown, match="FOLKMOOT_ALLOW_ADDRESSES"):
            await app.send(setup(office), message())
        with pytest.raises(ChannelDown, match="FOLKMOOT_ALLOW_ADDRESSES"):
            await app.receive(boxed(1), None)
    assert office.got == []


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("security", ["tls", "starttls"])
async def test_a_password_goes_over_an_encrypted_connection(security: str, tmp_path: Path) -> None:
    tls = tls_at(tmp_path)
    options: dict[str, Any] = {"authenticator": authenticated, "auth_required": True}
    if security == "starttls":
        options |= {"tls_context": tls.server, "require_starttls": True}
    else:
        options |= {"auth_require_tls": False}  # it does not know that all of the connection is encrypted
    async with post_office(tls=tls.server if security == "tls" else None, **options) as office:
        given = setup(office, secrets={"smtpPassword": "pass"}, smtpSecurity=security, smtpUser="moot")
        async with world(tls=tls.client) as trusting:
            await make(trusting).send(given, message())
            assert len(office.got) == 1
            with pytest.raises(ChannelRefused, match="does not let the user in"):
                await make(trusting).send(replace(given, secrets={"smtpPassword": "wrong"}), message())
            with pytest.raises(ChannelRefused, match="no secret"):
                await make(trusting).send(replace(given, secrets={}), message())
        async with world() as stranger:  # the control: a certificate that nobody vouches for
            with pytest.raises(ChannelDown):
                await make(stranger).send(given, message())
        assert len(office.got) == 1


async def test_encryption_that_is_asked_for_is_never_done_without(app: Channel, office: PostOffice) -> None:
    with pytest.raises(ChannelRefused, match="STARTTLS"):
        await app.send(setup(office, smtpSecurity="starttls"), message())
    assert office.got == []


# replies through a mailbox


@pytest_asyncio.fixture
async def post() -> AsyncIterator[Post]:
    async with mailbox() as made:
        yield made


def boxed(port: int, office: PostOffice | None = None, **more: Any) -> ChannelSetup:
    settings = {"imapHost": "127.0.0.1", "imapPort": port, "imapSecurity": "none", "imapUser": "moot", **more}
    return setup(office, secrets={"imapPassword": "pass"}, **settings)


def reply(text: str = "approve", *, id_: str = "<r1@x>", **headers: str) -> bytes:
    made = EmailMessage(policy=WIDE)
    for name, value in {"From": "Ada@example.org", "To": ADDRESS, "Message_ID": id_, **headers}.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    return made.as_bytes()


async def test_a_reply_is_read_and_stays_unseen_until_it_is_recorded(app: Channel, post: Post) -> None:
    """A worker that dies between the two loses nobody's answer; the id says that it is the same (B71)."""
    await post.put(reply("no\nToo much.\n\nOn Monday, Folkmoot wrote:\n> APPROVE\n"))
    first = await app.receive(boxed(post.port), None)
    again = await app.receive(boxed(post.port), None)
    (answer,) = first.answers
    assert (answer.answer, answer.reason, answer.inbound_id) == (Answer.DECLINE, "Too much.", "<r1@x>")
    assert (answer.token, answer.secret, answer.sender, answer.is_proven) == (TOKEN, SECRET, "ada@example.org", False)
    assert again == first and await post.seen() == [False]
    await app.taken(boxed(post.port), first.answers)
    assert await post.seen() == [True]
    assert (await app.receive(boxed(post.port), None)).answers == ()


async def test_other_mails_and_unreadable_ones_are_seen_at_once(app: Channel, post: Post) -> None:
    """None of them blocks the others, however many there are, or is read again; none is removed."""
    for number in range(MOST_READ + 5):
        await post.put(b"X: " + b"a" * 70_000 + b"\r\n\r\n" + str(number).encode())
    await post.put(reply(id_="<a@x>"))
    await post.put(reply("hello", To="approvals@example.org", id_="<b@x>"))
    for number in range(MOST_READ + 5):
        await post.put(b"X: " + b"b" * 70_000 + b"\r\n\r\n" + str(number).encode())
    got = await app.receive(boxed(post.port), None)
    assert [answer.inbound_id for answer in got.answers] == ["<a@x>"]
    seen = await post.seen()
    assert len(seen) == 2 * MOST_READ + 12 and [at for at, each in enumerate(seen) if not each] == [MOST_READ + 5]


async def test_large_mails_do_not_keep_an_answer_from_being_read(app: Channel, post: Post) -> None:
    """A look ends after so many bytes, and the next goes on where it ended, since what is of no use is marked."""
    await post.put(reply(id_="<a@x>"))
    large = b"X: " + b"a" * 70_000 + b"\r\n\r\n" + b"x" * MOST_BYTES
    for _ in range(MOST_BYTES_READ // MOST_BYTES + 1):
        await post.put(large)
    assert (await app.receive(boxed(post.port), None)).answers == ()
    assert (await post.seen()).count(True) == MOST_BYTES_READ // MOST_BYTES
    (answer,) = (await app.receive(boxed(post.port), None)).answers
    assert answer.inbound_id == "<a@x>"


@pytest.mark.parametrize("hangs", [True, False])
async def test_what_was_read_before_a_mailbox_fails_is_not_lost(
    app: Channel, hangs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it says nothing more until the time is up, or hangs up. The control: nothing was read."""
    monkeypatch.setattr(mail_app, "_LOOK_SECONDS", 2.0)
    for mails in ([reply(id_="<a@x>")], []):
        async with scripted_mailbox(mails, uids=2, hangs=hangs) as port:
            if mails:
                (answer,) = (await app.receive(boxed(port), None)).answers
                assert answer.inbound_id == "<a@x>"
            else:
                with pytest.raises(ChannelDown):
                    await app.receive(boxed(port), None)


async def test_what_is_read_at_a_time_is_bounded(app: Channel, post: Post) -> None:
    for number in range(MOST_READ + 3):
        await post.put(reply(id_=f"<{number}@x>"))
    first = await app.receive(boxed(post.port), None)
    assert len(first.answers) == MOST_READ
    await app.taken(boxed(post.port), first.answers)
    rest = await app.receive(boxed(post.port), None)
    assert {a.inbound_id for a in (*first.answers, *rest.answers)} == {f"<{n}@x>" for n in range(MOST_READ + 3)}


async def test_ten_megabytes_are_cut(app: Channel, post: Post) -> None:
    await post.put(reply("approve\nfine\n> q\n" + ("x" * 70 + "\n") * 150_000))
    (answer,) = (await app.receive(boxed(post.port), None)).answers
    assert (answer.answer, answer.reason) == (Answer.APPROVE, None)


async def test_a_number_of_another_validity_marks_nothing(app: Channel, post: Post) -> None:
    """A mailbox that was made anew counts from one again."""
    await post.put(reply())
    (answer,) = (await app.receive(boxed(post.port), None)).answers
    parts = json.loads(answer.reply_to or "")
    await app.taken(boxed(post.port), (replace(answer, reply_to=json.dumps([*parts[:3], parts[3] + 1])),))
    assert await post.seen() == [False]


@pytest.mark.parametrize(
    ("change", "secrets", "words"),
    [
        ({"imapUser": "other"}, None, "imapPassword"),
        ({}, {"imapPassword": "wrong"}, "imapPassword"),
        ({}, {"imapPassword": "pässword"}, "LOGIN"),
        ({}, {"imapPassword": 'a"\r\nb'}, "LOGIN"),
        ({"imapFolder": "Nowhere"}, None, "imapFolder"),
        ({}, {}, "no secret"),
    ],
)
async def test_a_mailbox_that_lets_nobody_in_says_what_to_correct(
    app: Channel, post: Post, change: dict[str, Any], secrets: dict[str, str] | None, words: str
) -> None:
    given = boxed(post.port, **change)
    with pytest.raises(ChannelRefused, match=words) as caught:
        await app.receive(given if secrets is None else replace(given, secrets=secrets), None)
    assert "wrong" not in str(caught.value)


async def test_a_mailbox_that_is_down_gives_the_mails_when_it_is_up(app: Channel, post: Post) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    await post.put(reply())
    with pytest.raises(ChannelDown, match="cannot be reached"):
        await app.receive(boxed(port), None)
    assert len((await app.receive(boxed(post.port), None)).answers) == 1


@pytest.mark.parametrize("said", [b"* BYE go away\r\n", b"hello\r\n", b"", b"* OK\r\n" + b"x" * 2_000_000])
async def test_a_server_that_speaks_no_imap_is_one_that_is_down(app: Channel, said: bytes) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ChannelDown):
            await app.receive(boxed(server.sockets[0].getsockname()[1]), None)


@pytest.mark.parametrize(
    "flood", [b"* 1 FETCH (BODY[] {1000000}\r\n" + b"x" * 1_000_000 + b")\r\n", b"* A\r\n" * 4_000]
)
async def test_a_server_cannot_fill_the_memory_with_many_small_things(app: Channel, flood: bytes) -> None:
    """Each of them is within its bound; short lines count by what they take in memory. The control is a few of them."""
    async with scripted_mailbox([], uids=1, hangs=True, flood=flood * 18) as port:
        with pytest.raises(ChannelDown, match="sends more than"):
            await app.receive(boxed(port), None)
    async with scripted_mailbox([], uids=1, hangs=False, flood=flood * 9) as port:
        with pytest.raises(ChannelDown) as caught:
            await app.receive(boxed(port), None)
        assert "sends more than" not in str(caught.value)


async def test_a_server_that_says_nothing_is_let_go_of(app: Channel) -> None:
    """Whoever waits for it can be cancelled, and the connection ends with that."""
    connected, ended = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connected.set()
        await reader.read()
        ended.set()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        looking = asyncio.create_task(app.receive(boxed(server.sockets[0].getsockname()[1]), None))
        await connected.wait()
        looking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await looking
        await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mailbox_is_read_over_an_encrypted_connection(security: str, tmp_path: Path) -> None:
    tls = tls_at(tmp_path)
    kept = {"cert": tmp_path / "server.pem"} if security == "starttls" else {}
    async with mailbox(**kept, tls=tls.server if security == "tls" else None) as post:
        await post.put(reply())
        given = boxed(post.port, imapSecurity=security)
        async with world(tls=tls.client) as trusting:
            assert len((await make(trusting).receive(given, None)).answers) == 1
        async with world() as stranger:  # the control: a certificate that nobody vouches for
            with pytest.raises(ChannelDown):
                await make(stranger).receive(given, None)


async def test_without_a_mailbox_nothing_is_looked_for(app: Channel) -> None:
    assert (await app.receive(setup(), None)).answers == ()


# replies as signed requests


def inbound(body: bytes, *, content_type: str = "message/rfc822", secret: str = INBOUND) -> InboundRequest:
    now = datetime.now(UTC)
    headers = {
        "content-type": content_type,
        "webhook-id": "delivery_1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("delivery_1", now, body.decode()),
    }
    return InboundRequest(headers, body)


async def test_a_mail_comes_in_as_a_signed_request_raw_or_in_json(app: Channel) -> None:
    """Its id is the mail's own: it is known again however it comes (B71)."""
    given = setup(secrets={"inbound": INBOUND})
    raw = reply("no\r\nToo much.")
    packed = json.dumps({"message": b64encode(raw).decode()}).encode()
    first = await app.receive(given, inbound(raw))
    second = await app.receive(given, inbound(packed, content_type="application/json; charset=utf-8"))
    assert first == second and first.http is None
    assert (first.answers[0].answer, first.answers[0].inbound_id) == (Answer.DECLINE, "<r1@x>")


async def test_a_mail_that_is_not_signed_has_no_effect(app: Channel) -> None:
    given = setup(secrets={"inbound": INBOUND})
    right = inbound(reply())
    for request in (
        replace(right, body=right.body.replace(b"approve", b"decline")),
        replace(right, headers={}),
        inbound(reply(), secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx"),
    ):
        with pytest.raises(Forged):
            await app.receive(given, request)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{", "application/json"),
        (b'{"message": "a!"}', "application/json"),
        (b'{"message": 7}', "application/json"),
        (b"[]", "application/json"),
        (b"no mail", "message/rfc822"),
    ],
)
async def test_what_is_no_mail_is_told_so(app: Channel, body: bytes, content_type: str) -> None:
    got = await app.receive(setup(secrets={"inbound": INBOUND}), inbound(body, content_type=content_type))
    assert got.answers == () and got.http is not None and got.http.status == 400


async def test_without_a_secret_for_it_nothing_is_taken(app: Channel) -> None:
    got = await app.receive(setup(), inbound(reply()))
    assert got.answers == () and got.http is not None and got.http.status == 404


# outcomes


async def answered(app: Channel, raw: bytes) -> ReceivedAnswer:
    (answer,) = (await app.receive(setup(secrets={"inbound": INBOUND}), inbound(raw))).answers
    return answer


async def test_who_answered_is_written_what_became_of_it(app: Channel, office: PostOffice) -> None:
    """B16. Only who was not understood is given back what they sent, to answer again."""
    received = await answered(app, reply(Subject="Re: May I?"))
    for kind in (OutcomeKind.ALREADY_DECIDED, OutcomeKind.NOT_UNDERSTOOD):
        await app.tell(setup(office), received, AnswerOutcome(kind, "Bob <b@x> has decided already.", is_known=True))
    decided, unclear = office.got
    assert (decided["To"], decided["Subject"], decided["In-Reply-To"]) == ("ada@example.org", "Re: May I?", "<r1@x>")
    assert decided["Auto-Submitted"] == "auto-replied"
    assert "Bob <b@x> has decided already." in text_in(decided, "plain")
    assert (decided["Reply-To"], unclear["Reply-To"]) == (f"approvals+{TOKEN}@example.org", ADDRESS)


@pytest.mark.parametrize(
    "raw",
    [
        reply(Auto_Submitted="auto-replied"),
        reply(To="approvals@example.org"),
        reply(From="a@example.org, b@example.org"),
        reply(From="Folkmoot <moot@example.org>", X_Folkmoot_Token=TOKEN),
    ],
)
async def test_machines_and_strangers_are_never_written_to(app: Channel, office: PostOffice, raw: bytes) -> None:
    outcome = AnswerOutcome(OutcomeKind.DONE, "Approved.", is_known=True)
    await app.tell(setup(office), await answered(app, raw), outcome)
    assert office.got == []
    await app.tell(setup(office), await answered(app, reply()), outcome)
    assert len(office.got) == 1, "the control: a person who answered a run"


async def test_a_mail_makes_us_write_to_nobody_but_the_tenants_own_people(app: Channel, office: PostOffice) -> None:
    """B71: From and subject are anybody's to choose, and so is a token of the right form."""
    received = await answered(app, reply(From="victim@example.com", Subject="Buy this"))
    for kind in OutcomeKind:
        await app.tell(setup(office), received, AnswerOutcome(kind, "It was not counted."))
    for kind in (OutcomeKind.NOT_FOUND, OutcomeKind.IGNORED):
        await app.tell(setup(office), received, AnswerOutcome(kind, "It was not counted.", is_known=True))
    assert office.got == []
    await app.tell(setup(office), received, AnswerOutcome(OutcomeKind.NOT_YOURS, "It was not counted.", is_known=True))
    assert [mail["To"] for mail in office.got] == ["victim@example.com"], "the control: a user who may not decide"


async def test_our_own_mails_are_known_when_they_come_back(app: Channel, office: PostOffice) -> None:
    """A request that is delivered to our own mailbox answers nothing, and neither does the mail of an outcome."""
    await app.send(setup(office), message(to="approvals@example.org"))
    await app.tell(
        setup(office), await answered(app, reply()), AnswerOutcome(OutcomeKind.DONE, "Approved.", is_known=True)
    )
    assert len(office.got) == 2
    for mail in office.got:
        assert (await answered(app, mail.as_bytes(policy=WIDE))).is_automatic


async def test_a_reply_to_the_very_mail_that_was_sent_finds_its_request(
    app: Channel, office: PostOffice, post: Post, caplog: pytest.LogCaptureFixture
) -> None:
    """The whole way, and nothing of a secret in the logs."""
    caplog.set_level(logging.DEBUG, logger="folkmoot")
    await app.send(setup(office), message())
    sent = office.got[0]
    quoted = "".join(f"> {line}\r\n" for line in text_in(sent, "plain").splitlines())
    await post.put(
        reply(f"DECLINE\r\nToo much.\r\n\r\n{quoted}", To=str(sent["Reply-To"]), In_Reply_To=str(sent["Message-ID"]))
    )
    (answer,) = (await app.receive(boxed(post.port), None)).answers
    assert (answer.token, answer.secret, answer.answer) == (TOKEN, SECRET, Answer.DECLINE)
    assert answer.reason == "Too much." and SECRET not in caplog.text
