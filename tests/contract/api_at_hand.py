"""A real server on a loopback port over a database of the test's, a client with a key, and what tests publish on it.

Deliberately absent: anything that stands in for a part of ours.
"""

from __future__ import annotations

import asyncio
import functools
import json
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from folkmoot import settings
from folkmoot.api.app import make_app
from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap import serving, working
from folkmoot.bootstrap.installation import Installation
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import id_source
from folkmoot.llm.registry import Models
from folkmoot.store import tenancy
from folkmoot.store.database import Database, Notifier
from folkmoot.tools.functions import FunctionTools
from folkmoot.vault.keys import key_of
from folkmoot.vault.sealing import Vault

NAMESPACE = "examples"
PANEL = f"/namespaces/{NAMESPACE}/interactions/by-name/panel"
RUNS = "/interactions/processes"
QUIET = {"rules": [{"reply": {"text": "Well."}}]}
NEW_ID = id_source(lambda: time.time_ns() // 1_000_000, secrets.randbits)
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nothing here is asked over TLS; a client's own context costs 40 ms


@functools.cache
def document() -> dict[str, Any]:
    """The OpenAPI document, made once: it takes two seconds."""
    return make_app().openapi()


@functools.cache
def _no_functions() -> FunctionTools:
    """Those that are found by entry point: none. Looking takes a while, and finds the same."""
    return installations.find_functions(())


@dataclass(frozen=True)
class Served:
    """`client` bears `key`, the owner's of the tenant `default`."""

    url: str
    key: str
    client: httpx2.AsyncClient
    installation: Installation

    def of(self, key: str | None) -> httpx2.AsyncClient:
        """A client with another key, or with none. To be closed by whoever asks."""
        return _client(self.url, key)


def _client(url: str, key: str | None) -> httpx2.AsyncClient:
    headers = {"Authorization": f"Bearer {key}"} if key is not None else {}
    limits = httpx2.Limits(max_connections=200, max_keepalive_connections=20)
    return httpx2.AsyncClient(base_url=url, headers=headers, timeout=30, limits=limits, trust_env=False, verify=NO_TLS)


VAULT = Vault((key_of(bytes(range(32))),), random_bytes=secrets.token_bytes)


@asynccontextmanager
async def served(
    dsn: str, *, data_dir: Path, key: str | None = None, connections: int = 8, works: bool = False, allows: str = "",
    more: Mapping[str, str] | None = None, model: Any = None,
    functions: FunctionTools | None = None,
) -> AsyncIterator[Served]:  # fmt: skip
    """The API listening; with `works` a worker beside it. `key`: of a tenant that is there; without one it is made.

    `allows`: what connectors may reach inside. `more`: further settings. `model`: asked in place of the installation's. `functions`: those of the operator's.
    """
    found = settings.read(
        {
            "FOLKMOOT_DATABASE_URL": dsn,
            "FOLKMOOT_DATA_DIR": str(data_dir),
            "FOLKMOOT_POLL_SECONDS": "0.5",
            "FOLKMOOT_ALLOW_ADDRESSES": allows,
            **(more or {}),
        }
    )
    database = await Database.open(dsn, connections=connections)
    models = model or Models(data_dir=data_dir)
    installation = Installation(
        found, data_dir, database, Notifier(database), models, functions or _no_functions(), NEW_ID
    )
    installation.vault = VAULT
    try:
        if key is None:
            await installations.make_default_tenant(installation)
            key = installation.new_key
        assert key is not None
        async with AsyncExitStack() as stack:
            app = await stack.enter_async_context(serving.open_api(installation))
            app.openapi = document  # type: ignore[method-assign]
            url = await stack.enter_async_context(_running(serving.make_server(app)))
            client = await stack.enter_async_context(_client(url, key))
            if works:
                await stack.enter_async_context(working_beside(installation))
            yield Served(url, key, client, installation)
    finally:
        await installation.notifier.close()
        await models.close()
        await database.close()


@asynccontextmanager
async def _running(server: Any) -> AsyncIterator[str]:
    listening = serving.listening_socket("127.0.0.1", 0)
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True  # streams that a test has left open are not waited for
        await task
        listening.close()


@asynccontextmanager
async def working_beside(installation: Installation) -> AsyncIterator[None]:
    async with working.open_worker(installation) as worker:
        task = asyncio.create_task(worker.run())
        try:
            yield
        finally:
            worker.drain()
            await task


async def publish_panel(
    client: httpx2.AsyncClient, folder: Path, script: Mapping[str, Any] = QUIET, **changes: Any
) -> Any:
    """A scripted model, an agent and the interaction `panel` of Ann and Ben, one round; `changes` are fields of its version."""
    path = folder / f"{secrets.token_hex(8)}.script.yaml"
    path.write_text(json.dumps(script))
    model = {"provider": "scripted", "modelName": "script", "path": str(path)}
    await put(client, f"/namespaces/{NAMESPACE}/ai-models/by-name/small", model)
    await put(client, f"/namespaces/{NAMESPACE}/agents/by-name/optimist", {"model": "small", "prompts": ["You hope."]})
    version = {
        "agents": [{"agent": "optimist", "name": "Ann"}, {"agent": "optimist", "name": "Ben"}],
        "prompt": "Decide: %%question%%",
        "inputsPrompt": [{"name": "question"}],
        "isSolutionProposalAllowed": True,
        "maximumRounds": 1,
        "humanSettings": {"chatMode": "Observing"},
        **changes,
    }
    return await put(client, PANEL, version)


async def put(client: httpx2.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.put(path, json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


async def start_run(client: httpx2.AsyncClient, body: Mapping[str, Any] | None = None) -> Any:
    """The new run."""
    answer = await client.put(f"{PANEL}/start", json=dict(body or {}))
    assert answer.status_code == 201, answer.text
    return answer.json()


async def count_runs(server: Served) -> int:
    """However many the database holds."""
    async with server.installation.database.reader() as reader:
        return int(await reader.connection.fetchval("select count(*) from process"))


async def stranger_key(database: Database) -> tuple[Caller, str]:
    """A user of another tenant, and a key of theirs."""
    stranger = Caller(NEW_ID(), NEW_ID(), "Stranger")
    async with database.writer() as writer:
        execute = writer.connection.execute
        await execute("insert into tenant values ($1, $2, now())", stranger.tenant_id, f"tenant-{secrets.token_hex(4)}")
        await execute(
            "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) "
            "values ($1, $2, $3, 'owner', $2, now(), now())",
            stranger.tenant_id,
            stranger.user_id,
            stranger.user_name,
        )
        _, text = await tenancy.create_key(
            writer, stranger, name="theirs", expires_at=None, key_id=NEW_ID(), random_bytes=secrets.token_bytes
        )
    return stranger, text


def problem_of(answer: httpx2.Response, status: int, code: str | None = None) -> Any:
    """The problem that an answer holds, once it is known to be one (RFC 9457)."""
    assert answer.status_code == status, (answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert sorted(problem) == ["code", "detail", "errors", "status", "title", "type"]
    assert problem["status"] == status
    assert problem["type"] == f"urn:folkmoot:error:{problem['code']}"
    assert problem["title"] and problem["detail"].endswith((".", "!"))
    if code is not None:
        assert problem["code"] == code, problem
    return problem


@dataclass(frozen=True)
class SentEvent:
    """One event of a stream as it came."""

    name: str
    id: int | None
    data: Any


class EventReader:
    """Reads a stream event by event; what is cut off in the middle is no event."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._lines = answer.aiter_lines()
        self.comments = 0

    def __aiter__(self) -> EventReader:
        return self

    async def __anext__(self) -> SentEvent:
        fields: dict[str, str] = {}
        async for line in self._lines:
            if line.startswith(":"):
                self.comments += 1
            elif line:
                name, _, value = line.partition(": ")
                assert name not in fields
                fields[name] = value
            elif fields:
                number = int(fields["id"]) if "id" in fields else None
                return SentEvent(fields["event"], number, json.loads(fields["data"]))
        raise StopAsyncIteration


@asynccontextmanager
async def watching(client: httpx2.AsyncClient, run_id: str, *, after: int | None = None) -> AsyncIterator[EventReader]:
    """A run's stream, from the item after `after` on. Waits as long as it takes: the test's own limit ends it."""
    headers = {"Last-Event-ID": str(after)} if after is not None else {}
    async with client.stream("GET", f"{RUNS}/by-id/{run_id}/events", headers=headers, timeout=None) as answer:
        assert answer.status_code == 200, await answer.aread()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield EventReader(answer)


async def whole_stream(client: httpx2.AsyncClient, run_id: str, *, after: int | None = None) -> list[SentEvent]:
    async with watching(client, run_id, after=after) as events:
        return [event async for event in events]


async def ended(client: httpx2.AsyncClient, run_id: str) -> Sequence[SentEvent]:
    """Waits for a run's end, by its stream."""
    events = await whole_stream(client, run_id)
    assert events[-1].name == "end"
    return events


def sequences_of(events: Sequence[SentEvent]) -> list[int]:
    return [event.id for event in events if event.id is not None]
