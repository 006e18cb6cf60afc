"""Sealed secrets by id and by name, and the check value of the vault's key.

Deliberately absent: values. What is stored here only the vault can open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from folkmoot.domain.secrets import SealedSecret, Secret
from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("secrets")


async def find(
    reader: Reader, tenant_id: UUID, *, secret_id: UUID | None = None, namespace: str | None = None, name: str | None = None
) -> SealedSecret | None:  # fmt: skip
    """By id, or by namespace and name; null if the tenant has no such secret."""
    if secret_id is not None:
        row = await _sql.secret_by_id(reader.connection, tenant_id=tenant_id, secret_id=secret_id)
    else:
        assert namespace is not None and name is not None
        row = await _sql.secret_by_name(
            reader.connection, tenant_id=tenant_id, namespace=safe(namespace), name=safe(name)
        )
    return _sealed(row) if row is not None else None


async def insert(
    writer: Writer, tenant_id: UUID, *, secret_id: UUID, namespace_id: UUID, name: str, sealed: bytes, sealed_by: str, created_by: UUID
) -> bool:  # fmt: skip
    """False if there is one of this name: of several at once, one inserts, the others wait for its commit."""
    done = await _sql.insert_secret(
        writer.connection, tenant_id=tenant_id, secret_id=secret_id, namespace_id=namespace_id, name=safe(name), sealed=sealed,
        sealed_by=sealed_by, created_by=created_by,
    )  # fmt: skip
    return done is not None


async def replace(writer: Writer, tenant_id: UUID, *, secret_id: UUID, sealed: bytes, sealed_by: str) -> bool:
    """Another value in its place; false if the secret is gone."""
    done = await _sql.replace_secret(
        writer.connection, tenant_id=tenant_id, secret_id=secret_id, sealed=sealed, sealed_by=sealed_by
    )
    return done is not None


async def delete(writer: Writer, tenant_id: UUID, *, secret_id: UUID) -> bool:
    """False if it was gone."""
    return await _sql.delete_secret(writer.connection, tenant_id=tenant_id, secret_id=secret_id) is not None


async def page(reader: Reader, tenant_id: UUID, *, namespace_id: UUID, after: str, limit: int) -> list[Secret]:
    """A namespace's secrets by name, those after the name `after` ('' for the first page)."""
    rows = _sql.secrets(
        reader.connection, tenant_id=tenant_id, namespace_id=namespace_id, after=safe(after), limit=limit
    )
    return [_secret(row) async for row in rows]


async def sealed_by_others(reader: Reader, *, key_id: str, after: tuple[UUID, UUID], limit: int) -> list[SealedSecret]:
    """Of all tenants, in order: what another key than `key_id` sealed, after this tenant and secret."""
    rows = _sql.sealed_by_others(reader.connection, key_id=key_id, tenant_id=after[0], secret_id=after[1], limit=limit)
    return [_sealed(row) async for row in rows]


async def reseal(writer: Writer, secret: SealedSecret, *, sealed: bytes, sealed_by: str) -> bool:
    """The same value under another key; false if it was replaced or deleted meanwhile."""
    done = await _sql.reseal(
        writer.connection, tenant_id=secret.about.tenant_id, secret_id=secret.about.secret_id, before=secret.sealed,
        sealed=sealed, sealed_by=sealed_by,
    )  # fmt: skip
    return done is not None


async def ensure_check(writer: Writer, *, make: Callable[[], bytes]) -> bytes:
    """The check value that the database has; made if there is none, by one of however many at once."""
    found: bytes | None = await _sql.vault_check(writer.connection)
    if found is None:
        await _sql.insert_vault_check(writer.connection, sealed=make())
        found = await _sql.vault_check(writer.connection)
    assert found is not None
    return found


async def check(reader: Reader) -> bytes | None:
    """The check value; null before there is one."""
    found: bytes | None = await _sql.vault_check(reader.connection)
    return found


async def replace_check(writer: Writer, *, sealed: bytes) -> None:
    await _sql.replace_vault_check(writer.connection, sealed=sealed)


def _secret(row: Any) -> Secret:
    return Secret(
        row["tenant_id"], row["secret_id"], row["namespace"], row["name"], row["created_by"], row["created_at"], row["updated_at"]
    )  # fmt: skip


def _sealed(row: Any) -> SealedSecret:
    return SealedSecret(_secret(row), row["sealed"])
