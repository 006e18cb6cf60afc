"""Connectors: MCP servers and OpenAPI services, and what they offer.

Deliberately absent: secrets, which are named; and the text of an uploaded document, which is told by its hash.
"""

from typing import Annotated, Literal

from pydantic import Field

from folkmoot.wire.definitions.links import ApprovalMode, Bytes, LinkText, Scheme, Seconds
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import Datetime, Flag, Name, Page, RequestShape, ResponseShape, Text, Uuid

_DocumentText = Annotated[str, Field(min_length=1, max_length=33_554_432)]
_Url = Annotated[str, Field(min_length=1, max_length=2_000)]
_Arguments = Annotated[tuple[Text, ...], Field(max_length=200)]


class ConnectorHeader(ResponseShape):
    """A header of every request to the server, or a variable of a command's environment. `scheme`, if set, is put before the secret."""

    header_name: str
    secret_id: Uuid
    scheme: str | None


class ConnectorHeaderRequest(RequestShape):
    """A header of every request to the server: a secret by its id, or as `secret` by its name or `namespace/name`.

    Of a command: a variable of its environment, by its name as `headerName` and without a `scheme`.
    """

    header_name: Name
    secret_id: Uuid | None = None
    secret: LinkText | None = None
    scheme: Scheme | None = None


class McpConnectorVersion(DefinitionVersion):
    """One version of an MCP connector: a server at `url`, or one that `command` starts."""

    description: str | None
    url: str | None
    command: str | None
    arguments: tuple[str, ...]
    environment: dict[str, str]
    headers: tuple[ConnectorHeader, ...]


class McpConnector(DefinitionResource):
    """An MCP connector and its newest version, disabled or not."""

    latest_version: McpConnectorVersion


class McpConnectorPage(Page[McpConnector]):
    """A page of MCP connectors."""


class McpConnectorVersionPage(Page[McpConnectorVersion]):
    """A page of versions, the newest first."""


class McpConnectorVersionRequest(RequestShape):
    """A new version of an MCP connector: `url` (streamable HTTP), or `command` (stdio, where the operator allows it).

    `arguments` and `environment` are plain text, shown to readers and on approvals. What a command needs of secrets is in `headers`.
    """

    description: Text | None = None
    url: _Url | None = None
    command: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    arguments: _Arguments = ()
    environment: Annotated[dict[str, Text], Field(max_length=100)] = Field(default_factory=dict)
    headers: tuple[ConnectorHeaderRequest, ...] = ()


class McpConnectorRequest(RequestShape):
    """Creates an MCP connector with its first version."""

    name: Name
    version: McpConnectorVersionRequest


class OpenApiConnectorVersion(DefinitionVersion):
    """One version of an OpenAPI connector. `documentHash`: SHA-256 of an uploaded document; `serverUrl`: where calls go."""

    description: str | None
    document_url: str | None
    document_hash: str | None
    base_url: str | None
    server_url: str | None
    headers: tuple[ConnectorHeader, ...]


class OpenApiConnector(DefinitionResource):
    """An OpenAPI connector and its newest version, disabled or not."""

    latest_version: OpenApiConnectorVersion


class OpenApiConnectorPage(Page[OpenApiConnector]):
    """A page of OpenAPI connectors."""


class OpenApiConnectorVersionPage(Page[OpenApiConnectorVersion]):
    """A page of versions, the newest first."""


class OpenApiConnectorVersionRequest(RequestShape):
    """A new version of an OpenAPI connector. `document`: the text of a document (JSON or YAML) in place of its URL."""

    description: Text | None = None
    document_url: _Url | None = None
    document: _DocumentText | None = None
    base_url: _Url | None = None
    headers: tuple[ConnectorHeaderRequest, ...] = ()


class OpenApiConnectorRequest(RequestShape):
    """Creates an OpenAPI connector with its first version."""

    name: Name
    version: OpenApiConnectorVersionRequest


class LeftOutOperation(ResponseShape):
    """An operation of the document that cannot be called, and why."""

    name: str
    reason: str


class ConnectorChanges(ResponseShape):
    """What a look at the server changed, by the operations' names. `serverUrl`: where the document says now that the service
    is, if that is not where calls go; null if it is."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    back: tuple[str, ...]
    left_out: tuple[LeftOutOperation, ...]
    server_url: str | None


class ExternalOperationVersion(DefinitionVersion):
    """One version of an operation. `isCurrent`: it says what the server offers; `isGated`: its calls wait for a person.

    `parametersSchema` is a JSON Schema as text; `method` and `path` are an OpenAPI operation's.
    """

    is_current: bool
    description: str
    method: str | None
    path: str | None
    parameters_schema: str
    approval_mode: ApprovalMode
    is_gated: bool
    is_idempotent: bool
    is_read_only: bool
    limit_seconds: float
    limit_bytes: int


class ExternalOperation(ResponseShape):
    """An operation of a connector and its newest version. `dateGone`: since when its server offers it no more."""

    id: Uuid
    tenant_id: Uuid
    connector_id: Uuid
    connector_name: str
    namespace_name: str
    type: Literal["Mcp", "OpenApi"]
    name: str
    date_created: Datetime
    date_updated: Datetime
    date_gone: Datetime | None
    latest_version: ExternalOperationVersion


class ExternalOperationPage(Page[ExternalOperation]):
    """A page of operations, by name."""


class ExternalOperationVersionPage(Page[ExternalOperationVersion]):
    """A page of versions, the newest first."""


class ExternalOperationSettingsRequest(RequestShape):
    """What the operator decides on an operation; null leaves it as it is."""

    approval_mode: ApprovalMode | None = None
    is_idempotent: Flag | None = None
    is_read_only: Flag | None = None
    limit_seconds: Seconds | None = None
    limit_bytes: Bytes | None = None


class InteractionTool(ResponseShape):
    """A tool of a participant's; the last three are null for a function of the operator's."""

    function_name: str
    description: str
    is_gated: bool
    is_read_only: bool
    is_idempotent: bool
    is_terminal: bool
    connector_name: str | None
    operation_id: Uuid | None
    operation_version: int | None


class ParticipantTools(ResponseShape):
    """What one participant could call beyond the protocol."""

    agent_name: str
    tools: tuple[InteractionTool, ...]


class InteractionTools(ResponseShape):
    """What the participants of an interaction could call now. `problems`: what a start would be refused for."""

    participants: tuple[ParticipantTools, ...]
    problems: tuple[str, ...]
