"""The way to connectors' servers, as it is handed in: a transaction of ours never spans a network call, so what uses this
opens none. Deliberately absent: how a server is spoken to (`tools`), and any waiting room; whoever asks waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, Protocol
from uuid import UUID

from folkmoot.domain.connectors import Discovery
from folkmoot.domain.operations import Discovered, Server
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.vault.texts import SecretText

LOOK_SECONDS = 60.0


class McpServers(Protocol):
    """Lists what an MCP server offers. Raises ConnectorFault."""

    async def discover(self, server: Server, *, headers: dict[str, str], limit_seconds: float) -> list[Discovered]: ...


Read = Callable[[bytes, str | None], Discovery]
Fetch = Callable[[str, Mapping[str, str], float], Awaitable[bytes]]
OpenSecret = Callable[[UUID, UUID], Awaitable[SecretText]]


@dataclass(frozen=True, slots=True)
class Reach:
    """`fetch`: the document at an address, with headers, within seconds (ConnectorFault). `read`: what a document offers, with the
    address that it came from, null for an upload (ConnectorFault); it takes its time. `open_secret`: a secret of a tenant
    by its id (NotFound, SecretFault). `allows_stdio`: whether the operator lets connectors run commands."""

    mcp: McpServers
    fetch: Fetch
    read: Read
    open_secret: OpenSecret
    allows_stdio: bool = False
    limit_seconds: float = LOOK_SECONDS


class _Nowhere:
    async def discover(self, server: Server, *, headers: dict[str, str], limit_seconds: float) -> list[Discovered]:
        _refuse()


async def _fetch_nothing(url: str, headers: Mapping[str, str], limit_seconds: float) -> bytes:
    _refuse()


def _read_nothing(body: bytes, url: str | None) -> Discovery:
    _refuse()


async def _open_nothing(tenant_id: UUID, secret_id: UUID) -> SecretText:
    _refuse()


def _refuse() -> NoReturn:
    raise ConnectorFault("This process reaches no connectors. Do it through `folkmoot serve` or the command line.")


NOWHERE = Reach(_Nowhere(), _fetch_nothing, _read_nothing, _open_nothing)
