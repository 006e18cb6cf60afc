"""Tenants, API keys and namespaces.

A key is found by its hash before the tenant is known; everything else names its tenant. Deliberately absent: a key's text,
which leaves `create_key` once and is kept nowhere; and users, who have a module of their own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.rights import Right, Role, rights_of
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE, DEFAULT_TENANT, OWNER, ApiKey, Caller, Namespace
from folkmoot.kernel.ids import NewId
from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("tenancy")
_KEY_BYTES = 32
_MARK = "fm_"
_PREFIX_CHARACTERS = 8  # with the mark: 30 of 256 bits are told

RandomBytes = Callable[[int], bytes]


async def ensure_default(writer: Writer, *, new_id: NewId, random_bytes: RandomBytes) -> str | None:
    """The tenant `default` with its owner, namespace and first key, on a database that has no such tenant.

    The key's text, to be shown this once; null if the tenant was there, or another process has just made it.
    """
    tenant_id = new_id()
    if await _sql.insert_tenant(writer.connection, tenant_id=tenant_id, name=DEFAULT_TENANT) is None:
        return None
    owner = Caller(tenant_id, new_id(), OWNER)
    await _sql.insert_user(
        writer.connection, tenant_id=tenant_id, user_id=owner.user_id, name=OWNER, role=Role.OWNER, created_by=owner.user_id
    )  # fmt: skip
    await get_or_create_namespace(writer, tenant_id, name=DEFAULT_NAMESPACE, new_id=new_id)
    _, text = await create_key(writer, owner, name="first", expires_at=None, key_id=new_id(), random_bytes=random_bytes)
    return text


async def owner(reader: Reader, *, tenant: str = DEFAULT_TENANT) -> Caller | None:
    """The tenant's owner, as whom commands act within the process; null before there is one."""
    row = await _sql.owner(reader.connection, tenant=tenant)
    return Caller(row["tenant_id"], row["user_id"], row["name"]) if row is not None else None


async def user_name(reader: Reader, tenant_id: UUID, *, user_id: UUID) -> str | None:
    name: str | None = await _sql.user_name(reader.connection, tenant_id=tenant_id, user_id=user_id)
    return name


async def create_key(
    writer: Writer, caller: Caller, *, name: str, expires_at: datetime | None, key_id: UUID, random_bytes: RandomBytes,
    user_id: UUID | None = None, scopes: Sequence[str] | None = None,
) -> tuple[ApiKey, str]:  # fmt: skip
    """A new key of the caller's, or of the user `user_id`, and its text, which can never be had again.

    It rests on the caller, where it is another's, and on whomever the caller's own key rests on.
    """
    text = _MARK + base64.urlsafe_b64encode(random_bytes(_KEY_BYTES)).rstrip(b"=").decode("ascii")
    row = await _sql.insert_key(
        writer.connection,
        tenant_id=caller.tenant_id,
        key_id=key_id,
        user_id=user_id or caller.user_id,
        name=safe(name),
        prefix=text[:_PREFIX_CHARACTERS],
        hash=_hash(text),
        created_by=caller.user_id,
        expires_at=expires_at,
        scopes=list(scopes) if scopes is not None else None,
        made_with=caller.key_id,
    )
    return _key(row), text


@dataclass(frozen=True, slots=True)
class FoundKey:
    """`is_removed`: its user was; `is_maker_removed`: somebody it rests on. `is_use_unnoted`: a minute or more has passed since
    its last use was noted."""

    caller: Caller
    is_removed: bool
    is_maker_removed: bool
    is_revoked: bool
    is_expired: bool
    is_use_unnoted: bool


async def find_key(reader: Reader, *, text: str) -> FoundKey | None:
    """Whose key this is, by its hash; null if it is nobody's."""
    row = await _sql.key_of_hash(reader.connection, hash=_hash(text))
    return found_key(row) if row is not None else None


