"""Connections to servers outside, all behind the guard: MCP servers, OpenAPI services and their documents, webhooks.

Loaded by `outside` when the first of them is needed, since the libraries take half a second of CPU.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from folkmoot.bootstrap.channel_world import channel_world
from folkmoot.domain.connectors import Discovery
from folkmoot.tools.addresses import Guard, guarded_client
from folkmoot.tools.documents import fetch_document
from folkmoot.tools.mcp.service import McpTools
from folkmoot.tools.openapi import discover, read_document

_UPLOADED = "the uploaded document"
_POST_SECONDS = 20.0  # for the whole of a request


class Connections:
    """`client` connects to nothing that the guard refuses; `mcp` starts commands only where the operator allows it; `world`: what channels may use."""

    def __init__(self, allow: tuple[str, ...], *, is_stdio_allowed: bool) -> None:
        self._guard = Guard(allow)
        self.client = guarded_client(self._guard)
        self.world = channel_world(self._guard, self.client)
        self.mcp = McpTools(self._guard, is_stdio_allowed=is_stdio_allowed)

    async def close(self) -> None:
        """Commands that were started as MCP servers end."""
        await self.mcp.close()
        await self.client.aclose()

    async def fetch(self, url: str, headers: Mapping[str, str], limit_seconds: float) -> bytes:
        """An OpenAPI document. Raises ConnectorFault."""
        return await fetch_document(self._guard, url, headers=headers, limit_seconds=limit_seconds)

    def read(self, body: bytes, url: str | None) -> Discovery:
        """What a document offers; it takes its time. Raises ConnectorFault."""
        found = discover(read_document(body, source=url.partition("?")[0] if url else _UPLOADED), source=url)
        return Discovery(tuple(found.operations), tuple(found.left_out), found.base_url)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The status of the answer, of which nothing is read; redirects are not followed."""
        request = self.client.build_request(
            "POST", url, content=body, headers=dict(headers), extensions={"follows_redirects": False}
        )
        async with asyncio.timeout(_POST_SECONDS):
            answer = await self.client.send(request, stream=True)
            await answer.aclose()
        return answer.status_code
