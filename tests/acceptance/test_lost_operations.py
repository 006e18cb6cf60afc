"""kill -9 of a worker inside a call of an external tool: what may be repeated is, with the same key; nothing else is (F04, F05)."""

from __future__ import annotations

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import crews
import panels
import pytest
from crews import until
from panels import Started
from processes import Hands, hands
from recording_server import Received, RecordingServer, reply

from folkmoot import settings
from folkmoot.bootstrap.outside import open_outside
from folkmoot.domain import items
from folkmoot.domain.calls import Tool
from folkmoot.domain.operations import Http, McpDescriptor, OperationTarget
from folkmoot.engine import decide
from folkmoot.engine.calls import UNKNOWN
from folkmoot.kernel.ids import NewId
from folkmoot.store.database import Database

ALLOWS = {"FOLKMOOT_ALLOW_ADDRESSES": "127.0.0.1"}
ANY: dict[str, Any] = {"type": "object"}


class Holding:
    """An MCP server that does what a call says at once, and answers none before `lets_go` is set. `keys`: of the calls of each tool."""

    def __init__(self) -> None:
        self.keys: list[tuple[str, str]] = []
        self.lets_go = asyncio.Event()

    async def answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        message = json.loads(received.body) if received.body else {}
        match message.get("method"):
            case "initialize":
                version, info = "2025-06-18", {"name": "holding", "version": "1"}
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
                writer.write(_said(message, result))
            case "tools/call":
                given = message["params"]
                self.keys.append((given["name"], given["_meta"]["folkmoot/idempotencyKey"]))
                await self.lets_go.wait()
                writer.write(_said(message, {"content": [{"type": "text", "text": "done"}]}))
            case None | "notifications/initialized":
                writer.write(reply(b"", status=202))
            case _:
                writer.write(reply(b"", status=400))
        await writer.drain()


def _said(message: dict[str, Any], result: dict[str, Any]) -> bytes:
    return reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


async def start(database: Database, new_id: NewId, url: str, *, name: str, is_idempotent: bool) -> Started:
    target = OperationTarget(new_id(), "examples/bench", new_id(), 1, Http(url), McpDescriptor(name, "", ANY))
    tool = Tool(name, "", ANY, is_idempotent=is_idempotent, target=target)
    script = {"rules": [{"when": {"call": 1}, "reply": {"calls": [{"name": name}]}}, *panels.TALK["rules"]]}
    return await panels.start(
        database, new_id, panels.interaction(new_id, script, names=("Ann",), tools={"Ann": (tool,)})
    )


async def killed_in_calls(crew: Hands, new_id: NewId) -> tuple[Counter[tuple[str, str]], list[items.ToolResult]]:
    """How often each call was sent, and the results of one that is not to be repeated and one that may be."""
    server = Holding()
    async with RecordingServer(server.answer) as listening:
        runs = [
            await start(crew.database, new_id, listening.url, name=name, is_idempotent=name == "note")
            for name in ("pay", "note")
        ]
        process = await crew.hire(ALLOW_ADDRESSES="127.0.0.1")
        await until(lambda: len(server.keys) == 2)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        server.lets_go.set()
        async with (
            open_outside(settings.read(ALLOWS)) as outside,
            crews.rescuers(crew.database, new_id, {}, outside),
        ):
            for run in runs:
                await until(lambda run=run: panels.has_ended(crew.database, run))  # type: ignore[misc]
    for run in runs:
        assert (await panels.row_of(crew.database, run))["status"] == "Completed"
    results = [each.item.body for run in runs for each in await panels.items_of(crew.database, run)]
    return Counter(server.keys), [body for body in results if isinstance(body, items.ToolResult)]


async def test_a_call_that_a_worker_died_in_is_repeated_only_where_it_may_be(
    database: Database, new_id: NewId, tmp_path: Path
) -> None:
    """F04: one entry at the server, and its outcome is unknown; F05: sent again with the same key."""
    async with hands(database, tmp_path) as crew:
        sent, (paid, noted) = await killed_in_calls(crew, new_id)
    assert sorted((name, count) for (name, _), count in sent.items()) == [("note", 2), ("pay", 1)]
    assert paid.is_error and paid.result == UNKNOWN
    assert not noted.is_error and noted.result == "done"


async def test_control_a_lost_call_that_is_taken_for_harmless_is_sent_twice(
    database: Database, new_id: NewId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of F04."""
    monkeypatch.setattr(decide, "_unknown", lambda *_: None)
    async with hands(database, tmp_path) as crew:
        sent, _ = await killed_in_calls(crew, new_id)
    assert list(sent.values()) == [2, 2]
