"""Connectors and their operations: a request as a version, what is stored as it is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from uuid import UUID

from folkmoot.api.mapping.bindings import link
from folkmoot.api.mapping.references import NOTHING, refuse
from folkmoot.api.mapping.resources import definition_fields, version_fields
from folkmoot.domain.calls import Tool
from folkmoot.domain.connectors import (
    ConnectorHeader,
    McpConnectorVersion,
    OpenApiConnectorVersion,
    Refreshed,
    StoredOperation,
)
from folkmoot.domain.definitions import Participant, Reference, StoredVersion
from folkmoot.domain.operation_changes import OperationSettings
from folkmoot.domain.operations import ApprovalMode, Http, OpenApiDescriptor, OperationTarget, Stdio, is_gated
from folkmoot.kernel.errors import Fault
from folkmoot.services.operations import ShownOperation
from folkmoot.services.surveys import Survey
from folkmoot.wire import definitions as wire


def mcp_version_of(request: wire.McpConnectorVersionRequest) -> McpConnectorVersion:
    """Raises BadInput where neither or both of URL and command are there, or a link is none."""
    faults: list[Fault] = []
    server: Http | Stdio = Http(request.url or "")
    if (request.url is None) == (request.command is None):
        faults.append(Fault("", "An MCP connector has a 'url', or a 'command'; give one of the two."))
    if request.command is not None:
        server = Stdio(request.command, request.arguments, request.environment)
    elif request.arguments or request.environment:
        faults.append(Fault("/arguments", "Only a 'command' takes arguments and an environment; leave them out."))
    made = McpConnectorVersion(server, request.description, _headers_of(request.headers, faults))
    refuse(faults)
    return made


def open_api_version_of(
    request: wire.OpenApiConnectorVersionRequest,
) -> tuple[OpenApiConnectorVersion, bytes | None]:
    """The version, and the document where it was uploaded. Raises BadInput where a link is none."""
    faults: list[Fault] = []
    document = request.document.encode("utf-8", "replace") if request.document is not None else None
    made = OpenApiConnectorVersion(
        document_url=request.document_url,
        document_hash=hashlib.sha256(document).hexdigest() if document is not None else None,
        base_url=request.base_url,
        description=request.description,
        headers=_headers_of(request.headers, faults),
    )
    refuse(faults)
    return made, document


def _headers_of(requests: Iterable[wire.ConnectorHeaderRequest], faults: list[Fault]) -> tuple[ConnectorHeader, ...]:
    made = []
    for index, request in enumerate(requests):
        pointer = f"/headers/{index}/secret"
        secret = link(request.secret_id, request.secret, pointer, faults)
        if secret is None:
            faults.append(Fault(pointer, "A header sends a secret: name it, or give its id as 'secretId'."))
        made.append(ConnectorHeader(request.header_name, secret or Reference(), request.scheme))
    return tuple(made)


def settings_of(request: wire.ExternalOperationSettingsRequest) -> OperationSettings:
    return OperationSettings(
        approval_mode=ApprovalMode(request.approval_mode) if request.approval_mode is not None else None,
        is_idempotent=request.is_idempotent,
        is_read_only=request.is_read_only,
        limit_seconds=request.limit_seconds,
        limit_bytes=request.limit_bytes,
    )


def mcp_version(stored: StoredVersion) -> wire.McpConnectorVersion:
    body = stored.body
    assert isinstance(body, McpConnectorVersion)
    server = body.server
    return wire.McpConnectorVersion(
        **version_fields(stored),
        description=body.description,
        url=None if isinstance(server, Stdio) else server.url,
        command=server.command if isinstance(server, Stdio) else None,
        arguments=server.arguments if isinstance(server, Stdio) else (),
        environment=server.environment if isinstance(server, Stdio) else {},
        headers=_headers(body.headers),
    )


def open_api_version(stored: StoredVersion) -> wire.OpenApiConnectorVersion:
    body = stored.body
    assert isinstance(body, OpenApiConnectorVersion)
    return wire.OpenApiConnectorVersion(
        **version_fields(stored),
        description=body.description,
        document_url=body.document_url,
        document_hash=body.document_hash,
        base_url=body.base_url,
        server_url=body.base_url or body.server_url,
        headers=_headers(body.headers),
    )


def _headers(headers: Iterable[ConnectorHeader]) -> tuple[wire.ConnectorHeader, ...]:
    return tuple(
        wire.ConnectorHeader(
            header_name=header.header_name, secret_id=header.secret.definition_id or NOTHING, scheme=header.scheme
        )
        for header in headers
    )


def mcp_connector(stored: StoredVersion, tenant_id: UUID) -> wire.McpConnector:
    """An MCP connector with its newest version."""
    return wire.McpConnector(**definition_fields(stored, tenant_id), latest_version=mcp_version(stored))


def open_api_connector(stored: StoredVersion, tenant_id: UUID) -> wire.OpenApiConnector:
    """An OpenAPI connector with its newest version."""
    return wire.OpenApiConnector(**definition_fields(stored, tenant_id), latest_version=open_api_version(stored))


def changes(refreshed: Refreshed) -> wire.ConnectorChanges:
    return wire.ConnectorChanges(
        added=refreshed.added,
        changed=refreshed.changed,
        gone=refreshed.gone,
        back=refreshed.back,
        left_out=tuple(wire.LeftOutOperation(name=name, reason=reason) for name, reason in refreshed.left_out),
        server_url=refreshed.server_url,
    )


def operation_version(stored: StoredOperation) -> wire.ExternalOperationVersion:
    version, descriptor = stored.version, stored.version.descriptor
    return wire.ExternalOperationVersion(
        version=version.number,
        date=stored.created_at,
        is_disabled=stored.is_disabled,
        is_current=stored.is_current and stored.operation.gone_at is None,
        description=descriptor.description,
        method=descriptor.method if isinstance(descriptor, OpenApiDescriptor) else None,
        path=descriptor.path if isinstance(descriptor, OpenApiDescriptor) else None,
        parameters_schema=json.dumps(descriptor.parameters, ensure_ascii=False),
        approval_mode=version.approval_mode.value,
        is_gated=is_gated(version.approval_mode, descriptor),
        is_idempotent=version.is_idempotent,
        is_read_only=version.is_read_only,
        limit_seconds=version.limit_seconds,
        limit_bytes=version.limit_bytes,
    )


def operation(found: ShownOperation, tenant_id: UUID) -> wire.ExternalOperation:
    """An operation with the version at hand."""
    known = found.stored.operation
    return wire.ExternalOperation(
        id=known.operation_id,
        tenant_id=tenant_id,
        connector_id=found.connector.definition_id,
        connector_name=found.connector.name,
        namespace_name=found.connector.namespace,
        type="OpenApi" if isinstance(found.stored.version.descriptor, OpenApiDescriptor) else "Mcp",
        name=known.name,
        date_created=known.created_at,
        date_updated=known.updated_at,
        date_gone=known.gone_at,
        latest_version=operation_version(found.stored),
    )


def tools(survey: Survey) -> wire.InteractionTools:
    return wire.InteractionTools(
        participants=tuple(
            wire.ParticipantTools(agent_name=each.name, tools=tuple(dict.fromkeys(_tools(each))))
            for each in survey.participants
        ),
        problems=survey.problems,
    )


def _tools(participant: Participant) -> Iterator[wire.InteractionTool]:
    """Of each agent that may have the seat."""
    return (_tool(tool) for variant in participant.variants for tool in variant.tools)


def _tool(tool: Tool) -> wire.InteractionTool:
    target = tool.target if isinstance(tool.target, OperationTarget) else None
    return wire.InteractionTool(
        function_name=tool.name,
        description=tool.description,
        is_gated=tool.is_gated,
        is_read_only=tool.is_read_only,
        is_idempotent=tool.is_idempotent,
        is_terminal=tool.is_terminal,
        connector_name=target.connector_name if target is not None else None,
        operation_id=target.operation_id if target is not None else None,
        operation_version=target.operation_version if target is not None else None,
    )
