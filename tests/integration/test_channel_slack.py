"""The Slack app, against a server that checks what Slack checks (F36, F37, B16, B71)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import pytest_asyncio
from channels_at_hand import CHAT_ITEM_ID, MESSAGE_ID, TOKEN, message, setup_of, world
from recording_server import Received, RecordingServer, reply
from slack_at_hand import BOT, NOW, SIGNING, VALUE, Workspace, click, clicked, signed

from folkmoot.channels.channel import Channel, ChannelDown, ChannelRefused, Forged
from folkmoot.channels.slack.app import make
from folkmoot.channels.slack.blocks import MOST_SECTION, fenced
from folkmoot.domain.channels import (
    Answer,
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    MessageKind,
    OutcomeKind,
)


@pytest_asyncio.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with RecordingServer() as server:
        made = Workspace(server)
        server.answer = made.answer
        yield made


@pytest_asyncio.fixture
async def app(workspace: Workspace) -> AsyncIterator[Channel]:
    async with world(slack_api_url=f"{workspace.server.url}/api/") as given:
        yield make(given)


def setup(channel: str | None = "C0123456", *, now: datetime = NOW, bot: str = BOT) -> ChannelSetup:
    settings = {"channel": channel} if channel else {}
    return setup_of(settings, {"botToken": bot, "signingSecret": SIGNING}, now=now)


def kinds(posted: dict[str, Any]) -> list[str]:
    return [block["type"] for block in posted["blocks"]]


# sending


async def test_a_request_has_two_buttons_that_carry_the_token_and_which_request_it_is(
    app: Channel, workspace: Workspace
) -> None:
    delivery = await app.send(setup(), message())
    ((ts, posted),) = workspace.posted.items()
    assert delivery == Delivery(f"C0123456:{ts}")
    assert kinds(posted) == ["header", "section", "context", "actions"]
    approve, decline = posted["blocks"][-1]["elements"]
    assert (approve["style"], approve["value"], "confirm" in approve) == ("primary", VALUE, False)
    assert (decline["style"], decline["value"], decline["confirm"]["style"]) == ("danger", VALUE, "danger")
    assert "abcdefgh234567ab" not in json.dumps(posted)  # the secret: who clicks is proven
    assert posted["metadata"]["event_payload"] == {"message_id": str(MESSAGE_ID)}


async def test_without_a_channel_of_its_own_it_goes_to_the_owner(app: Channel, workspace: Workspace) -> None:
    """An address is `team:user`; what is posted to a user is in a conversation with them, and changed there."""
    delivery = await app.send(setup(None), message(to="T0TEAM:U0OWNER"))
    ((ts, posted),) = workspace.posted.items()
    assert posted["channel"] == "U0OWNER" and delivery.reference == f"D0DIRECT:{ts}"
    with pytest.raises(ChannelRefused, match="'channel'"):
        await app.send(setup(None), message(to=None))


@pytest.mark.parametrize("kind", [MessageKind.CONSENT_DECIDED, MessageKind.CONSENT_EXPIRED])
async def test_a_decision_takes_the_buttons_away(app: Channel, workspace: Workspace, kind: MessageKind) -> None:
    reference = (await app.send(setup(), message())).reference
    decided = message(kind, title="Approved by Ada", request_reference=reference)
    assert (await app.send(setup(), decided)).reference == reference
    ((_, posted),) = workspace.posted.items()
    assert "actions" not in kinds(posted) and posted["text"] == "Approved by Ada"


async def test_an_end_is_told_in_the_requests_thread(app: Channel, workspace: Workspace) -> None:
    reference = (await app.send(setup(), message())).reference
    await app.send(setup(), message(MessageKind.RUN_ENDED, request_reference=reference))
    request, end = workspace.posted.items()
    assert end[1]["thread_ts"] == request[0] and "actions" in kinds(request[1])


async def test_what_a_model_wrote_is_inert(app: Channel, workspace: Workspace) -> None:
    """No mention, no link, no format, no way out of the block; and the cut is told."""
    hostile = "<!channel> <https://evil.example|click> & *rm* ```\n<@U0OWNER> ```` _x_"
    await app.send(setup(), message(title="<!here> now\r\nplease", text=hostile))
    await app.send(setup(), message(text="&<>`" * 5_000))
    first, second = workspace.posted.values()
    section = first["blocks"][1]["text"]
    inside = section["text"].removeprefix("```\n").removesuffix("\n```")
    assert "```" not in inside and "<" not in inside and section["verbatim"] is True
    assert inside.startswith("&lt;!channel&gt; &lt;https://evil.example|click&gt; &amp; *rm* ")
    assert first["text"] == "&lt;!here&gt; now please"
    cut = second["blocks"][1]["text"]["text"]
    assert len(cut) <= MOST_SECTION and "_Cut: 20,000 characters in all" in cut


def test_a_cut_never_breaks_an_escape() -> None:
    for text in ("&" * 3_000, "a" + "<" * 3_000, "ab" + "&>" * 3_000):
        body = fenced(text).rpartition("\n```")[0]
        assert len(fenced(text)) <= MOST_SECTION
        assert body.endswith(("&amp;", "&lt;", "&gt;"))
    assert fenced("a" * 2_992).count("a") == 2_992  # the control: what fits is whole


@pytest.mark.parametrize(
    ("answered", "error", "seconds"),
    [
        (reply(b"", status=429, headers=("Retry-After: 30",)), ChannelDown, 30.0),
        (reply(b"", status=429, headers=("Retry-After: soon",)), ChannelDown, None),
        (reply(b'{"ok":false,"error":"ratelimited"}'), ChannelDown, None),
        (reply(b'{"ok":false,"error":"internal_error"}'), ChannelDown, None),
        (reply(b"<html>", status=503), ChannelDown, None),
        (reply(b"<html>"), ChannelDown, None),
        (reply(b"[]"), ChannelDown, None),
        (b"", ChannelDown, None),
        (reply(b'{"ok":false,"error":"account_inactive"}'), ChannelRefused, None),
        (reply(b'{"ok":false}'), ChannelRefused, None),
        (reply(b"", status=302, headers=("Location: http://127.0.0.1:9/",)), ChannelRefused, None),
    ],
)
async def test_what_may_pass_is_tried_again_and_no_more_than_that(
    app: Channel, workspace: Workspace, answered: bytes, error: type[Exception], seconds: float | None
) -> None:
    if answered:
        workspace.server.answer = _saying_once(workspace, answered)
    else:
        workspace.server.answer = _hanging_up
    with pytest.raises(error) as caught:
        await app.send(setup(), message())
    assert getattr(caught.value, "retry_after_seconds", None) == seconds
    workspace.server.answer = workspace.answer
    assert (await app.send(setup(), message())).reference  # it is up again


def _saying_once(workspace: Workspace, data: bytes) -> Any:
    workspace.next_replies.append(data)
    return workspace.answer


async def _hanging_up(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_a_token_or_channel_that_is_wrong_is_refused_by_name(app: Channel) -> None:
    with pytest.raises(ChannelRefused, match="invalid_auth"):
        await app.send(setup(bot="xoxb-other"), message())
    with pytest.raises(ChannelRefused, match="channel_not_found"):
        await app.send(setup("C9999999"), message())
    with pytest.raises(ChannelRefused, match="botToken"):
        await app.send(setup(bot="a\r\nHost: b"), message())
    with pytest.raises(ChannelRefused, match="message_not_found"):
        await app.send(setup(), message(MessageKind.CONSENT_DECIDED, request_reference="C0123456:1.1"))


async def test_slack_is_reached_through_the_guard_alone(workspace: Workspace) -> None:
    async with world(allow=(), slack_api_url=f"{workspace.server.url}/api/") as closed:
        with pytest.raises(ChannelDown, match="FOLKMOOT_ALLOW_ADDRESSES"):
            await make(closed).send(setup(), message())
    assert workspace.server.connections == 0


# receiving


@pytest.mark.parametrize(
    ("action", "answer"), [("folkmoot_approve", Answer.APPROVE), ("folkmoot_decline", Answer.DECLINE)]
)
async def test_a_click_is_an_answer_of_a_proven_sender(app: Channel, action: str, answer: Answer) -> None:
    got = await app.receive(setup(), clicked(click(action)))
    (received,) = got.answers
    assert (received.answer, received.token, received.secret, received.about) == (answer, TOKEN, None, CHAT_ITEM_ID)
    assert (received.sender, received.is_proven) == ("T0TEAM:U0OWNER", True)
    assert got.http is not None and (got.http.status, got.http.body) == (200, b"")


async def test_somebody_of_another_workspace_is_not_taken_for_one_of_this(app: Channel) -> None:
    """F37: in a channel that two workspaces share, a user's own team counts."""
    payload = click(user={"id": "U0OWNER", "team_id": "T0OTHER"})
    assert (await app.receive(setup(), clicked(payload))).answers[0].sender == "T0OTHER:U0OWNER"


