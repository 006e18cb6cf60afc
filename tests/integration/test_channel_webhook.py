"""The webhook app, against a server and the library of the other side (F46, F35, B16, B71); and `web`."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from channels_at_hand import CHAT_ITEM_ID, MESSAGE_ID, SECRET, TOKEN, message, setup_of, world
from recording_server import RecordingServer, reply, saying
from standardwebhooks import Webhook, WebhookVerificationError

from folkmoot.channels.channel import Channel, ChannelDown, ChannelRefused, Forged
from folkmoot.channels.webhook import make
from folkmoot.domain.channels import Answer, ChannelSetup, Delivery, HttpProblem, InboundRequest, MessageKind

SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx"
ANSWER = {
    "type": "consent.answer",
    "data": {"token": TOKEN, "secret": SECRET, "decision": "decline", "reason": "small"},
}


@pytest_asyncio.fixture
async def app() -> AsyncIterator[Channel]:
    async with world() as given:
        yield make(given)


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[RecordingServer]:
    async with RecordingServer() as server:
        yield server


def setup(url: str = "https://example.org/told") -> ChannelSetup:
    return setup_of({"url": url}, {"signing": SIGNING})


def inbound(
    body: bytes | dict[str, Any], *, id_: str = "msg_1", at: datetime | None = None, secret: str = SIGNING
) -> InboundRequest:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    moment = at or datetime.now(UTC)
    headers = {
        "webhook-id": id_,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(id_, moment, sent.decode()),
    }
    return InboundRequest(headers, sent)


async def test_a_request_is_signed_for_the_library_of_the_other_side(app: Channel, endpoint: RecordingServer) -> None:
    """F46: and `replyParams` is the text that it was, JSON or not."""
    sent = message(reply_params="{not json: [")
    assert await app.send(setup(endpoint.url + "/told"), sent) == Delivery()
    (got,) = endpoint.received
    body = Webhook(SIGNING).verify(got.body, dict(got.headers))
    assert got.header("webhook-id") == str(MESSAGE_ID)
    assert body["type"] == "consent.requested" and body["timestamp"]
    assert body["data"] | {} == {
        "tool": "refund",
        "arguments": {"amount": 40},
        "runId": 42,
        "chatItemId": str(CHAT_ITEM_ID),
        "token": TOKEN,
        "secret": SECRET,
        "title": sent.title,
        "text": sent.text,
        "link": sent.link,
        "replyParams": "{not json: [",
    }
    with pytest.raises(WebhookVerificationError):  # the control: another secret does not verify it
        Webhook(OTHER).verify(got.body, dict(got.headers))


async def test_only_a_consent_request_carries_a_secret(app: Channel, endpoint: RecordingServer) -> None:
    await app.send(setup(endpoint.url), message(MessageKind.CONSENT_EXPIRED))
    assert "secret" not in json.loads(endpoint.received[0].body)["data"]


async def test_a_message_cannot_forge_what_is_the_apps_own(app: Channel, endpoint: RecordingServer) -> None:
    await app.send(setup(endpoint.url), message(data={"token": "another", "runId": 7, "secret": "mine"}))
    data = json.loads(endpoint.received[0].body)["data"]
    assert (data["token"], data["runId"], data["secret"]) == (TOKEN, 42, SECRET)


async def test_a_redirect_is_not_followed_and_refused(app: Channel, endpoint: RecordingServer) -> None:
    """F46."""
    async with RecordingServer() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            endpoint.answer = saying(reply(status=status, headers=(f"Location: {elsewhere.url}/",)))
            with pytest.raises(ChannelRefused, match="redirects are not followed"):
                await app.send(setup(endpoint.url), message())
        assert elsewhere.connections == 0


@pytest.mark.parametrize(
    ("status", "error"), [(410, ChannelRefused), (400, ChannelDown), (404, ChannelDown), (500, ChannelDown)]
)
async def test_what_an_endpoint_answers_says_whether_to_try_again(
    app: Channel, endpoint: RecordingServer, status: int, error: type[Exception]
) -> None:
    endpoint.answer = saying(reply(status=status))
    with pytest.raises(error, match=str(status)):
        await app.send(setup(endpoint.url), message())


async def test_an_endpoint_that_is_down_takes_the_same_message_when_it_is_up(app: Channel) -> None:
    async with RecordingServer() as server:
        url, port = server.url, server.port
    with pytest.raises(ChannelDown, match="cannot be reached"):
        await app.send(setup(url), message())
    async with RecordingServer(port=port) as server:
        await app.send(setup(url), message())
        assert server.received[0].header("webhook-id") == str(MESSAGE_ID)


async def test_an_address_inside_is_reached_only_where_the_operator_allows_it(endpoint: RecordingServer) -> None:
    async with world(allow=()) as closed:
        with pytest.raises(ChannelDown, match="FOLKMOOT_ALLOW_ADDRESSES"):
            await make(closed).send(setup(endpoint.url), message())
    assert endpoint.connections == 0


async def test_an_answer_of_any_length_counts_as_taken(app: Channel, endpoint: RecordingServer) -> None:
    endpoint.answer = saying(reply(b"x" * 3_000_000))
    assert await app.send(setup(endpoint.url), message()) == Delivery()


async def test_a_signing_secret_that_is_none_is_told(app: Channel, endpoint: RecordingServer) -> None:
    short = "whsec_" + b64encode(bytes(range(23))).decode()
    for secret in (
        "whsec_a",
        "hello",
        "not a secret",
        SIGNING.removeprefix("whsec_"),
        short,
        "whsec_",
        "whsec_" + "é" * 40,
    ):
        with pytest.raises(ChannelRefused, match="base64 of 24 bytes or more"):
            await app.send(replace(setup(endpoint.url), secrets={"signing": secret}), message())
        with pytest.raises(Forged, match="no Standard Webhooks secret"):
            await app.receive(replace(setup(), secrets={"signing": secret}), inbound(ANSWER))
    with pytest.raises(Forged, match="secret"):
        await app.receive(replace(setup(), secrets={"signing": ""}), inbound(ANSWER))


# what comes in


async def test_a_signed_answer_is_read_and_proves_nobody(app: Channel) -> None:
    """The secret is needed beside the signature. B71: its id is the message's, so that one sent again is known."""
    got = await app.receive(setup(), inbound(ANSWER))
    again = await app.receive(setup(), inbound(ANSWER))
    (answer,) = got.answers
    assert got.http is None and again == got
    assert (answer.inbound_id, answer.token, answer.secret) == ("msg_1", TOKEN, SECRET)
    assert (answer.answer, answer.reason, answer.is_proven, answer.sender) == (Answer.DECLINE, "small", False, None)


