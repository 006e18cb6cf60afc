"""Addresses of users in the apps of channels. Kept and looked for in one spelling (`domain.identities.normal_address`).

Deliberately absent: whether somebody may have an address.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.identities import Identity, normal_address
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import User
from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("identities")


async def lock(writer: Writer, tenant_id: UUID) -> None:
    """Until the transaction ends nobody else gives out addresses."""
    await _sql.lock(writer.connection, tenant_id=str(tenant_id))


async def put(
    writer: Writer, tenant_id: UUID, *, user_id: UUID, app: str, address: str, created_by: UUID
) -> Identity | None:
    """The user's address in this app from now on, in place of another one; null where it was there already, theirs or another's."""
    place = {"tenant_id": tenant_id, "user_id": user_id, "app": safe(app), "address": _kept(app, address)}
    await _sql.clear_address(writer.connection, **place)
    row = await _sql.insert_address(writer.connection, **place, created_by=created_by)
    return _identity(row) if row is not None else None


async def get(reader: Reader, tenant_id: UUID, *, app: str, address: str) -> Identity | None:
    row = await _sql.by_address(reader.connection, tenant_id=tenant_id, app=safe(app), address=_kept(app, address))
    return _identity(row) if row is not None else None


async def of_user(reader: Reader, tenant_id: UUID, *, user_id: UUID) -> list[Identity]:
    """By app."""
    return [_identity(row) async for row in _sql.of_user(reader.connection, tenant_id=tenant_id, user_id=user_id)]


async def delete(writer: Writer, tenant_id: UUID, *, user_id: UUID, app: str) -> Identity | None:
    """What was deleted; null if the user has no address in this app."""
    row = await _sql.delete_address(writer.connection, tenant_id=tenant_id, user_id=user_id, app=safe(app))
    return _identity(row) if row is not None else None


async def user_of(reader: Reader, tenant_id: UUID, *, app: str, address: str) -> User | None:
    """Whose address it is; null for nobody's."""
    row = await _sql.user_of(reader.connection, tenant_id=tenant_id, app=safe(app), address=_kept(app, address))
    return User(**{**dict(row.items()), "role": Role(row["role"])}) if row is not None else None


async def address_of(reader: Reader, tenant_id: UUID, *, user_id: UUID, app: str) -> str | None:
    """Where the user is reached in this app; null if no address of theirs is known."""
    found: str | None = await _sql.address_of(reader.connection, tenant_id=tenant_id, user_id=user_id, app=safe(app))
    return found


def _kept(app: str, address: str) -> str:
    return safe(normal_address(app, address))


def _identity(row: Any) -> Identity:
    return Identity(**dict(row.items()))