async def test_a_click_that_slack_sends_again_has_the_same_id(app: Channel) -> None:
    """F36, B71: with or without a trigger; the controls are other clicks."""
    for payload, other in (
        (click(), click(trigger_id="another")),
        (click(trigger_id=None), click("folkmoot_decline", trigger_id=None)),
    ):
        first = await app.receive(setup(), clicked(payload))
        request = clicked(payload, at=NOW + timedelta(seconds=20))
        again = await app.receive(
            setup(now=NOW + timedelta(seconds=21)),
            replace(
                request,
                headers={**request.headers, "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout"},
            ),
        )
        assert again.answers == first.answers
        assert (await app.receive(setup(), clicked(other))).answers[0].inbound_id != first.answers[0].inbound_id


@pytest.mark.parametrize("seconds", [-301, 301])
async def test_a_request_of_another_time_is_forged(app: Channel, seconds: int) -> None:
    """F36: the controls are 299 seconds away."""
    with pytest.raises(Forged):
        await app.receive(setup(), clicked(click(), at=NOW + timedelta(seconds=seconds)))
    within = NOW + timedelta(seconds=299 if seconds > 0 else -299)
    assert (await app.receive(setup(), clicked(click(), at=within))).answers


async def test_what_was_altered_or_is_not_slacks_is_forged(app: Channel) -> None:
    """F36."""
    right = clicked(click())
    names = ("x-slack-request-timestamp", "x-slack-signature")
    for request in (
        replace(right, body=right.body.replace(b"approve", b"decline")),
        clicked(click(), secret="another"),
        replace(right, body=b"\xff"),
        replace(right, headers={}),
        *(replace(right, headers={k: v for k, v in right.headers.items() if k != name}) for name in names),
        *(replace(right, headers={**right.headers, name: "é"}) for name in names),
    ):
        with pytest.raises(Forged):
            await app.receive(setup(), request)