@pytest.mark.parametrize("reason", [..., None])
async def test_an_approval_has_no_reason(app: Channel, reason: Any) -> None:
    """As over the API; one that has is told so, for what it says would be dropped."""
    (answer,) = (await app.receive(setup(), inbound(changed(decision="approve", reason=reason)))).answers
    assert (answer.answer, answer.reason) == (Answer.APPROVE, None)


@pytest.mark.parametrize("minutes", [-6, 6])
async def test_an_answer_of_another_time_is_forged(app: Channel, minutes: int) -> None:
    """F46: a replay of later, and one from the future; the controls are within five minutes."""
    with pytest.raises(Forged):
        await app.receive(setup(), inbound(ANSWER, at=datetime.now(UTC) + timedelta(minutes=minutes)))
    within = datetime.now(UTC) + timedelta(minutes=minutes) * 0.7
    assert (await app.receive(setup(), inbound(ANSWER, at=within))).answers


async def test_what_was_altered_or_is_not_signed_is_forged(app: Channel) -> None:
    """F46: body, id, time, signature, another's secret, nothing at all."""
    right = inbound(ANSWER)
    changed = [
        replace(right, body=right.body.replace(b"decline", b"approve")),
        *(replace(right, headers={**right.headers, name: "0"}) for name in right.headers),
        *(replace(right, headers={k: v for k, v in right.headers.items() if k != name}) for name in right.headers),
        replace(right, headers={**right.headers, "webhook-signature": "v1,é"}),
        replace(right, headers={**right.headers, "webhook-timestamp": "nan"}),
        replace(right, headers={}),
        replace(right, body=b"\xff\xfe"),
        inbound(ANSWER, secret=OTHER),
        inbound(ANSWER, id_="x" * 1_000),
    ]
    for request in changed:
        with pytest.raises(Forged):
            await app.receive(setup(), request)


def changed(**data: Any) -> dict[str, Any]:
    return {"type": "consent.answer", "data": {k: v for k, v in {**ANSWER["data"], **data}.items() if v is not ...}}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"type": "consent.answer", "type": "consent.answer"}', "twice"),
        (b"[]", "must be an object"),
        ({"type": "else", "data": {}}, "/type"),
        ({"type": "consent.answer"}, "/data"),
        ({**ANSWER, "more": 1}, "/more: it is unknown"),
        (changed(approver="root"), "/data/approver: it is unknown"),
        (changed(decision="Approve"), "/data/decision"),
        (changed(decision=["approve"]), "/data/decision"),
        (changed(decision=...), "/data/decision"),
        (changed(secret=...), "/data/secret"),
        (changed(secret=None), "/data/secret"),
        (changed(secret=" "), "/data/secret"),
        (changed(token=7), "/data/token"),
        (changed(reason="x" * 2_001), "longer than 2,000"),
        (changed(decision="approve"), "/data/reason: an approval has no reason"),
    ],
)
async def test_an_answer_that_is_none_is_told_what_is_wrong(app: Channel, body: Any, words: str) -> None:
    """F35: an empty or null secret is none. Nothing is received of it."""
    got = await app.receive(setup(), inbound(body))
    assert got.answers == () and isinstance(got.http, HttpProblem)
    assert got.http.status == 400 and words in got.http.detail


async def test_nothing_comes_by_polling(app: Channel) -> None:
    assert (await app.receive(setup(), None)).answers == ()


async def test_a_slow_endpoint_does_not_hold_up_another(app: Channel) -> None:
    released = asyncio.Event()

    async def slow(received: Any, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        writer.write(reply())

    async with RecordingServer(answer=slow) as held, RecordingServer() as quick:
        waiting = asyncio.create_task(app.send(setup(held.url), message()))
        await app.send(setup(quick.url), message())
        assert not waiting.done()
        released.set()
        await waiting
