"""External operations: what a connector's server offers, version by version, and how a call's arguments are bound.

A version holds all that a call needs, so that a run pinned to it never takes new text silently. Deliberately absent: how an
operation is found and called (`tools`), and secrets: a header names a secret's id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

Json = Any


class ApprovalMode(StrEnum):
    """When a call needs a person's approval. `Destructive`: unless its annotations say that it only reads or destroys nothing."""

    NEVER = "Never"
    ALWAYS = "Always"
    DESTRUCTIVE = "Destructive"

    def gates(self, *, is_destructive: bool) -> bool:
        """Whether calls of something wait for a person's approval."""
        return self is ApprovalMode.ALWAYS or (self is ApprovalMode.DESTRUCTIVE and is_destructive)


class Place(StrEnum):
    """Where a value stands in a call. MCP operations have `Request` alone."""

    REQUEST = "Request"
    PATH = "Path"
    QUERY = "Query"
    HEADER = "Header"


@dataclass(frozen=True, slots=True)
class McpDescriptor:
    """A tool as an MCP server describes it. `parameters`: JSON Schema of the arguments; hints are the server's own claims."""

    tool_name: str
    description: str
    parameters: dict[str, Json]
    read_only_hint: bool = False
    destructive_hint: bool = True
    idempotent_hint: bool = False
    type: Literal["mcp"] = "mcp"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of an OpenAPI operation. `name`: as the model sees it; `wire_name`: as it is sent.

    `place`: path, query, header, cookie, field (of a body that is an object) or body (the whole body). `style`, `explode`,
    `allow_reserved` as OpenAPI defines them; `media_type`: of a parameter that is itself a document (`content:`).
    """

    name: str
    wire_name: str
    place: Literal["path", "query", "header", "cookie", "field", "body"]
    style: str = "simple"
    explode: bool = False
    allow_reserved: bool = False
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class OpenApiDescriptor:
    """An operation of an OpenAPI document. `parameters`: JSON Schema of all arguments in one object, for the model.

    `path` has its `{wire_name}`s; `body_type`: media type of the request's body, null if it has none.
    """

    method: str
    path: str
    description: str
    parameters: dict[str, Json]
    arguments: tuple[Argument, ...] = ()
    body_type: str | None = None
    is_body_required: bool = False
    type: Literal["open_api"] = "open_api"


Descriptor = McpDescriptor | OpenApiDescriptor


@dataclass(frozen=True, slots=True)
class Discovered:
    """What discovery found, by its name at the server (an MCP tool's name, an OpenAPI operationId)."""

    name: str
    descriptor: Descriptor


@dataclass(frozen=True, slots=True)
class Stdio:
    """A local MCP server's command; only where the operator allows it. `environment`: in plain text, as definitions hold it; once it is
    started, with its secrets, so that it is never printed."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict, repr=False)
    type: Literal["stdio"] = "stdio"


@dataclass(frozen=True, slots=True)
class Http:
    """A server's URL: an MCP endpoint (streamable HTTP), or the base of an OpenAPI service's paths."""

    url: str
    type: Literal["http"] = "http"


Server = Stdio | Http


@dataclass(frozen=True, slots=True)
class SecretHeader:
    """A header whose value is a secret, read when the call is made. `scheme` ('Bearer') is put before it, if set.

    For a command: a variable of its environment.
    """

    header_name: str
    secret_id: UUID
    scheme: str | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A value that is fixed for the run: the parameter is gone from the schema, and what a model sends for it is dropped (B50).

    `target`: the parameter's name, or a path into the arguments with its steps parted by dots (`filter.customer`).
    `is_sent` false: nobody chose a value, so that none is sent; the model may not choose one either.
    """

    place: Place
    target: str
    value: Json
    is_sent: bool = True


@dataclass(frozen=True, slots=True)
class OperationTarget:
    """An operation as a run is pinned to it, with all that a call needs. `headers`: from secrets, read live."""

    connector_id: UUID
    connector_name: str
    operation_id: UUID
    operation_version: int
    server: Server
    descriptor: Descriptor
    bound: tuple[Bound, ...] = ()
    headers: tuple[SecretHeader, ...] = ()
    type: Literal["operation"] = "operation"


@dataclass(frozen=True, slots=True)
class OperationVersion:
    """One version of an external operation. Limits: seconds, bytes of the result. Traits are the operator's word over hints."""

    number: int
    descriptor: Descriptor
    approval_mode: ApprovalMode = ApprovalMode.DESTRUCTIVE
    is_idempotent: bool = False
    is_read_only: bool = False
    limit_seconds: float = 60.0
    limit_bytes: int = 10_000_000


def header_value(scheme: str | None, secret: str) -> str:
    """What is sent in a header that holds a secret."""
    return f"{scheme} {secret}" if scheme else secret


def is_destructive(descriptor: Descriptor) -> bool:
    """Whether a call may destroy something, as far as the descriptor says; without a word it may."""
    if isinstance(descriptor, OpenApiDescriptor):
        return descriptor.method not in ("GET", "HEAD", "OPTIONS")
    return not descriptor.read_only_hint and descriptor.destructive_hint


def is_gated(mode: ApprovalMode, descriptor: Descriptor) -> bool:
    """Whether calls wait for a person's approval."""
    return mode.gates(is_destructive=is_destructive(descriptor))
