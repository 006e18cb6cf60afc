"""Bindings of external operations, and the run inputs of calls: as they are sent, and as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from folkmoot.api.mapping.references import NOTHING, reference
from folkmoot.domain.operations import ApprovalMode, Place
from folkmoot.domain.references import Reference
from folkmoot.domain.tool_bindings import (
    AuthenticationHeader,
    BindingInput,
    NamedValue,
    OperationBinding,
    SecretInput,
)
from folkmoot.kernel.errors import Fault
from folkmoot.wire import definitions as wire
from folkmoot.wire.formats import NameValuePair, NameValuePairRequest


def bindings_of(
    requests: Iterable[wire.McpExternalOperationBindingRequest], pointer: str, faults: list[Fault]
) -> tuple[OperationBinding, ...]:
    """What is bound; a text that is no reference adds a fault."""
    return tuple(_binding_of(request, f"{pointer}/{index}", faults) for index, request in enumerate(requests))


def secret_inputs_of(
    requests: Iterable[wire.ConnectorAuthenticationSecretInputRequest], faults: list[Fault]
) -> tuple[SecretInput, ...]:
    base = "/inputsConnectorAuthenticationSecret"
    return tuple(
        SecretInput(
            **_shared(request, f"{base}/{n}", faults),
            default_secret=link(request.default_secret_id, request.default_secret, f"{base}/{n}/defaultSecret", faults),
            header_name=request.header_name,
            scheme=request.scheme,
        )
        for n, request in enumerate(requests)
    )


def binding_inputs_of(
    requests: Iterable[wire.ConnectorBindingInputRequest], faults: list[Fault]
) -> tuple[BindingInput, ...]:
    return tuple(
        BindingInput(
            **_shared(request, f"/inputsConnectorBinding/{n}", faults),
            target=request.target,
            default_value=request.default_value,
            type=Place(request.type),
        )
        for n, request in enumerate(requests)
    )


def _shared(
    request: wire.ConnectorAuthenticationSecretInputRequest | wire.ConnectorBindingInputRequest,
    pointer: str,
    faults: list[Fault],
) -> dict[str, Any]:
    """What both kinds of run inputs have: whose calls they go into, and how they are asked for."""
    return {
        "external_operation_id": request.external_operation_id,
        "connector": _connector(request.connector, pointer, faults),
        "operation": request.operation,
        "agent": link(request.agent_id, request.agent, f"{pointer}/agent", faults),
        "name": request.name,
        "description": request.description,
        "is_required": request.is_required,
    }


def link(id_: UUID | None, name: str | None, pointer: str, faults: list[Fault]) -> Reference | None:
    """Something that is named by its id or by its name; both at once, and a version, add a fault."""
    if id_ is not None and name is not None:
        faults.append(Fault(pointer, "This is named twice, by id and by name; leave one out."))
    if id_ is not None:
        return Reference(definition_id=id_)
    if name is None:
        return None
    found = reference(name, pointer, faults)
    if found.version is not None:
        faults.append(Fault(pointer, f"'{name[:80]}' takes no version here; leave out what comes after '@'."))
    return found


def _connector(name: str | None, pointer: str, faults: list[Fault]) -> Reference | None:
    return link(None, name, f"{pointer}/connector", faults)


def _binding_of(
    request: wire.McpExternalOperationBindingRequest, pointer: str, faults: list[Fault]
) -> OperationBinding:
    if request.external_operation_id is not None and (request.connector or request.operation):
        faults.append(Fault(pointer, "The operation is named twice, by id and by name; leave one out."))
    places = request if isinstance(request, wire.OpenApiExternalOperationBindingRequest) else None
    return OperationBinding(
        name=request.name,
        external_operation_id=request.external_operation_id,
        connector=_connector(request.connector, pointer, faults),
        operation=request.operation,
        external_operation_version=request.external_operation_version,
        request_bindings=_values_of(request.request_bindings),
        path_bindings=_values_of(places.path_bindings if places is not None else ()),
        query_bindings=_values_of(places.query_bindings if places is not None else ()),
        authentication_header=_header_of(request.authentication_header, pointer, faults),
        prompt_guidance=request.prompt_guidance,
        is_terminal=request.is_terminal,
        approval_mode=ApprovalMode(request.approval_mode) if request.approval_mode is not None else None,
        is_idempotent=request.is_idempotent,
        limit_seconds=request.limit_seconds,
        limit_bytes=request.limit_bytes,
    )


def _header_of(
    request: wire.ConnectorAuthenticationHeaderRequest | None, pointer: str, faults: list[Fault]
) -> AuthenticationHeader | None:
    if request is None:
        return None
    secret = link(request.secret_id, request.secret, f"{pointer}/authenticationHeader/secret", faults)
    return AuthenticationHeader(request.header_name, secret, request.secret_input_name, request.scheme)


def _values_of(pairs: Iterable[NameValuePairRequest]) -> tuple[NamedValue, ...]:
    return tuple(NamedValue(pair.name, pair.value) for pair in pairs)


def mcp_bindings(bindings: Iterable[OperationBinding]) -> tuple[wire.McpExternalOperationBinding, ...]:
    return tuple(
        wire.McpExternalOperationBinding(
            name=binding.name,
            external_operation_id=binding.external_operation_id or NOTHING,
            external_operation_version=binding.external_operation_version,
            request_bindings=_values(binding.request_bindings),
            authentication_header=_header(binding.authentication_header),
            prompt_guidance=binding.prompt_guidance,
            is_terminal=binding.is_terminal,
            approval_mode=binding.approval_mode.value if binding.approval_mode is not None else None,
            is_idempotent=binding.is_idempotent,
            limit_seconds=binding.limit_seconds,
            limit_bytes=binding.limit_bytes,
        )
        for binding in bindings
    )


def open_api_bindings(bindings: tuple[OperationBinding, ...]) -> tuple[wire.OpenApiExternalOperationBinding, ...]:
    return tuple(
        wire.OpenApiExternalOperationBinding(
            **dict(shown),
            path_bindings=_values(binding.path_bindings),
            query_bindings=_values(binding.query_bindings),
        )
        for binding, shown in zip(bindings, mcp_bindings(bindings), strict=True)
    )


def secret_inputs(items: Iterable[SecretInput]) -> tuple[wire.ConnectorAuthenticationSecretInput, ...]:
    return tuple(
        wire.ConnectorAuthenticationSecretInput(
            external_operation_id=item.external_operation_id or NOTHING,
            agent_id=_id(item.agent),
            default_secret_id=_id(item.default_secret),
            header_name=item.header_name,
            name=item.name,
            description=item.description,
            is_required=item.is_required,
            scheme=item.scheme,
        )
        for item in items
    )


def binding_inputs(items: Iterable[BindingInput]) -> tuple[wire.ConnectorBindingInput, ...]:
    return tuple(
        wire.ConnectorBindingInput(
            external_operation_id=item.external_operation_id or NOTHING,
            agent_id=_id(item.agent),
            target=item.target,
            default_value=item.default_value,
            type=item.type.value,
            name=item.name,
            description=item.description,
            is_required=item.is_required,
        )
        for item in items
    )


def _header(header: AuthenticationHeader | None) -> wire.ConnectorAuthenticationHeader | None:
    if header is None:
        return None
    return wire.ConnectorAuthenticationHeader(
        header_name=header.header_name,
        secret_id=_id(header.secret),
        secret_input_name=header.secret_input_name,
        scheme=header.scheme,
    )


def _values(pairs: Iterable[NamedValue]) -> tuple[NameValuePair, ...]:
    return tuple(NameValuePair(name=pair.name, value=pair.value) for pair in pairs)


def _id(found: Reference | None) -> UUID | None:
    return found.definition_id if found is not None else None
