"""Connectors for tests: an MCP server whose tools a test changes, the document of a service, and the reach to both."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import mcp_types as types
from mcp.server.mcpserver import MCPServer
from mcp_at_hand import serving

from folkmoot.bootstrap.connections import Connections
from folkmoot.domain.connectors import ConnectorHeader, McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.operations import Http
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import connectors, operations
from folkmoot.services import secrets as secret_services
from folkmoot.services.operations import OperationFilter, ShownOperation
from folkmoot.services.reach import Reach
from folkmoot.store.database import Database
from folkmoot.vault.keys import key_of
from folkmoot.vault.sealing import Vault
from folkmoot.vault.texts import SecretText

VAULT = Vault((key_of(b"v" * 32),), random_bytes=secrets.token_bytes)
SPACE = "examples"
READS = types.ToolAnnotations(read_only_hint=True, destructive_hint=False)

SHOP: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "/v1"}],
    "paths": {
        "/customers/{customerId}/orders": {
            "parameters": [{"name": "customerId", "in": "path", "required": True, "schema": {"type": "integer"}}],
            "get": {
                "operationId": "orders/list",
                "summary": "Orders of a customer.",
                "parameters": [
                    {"name": "state", "in": "query", "schema": {"type": "string"}},
                    {"name": "X-Region", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "Found."}},
            },
            "post": {
                "operationId": "orders/add",
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {"sku": {"type": "string"}, "note": {"type": "string"}},
                                "required": ["sku"],
                            }
                        }
                    },
                },
                "responses": {"201": {"description": "Made."}},
            },
        }
    },
}


def document(shop: Mapping[str, Any] = SHOP) -> bytes:
    return json.dumps(shop).encode()


def reach_of(database: Database, *, allows_stdio: bool = False, limit_seconds: float = 20.0) -> Reach:
    """The real way out, to loopback too."""
    connections = Connections(("127.0.0.1",), is_stdio_allowed=allows_stdio)

    async def opened(tenant_id: UUID, secret_id: UUID) -> SecretText:
        return await secret_services.open_secret(database, VAULT, tenant_id, secret_id=secret_id)

    return Reach(connections.mcp, connections.fetch, connections.read, opened, allows_stdio, limit_seconds)


class Bench:
    """An MCP server with two tools; `url` once it is served."""

    def __init__(self) -> None:
        self.server = MCPServer("bench")
        self.url = ""
        self.offer("look", "Looks at a thing.", annotations=READS)
        self.offer("paint", "Paints a thing.")

    def offer(self, name: str, description: str, *, annotations: types.ToolAnnotations | None = None) -> None:
        """Offer a tool, in place of one of this name."""
        self.withdraw(name)

        def work(thing: str, shade: int = 0) -> str:
            return f"{name} {thing} {shade}"

        self.server.add_tool(work, name=name, description=description, annotations=annotations)

    def withdraw(self, name: str) -> None:
        if name in {tool.name for tool in self.server._tool_manager.list_tools()}:
            self.server.remove_tool(name)


@asynccontextmanager
async def bench_at_work() -> AsyncIterator[Bench]:
    bench = Bench()
    async with serving(bench.server.streamable_http_app(stateless_http=True)) as url:
        bench.url = f"{url}/mcp"
        yield bench


class Keeper:
    """Publishes connectors and looks at them, as one caller does."""

    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database, self.caller, self.new_id = database, caller, new_id
        self.reach = reach_of(database)

    async def bench(self, url: str, *, name: str = "bench", headers: tuple[ConnectorHeader, ...] = ()) -> Any:
        version = McpConnectorVersion(Http(url), headers=headers)
        return await connectors.publish(
            self.database, self.caller, self.reach, namespace=SPACE, name=name, version=version, document=None,
            new_id=self.new_id,
        )  # fmt: skip

    async def shop(self, version: OpenApiConnectorVersion, *, uploaded: bytes | None = None, name: str = "shop") -> Any:
        return await connectors.publish(
            self.database, self.caller, self.reach, namespace=SPACE, name=name, version=version, document=uploaded,
            new_id=self.new_id,
        )  # fmt: skip

    async def refresh(self, name: str = "bench", kind: DefinitionKind = DefinitionKind.MCP_CONNECTOR) -> Any:
        return await connectors.refresh(
            self.database, self.caller, self.reach, kind=kind, reference=Reference(name, SPACE), new_id=self.new_id
        )

    async def operations(
        self, name: str = "bench", kind: DefinitionKind = DefinitionKind.MCP_CONNECTOR
    ) -> dict[str, ShownOperation]:
        found = await operations.page(
            self.database, self.caller, kind=kind, reference=Reference(name, SPACE), wanted=OperationFilter(), after="",
            limit=100,
        )  # fmt: skip
        return {each.stored.operation.name: each for each in found}

    async def secret(self, name: str, value: str, *, caller: Caller | None = None) -> UUID:
        made, _ = await secret_services.put(
            self.database, VAULT, caller or self.caller, namespace=SPACE, name=name, value=SecretText(value), new_id=self.new_id
        )  # fmt: skip
        return made.secret_id
