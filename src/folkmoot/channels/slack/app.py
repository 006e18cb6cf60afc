"""`slack`: the app. Its requests are made by the operator's `post` and not by the library's own client, which follows redirects, reads
without bound, and connects to wherever a name leads; the shapes of messages and the check of signatures are the library's.

Slack has no documented key by which it would know a message that is posted again (`client_msg_id` is of its own clients), so a message
whose answer was lost is posted at least once; its metadata hold the message's id. Buttons of both work, and one answer counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.channels.channel import ChannelDown, ChannelRefused, ChannelWorld, HttpReply, SecretNames
from folkmoot.channels.http import NotJson, as_json, post_or_down, read_json
from folkmoot.channels.slack.blocks import escaped, header_text, notice_blocks, request_blocks
from folkmoot.channels.slack.payloads import Origin, clicks, payload_of, verify
from folkmoot.domain.channels import (
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    HttpAnswer,
    HttpProblem,
    InboundRequest,
    MessageKind,
    OutgoingMessage,
    ReceivedAnswer,
    Reception,
)

BOT_TOKEN, SIGNING_SECRET = "botToken", "signingSecret"
_JSON = "application/json; charset=utf-8"
_CHANGES = frozenset({MessageKind.CONSENT_DECIDED, MessageKind.CONSENT_EXPIRED})
# what may go away by itself; all other errors are about the token, the channel or the message
_PASSING = frozenset(
    [
        "ratelimited",
        "rate_limited",
        "message_limit_exceeded",
        "internal_error",
        "fatal_error",
        "service_unavailable",
        "request_timeout",
        "team_added_to_org",
    ]
)
_TOO_MANY = 429
_LONGEST_WAIT_SECONDS = 3_600.0


class SlackChannel:
    app = "slack"
    settings_schema: Mapping[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"channel": {"type": "string", "pattern": "^[CDGUW][A-Z0-9]{2,30}$"}},
    }
    secret_names = SecretNames(required=frozenset({BOT_TOKEN, SIGNING_SECRET}))
    polls = False

    def __init__(self, world: ChannelWorld) -> None:
        self._world = world

    async def send(self, setup: ChannelSetup, message: OutgoingMessage) -> Delivery:
        request = _place(message.request_reference)
        if message.kind in _CHANGES and request is not None:
            arguments = {"channel": request[0], "ts": request[1], **_content(message)}
            await self._call(setup, "chat.update", arguments)
            return Delivery(message.request_reference)
        posted = await self._call(setup, "chat.postMessage", _posted(setup, message, request))
        channel, ts = posted.get("channel"), posted.get("ts")
        return Delivery(f"{channel}:{ts}" if isinstance(channel, str) and isinstance(ts, str) else None)

    async def receive(self, setup: ChannelSetup, request: InboundRequest | None) -> Reception:
        if request is None:
            return Reception()
        verify(request, setup.secrets[SIGNING_SECRET], now=setup.now)
        try:
            payload = payload_of(request)
        except NotJson as error:
            return Reception(http=HttpProblem(400, f"The payload is no JSON that can be read: {error}."))
        if payload.get("type") == "url_verification" and isinstance(payload.get("challenge"), str):
            return Reception(http=HttpAnswer(200, as_json({"challenge": payload["challenge"]})))
        return Reception(clicks(payload), http=HttpAnswer(200))

    async def tell(self, setup: ChannelSetup, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
        """Words that only whoever clicked sees, through the address that came with the click."""
        origin = Origin.of(received.reply_to)
        if origin is None or not origin.response_url:
            return
        words = {"response_type": "ephemeral", "replace_original": False, "text": escaped(outcome.words)}
        reply = await post_or_down(
            self._world, origin.response_url, as_json(words), {"content-type": _JSON}, who="Slack"
        )  # fmt: skip
        if not 200 <= reply.status < 300:
            _raise_for_status(reply)
            raise ChannelRefused(f"Slack answered {reply.status} to the outcome of a click.")

    async def taken(self, setup: ChannelSetup, received: tuple[ReceivedAnswer, ...]) -> None:
        """Nothing comes by polling."""

    async def _call(self, setup: ChannelSetup, method: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ChannelDown and ChannelRefused."""
        headers = {"content-type": _JSON, "authorization": f"Bearer {_token(setup)}"}
        url = f"{self._world.slack_api_url.rstrip('/')}/{method}"
        reply = await post_or_down(self._world, url, as_json(arguments), headers, who="Slack")
        _raise_for_status(reply)
        try:
            answered = read_json(reply.body)
        except NotJson:
            answered = None
        if not isinstance(answered, dict):
            raise ChannelDown(f"Slack answered {method} with {reply.status} and no JSON.")
        if answered.get("ok") is not True:
            error = str(answered.get("error"))[:100]
            kind = ChannelDown if error in _PASSING else ChannelRefused
            raise kind(f"Slack refused {method}: {error}.")
        return answered


def make(world: ChannelWorld) -> SlackChannel:
    return SlackChannel(world)


def _posted(setup: ChannelSetup, message: OutgoingMessage, request: tuple[str, str] | None) -> dict[str, Any]:
    """A new message; one about an earlier request stands in its thread."""
    metadata = {"event_type": "folkmoot_message", "event_payload": {"message_id": str(message.message_id)}}
    about = {"channel": request[0], "thread_ts": request[1]} if request else {"channel": _channel(setup, message)}
    return {**about, **_content(message), "metadata": metadata, "unfurl_links": False, "unfurl_media": False}


def _content(message: OutgoingMessage) -> dict[str, Any]:
    """`text` is what notifications and screen readers show."""
    is_request = message.kind is MessageKind.CONSENT_REQUESTED
    return {
        "text": escaped(header_text(message.title)),
        "blocks": request_blocks(message) if is_request else notice_blocks(message),
        "parse": "none",
    }


def _channel(setup: ChannelSetup, message: OutgoingMessage) -> str:
    """Where the channel's definition says, else the owner themselves, of whose address (`team:user`) the user is needed."""
    channel = setup.settings.get("channel") or (message.to or "").rpartition(":")[2]
    if not channel:
        raise ChannelRefused(
            "The channel has no setting 'channel', and the run's owner no address in 'slack'; give one of them."
        )
    return str(channel)


def _place(reference: str | None) -> tuple[str, str] | None:
    channel, _, ts = (reference or "").partition(":")
    return (channel, ts) if channel and ts else None


def _token(setup: ChannelSetup) -> str:
    token = setup.secrets[BOT_TOKEN].strip()
    if not token.isascii() or not token.isprintable() or not token:
        raise ChannelRefused(f"The secret '{BOT_TOKEN}' is no token of a Slack bot; it begins with 'xoxb-'.")
    return token


def _raise_for_status(reply: HttpReply) -> None:
    if reply.status == _TOO_MANY:
        raise ChannelDown("Slack asks to wait (429).", retry_after_seconds=_seconds(reply.headers.get("retry-after")))
    if reply.status >= 500:
        raise ChannelDown(f"Slack answered {reply.status}.")
    if 300 <= reply.status < 400:
        raise ChannelRefused(f"Slack answered {reply.status}, and redirects are not followed.")


def _seconds(text: str | None) -> float | None:
    return min(float(text), _LONGEST_WAIT_SECONDS) if text is not None and text.isascii() and text.isdigit() else None
