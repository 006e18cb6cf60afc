"""External operations: listed, read, switched off and on, and what the operator decides on them.

What is decided makes a new version, so that a run goes on under what it started with. Deliberately absent: where operations come
from (`connectors`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.binding_checks import faults_of_limits
from folkmoot.domain.connectors import Operation, StoredOperation
from folkmoot.domain.definitions import Definition, DefinitionKind, Reference
from folkmoot.domain.operation_changes import OperationSettings, with_settings
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.tool_bindings import OnOperation
from folkmoot.kernel.errors import BadInput, NotFound
from folkmoot.services import operation_links, references
from folkmoot.store import audit, operations
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.operations import NewVersion

_KIND = "operation"


@dataclass(frozen=True, slots=True)
class ShownOperation:
    """A version of an operation, with the connector that it belongs to."""

    stored: StoredOperation
    connector: Definition


@dataclass(frozen=True, slots=True)
class OperationFilter:
    """`text`: a part of the name, in any case; `name`: the whole."""

    text: str | None = None
    name: str | None = None


async def page(
    database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference, wanted: OperationFilter, after: str, limit: int
) -> list[ShownOperation]:  # fmt: skip
    """A connector's operations by name, those after `after`, each as its newest version; gone ones too. Raises NotFound."""
    async with database.reader() as reader:
        connector = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
        found = await operations.page(
            reader, caller.tenant_id, connector_id=connector.definition_id, after=after, limit=limit, text=wanted.text, name=wanted.name
        )  # fmt: skip
    return [ShownOperation(stored, connector) for stored in found]


async def get(database: Database, caller: Caller, *, operation_id: UUID, version: int | None = None) -> ShownOperation:
    """The version, else the newest. Raises NotFound."""
    async with database.reader() as reader:
        operation, connector = await _find(reader, caller, operation_id)
        return ShownOperation(await _version(reader, caller, operation, version), connector)


async def versions(
    database: Database, caller: Caller, *, operation_id: UUID, before: int | None, limit: int
) -> list[ShownOperation]:
    """Its versions, the newest first, those below the number `before`. Raises NotFound."""
    async with database.reader() as reader:
        operation, connector = await _find(reader, caller, operation_id)
        found = await operations.versions(reader, caller.tenant_id, operation=operation, before=before, limit=limit)
    return [ShownOperation(stored, connector) for stored in found]


async def decide(
    database: Database, caller: Caller, *, operation_id: UUID, settings: OperationSettings
) -> ShownOperation:
    """The newest version with these settings: a new one, unless it says so already. Raises NotFound, BadInput."""
    faults = tuple(faults_of_limits("", settings.limit_seconds, settings.limit_bytes))
    if faults:
        raise BadInput(f"The settings were not saved. {faults[0].message}", faults)
    async with database.writer() as writer:
        await operations.lock(writer, caller.tenant_id, operation_id=operation_id)
        operation, connector = await _find(writer, caller, operation_id)
        latest = await _version(writer, caller, operation, None)
        version = with_settings(latest.version, settings)
        if version == latest.version:
            return ShownOperation(latest, connector)
        await operations.add(
            writer, caller.tenant_id, connector_id=connector.definition_id,
            versions=[NewVersion(operation_id, version, latest.is_disabled)], created_by=caller.user_id,
        )  # fmt: skip
        await _note(writer, caller, "operation.decided", operation, connector, version.number)
        operation = replace(operation, latest_version=version.number)
        return ShownOperation(await _version(writer, caller, operation, None), connector)


async def set_disabled(
    database: Database, caller: Caller, *, operation_id: UUID, number: int, is_disabled: bool
) -> ShownOperation:
    """Disable or enable a version. Runs under way go on. Raises NotFound."""
    async with database.writer() as writer:
        operation, connector = await _find(writer, caller, operation_id)
        found = await operations.set_disabled(
            writer, caller.tenant_id, operation=operation, number=number, is_disabled=is_disabled
        )
        if found is None:
            raise _no_version(operation, number)
        action = "operation.disabled" if is_disabled else "operation.enabled"
        await _note(writer, caller, action, operation, connector, number)
    return ShownOperation(found, connector)


async def _find(reader: Reader, caller: Caller, operation_id: UUID) -> tuple[Operation, Definition]:
    link = OnOperation(external_operation_id=operation_id)
    found = await operation_links.find(reader, caller.tenant_id, link=link, namespace="")
    if isinstance(found, str):
        raise NotFound(found)
    return found.operation, found.connector


async def _version(reader: Reader, caller: Caller, operation: Operation, number: int | None) -> StoredOperation:
    wanted = number or operation.latest_version
    found = await operations.version(reader, caller.tenant_id, operation=operation, number=wanted)
    if found is None:
        raise _no_version(operation, wanted)
    return found


def _no_version(operation: Operation, number: int) -> NotFound:
    return NotFound(
        f"There is no version {number} of the operation '{operation.name}'; its newest is {operation.latest_version}."
    )


async def _note(
    writer: Writer, caller: Caller, action: str, operation: Operation, connector: Definition, version: int
) -> None:
    detail = {"name": operation.name, "connector": f"{connector.namespace}/{connector.name}", "version": version}
    await audit.note(
        writer, caller, action=action, subject_kind=_KIND, subject_id=operation.operation_id, detail=detail
    )
