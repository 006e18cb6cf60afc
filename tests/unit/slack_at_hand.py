"""Slack on loopback, as its documents have it, and the clicks that it sends, signed by its own library."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from channels_at_hand import CHAT_ITEM_ID, TOKEN
from recording_server import Received, RecordingServer, reply
from slack_sdk.signature import SignatureVerifier

from folkmoot.domain.channels import InboundRequest

BOT, SIGNING = "xoxb-1-2-three", "8f742231b10e8888abcd99yyyzzz85a5"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LIMITS = {"header": 150, "section": 3_000, "button": 75}

VALUE = f"{TOKEN}.{CHAT_ITEM_ID}"


@dataclass
class Workspace:
    """Slack, as its documents have it: it knows its token and channels, refuses blocks beyond its limits, keeps what was posted. `held`: what is
    told of a click is not taken before this is set."""

    server: RecordingServer
    posted: dict[str, dict[str, Any]] = field(default_factory=dict)
    told: list[dict[str, Any]] = field(default_factory=list)
    next_replies: list[bytes] = field(default_factory=list)
    held: asyncio.Event | None = None

    async def answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        if self.next_replies:
            writer.write(self.next_replies.pop(0))
        elif received.target == "/clicked":
            if self.held is not None:
                await self.held.wait()
            self.told.append(json.loads(received.body))
            writer.write(reply(b"ok", content_type="text/plain"))
        else:
            writer.write(reply(json.dumps(self._called(received)).encode()))
        await writer.drain()

    def _called(self, received: Received) -> dict[str, Any]:
        if received.header("authorization") != f"Bearer {BOT}":
            return {"ok": False, "error": "invalid_auth"}
        if received.header("content-type") != "application/json; charset=utf-8":
            return {"ok": False, "error": "invalid_post_type"}
        arguments = json.loads(received.body)
        if arguments["channel"] not in ("C0123456", "U0OWNER", "D0DIRECT"):
            return {"ok": False, "error": "channel_not_found"}
        if any(not is_fit(block) for block in arguments["blocks"]):
            return {"ok": False, "error": "invalid_blocks"}
        channel = "D0DIRECT" if arguments["channel"].startswith("U") else arguments["channel"]
        if received.target == "/api/chat.update":
            if arguments["ts"] not in self.posted:
                return {"ok": False, "error": "message_not_found"}
            ts = arguments["ts"]
            self.posted[ts] = {**self.posted[ts], **arguments}
        else:
            ts = f"1700000000.{len(self.posted):06}"
            self.posted[ts] = arguments
        return {"ok": True, "channel": channel, "ts": ts}


def is_fit(block: dict[str, Any]) -> bool:
    if block["type"] == "actions":
        return all(len(e["text"]["text"]) <= LIMITS["button"] and len(e["value"]) <= 2_000 for e in block["elements"])
    return block["type"] == "context" or 0 < len(block["text"]["text"]) <= LIMITS[block["type"]]


def click(action: str = "folkmoot_approve", **changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "type": "block_actions",
        "user": {"id": "U0OWNER", "username": "ada", "name": "ada", "team_id": "T0TEAM"},
        "api_app_id": "A0APP",
        "team": {"id": "T0TEAM", "domain": "example"},
        "container": {"type": "message", "message_ts": "1700000000.000000", "channel_id": "C0123456"},
        "trigger_id": "12466734323.1395872398.e0f9",
        "channel": {"id": "C0123456", "name": "approvals"},
        "response_url": "https://hooks.slack.example/actions/T0TEAM/1/2",
        "actions": [
            {"action_id": action, "block_id": "b", "type": "button", "value": VALUE, "action_ts": "1700000001.0"}
        ],
    }
    return {**parts, **changes}


def signed(
    body: bytes, *, at: datetime = NOW, secret: str = SIGNING, content_type: str = "application/x-www-form-urlencoded"
) -> InboundRequest:
    timestamp = str(int(at.timestamp()))
    signature = SignatureVerifier(secret).generate_signature(timestamp=timestamp, body=body)
    assert signature is not None
    headers = {
        "content-type": content_type,
        "x-slack-request-timestamp": timestamp,
        "x-slack-signature": signature,
    }
    return InboundRequest(headers, body)


def clicked(payload: dict[str, Any], **more: Any) -> InboundRequest:
    return signed(urlencode({"payload": json.dumps(payload)}).encode(), **more)
