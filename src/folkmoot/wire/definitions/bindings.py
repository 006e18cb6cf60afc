"""What is bound to a participant or an interaction: agents, external operations, web access.

Deliberately absent: secrets. A header names a secret's id or the run input that chooses one.
"""

from typing import Literal

from folkmoot.wire.definitions.links import ApprovalMode, Bytes, LinkText, OperationLinkRequest, Scheme, Seconds
from folkmoot.wire.formats import (
    Flag,
    Name,
    NameValuePair,
    NameValuePairRequest,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    Uuid,
    VersionReference,
)


class ConnectorAuthenticationHeader(ResponseShape):
    """A header to send with a call: one secret, or the one that the named run input chooses. `scheme` is put before it.

    For a connector with a command it is a variable of the environment, without a scheme.
    """

    header_name: str
    secret_id: Uuid | None
    secret_input_name: str | None
    scheme: str | None


class McpExternalOperationBinding(ResponseShape):
    """An MCP tool. `name` is the function name that the model sees; `requestBindings` go straight into the call.

    The last four are ours, and tighten what the operation's version says; null leaves it.
    """

    name: str
    external_operation_id: Uuid
    external_operation_version: int | None
    request_bindings: tuple[NameValuePair, ...]
    authentication_header: ConnectorAuthenticationHeader | None
    prompt_guidance: str | None
    is_terminal: bool
    approval_mode: ApprovalMode | None
    is_idempotent: bool | None
    limit_seconds: float | None
    limit_bytes: int | None


class OpenApiExternalOperationBinding(McpExternalOperationBinding):
    """An OpenAPI operation; values are bound by where they stand: body, path or query."""

    path_bindings: tuple[NameValuePair, ...]
    query_bindings: tuple[NameValuePair, ...]


class WebAccess(ResponseShape):
    """What of the web an agent may use."""

    search: bool
    fetch: bool


class InteractionAgentBinding(ResponseShape):
    """A participant. `name` null: the agent's own; `agent` is an agent or a router, as `kind` says. The last two are ours.

    `description`: what a manager reads of it; null: the agent's own.
    """

    name: str | None
    agent: VersionReference
    external_operations_mcp: tuple[McpExternalOperationBinding, ...]
    external_operations_open_api: tuple[OpenApiExternalOperationBinding, ...]
    loom_id: Uuid | None
    web_access: WebAccess | None
    kind: Literal["Agent", "Router"]
    description: str | None


class ConnectorAuthenticationHeaderRequest(RequestShape):
    """A header to send with a call: one secret (by id, or as `secret` by name), or the one that the named run input chooses.

    For a connector with a command it is a variable of the environment, without a scheme.
    """

    header_name: Name
    secret_id: Uuid | None = None
    secret: LinkText | None = None
    secret_input_name: Name | None = None
    scheme: Scheme | None = None


class McpExternalOperationBindingRequest(OperationLinkRequest):
    """An MCP tool. `externalOperationVersion` null: the latest enabled one when a run starts. The last four only tighten."""

    name: Name
    external_operation_version: Positive | None = None
    request_bindings: tuple[NameValuePairRequest, ...] = ()
    authentication_header: ConnectorAuthenticationHeaderRequest | None = None
    prompt_guidance: Text | None = None
    is_terminal: Flag = False
    approval_mode: ApprovalMode | None = None
    is_idempotent: Flag | None = None
    limit_seconds: Seconds | None = None
    limit_bytes: Bytes | None = None


class OpenApiExternalOperationBindingRequest(McpExternalOperationBindingRequest):
    """An OpenAPI operation; values are bound by where they stand: body, path or query."""

    path_bindings: tuple[NameValuePairRequest, ...] = ()
    query_bindings: tuple[NameValuePairRequest, ...] = ()


class WebAccessRequest(RequestShape):
    """What of the web an agent may use."""

    search: Flag = False
    fetch: Flag = False


class InteractionAgentBindingRequest(RequestShape):
    """A participant. `agent` is an agent or a router: a name, `namespace/name`, `name@3`, or an id and a version.

    `kind` says which; without it an agent of that name goes before a router.
    """

    name: Name | None = None
    agent: ReferenceRequest
    external_operations_mcp: tuple[McpExternalOperationBindingRequest, ...] = ()
    external_operations_open_api: tuple[OpenApiExternalOperationBindingRequest, ...] = ()
    loom_id: Uuid | None = None
    web_access: WebAccessRequest | None = None
    kind: Literal["Agent", "Router"] | None = None
    description: Text | None = None
