"""What this process may reach outside, as the operator allows it. Nothing is loaded or opened before the first use."""

from __future__ import annotations

import importlib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from folkmoot.channels.channel import HttpReply
from folkmoot.domain.calls import CallBounds, CallResult
from folkmoot.domain.connectors import Discovery
from folkmoot.domain.operations import Discovered, OpenApiDescriptor, OperationTarget, Server
from folkmoot.kernel.errors import BadInput
from folkmoot.settings import Settings
from folkmoot.tools.networks import UnfitAllowance, read_allowance

if TYPE_CHECKING:
    from folkmoot.bootstrap.connections import Connections


class Outside:
    """Calls, looks and messages; each as `connections` and `tools` say."""

    def __init__(self, found: Settings) -> None:
        self._settings = found
        self._opened: Connections | None = None

    @property
    def _connections(self) -> Connections:
        if self._opened is None:
            module: Any = importlib.import_module("folkmoot.bootstrap.connections")
            found = self._settings
            self._opened = module.Connections(found.allow_addresses, is_stdio_allowed=found.allow_stdio)
        return self._opened

    async def call(
        self,
        target: OperationTarget,
        arguments: dict[str, Any],
        *,
        headers: dict[str, str],
        bounds: CallBounds,
        verify: bool,
    ) -> CallResult:
        """Call an external operation. `verify`: first see that it still is what the run is pinned to, where it can be seen."""
        if isinstance(target.descriptor, OpenApiDescriptor):  # a request is built from the descriptor alone
            openapi: Any = importlib.import_module("folkmoot.tools.openapi")
            client = self._connections.client
            result: CallResult = await openapi.call(client, target, arguments, headers=headers, bounds=bounds)
            return result
        return await self._connections.mcp.call(target, arguments, headers=headers, bounds=bounds, verify=verify)

    async def discover(self, server: Server, *, headers: dict[str, str], limit_seconds: float) -> list[Discovered]:
        return await self._connections.mcp.discover(server, headers=headers, limit_seconds=limit_seconds)

    async def fetch(self, url: str, headers: Mapping[str, str], limit_seconds: float) -> bytes:
        return await self._connections.fetch(url, headers, limit_seconds)

    def read(self, body: bytes, url: str | None) -> Discovery:
        return self._connections.read(body, url)

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        return await self._connections.post(url, body, headers)

    async def send(self, url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """As `post`, with what was answered."""
        return await self._connections.world.post(url, body, headers)

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connection to a host's checked address, not blocking, the caller's to close."""
        return await self._connections.world.connect(host, port)

    @property
    def tls(self) -> Callable[[], ssl.SSLContext]:
        return lambda: self._connections.world.tls()

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()


@asynccontextmanager
async def open_outside(found: Settings) -> AsyncIterator[Outside]:
    """Raises BadInput where an allowance cannot be read."""
    try:
        for entry in found.allow_addresses:
            read_allowance(entry)
    except UnfitAllowance as error:
        raise BadInput(f"FOLKMOOT_ALLOW_ADDRESSES cannot be read: {error}") from error
    outside = Outside(found)
    try:
        yield outside
    finally:
        await outside.close()
