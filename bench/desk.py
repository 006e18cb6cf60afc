"""Runs that wait for people: one agent that asks for a gated call, or that a person's turn follows; and who waits for what.

They belong to the tenant `default`, with a definition whose name the inbox shows. Deliberately absent: answers (`approvals`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2

from bench import gated_functions
from bench.course import Course
from bench.ground import Ground
from bench.roundtable import Driver, default_tenant, driver, new_id, reply_text
from bench.workers import server, worker
from folkmoot.domain.calls import Tool
from folkmoot.domain.definitions import (
    ChatMode,
    HumanSettings,
    Participant,
    ResolvedInteraction,
    SystemPromptMode,
)
from folkmoot.domain.model_calls import ModelChoice, Sampling
from folkmoot.domain.operations import Http, McpDescriptor, OperationTarget
from folkmoot.domain.tenancy import Caller
from folkmoot.tools.functions import FunctionTools

_FUNCTIONS = Path(gated_functions.__file__)
_CHUNK = 500
_LOOK_SECONDS = 0.05
_DEFINITION = """
insert into definition (tenant_id, definition_id, kind, namespace_id, name, latest_version, created_by, created_at, updated_at)
select $1, $2, 'Interaction', $3, 'signing', 1, $4, now(), now()
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for its approval. `shown_hash`: what the decision must name."""

    run_id: UUID
    call_id: UUID
    shown_hash: str


@dataclass(frozen=True, slots=True)
class Desk:
    """A database with one tenant, its owner, a key of the owner's, and a log of the calls that were made."""

    ground: Ground
    dsn: str
    drive: Driver
    caller: Caller
    key: str
    definition_id: UUID
    log: Path

    def worker(self) -> Any:
        """A worker with the usual settings that may call what the runs ask for."""
        return worker(
            self.ground, self.dsn, self.drive, beside={"BENCH_CALLS": str(self.log)}, FUNCTIONS=str(_FUNCTIONS),
            ALLOW_ADDRESSES="127.0.0.1",
        )  # fmt: skip

    @asynccontextmanager
    async def api(self, *, connections: int = 1) -> AsyncIterator[httpx2.AsyncClient]:
        """`folkmoot api` in a process of its own, and a client that keeps so many connections open."""
        async with server(self.ground, self.dsn, "-m", "folkmoot", "api", "--port", "0", "--json") as line:
            limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections)
            headers = {"Authorization": f"Bearer {self.key}"}
            async with httpx2.AsyncClient(
                base_url=json.loads(line)["url"], headers=headers, limits=limits, timeout=60.0, trust_env=False
            ) as client:
                yield client

    async def start(self, resolved: ResolvedInteraction, *, count: int) -> None:
        while count > 0:
            await self.drive.start(resolved, count=min(count, _CHUNK))
            count -= _CHUNK

    async def settled(self, *, waiting: int) -> None:
        """When so many wait, and no run is held by a worker or could be claimed."""
        async with self.drive.database.reader() as reader:
            statement = await reader.connection.prepare(
                "select (select count(*) from pending where tenant_id = $1 and outcome is null) = $2"
                " and not exists (select from process where tenant_id = $1 and (worker_id is not null or ready_at is not null))"
            )
            while not await statement.fetchval(self.caller.tenant_id, waiting):
                await asyncio.sleep(_LOOK_SECONDS)

    async def waiting(self) -> list[Waiting]:
        async with self.drive.database.reader() as reader:
            rows = await reader.connection.fetch(
                "select run_id, pending_id, encode(binding_hash, 'hex') from pending"
                " where tenant_id = $1 and outcome is null and kind = 'Approval' order by asked_at",
                self.caller.tenant_id,
            )
        return [Waiting(*row.values()) for row in rows]

    async def answered_at(self) -> Mapping[str, float]:
        """Unix seconds of each answer, by the call's id."""
        async with self.drive.database.reader() as reader:
            rows = await reader.connection.fetch(
                "select pending_id, answered_at from pending where tenant_id = $1 and outcome = 'Approved'",
                self.caller.tenant_id,
            )
        return {str(row["pending_id"]): row["answered_at"].timestamp() for row in rows}

    def calls(self) -> list[tuple[str, float]]:
        """Which calls were made, and when (Unix seconds)."""
        if not self.log.exists():
            return []
        lines = [line.split() for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [(call_id, int(moment) / 1e9) for call_id, moment in lines]

    def asking(self, tool: Tool) -> ResolvedInteraction:
        """One agent that makes one call and then says something."""
        call = {"name": tool.name, "arguments": {"text": reply_text()[:300]}}
        return self._run({"call": 1}, {"calls": [call]}, tool)

    def listening(self, *, has_person: bool) -> ResolvedInteraction:
        """One agent that says something, and then it is a person's turn."""
        return self._run({}, {"text": reply_text()}, people=HumanSettings(ChatMode.EVERY_ROUND) if has_person else None)

    def _run(
        self, when: dict[str, Any], reply: dict[str, Any], *tools: Tool, people: HumanSettings | None = None
    ) -> ResolvedInteraction:
        script = {"rules": [{"when": when, "reply": reply}, {"reply": {"text": reply_text()}}]}
        model = ModelChoice("scripted", "instant", script=script)
        seat = Participant("Ada", new_id(), "ada", 1, None, ("You are Ada.",), model, Sampling(), tools=tools)
        return ResolvedInteraction(
            self.definition_id, "signing", 1, "default", (seat,), "Have it signed.", (), SystemPromptMode.APPEND, maximum_rounds=1,
            human_settings=people,
        )  # fmt: skip


@asynccontextmanager
async def open_desk(course: Course) -> AsyncIterator[Desk]:
    async with course.ground.database() as dsn, driver(dsn) as drive:
        caller, key = await default_tenant(drive)
        definition_id = new_id()
        async with drive.database.writer() as writer:
            await writer.connection.execute(
                _DEFINITION, caller.tenant_id, definition_id, drive.namespace_id, caller.user_id
            )
        log = course.ground.folder / f"calls-{time.time_ns()}.log"
        yield Desk(course.ground, dsn, drive, caller, key, definition_id, log)


def function(name: str) -> Tool:
    """`sign` is gated, `jot` is not."""
    found = getattr(gated_functions, name)
    return FunctionTools.discover({name: found}).offered(name)


def over_mcp(url: str) -> Tool:
    """The tool of `mcp_server`, gated."""
    parameters = {
        "type": "object", "properties": {"text": {"title": "Text", "type": "string"}}, "required": ["text"], "title": "signArguments",
    }  # fmt: skip
    descriptor = McpDescriptor("sign", "Sign a text.", parameters)
    target = OperationTarget(new_id(), "notary", new_id(), 1, Http(url), descriptor)
    return Tool("sign", "Sign a text.", parameters, is_gated=True, target=target)
