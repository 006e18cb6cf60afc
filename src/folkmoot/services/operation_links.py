"""Finds the operation that a binding or an input means now, or says in a sentence why it means nothing.

Without a version a link means the latest enabled one. A version that the server has since described otherwise is not taken
silently, nor is the new one in its place: the link fails by name. Deliberately absent: what is bound (`tooling`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import UUID

from folkmoot.domain.checking import BINDING_FIELDS
from folkmoot.domain.connectors import Operation, StoredOperation
from folkmoot.domain.definitions import Definition, DefinitionKind, Reference
from folkmoot.domain.tool_bindings import BindingInput, OnOperation, OperationBinding, SecretInput
from folkmoot.kernel.errors import NotFound
from folkmoot.services import references
from folkmoot.store import definitions, operations
from folkmoot.store.database import Reader

CONNECTORS = tuple(BINDING_FIELDS)

Link = TypeVar("Link", OperationBinding, SecretInput, BindingInput)


@dataclass(frozen=True, slots=True)
class FoundOperation:
    """An operation and its connector."""

    operation: Operation
    connector: Definition

    @property
    def title(self) -> str:
        connector = f"'{self.connector.namespace}/{self.connector.name}'"
        return f"operation '{self.operation.name}' of {references.NOUNS[self.connector.kind]} {connector}"


async def find(
    reader: Reader, tenant_id: UUID, *, link: OnOperation, namespace: str, kind: DefinitionKind | None = None
) -> FoundOperation | str:
    """The operation meant, whatever its versions. `kind`: of its connector, where that is settled; null: either."""
    if link.external_operation_id is not None:
        return await _by_id(reader, tenant_id, operation_id=link.external_operation_id, kind=kind)
    assert link.connector is not None and link.operation is not None
    found: list[Definition] = []
    missing = ""
    for each in (kind,) if kind is not None else CONNECTORS:
        try:
            found.append(
                await references.find(reader, tenant_id, kind=each, reference=link.connector, namespace=namespace)
            )
        except NotFound as error:
            missing = str(error)
    if len(found) > 1:
        return f"'{link.connector}' is an MCP and an OpenAPI connector; name the operation by its id."
    if not found:
        return missing if kind is not None else f"There is no connector '{link.connector}'. Publish it first."
    operation = await operations.find(reader, tenant_id, connector_id=found[0].definition_id, name=link.operation)
    if operation is None:
        where = f"{references.NOUNS[found[0].kind]} '{found[0].namespace}/{found[0].name}'"
        return f"The {where} has no operation '{link.operation[:200]}'. Correct the name, or refresh the connector."
    return FoundOperation(operation, found[0])


async def _by_id(
    reader: Reader, tenant_id: UUID, *, operation_id: UUID, kind: DefinitionKind | None
) -> FoundOperation | str:
    operation = await operations.find(reader, tenant_id, operation_id=operation_id)
    if operation is None:
        return f"There is no operation with the id {operation_id}. Correct it, or take it out."
    for each in CONNECTORS:
        connector = await definitions.get(reader, tenant_id, kind=each, definition_id=operation.connector_id)
        if connector is not None:
            found = FoundOperation(operation, connector)
            if kind is not None and each is not kind:
                return f"The {found.title} belongs under '{BINDING_FIELDS[each]}'."
            return found
    return f"The connector of the operation with the id {operation_id} was deleted. Take it out."


async def enabled(
    reader: Reader, tenant_id: UUID, *, found: FoundOperation, number: int | None
) -> StoredOperation | str:
    """The version that something new takes, or a sentence that says why there is none."""
    operation, title = found.operation, found.title
    if operation.gone_at is not None:
        return f"The {title} is offered no more by its server. Take it out, or refresh the connector once it is back."
    if not number:
        latest = await operations.latest_enabled(reader, tenant_id, operation=operation)
        if latest is None:
            return f"Every version of the {title} is disabled. Enable one."
        if not latest.is_current:
            newest = operation.latest_version
            return f"The {title} has changed at its server, and what it is now is disabled. Look at version {newest} and enable it."
        return latest
    pinned = await operations.version(reader, tenant_id, operation=operation, number=number)
    if pinned is None:
        return f"There is no version {number} of the {title}; its newest is {operation.latest_version}."
    if pinned.is_disabled:
        return f"Version {number} of the {title} is disabled. Enable it, or bind another version."
    if not pinned.is_current:
        return (
            f"The {title} has changed at its server since version {number}, which is bound. Look at version "
            f"{operation.latest_version}, and bind that one."
        )
    return pinned


def settled(link: Link, found: FoundOperation) -> Link:
    """The link with the operation's id, and with the names that it goes by."""
    connector = found.connector
    return replace(
        link,
        external_operation_id=found.operation.operation_id,
        connector=Reference(connector.name, connector.namespace, connector.definition_id),
        operation=found.operation.name,
    )
