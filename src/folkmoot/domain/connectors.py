"""Connectors: where an MCP server or an OpenAPI service is, and which secrets it is sent; and its operations as they are stored.

Deliberately absent: secrets themselves, and how a server is asked (`tools`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from folkmoot.domain.operations import Discovered, OperationVersion, Server
from folkmoot.domain.references import Reference

MAX_DOCUMENT_BYTES = 33_554_432  # of an OpenAPI document, wherever it comes from


@dataclass(frozen=True, slots=True)
class ConnectorHeader:
    """A header of every request to the server, whose value is a secret. `scheme` ('Bearer') is put before it, if set.

    For a command: a variable of its environment, without a scheme.
    """

    header_name: str
    secret: Reference
    scheme: str | None = None


@dataclass(frozen=True, slots=True)
class McpConnectorVersion:
    """An MCP server: a URL (streamable HTTP), or a command (stdio), whose `headers` are variables of its environment."""

    server: Server
    description: str | None = None
    headers: tuple[ConnectorHeader, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenApiConnectorVersion:
    """An OpenAPI service. Its document is fetched from `document_url`, or was uploaded: `document_hash` (SHA-256, hex) names it.

    `base_url` null: the document's own server, which is settled as `server_url` when the version is saved. A document that
    names another one later changes nothing: secrets go where they were meant to go.
    """

    document_url: str | None = None
    document_hash: str | None = None
    base_url: str | None = None
    server_url: str | None = None
    description: str | None = None
    headers: tuple[ConnectorHeader, ...] = ()


ConnectorVersion = McpConnectorVersion | OpenApiConnectorVersion


@dataclass(frozen=True, slots=True)
class Operation:
    """An external operation of a connector. `latest_version` counts disabled ones; `gone_at`: since when the server lacks it."""

    operation_id: UUID
    connector_id: UUID
    name: str
    latest_version: int
    created_at: datetime
    updated_at: datetime
    gone_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StoredOperation:
    """A version of an operation. `is_current`: its descriptor is what the server offers, as far as the last look told."""

    operation: Operation
    version: OperationVersion
    is_disabled: bool
    is_current: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a server offers now. `left_out`: name and reason of what cannot be used. `document`: an uploaded document to keep."""

    offered: tuple[Discovered, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    server_url: str | None = None
    document: bytes | None = None


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a look at the server changed, by the operations' names. `server_url`: where the document now says that it is."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    back: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = field(default=())
    server_url: str | None = None