def found_key(row: Any) -> FoundKey:
    """Of a row as `key_of_hash` gives it."""
    role = Role(row["role"])
    caller = Caller(
        row["tenant_id"], row["user_id"], row["user_name"], row["key_id"], role, rights_of(role, row["scopes"]), Role(row["own_role"])
    )  # fmt: skip
    return FoundKey(
        caller, row["is_removed"], row["is_maker_removed"], row["is_revoked"], row["is_expired"], row["is_use_unnoted"]
    )


async def rights_now(reader: Reader, tenant_id: UUID, *, key_id: UUID) -> frozenset[Right]:
    """What a key may now: nothing once it was revoked or has expired, or its user or somebody it rests on was removed."""
    row = await _sql.standing(reader.connection, tenant_id=tenant_id, key_id=key_id)
    return rights_of(Role(row["role"]), row["scopes"]) if row is not None else frozenset()


async def note_use(writer: Writer, tenant_id: UUID, *, key_id: UUID) -> None:
    """Note that a key was used, at most once a minute."""
    await _sql.note_use(writer.connection, tenant_id=tenant_id, key_id=key_id)


async def keys(
    reader: Reader, tenant_id: UUID, *, after: UUID | None, limit: int, user_id: UUID | None = None
) -> list[ApiKey]:
    """Keys from the oldest on, revoked ones too; those after the key `after`. `user_id`: of this user only."""
    rows = _sql.keys(reader.connection, tenant_id=tenant_id, after=after or UUID(int=0), user_id=user_id, limit=limit)
    return [_key(row) async for row in rows]


async def key(reader: Reader, tenant_id: UUID, *, key_id: UUID) -> ApiKey | None:
    row = await _sql.key_by_id(reader.connection, tenant_id=tenant_id, key_id=key_id)
    return _key(row) if row is not None else None


async def revoke_key(writer: Writer, tenant_id: UUID, *, key_id: UUID) -> ApiKey | None:
    """The key, revoked now or before; null if the tenant has no such key."""
    row = await _sql.revoke(writer.connection, tenant_id=tenant_id, key_id=key_id)
    return _key(row) if row is not None else None


async def find_namespace(reader: Reader, tenant_id: UUID, *, name: str) -> Namespace | None:
    row = await _sql.namespace_by_name(reader.connection, tenant_id=tenant_id, name=safe(name))
    return Namespace(*row.values()) if row is not None else None


async def get_or_create_namespace(writer: Writer, tenant_id: UUID, *, name: str, new_id: NewId) -> Namespace:
    """The tenant's namespace of this name, made if need be; of several callers at once one makes it."""
    found = await find_namespace(writer, tenant_id, name=name)
    if found is None:
        await _sql.insert_namespace(writer.connection, tenant_id=tenant_id, namespace_id=new_id(), name=safe(name))
        found = await find_namespace(writer, tenant_id, name=name)
    assert found is not None
    return found


async def namespaces(reader: Reader, tenant_id: UUID, *, after: str, limit: int) -> list[Namespace]:
    """Namespaces by name; those after the name `after` ('' for the first page)."""
    rows = _sql.namespaces(reader.connection, tenant_id=tenant_id, after=safe(after), limit=limit)
    return [Namespace(*row.values()) async for row in rows]


async def allows_platform_fallback(reader: Reader, tenant_id: UUID) -> bool:
    """Whether runs of the tenant that ask for it may use the operator's own keys of models."""
    return bool(await _sql.allows_platform_fallback(reader.connection, tenant_id=tenant_id))


async def set_platform_fallback(writer: Writer, tenant_id: UUID, *, is_allowed: bool) -> None:
    """The operator's word: no request may say it (the walls see to that too)."""
    await _sql.set_platform_fallback(writer.connection, tenant_id=tenant_id, is_allowed=is_allowed)


async def now(reader: Reader) -> datetime:
    """The time by the database's clock, which alone decides what has expired."""
    moment: datetime = await _sql.now(reader.connection)
    return moment


def _key(row: Any) -> ApiKey:
    scopes = row["scopes"]
    return ApiKey(**{**dict(row.items()), "scopes": tuple(scopes) if scopes is not None else None})


def _hash(text: str) -> bytes:
    # Without salt and stretching: a key is 256 bits of chance, and each request looks one up.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
