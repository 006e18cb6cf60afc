"""What Slack sends: requests whose signature is checked, and the clicks in them. Pure but for the signature's library.

Deliberately absent: whether whoever clicked may answer.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from slack_sdk.signature import Clock, SignatureVerifier

from folkmoot.channels.channel import Forged
from folkmoot.channels.http import NotJson, read_json
from folkmoot.channels.slack.blocks import APPROVE_ACTION, DECLINE_ACTION
from folkmoot.domain.channels import Answer, InboundRequest, ReceivedAnswer

_ANSWERS = {APPROVE_ACTION: Answer.APPROVE, DECLINE_ACTION: Answer.DECLINE}
_LONGEST_ID = 250


class _At(Clock):
    def __init__(self, now: datetime) -> None:
        self._now = now

    def now(self) -> float:
        return self._now.timestamp()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a click came from, and where its outcome is told."""

    response_url: str
    channel: str | None
    ts: str | None

    def as_text(self) -> str:
        return json.dumps([self.response_url, self.channel, self.ts])

    @staticmethod
    def of(text: str | None) -> Origin | None:
        return Origin(*json.loads(text)) if text else None


def verify(request: InboundRequest, signing_secret: str, *, now: datetime) -> None:
    """Raises Forged for a signature that is missing or wrong, and for one of more than 300 seconds ago or ahead."""
    try:
        is_valid = SignatureVerifier(signing_secret, _At(now)).is_valid_request(request.body, dict(request.headers))
    except (ValueError, TypeError):  # a timestamp that is no number, a body that is no text
        is_valid = False
    if not is_valid:
        raise Forged("The request is not signed by Slack with the channel's 'signingSecret', or not within 5 minutes.")


def payload_of(request: InboundRequest) -> dict[str, Any]:
    """The JSON of a request, which for clicks is in a form. Raises NotJson."""
    body = request.body
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        try:
            fields = parse_qs(body.decode(), max_num_fields=50)
        except ValueError as error:
            raise NotJson(str(error)) from None
        body = fields.get("payload", [""])[0].encode()
    found = read_json(body)
    if not isinstance(found, dict):
        raise NotJson("it is no object")
    return found


def clicks(payload: dict[str, Any]) -> tuple[ReceivedAnswer, ...]:
    """The clicks of our buttons by people; what bots do is nobody's answer (B71)."""
    if payload.get("type") != "block_actions":
        return ()
    user, sender = _part(payload, "user"), _sender(payload)
    if sender is None or user.get("is_bot") or payload.get("bot_id") or user.get("bot_id"):
        return ()
    actions = payload.get("actions")
    return tuple(
        _click(payload, action, sender)
        for action in (actions if isinstance(actions, list) else [])
        if isinstance(action, dict) and action.get("action_id") in _ANSWERS
    )


def _click(payload: dict[str, Any], action: dict[str, Any], sender: str) -> ReceivedAnswer:
    container = _part(payload, "container")
    token, _, about = (_text(action.get("value")) or "").partition(".")
    return ReceivedAnswer(
        inbound_id=_inbound_id(payload, action),
        token=token or None,
        secret=None,
        sender=sender,
        is_proven=True,
        answer=_ANSWERS[action["action_id"]],
        reply_to=Origin(
            response_url=_text(payload.get("response_url")) or "",
            channel=_text(container.get("channel_id")) or _text(_part(payload, "channel").get("id")),
            ts=_text(container.get("message_ts")) or _text(_part(payload, "message").get("ts")),
        ).as_text(),
        about=_id(about),
    )


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _sender(payload: dict[str, Any]) -> str | None:
    """`team:user`; the user's own team where they come from another one through a shared channel."""
    user = _part(payload, "user")
    team = _text(user.get("team_id")) or _text(_part(payload, "team").get("id"))
    id_ = _text(user.get("id"))
    return f"{team}:{id_}" if team and id_ else None


def _inbound_id(payload: dict[str, Any], action: dict[str, Any]) -> str:
    """The same for each time that Slack sends a click: its trigger's id, which is of this click alone; else what it is made of."""
    trigger = _text(payload.get("trigger_id"))
    if trigger and len(trigger) < _LONGEST_ID:
        return f"{trigger}:{action['action_id']}"[:_LONGEST_ID]
    parts = [payload.get("user"), payload.get("container"), action]
    return f"sha256:{hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()}"


def _part(payload: dict[str, Any], name: str) -> dict[str, Any]:
    found = payload.get(name)
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
