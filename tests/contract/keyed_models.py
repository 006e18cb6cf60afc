"""Models behind keys: a server on loopback that speaks OpenAI's chat protocol and decides by the key that it is sent, and a house with it.

Every call is kept in order, with its key and time. Deliberately absent: anything that stands in for a part of ours.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import panels
from api_at_hand import NAMESPACE, PANEL, RUNS, Served, put, served, start_run
from crews import until
from panels import Started
from recording_server import Received, RecordingServer, reply

Json = Any

MODEL = "big"
BODY = {"id": "1", "object": "chat.completion", "created": 1, "model": MODEL}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}


def problem(status: int, message: str, code: str | None = None, retry_after: str | None = None) -> bytes:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    headers = (f"Retry-After: {retry_after}",) if retry_after is not None else ()
    return reply(json.dumps(body).encode(), status=status, headers=headers)


FINE = reply(
    json.dumps(
        {
            **BODY,
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Well."}, "finish_reason": "stop"}],
            "usage": USAGE,
        }
    ).encode()
)
PLAYS: dict[str, bytes] = {
    "fine": FINE,
    "refused": problem(401, "Incorrect API key provided.", "invalid_api_key"),
    "forbidden": problem(403, "Your key may not use this model."),
    "limited": problem(429, "Rate limit reached.", "rate_limit_exceeded", "120"),
    "limited-untold": problem(429, "Rate limit reached.", "rate_limit_exceeded"),
    "limited-shortly": problem(429, "Rate limit reached.", "rate_limit_exceeded", "1"),
    "quota": problem(429, "You exceeded your current quota.", "insufficient_quota"),
    "overloaded": problem(529, "The engine is currently overloaded."),
    "missing": problem(404, "The model does not exist.", "model_not_found"),
    "invalid": problem(400, "Unknown parameter."),
    "broken": problem(500, "Something broke."),
}


@dataclass(frozen=True, slots=True)
class Call:
    """`key` '': none was sent. `model`: as it was asked for."""

    at: float
    key: str
    model: str
    path: str


@dataclass
class KeyedModels:
    """`plays`: what is done for a key, by its value; else `fine`. `gate`: while it is not set, nobody is answered."""

    plays: dict[str, str] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""

    async def answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        key = (received.header("authorization") or "").removeprefix("Bearer ")
        model = json.loads(received.body)["model"]
        self.calls.append(Call(time.monotonic(), key, model, received.target))
        await self.gate.wait()
        writer.write(PLAYS["missing" if model == "unknown" else self.plays.get(key, "fine")])
        await writer.drain()

    @property
    def keys(self) -> list[str]:
        return [call.key for call in self.calls]

    def counts(self) -> Counter[str]:
        return Counter(self.keys)


@asynccontextmanager
async def keyed_models() -> AsyncIterator[KeyedModels]:
    made = KeyedModels()
    made.gate.set()
    async with RecordingServer(made.answer) as server:
        made.url = f"{server.url}/v1"
        yield made


@dataclass
class Bank:
    """An installation at work whose panel's model is behind keys."""

    server: Served
    models: KeyedModels

    async def secret(self, name: str, value: str | None = None) -> str:
        """The id of a secret; its value is its name, unless another is given."""
        path = f"/namespaces/{NAMESPACE}/secrets/by-name/{name}"
        return str((await put(self.server.client, path, {"value": value or name}))["id"])

    async def key(self, name: str, *, priority: int = 0, play: str = "fine", **more: Any) -> str:
        """The id of a model key of the tenant, whose secret's value is its name."""
        self.models.plays[name] = play
        await self.secret(name)
        body = {"name": name, "priority": priority, **self.entry(f"{NAMESPACE}/{name}"), **more}
        answer = await self.server.client.post("/model-keys", json=body)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    def entry(self, secret: str | None, field_name: str = "credential") -> dict[str, Json]:
        """What names a key for the panel's server."""
        named = {field_name: secret} if secret is not None else {}
        return {"provider": "openai-compatible", "baseUrl": self.models.url, **named}

    async def stack(self, name: str, entries: Mapping[str, str], *, rules: Any = (), **more: Any) -> str:
        """The id of a stack: names and plays, by priority in this order."""
        made = []
        for priority, (secret, play) in enumerate(entries.items()):
            self.models.plays[secret] = play
            await self.secret(secret)
            made.append({"name": secret, "priority": priority, **self.entry(secret), **more})
        body = {"entries": made, "rules": list(rules)}
        path = f"/namespaces/{NAMESPACE}/credential-stacks/by-name/{name}"
        return str((await put(self.server.client, path, body))["id"])

    async def panel(self, *, variable: str | None = None, model: str = MODEL, seats: int = 1, **changes: Any) -> None:
        """A panel of one round; its model is at the server, and needs a key where a variable is named."""
        base = f"/namespaces/{NAMESPACE}"
        body = {
            "provider": "openai-compatible",
            "modelName": model,
            "baseUrl": self.models.url,
            "apiKeyVariable": variable,
        }
        await put(self.server.client, f"{base}/ai-models/by-name/small", body)
        await put(self.server.client, f"{base}/agents/by-name/optimist", {"model": "small"})
        names = ("Ann", "Ben", "Cid")[:seats]
        version = {
            "agents": [{"agent": "optimist", "name": name} for name in names],
            "prompt": "Go on.",
            "maximumRounds": 1,
            "humanSettings": {"chatMode": "Observing"},
            **changes,
        }
        await put(self.server.client, PANEL, version)

    async def start(self, **body: Any) -> Started:
        run = await start_run(self.server.client, body)
        return Started(UUID(run["tenantId"]), UUID(run["id"]))

    async def ended(self, started: Started) -> Json:
        """The run as the API shows it, once it has ended."""
        await until(lambda: panels.has_ended(self.server.installation.database, started))
        return (await self.server.client.get(f"{RUNS}/by-id/{started.run_id}")).json()

    async def run(self, **body: Any) -> Json:
        return await self.ended(await self.start(**body))


@asynccontextmanager
async def bank(dsn: str, folder: Path, *, works: bool = True, **more: str) -> AsyncIterator[Bank]:
    """With a worker beside the API."""
    settings = {"FOLKMOOT_POLL_SECONDS": "0.2", "FOLKMOOT_SWEEP_SECONDS": "0.3", **more}
    async with keyed_models() as models, served(dsn, data_dir=folder, more=settings, works=works) as server:
        yield Bank(server, models)


# Where a worker dies while it goes from key to key, and the how manieth time it gets there.
CRASHES = (("after_key_rests", 1), ("after_model_call", 1))
