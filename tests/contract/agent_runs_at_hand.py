"""Agents published over HTTP with scripted models and functions that note what they do, and their runs as a client sees them.

Deliberately absent: anything of ours below the API.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from api_at_hand import NAMESPACE, EventReader, SentEvent, put

AGENT_RUNS = "/agent-runs"
AGENTS = f"/namespaces/{NAMESPACE}/agents/by-name"


async def publish_agent(
    client: httpx2.AsyncClient, folder: Path, script: Mapping[str, Any], name: str = "clerk", **changes: Any
) -> str:
    """An agent whose runs may call the functions of `Deeds`; its id."""
    path = folder / f"{secrets.token_hex(8)}.script.yaml"
    path.write_text(json.dumps(script))
    model = {"provider": "scripted", "modelName": "script", "path": str(path)}
    await put(client, f"/namespaces/{NAMESPACE}/ai-models/by-name/of-{name}", model)
    functions = ["look", "add", "tell", "pay"]
    version = {"model": f"of-{name}", "functionTools": functions, "toolWhitelist": functions, **changes}
    return str((await put(client, f"{AGENTS}/{name}", version))["id"])


async def start_agent_run(client: httpx2.AsyncClient, agent_id: str, **body: Any) -> Any:
    """The new run."""
    answer = await client.post(f"/agents/by-id/{agent_id}/runs", json={"goal": "Tell Bo the sum.", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()


@asynccontextmanager
async def watching_agent_run(
    client: httpx2.AsyncClient, id_: int, *, after: int | None = None
) -> AsyncIterator[EventReader]:
    """A run's stream, from the item after `after` on. Waits as long as it takes: the test's own limit ends it."""
    headers = {"Last-Event-ID": str(after)} if after is not None else {}
    async with client.stream("GET", f"{AGENT_RUNS}/{id_}/events", headers=headers, timeout=None) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield EventReader(answer)


async def until_asked(events: EventReader) -> Any:
    """The chat item that the run waits about, as soon as its stream shows one that nobody has answered."""
    async for event in events:
        if event.name == "approval" and event.data["waitsFor"] is not None:
            item = event.data["waitsFor"]
            if item["consent"]["status"] == "pending":
                return item
        assert event.name != "end", event
    raise AssertionError("the stream ended, and nothing was asked")


async def rest_of(events: EventReader) -> list[SentEvent]:
    return [event async for event in events]


def consent_to(item: Any, decision: str = "approve", **more: Any) -> dict[str, Any]:
    """The body that answers a chat item."""
    return {
        "chatItemId": item["id"],
        "argumentsHash": item["consent"]["call"]["argumentsHash"],
        "decision": decision,
        **more,
    }
