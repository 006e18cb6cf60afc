"""External operations and their versions, and the documents that were uploaded for them.

What a server offers is written down under a lock on its connector, so that two that look at once do not both add a version.
Deliberately absent: what a new version takes over from the one before (`domain.operation_changes`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain.connectors import Operation, StoredOperation
from folkmoot.domain.operations import Discovered, OperationVersion
from folkmoot.store.codecs import DESCRIPTOR, OPERATION_VERSION, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("operations")
_BEYOND = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Known:
    """An operation that is known, beside what is offered now. `version`: its newest, where the descriptor differs."""

    operation_id: UUID
    name: str
    latest_version: int
    is_gone: bool
    is_disabled: bool
    is_offered: bool
    is_same: bool
    version: OperationVersion | None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to be added. `name`: set where the operation itself is new."""

    operation_id: UUID
    version: OperationVersion
    is_disabled: bool = False
    name: str | None = None


async def lock_connector(writer: Writer, tenant_id: UUID, *, connector_id: UUID) -> bool:
    """Holds the connector until the transaction ends; false if it is there no more."""
    row = await _sql.lock_connector(writer.connection, tenant_id=tenant_id, connector_id=connector_id)
    return row is not None


async def compare(reader: Reader, tenant_id: UUID, *, connector_id: UUID, offered: Sequence[Discovered]) -> list[Known]:
    """Every operation that the connector is known to have had, each beside what is offered under its name."""
    rows = _sql.compare(
        reader.connection,
        tenant_id=tenant_id,
        connector_id=connector_id,
        names=[safe(each.name) for each in offered],
        descriptors=[DESCRIPTOR.write(each.descriptor) for each in offered],
    )
    return [
        Known(
            row["operation_id"], row["name"], row["latest_version"], row["is_gone"], row["is_disabled"], row["is_offered"],
            bool(row["is_same"]), OPERATION_VERSION.read(row["body"]) if row["body"] is not None else None,
        )
        async for row in rows
    ]  # fmt: skip


async def add(
    writer: Writer, tenant_id: UUID, *, connector_id: UUID, versions: Sequence[NewVersion], created_by: UUID
) -> None:
    """Add versions, and with a first one its operation."""
    new = [each for each in versions if each.name is not None]
    if new:
        await _sql.insert_operations(
            writer.connection,
            tenant_id=tenant_id,
            connector_id=connector_id,
            ids=[each.operation_id for each in new],
            names=[safe(each.name or "") for each in new],
        )
    if not versions:
        return
    ids, numbers = [each.operation_id for each in versions], [each.version.number for each in versions]
    await _sql.insert_versions(
        writer.connection,
        tenant_id=tenant_id,
        ids=ids,
        numbers=numbers,
        bodies=[OPERATION_VERSION.write(each.version) for each in versions],
        disabled=[each.is_disabled for each in versions],
        created_by=created_by,
    )
    await _sql.raise_latest(writer.connection, tenant_id=tenant_id, ids=ids, numbers=numbers)


async def mark(writer: Writer, tenant_id: UUID, *, gone: Sequence[UUID], back: Sequence[UUID]) -> None:
    """Mark operations as offered no more, and others as offered again."""
    if gone:
        await _sql.mark_gone(writer.connection, tenant_id=tenant_id, ids=list(gone))
    if back:
        await _sql.mark_back(writer.connection, tenant_id=tenant_id, ids=list(back))


async def find(
    reader: Reader, tenant_id: UUID, *, operation_id: UUID | None = None, connector_id: UUID | None = None, name: str = ""
) -> Operation | None:  # fmt: skip
    """By id, or by connector and name; null also where the connector was deleted."""
    if operation_id is not None:
        row = await _sql.operation_by_id(reader.connection, tenant_id=tenant_id, operation_id=operation_id)
    else:
        row = await _sql.operation_by_name(
            reader.connection, tenant_id=tenant_id, connector_id=connector_id, name=safe(name)
        )
    return _operation(row) if row is not None else None


async def lock(writer: Writer, tenant_id: UUID, *, operation_id: UUID) -> None:
    await _sql.lock_operation(writer.connection, tenant_id=tenant_id, operation_id=operation_id)


async def version(reader: Reader, tenant_id: UUID, *, operation: Operation, number: int) -> StoredOperation | None:
    """A version, disabled or not; null if there is none of this number."""
    row = await _sql.version(
        reader.connection, tenant_id=tenant_id, operation_id=operation.operation_id, number=min(number, _BEYOND)
    )
    return _stored(operation, row) if row is not None else None


async def latest_enabled(reader: Reader, tenant_id: UUID, *, operation: Operation) -> StoredOperation | None:
    """What bindings without a version take; null if every version is disabled."""
    row = await _sql.latest_enabled(reader.connection, tenant_id=tenant_id, operation_id=operation.operation_id)
    return _stored(operation, row) if row is not None else None


async def versions(
    reader: Reader, tenant_id: UUID, *, operation: Operation, before: int | None, limit: int
) -> list[StoredOperation]:
    """Versions, the newest first, those below the number `before`."""
    rows = _sql.versions(
        reader.connection,
        tenant_id=tenant_id,
        operation_id=operation.operation_id,
        before=before or _BEYOND,
        limit=limit,
    )
    return [_stored(operation, row) async for row in rows]


async def page(
    reader: Reader, tenant_id: UUID, *, connector_id: UUID, after: str, limit: int, text: str | None = None, name: str | None = None
) -> list[StoredOperation]:  # fmt: skip
    """A connector's operations by name, those after `after`, each as its newest version. `text`: a part of the name."""
    rows = _sql.page(
        reader.connection,
        tenant_id=tenant_id,
        connector_id=connector_id,
        after=safe(after),
        limit=limit,
        text=safe(text) if text is not None else None,
        name=safe(name) if name is not None else None,
    )
    return [
        StoredOperation(
            _operation(row), OPERATION_VERSION.read(row["body"]), row["is_disabled"], True, row["version_created_at"]
        )
        async for row in rows
    ]


async def set_disabled(
    writer: Writer, tenant_id: UUID, *, operation: Operation, number: int, is_disabled: bool
) -> StoredOperation | None:
    """Disable or enable a version; null if there is none of this number."""
    found = {"tenant_id": tenant_id, "operation_id": operation.operation_id}
    if not await _sql.set_disabled(writer.connection, **found, number=min(number, _BEYOND), is_disabled=is_disabled):
        return None
    await _sql.touch(writer.connection, **found)
    return await version(writer, tenant_id, operation=operation, number=number)


async def keep_document(writer: Writer, tenant_id: UUID, *, body: bytes) -> None:
    """Keep an uploaded document under its hash; a second time changes nothing."""
    await _sql.keep_document(writer.connection, tenant_id=tenant_id, hash=hashlib.sha256(body).digest(), body=body)


async def document(reader: Reader, tenant_id: UUID, *, document_hash: str) -> bytes | None:
    """A document by its SHA-256 in hex."""
    found: bytes | None = await _sql.document(reader.connection, tenant_id=tenant_id, hash=bytes.fromhex(document_hash))
    return found


def _operation(row: Any) -> Operation:
    return Operation(
        row["operation_id"], row["connector_id"], row["name"], row["latest_version"], row["created_at"], row["updated_at"],
        row["gone_at"],
    )  # fmt: skip


def _stored(operation: Operation, row: Any) -> StoredOperation:
    return StoredOperation(
        operation, OPERATION_VERSION.read(row["body"]), row["is_disabled"], bool(row["is_current"]), row["created_at"]
    )
