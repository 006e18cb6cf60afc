"""MCP servers to test against, and calls of their tools with what a test leaves unsaid filled in."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import uvicorn
from mcp.server.mcpserver import MCPServer

from folkmoot.domain.calls import CallBounds, CallResult
from folkmoot.domain.operations import McpDescriptor, OperationTarget, Server, Stdio
from folkmoot.tools.mcp.service import McpTools

SERVERS = Path(__file__).parent.parent / "integration" / "servers"


def misbehaving(mode: str, journal: Path, **environment: str) -> Stdio:
    journal.touch()
    return Stdio(sys.executable, (str(SERVERS / "misbehaving.py"), mode, str(journal)), environment)


def workshop(journal: Path) -> MCPServer:
    spec = importlib.util.spec_from_file_location("workshop", SERVERS / "workshop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.workshop(journal)
    assert isinstance(server, MCPServer)
    return server


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """An app in this process on a port of its own; gives its URL."""
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", ws="none"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@dataclass
class Caller:
    """Calls the tools of one server for one connector."""

    tools: McpTools
    server: Server
    connector_id: UUID = field(default_factory=uuid4)
    headers: dict[str, str] = field(default_factory=dict)

    async def __call__(
        self,
        tool: str | McpDescriptor,
        *,
        limit_seconds: float = 20.0,
        limit_bytes: int = 1_000_000,
        idempotency_key: str | None = None,
        is_repeatable: bool = False,
        verify: bool = False,
        **arguments: Any,
    ) -> CallResult:
        descriptor = McpDescriptor(tool, "", {"type": "object"}) if isinstance(tool, str) else tool
        return await self.tools.call(
            OperationTarget(self.connector_id, "bench", uuid4(), 1, self.server, descriptor),
            arguments,
            headers=self.headers,
            bounds=CallBounds(limit_seconds, limit_bytes, idempotency_key or uuid4().hex, is_repeatable),
            verify=verify,
        )
