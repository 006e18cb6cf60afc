"""Whole runs that call external tools: the API, a worker with the real way out, a scripted model that notes what it is asked.

Deliberately absent: the servers that are called (`mcp_at_hand`, `recording_server`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import panels
from api_at_hand import NAMESPACE, RUNS, Served, publish_panel, put, served, start_run, working_beside
from crews import Listening, until
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.items import StoredItem
from folkmoot.domain.model_calls import ModelRequest

MCP = f"/namespaces/{NAMESPACE}/connectors/mcp/by-name"
OPEN_API = f"/namespaces/{NAMESPACE}/connectors/open-api/by-name"
SECRETS = f"/namespaces/{NAMESPACE}/secrets/by-name"
ANN = {"agents": [{"agent": "optimist", "name": "Ann"}], "prompt": "Go on."}
QUICK = {"FOLKMOOT_ALLOW_STDIO": "yes", "FOLKMOOT_POLL_SECONDS": "0.2", "FOLKMOOT_SWEEP_SECONDS": "0.3"}
AT_ONCE = {"approvalMode": "Never"}


@dataclass
class House:
    """One installation at work. `model`: what agents were asked."""

    server: Served
    model: Listening
    folder: Path

    async def mcp(self, name: str, version: Mapping[str, Any], **settings: Any) -> None:
        """Save a connector, and decide the same on each of its operations."""
        await put(self.server.client, f"{MCP}/{name}", dict(version))
        await self._decide(f"{MCP}/{name}", settings)

    async def open_api(self, name: str, version: Mapping[str, Any], **settings: Any) -> None:
        await put(self.server.client, f"{OPEN_API}/{name}", dict(version))
        await self._decide(f"{OPEN_API}/{name}", settings)

    async def _decide(self, path: str, settings: Mapping[str, Any]) -> None:
        for each in (await self.server.client.get(f"{path}/operations")).json()["items"]:
            await put(self.server.client, f"/connectors/operations/by-id/{each['id']}/settings", settings)

    async def secret(self, name: str, value: str) -> str:
        """The id of a secret that is set."""
        return str((await put(self.server.client, f"{SECRETS}/{name}", {"value": value}))["id"])

    async def panel(self, calls: Sequence[Mapping[str, Any]], **changes: Any) -> None:
        """Publish a panel whose Ann makes these calls in her first reply, and then says something."""
        first = {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": list(calls)}}
        await publish_panel(
            self.server.client, self.folder, {"rules": [first, {"reply": {"text": "Well."}}]}, **{**ANN, **changes}
        )

    async def start(self, **body: Any) -> Started:
        run = await start_run(self.server.client, body)
        return Started(UUID(run["tenantId"]), UUID(run["id"]))

    async def ended(self, started: Started) -> str:
        """The status it ended with. Not by its events: what ends sooner than a watcher is known of is seen at the next look."""
        await until(lambda: panels.has_ended(self.server.installation.database, started))
        return str((await panels.row_of(self.server.installation.database, started))["status"])

    async def outcome(self, calls: Sequence[Mapping[str, Any]], **changes: Any) -> list[items.ToolResult]:
        """The results of a whole run, which must complete."""
        inputs = changes.pop("inputs", [])
        await self.panel(calls, **changes)
        started = await self.start(inputs=inputs)
        assert await self.ended(started) == "Completed"
        return await self.results(started)

    async def conversation(self, started: Started) -> list[StoredItem]:
        return await panels.items_of(self.server.installation.database, started)

    async def results(self, started: Started) -> list[items.ToolResult]:
        return [
            each.item.body for each in await self.conversation(started) if isinstance(each.item.body, items.ToolResult)
        ]

    async def approval(self, started: Started) -> dict[str, Any]:
        """The gated call that a run waits with."""
        found: list[dict[str, Any]] = []

        async def waits() -> bool:
            asked = await self.server.client.get(f"/approvals?status=Pending&run={started.run_id}")
            found[:] = asked.json()["items"]
            return bool(found)

        await until(waits)
        return found[0]

    async def decide(self, started: Started, pending: Mapping[str, Any], decision: str = "Approve") -> Any:
        body = {"decision": decision, "argumentsHash": pending["approval"]["argumentsHash"]}
        return await self.server.client.post(f"{RUNS}/by-id/{started.run_id}/approvals/{pending['id']}", json=body)

    def requests(self, participant: str = "Ann") -> list[ModelRequest]:
        return [request for request in self.model.requests if request.participant == participant]


@asynccontextmanager
async def house(dsn: str, folder: Path, *, works: bool = True, model: Listening | None = None) -> AsyncIterator[House]:
    """With a worker beside the API, unless a test hires its own."""
    model = model or Listening()
    async with served(dsn, data_dir=folder, allows="127.0.0.1", more=QUICK, model=model) as server:
        made = House(server, model, folder)
        if not works:
            yield made
            return
        async with working_beside(server.installation):
            yield made
