"""Definitions and their versions. A version is added, disabled, enabled; never rewritten.

Names are unique in a namespace for each kind. Deleting hides: what was deleted is found by nobody, and its name is free again.
Deliberately absent: whether a version holds together (`domain.checking`) and what it refers to (`services.definitions`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import Definition, DefinitionKind, StoredVersion, Version
from folkmoot.store.codecs import VERSIONS, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("definitions")
_BEYOND = 2_147_483_647


class Outcome(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DELETED = "deleted"


@dataclass(frozen=True, slots=True)
class Published:
    definition_id: UUID
    number: int
    outcome: Outcome


async def publish(
    writer: Writer, tenant_id: UUID, *, kind: DefinitionKind, namespace_id: UUID, name: str, body: Version,
    created_by: UUID, definition_id: UUID,
) -> Published | None:  # fmt: skip
    """Add a version, and with the first one the definition (as `definition_id`). A body equal to the latest adds nothing.

    Null: the definition is an interaction of another type, and stays as it is.
    """
    text = VERSIONS[kind].write(body)
    place = {"tenant_id": tenant_id, "kind": kind, "namespace_id": namespace_id, "name": safe(name)}
    row = None
    while row is None:
        made = await _sql.insert_definition(
            writer.connection, **place, definition_id=definition_id, created_by=created_by
        )
        if made is not None:
            await _insert_version(writer, tenant_id, id_=definition_id, number=1, text=text, created_by=created_by)
            return Published(definition_id, 1, Outcome.CREATED)
        # No row: it was deleted between the two statements, and the name is free again.
        row = await _sql.lock_definition(writer.connection, **place, body=text)
    found, number = row["definition_id"], row["latest_version"]
    if row["is_other_type"]:
        return None
    if row["is_same"]:
        return Published(found, number, Outcome.UNCHANGED)
    await _insert_version(writer, tenant_id, id_=found, number=number + 1, text=text, created_by=created_by)
    await _sql.raise_latest(writer.connection, tenant_id=tenant_id, definition_id=found, number=number + 1)
    return Published(found, number + 1, Outcome.CHANGED)


async def _insert_version(
    writer: Writer, tenant_id: UUID, *, id_: UUID, number: int, text: str, created_by: UUID
) -> None:
    await _sql.insert_version(
        writer.connection, tenant_id=tenant_id, definition_id=id_, number=number, body=text, created_by=created_by
    )


async def get(reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, definition_id: UUID) -> Definition | None:
    row = await _sql.definition_by_id(reader.connection, tenant_id=tenant_id, kind=kind, definition_id=definition_id)
    return _definition(row) if row is not None else None


async def get_by_name(
    reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, namespace: str, name: str
) -> Definition | None:
    row = await _sql.definition_by_name(
        reader.connection, tenant_id=tenant_id, kind=kind, namespace=safe(namespace), name=safe(name)
    )
    return _definition(row) if row is not None else None


async def version(reader: Reader, tenant_id: UUID, *, definition: Definition, number: int) -> StoredVersion | None:
    """A version, disabled or not; null if there is none of this number."""
    row = await _sql.version(
        reader.connection, tenant_id=tenant_id, definition_id=definition.definition_id, number=min(number, _BEYOND)
    )
    return _stored(definition, row) if row is not None else None


async def latest_enabled(reader: Reader, tenant_id: UUID, *, definition: Definition) -> StoredVersion | None:
    """What links and starts without a version take; null if every version is disabled."""
    row = await _sql.latest_enabled(reader.connection, tenant_id=tenant_id, definition_id=definition.definition_id)
    return _stored(definition, row) if row is not None else None


async def versions(
    reader: Reader, tenant_id: UUID, *, definition: Definition, before: int | None, limit: int
) -> list[StoredVersion]:
    """Versions, the newest first, those below the number `before`."""
    rows = _sql.versions(
        reader.connection,
        tenant_id=tenant_id,
        definition_id=definition.definition_id,
        before=before or _BEYOND,
        limit=limit,
    )
    return [_stored(definition, row) async for row in rows]


async def page(
    reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, namespace_id: UUID, after: str, limit: int
) -> list[StoredVersion]:
    """Definitions of a namespace by name, those after the name `after`, each as its newest version, disabled or not."""
    rows = _sql.page(
        reader.connection, tenant_id=tenant_id, kind=kind, namespace_id=namespace_id, after=safe(after), limit=limit
    )
    return [
        StoredVersion(_definition(row), row["number"], VERSIONS[kind].read(row["body"]), row["is_disabled"], row["version_created_at"])
        async for row in rows
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Named:
    definition_id: UUID
    namespace: str
    name: str


async def enabled_names(reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, limit: int) -> list[Named]:
    """Definitions of which a version is enabled, by namespace and name."""
    rows = _sql.enabled_names(reader.connection, tenant_id=tenant_id, kind=kind, limit=limit)
    return [Named(*row.values()) async for row in rows]


async def set_disabled(
    writer: Writer, tenant_id: UUID, *, definition: Definition, number: int, is_disabled: bool
) -> StoredVersion | None:
    """Disable or enable a version; null if there is none of this number."""
    row = await _sql.set_disabled(
        writer.connection,
        tenant_id=tenant_id,
        definition_id=definition.definition_id,
        number=min(number, _BEYOND),
        is_disabled=is_disabled,
    )
    if row is None:
        return None
    await _sql.touch(writer.connection, tenant_id=tenant_id, definition_id=definition.definition_id)
    return _stored(definition, row)


async def delete(writer: Writer, tenant_id: UUID, *, kind: DefinitionKind, definition_id: UUID) -> bool:
    """Hide a definition from everything new; false if it was not there."""
    return bool(await _sql.delete(writer.connection, tenant_id=tenant_id, kind=kind, definition_id=definition_id))


def _definition(row: Any) -> Definition:
    return Definition(
        definition_id=row["definition_id"], kind=DefinitionKind(row["kind"]), namespace=row["namespace"], name=row["name"],
        latest_version=row["latest_version"], created_by=row["created_by"], created_at=row["created_at"], updated_at=row["updated_at"],
    )  # fmt: skip


def _stored(definition: Definition, row: Any) -> StoredVersion:
    return StoredVersion(
        definition, row["number"], VERSIONS[definition.kind].read(row["body"]), row["is_disabled"], row["created_at"]
    )
