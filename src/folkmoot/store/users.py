"""Users of a tenant, with their roles.

Deliberately absent: passwords, and a role's rights (`domain.rights`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import User
from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("users")


async def insert(
    writer: Writer, tenant_id: UUID, *, user_id: UUID, name: str, role: Role, created_by: UUID
) -> User | None:
    """The new user; null if there is one of this name."""
    row = await _sql.insert_user(
        writer.connection, tenant_id=tenant_id, user_id=user_id, name=safe(name), role=role, created_by=created_by
    )
    return _user(row) if row is not None else None


async def get(reader: Reader, tenant_id: UUID, *, user_id: UUID) -> User | None:
    """Removed ones too."""
    row = await _sql.user_by_id(reader.connection, tenant_id=tenant_id, user_id=user_id)
    return _user(row) if row is not None else None


async def get_by_name(reader: Reader, tenant_id: UUID, *, name: str) -> User | None:
    """Of those who are there."""
    row = await _sql.user_by_name(reader.connection, tenant_id=tenant_id, name=safe(name))
    return _user(row) if row is not None else None


async def page(reader: Reader, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[User]:
    """Those who are there, from the oldest on; after the user `after`."""
    rows = _sql.users(reader.connection, tenant_id=tenant_id, after=after or UUID(int=0), limit=limit)
    return [_user(row) async for row in rows]


async def lock_owners(writer: Writer, tenant_id: UUID) -> set[UUID]:
    """The owners there are; none comes or goes until the transaction ends."""
    return {row["user_id"] async for row in _sql.lock_owners(writer.connection, tenant_id=tenant_id)}


async def lock(writer: Writer, tenant_id: UUID, *, user_id: UUID) -> User | None:
    """The user, whom nobody else changes until the transaction ends; null if not there, or removed."""
    row = await _sql.lock_user(writer.connection, tenant_id=tenant_id, user_id=user_id)
    return _user(row) if row is not None else None


async def set_role(writer: Writer, tenant_id: UUID, *, user_id: UUID, role: Role) -> User:
    return _user(await _sql.set_role(writer.connection, tenant_id=tenant_id, user_id=user_id, role=role))


async def remove(writer: Writer, tenant_id: UUID, *, user_id: UUID) -> User:
    """With all keys and addresses, for good. What the user did keeps the id, and the name is free again."""
    await _sql.delete_addresses(writer.connection, tenant_id=tenant_id, user_id=user_id)
    await _sql.revoke_keys(writer.connection, tenant_id=tenant_id, user_id=user_id)
    return _user(await _sql.remove_user(writer.connection, tenant_id=tenant_id, user_id=user_id))


def _user(row: Any) -> User:
    return User(**{**dict(row.items()), "role": Role(row["role"])})
