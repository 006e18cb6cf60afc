"""`webhook`: a program of somebody's is told, and answers; signed as Standard Webhooks has it, both ways.

Whoever has the signing secret is that program and no person, so an answer carries the request's secret, too. Redirects are not followed:
where a message goes is what the channel's definition says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.channels.channel import ChannelDown, ChannelRefused, ChannelWorld, SecretNames
from folkmoot.channels.http import NotJson, as_json, post_or_down, read_json
from folkmoot.channels.signing import signed_headers, verified_id
from folkmoot.domain.channels import (
    Answer,
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    HttpProblem,
    InboundRequest,
    OutgoingMessage,
    ReceivedAnswer,
    Reception,
)

SIGNING = "signing"
ANSWER_TYPE = "consent.answer"
_GONE = 410
_LONGEST = {"token": 200, "secret": 200, "reason": 2_000}


class WebhookChannel:
    app = "webhook"
    settings_schema: Mapping[str, Any] = {
        "type": "object",
        "required": ["url"],
        "additionalProperties": False,
        "properties": {
            "url": {"type": "string", "pattern": "^https?://[^\\s\\x00-\\x1f]+$", "maxLength": 2000},
        },
    }
    secret_names = SecretNames(required=frozenset({SIGNING}))
    polls = False

    def __init__(self, world: ChannelWorld) -> None:
        self._world = world

    async def send(self, setup: ChannelSetup, message: OutgoingMessage) -> Delivery:
        body = as_json({"type": message.kind, "timestamp": setup.now.isoformat(), "data": _data(message)})
        headers = signed_headers(
            setup.secrets[SIGNING], message_id=str(message.message_id), now=setup.now, body=body
        )  # fmt: skip
        reply = await post_or_down(
            self._world,
            setup.settings["url"],
            body,
            {"content-type": "application/json", **headers},
            who="The channel's endpoint",
        )
        if 200 <= reply.status < 300:
            return Delivery()
        if reply.status == _GONE:
            raise ChannelRefused("The channel's endpoint answered 410: it is gone.")
        if 300 <= reply.status < 400:
            raise ChannelRefused(
                f"The channel's endpoint answered {reply.status}, and redirects are not followed; give the last URL."
            )
        raise ChannelDown(f"The channel's endpoint answered {reply.status}.")

    async def receive(self, setup: ChannelSetup, request: InboundRequest | None) -> Reception:
        if request is None:
            return Reception()
        inbound_id = verified_id(setup.secrets[SIGNING], request)
        try:
            return Reception((_answer(read_json(request.body), inbound_id=inbound_id),))
        except NotJson as error:
            return Reception(http=HttpProblem(400, f"The body is no JSON that can be read: {error}."))
        except _Unfit as error:
            return Reception(http=HttpProblem(400, str(error)))

    async def tell(self, setup: ChannelSetup, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
        """The outcome is what the request is answered with."""

    async def taken(self, setup: ChannelSetup, received: tuple[ReceivedAnswer, ...]) -> None:
        """Nothing comes by polling."""


def make(world: ChannelWorld) -> WebhookChannel:
    return WebhookChannel(world)


def _data(message: OutgoingMessage) -> dict[str, Any]:
    """`replyParams` is the text that it was: it may be no JSON, and is nobody's to read but the receiver's."""
    secret = {"secret": message.secret} if message.secret is not None else {}
    return {
        **message.data,
        "runId": message.run_id,
        "token": message.token,
        "title": message.title,
        "text": message.text,
        "link": message.link,
        "replyParams": message.reply_params,
        **secret,
    }


class _Unfit(ValueError):
    """The answer cannot be taken; the message says where and what to do."""


def _answer(body: Any, *, inbound_id: str) -> ReceivedAnswer:
    _only(body, "", {"type", "timestamp", "data"})
    if body.get("type") != ANSWER_TYPE:
        raise _Unfit(f"/type: it must be '{ANSWER_TYPE}'.")
    data = body.get("data")
    _only(data, "/data", {"token", "secret", "decision", "reason"})
    decision = data.get("decision")
    if decision not in list(Answer):
        raise _Unfit("/data/decision: it must be 'approve' or 'decline'.")
    reason = _text(data, "reason") if data.get("reason") is not None else None
    if reason is not None and decision == Answer.APPROVE:
        raise _Unfit("/data/reason: an approval has no reason; leave it out, or decline.")
    return ReceivedAnswer(
        inbound_id=inbound_id,
        token=_text(data, "token"),
        secret=_text(data, "secret"),
        sender=None,
        is_proven=False,
        answer=Answer(decision),
        reason=reason,
    )


def _only(value: Any, pointer: str, names: set[str]) -> None:
    if not isinstance(value, dict):
        raise _Unfit(f"{pointer or 'The body'}: it must be an object.")
    for name in value:
        if name not in names:
            raise _Unfit(f"{pointer}/{name[:100]}: it is unknown; the names are {', '.join(sorted(names))}.")


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _Unfit(f"/data/{name}: it must be a text that is not blank.")
    if len(value) > _LONGEST[name]:
        raise _Unfit(f"/data/{name}: it is longer than {_LONGEST[name]:,} characters.")
    return value