async def test_the_address_is_verified_with_a_signature_too(app: Channel) -> None:
    body = json.dumps({"type": "url_verification", "token": "x", "challenge": "3eZbrw1a"}).encode()
    got = await app.receive(setup(), signed(body, content_type="application/json"))
    assert got.answers == () and got.http is not None and json.loads(got.http.body) == {"challenge": "3eZbrw1a"}
    with pytest.raises(Forged):
        await app.receive(setup(), signed(body, content_type="application/json", secret="another"))


@pytest.mark.parametrize(
    "payload",
    [
        click(user={"id": "B0BOT", "team_id": "T0TEAM", "is_bot": True}),
        click(bot_id="B0BOT"),
        click(user={}),
        click(user=None, team=None),
        click("somebody_elses"),
        click(actions=None),
        click(actions=["folkmoot_approve"]),
        {"type": "event_callback", "event_id": "Ev1", "event": {"type": "message", "bot_id": "B1", "text": "approve"}},
        {"type": "view_submission"},
        {},
    ],
)
async def test_what_is_no_persons_click_is_nothing(app: Channel, payload: dict[str, Any]) -> None:
    """B71: bots included."""
    got = await app.receive(setup(), clicked(payload))
    assert got.answers == () and got.http is not None and got.http.status == 200


@pytest.mark.parametrize("body", [b"payload=%7B", b"payload=[]", b"", b"payload=" + b"[" * 50_000])
async def test_a_payload_that_is_no_json_is_told_so(app: Channel, body: bytes) -> None:
    got = await app.receive(setup(), signed(body))
    assert got.answers == () and got.http is not None and got.http.status == 400


async def test_a_clicks_outcome_is_told_to_who_clicked_alone(app: Channel, workspace: Workspace) -> None:
    """B16."""
    payload = click(response_url=f"{workspace.server.url}/clicked")
    (received,) = (await app.receive(setup(), clicked(payload))).answers
    words = "It was declined already, by <Ada> & co."
    await app.tell(setup(), received, AnswerOutcome(OutcomeKind.ALREADY_DECIDED, words))
    assert workspace.told == [
        {
            "response_type": "ephemeral",
            "replace_original": False,
            "text": "It was declined already, by &lt;Ada&gt; &amp; co.",
        }
    ]
    assert workspace.server.received[-1].header("authorization") is None  # the bot's token goes to the API alone
    workspace.next_replies.append(reply(b"no", status=404))
    with pytest.raises(ChannelRefused, match="404"):
        await app.tell(setup(), received, AnswerOutcome(OutcomeKind.DONE, "Done."))
