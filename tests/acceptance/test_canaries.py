"""Secrets of each kind, known to nobody else, given back by servers in every spelling: nowhere in what we keep, show, ask or log (F44)."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import panels
import pytest
from api_at_hand import NAMESPACE, RUNS, put, whole_stream
from crews import until
from logs_at_hand import all_logs
from operations_at_hand import AT_ONCE, House, house
from panels import Started
from processes import HERE, SHOP, Hands, Hired, hands
from recording_server import Received, RecordingServer, reply

from folkmoot.api.definition_export import as_text
from folkmoot.domain import items
from folkmoot.services import exporting, keys
from folkmoot.store.database import Database
from folkmoot.vault.keys import write_key
from folkmoot.vault.texts import MASK

LONG = 60.0
CALLED = ("MCP header", "OpenAPI header", "chosen by the run", "provider's key", "model key")
HOWS = ("fine", "large", "denied", "failed", "slow", "breaks")
SAY = {"name": "how", "in": "path", "required": True, "schema": {"type": "string"}}
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {"/say/{how}": {"get": {"operationId": "say", "parameters": [SAY]}}},
}
TOOL = {"name": "tell", "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}}}}


def canary() -> str:
    """A value that each encoding writes in another way."""
    return f'c4n"ry/{secrets.token_hex(12)}+~='


def forms(value: str) -> Iterator[str]:
    """What of a value would show in any text that holds it: its own letters, in base64 wherever it begins, in hexadecimal."""
    yield max(value.replace("/", '"').split('"'), key=len).split("+")[0]
    yield value.encode().hex()
    for before in range(3):
        inner = base64.b64encode(b"\0" * before + value.encode()).decode()[4:-4]
        yield inner
        yield inner.translate({ord("+"): "-", ord("/"): "_"})


def said_back(values: list[str]) -> str:
    """Secrets as a careless server gives them back."""
    whole = [form for value in values for form in (value, value.split(" ")[-1])]
    spelt = [
        (v, json.dumps({"h": json.dumps(v)}), quote(v, safe=""), quote_plus(v).lower(), v.encode().hex()) for v in whole
    ]
    encoded = [base64.b64encode(f"{pad}{v}".encode()).decode() for v in whole for pad in ("", "u:", "uu")]
    return " ".join(
        [*(form for each in spelt for form in each), *encoded, base64.urlsafe_b64encode(whole[0].encode()).decode()]
    )


@dataclass
class Echo:
    """Every server of this test: a service, an MCP server, a model, an endpoint. `prompts`: the bodies that the model was sent."""

    prompts: list[str] = field(default_factory=list)
    crashes: int = 0
    refused: str = ""  # a key without quota
    heard: set[str] = field(default_factory=set)

    async def answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        values = [
            value for name in ("authorization", "x-chosen", "webhook-signature") if (value := received.header(name))
        ]
        self.heard |= {value.split(" ")[-1] for value in values}
        path, message = received.target, json.loads(received.body) if received.body else {}
        if path.startswith("/say/"):
            await self._said(path.removeprefix("/say/"), said_back(values), writer)
        elif path == "/openapi.json":
            writer.write(reply(json.dumps(DOCUMENT).encode()))
        elif path == "/mcp":
            await self._spoken(message, said_back(values), writer)
        elif path.startswith("/v1/"):
            self.prompts.append(received.body.decode())
            if self.refused in values[0]:
                body = {"error": {"message": f"No quota for {said_back(values)}", "code": "insufficient_quota"}}
                writer.write(reply(json.dumps(body).encode(), status=429))
            else:
                self._replied(message, said_back(values), writer)
        else:
            writer.write(reply(said_back(values).encode(), status=500))
        await writer.drain()

    async def _said(self, how: str, text: str, writer: asyncio.StreamWriter) -> None:
        match how:
            case "denied":
                writer.write(reply(text.encode(), status=401, headers=(f"WWW-Authenticate: {text}",)))
            case "failed":
                writer.write(reply(text.encode(), status=500, content_type="text/plain"))
            case "slow":
                await asyncio.sleep(3600)
            case "breaks":
                writer.transport.abort()
            case "crash" if self.crashes == 0:
                self.crashes += 1
                await asyncio.sleep(3600)
            case _:
                writer.write(
                    reply(json.dumps({"sent": text, "more": "x " * (40_000 if how == "large" else 0)}).encode())
                )

    async def _spoken(self, message: dict[str, Any], text: str, writer: asyncio.StreamWriter) -> None:
        match message.get("method"):
            case "initialize":
                info = {"name": "echo", "version": "1"}
                result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [TOOL]}
            case "tools/call":
                how = message["params"]["arguments"]["how"]
                if how in ("denied", "failed", "slow", "breaks"):
                    return await self._said(how, text, writer)
                result = {"content": [{"type": "text", "text": text}], "isError": how == "large"}
            case _:
                writer.write(reply(b"", status=202 if "id" not in message else 400))
                return
        writer.write(reply(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()))

    def _replied(self, message: dict[str, Any], text: str, writer: asyncio.StreamWriter) -> None:
        if message["model"] == "denied":
            writer.write(reply(json.dumps({"error": {"message": f"Incorrect key {text}"}}).encode(), status=400))
            return
        hows = ("crash",) if message["model"] == "crash" else HOWS
        names = ("say",) if message["model"] == "crash" else ("say", "tell")
        asked = [(name, how) for name in names for how in hows]
        calls = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps({"how": how})}}
            for n, (name, how) in enumerate(asked)
        ]
        is_first = not any(each["role"] == "tool" for each in message["messages"])
        spoken = {"content": None, "tool_calls": calls} if is_first else {"content": "Well."}
        choice = {
            "index": 0,
            "message": {"role": "assistant", **spoken},
            "finish_reason": "tool_calls" if is_first else "stop",
        }
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        writer.write(reply(json.dumps(body).encode()))


@dataclass
class Scene:
    """A house whose every secret is a canary. `kinds`: what each of them is."""

    home: House
    crew: Hands
    echo: Echo
    url: str
    kinds: dict[str, str]

    async def publish(self, model_name: str) -> None:
        """A panel of one whose model has this name."""
        model = {
            "provider": "openai-compatible",
            "modelName": model_name,
            "baseUrl": f"{self.url}/v1",
            "apiKeyVariable": "CANARY_API_KEY",
        }
        client = self.home.server.client
        await put(client, f"/namespaces/{NAMESPACE}/ai-models/by-name/small", model)
        await put(
            client, f"/namespaces/{NAMESPACE}/agents/by-name/optimist", {"model": "small", "prompts": ["You hope."]}
        )
        chosen = {"headerName": "X-Chosen", "secretInputName": "chosen"}
        link = {"connector": "service", "operation": "say"}
        version = {
            "agents": [{"agent": "optimist", "name": "Ann"}],
            "prompt": "Go on.",
            "maximumRounds": 1,
            "humanSettings": {"chatMode": "Observing"},
            "externalOperationsOpenApi": [{"name": "say", **link, "authenticationHeader": chosen}],
            "externalOperationsMcp": [{"name": "tell", "connector": "bench", "operation": "tell"}],
            "inputsConnectorAuthenticationSecret": [{**link, "name": "chosen", "headerName": "X-Chosen"}],
        }
        await put(client, f"/namespaces/{NAMESPACE}/interactions/by-name/panel", version)

    async def start(self, model_name: str, secret_id: str) -> Started:
        """The tenant's key is refused first; then the operator's is taken."""
        await self.publish(model_name)
        inputs = [{"name": "chosen", "value": secret_id}]
        return await self.home.start(inputs=inputs, allowPlatformFallback=True)

    def leaks(self, text: str, place: str) -> list[str]:
        return [
            f"{kind} in {place}" for kind, value in self.kinds.items() if any(form in text for form in forms(value))
        ]


@asynccontextmanager
async def staged(database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Scene, str]]:
    """The scene, and the id of the secret that runs choose."""
    echo = Echo()
    values = {kind: canary() for kind in CALLED}
    monkeypatch.setenv("CANARY_API_KEY", values["provider's key"])
    async with (
        RecordingServer(echo.answer) as server,
        house(database.dsn, folder, works=False) as home,
        hands(database, folder) as crew,
    ):
        kinds = {**values, "API key": home.server.key, "sealing key": write_key(bytes(range(32)))}
        for name, kind in (("mcp", "MCP header"), ("api", "OpenAPI header"), ("model", "model key")):
            await home.secret(name, kinds[kind])
        chosen = await home.secret("chosen", kinds["chosen by the run"])
        bearer = {"headerName": "Authorization", "scheme": "Bearer"}
        settings = {**AT_ONCE, "limitSeconds": 4}  # the first call loads a library, on a machine that has others to do
        await home.mcp("bench", {"url": f"{server.url}/mcp", "headers": [{**bearer, "secret": "mcp"}]}, **settings)
        echo.refused = kinds["model key"]
        key = {"provider": "openai-compatible", "baseUrl": f"{server.url}/v1", "credential": f"{NAMESPACE}/model"}
        assert (await home.server.client.post("/model-keys", json={"name": "ours", **key})).status_code == 201
        service = {
            "documentUrl": f"{server.url}/openapi.json",
            "baseUrl": server.url,
            "headers": [{**bearer, "secret": "api"}],
        }
        await home.open_api("service", service, **settings)
        hook = await home.server.client.post(
            "/webhooks", json={"url": f"{server.url}/hook", "kinds": ["approval.requested"]}
        )
        kinds["webhook's secret"] = hook.json()["secret"]
        yield Scene(home, crew, echo, server.url, kinds), chosen


async def hired(scene: Scene, *functions: Path) -> Hired:
    return await scene.crew.hire(
        ALLOW_ADDRESSES="127.0.0.1",
        ALLOW_KEYS=f"CANARY_API_KEY={scene.url}/v1",
        LOG_LEVEL="debug",
        SECRET_KEY=scene.kinds["sealing key"],
        functions=(SHOP, *functions),
    )


async def ended(scene: Scene, started: Started) -> str:
    await until(lambda: panels.has_ended(scene.crew.database, started), seconds=LONG)
    return str((await panels.row_of(scene.crew.database, started))["status"])


async def in_rows(scene: Scene) -> list[str]:
    """What the database shows of a secret, in any column but those that hold it sealed."""
    database = scene.crew.database
    columns = await panels.fetch(
        database,
        """select table_name, column_name, data_type from information_schema.columns
           where table_schema = 'public' and column_name not in ('sealed', 'sealed_secret', 'previous_secret')""",
    )
    found: list[str] = []
    for each in columns:
        table, column = each["table_name"], each["column_name"]
        text = f"encode({column}, 'escape')" if each["data_type"] == "bytea" else f"{column}::text"
        rows = await panels.fetch(database, f"select string_agg({text}, E'\\n') as all_of_it from {table}")
        found += scene.leaks(rows[0]["all_of_it"] or "", f"{table}.{column}")
    return found


async def in_answers(scene: Scene, runs: list[Started]) -> list[str]:
    """What the API, the stream of events and an export show."""
    client = scene.home.server.client
    of_runs = [f"{RUNS}/by-id/{run.run_id}{part}" for run in runs for part in ("", "/details", "/items")]
    found: list[str] = []
    hook = (await client.get("/webhooks")).json()["items"][0]["id"]
    connectors = [f"/namespaces/{NAMESPACE}/connectors/{kind}" for kind in ("mcp", "open-api")]
    lists = [
        RUNS,
        "/approvals",
        "/audit",
        "/keys",
        "/users",
        "/webhooks",
        "/model-keys",
        f"/webhooks/by-id/{hook}/messages",
    ]
    inside = [*connectors, f"{connectors[0]}/by-name/bench/operations", f"/namespaces/{NAMESPACE}/secrets"]
    for path in (*of_runs, *lists, *inside):
        answer = await client.get(path)
        assert answer.status_code == 200, answer.text
        found += scene.leaks(answer.text, path)
    for run in runs:
        found += scene.leaks(str(await whole_stream(client, str(run.run_id))), "events")
    for path in (f"{connectors[0]}/by-name/bench/refresh", f"{connectors[1]}/by-name/service/refresh"):
        found += scene.leaks((await client.post(path)).text, path)
    owner = await keys.owner(scene.crew.database)
    return found + scene.leaks(
        as_text(await exporting.export(scene.crew.database, owner, namespace=NAMESPACE)), "export"
    )


async def test_no_secret_of_any_kind_is_kept_shown_asked_or_logged(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F44, B52: after success, failure, timeout, 401 and kill -9, plain and encoded."""
    with all_logs() as log:
        async with staged(database, tmp_path, monkeypatch) as (scene, chosen):
            talk, refused, crash = [await scene.start(name, chosen) for name in ("talk", "denied", "crash")]
            worker = await hired(scene)
            await until(lambda: scene.echo.crashes == 1, seconds=LONG)
            assert [await ended(scene, run) for run in (talk, refused)] == ["Completed", "Failed"]
            worker.send_signal(signal.SIGKILL)
            await worker.wait()
            await hired(scene)
            assert await ended(scene, crash) == "Completed"
            results = [each.item.body for each in await panels.items_of(database, talk)]
            told = [body for body in results if isinstance(body, items.ToolResult)]
            assert len(told) == 2 * len(HOWS) and sum(MASK in body.result for body in told) >= 4
            assert {scene.kinds[kind] for kind in CALLED} <= scene.echo.heard
            found = await in_rows(scene) + await in_answers(scene, [talk, refused, crash])
            found += scene.leaks("\n".join(scene.echo.prompts), "prompts")
            written = (tmp_path / "workers.log").read_text(errors="replace")
            assert "DEBUG" in written and len(scene.echo.prompts) >= 4
            found += scene.leaks(written, "the workers' log") + scene.leaks(log.getvalue(), "the API's log")
    assert found == []


async def test_control_without_the_mask_secrets_show(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of F44: what servers give back is kept, shown and asked."""
    async with staged(database, tmp_path, monkeypatch) as (scene, chosen):
        talk, refused = [await scene.start(name, chosen) for name in ("talk", "denied")]
        await hired(scene, HERE / "functions" / "without_masks.py")
        assert [await ended(scene, run) for run in (talk, refused)] == ["Completed", "Failed"]
        kinds = {fault.partition(" in ")[0] for fault in await in_rows(scene)}
        assert kinds >= set(CALLED)
        assert scene.leaks("\n".join(scene.echo.prompts), "prompts")
