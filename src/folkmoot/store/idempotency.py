"""Idempotency-Keys: the same key and body give the first result again, for 24 hours, per tenant, user and route."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.kernel.errors import InFlight, KeyReused
from folkmoot.store.database import Writer, queries, try_lock

_sql: Any = queries("idempotency")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose key it is, and for what. `body_hash`: of the request that came with it."""

    tenant_id: UUID
    user_id: UUID
    route: str
    key: str
    body_hash: bytes


async def earlier(writer: Writer, scope: Scope) -> UUID | None:
    """The id that the first request with this key made. Held until the transaction ends: a second one meanwhile is InFlight."""
    words = f"{scope.tenant_id}|{scope.user_id}|{scope.route}|{scope.key}"
    number = int.from_bytes(hashlib.sha256(words.encode("utf-8", "surrogatepass")).digest()[:8], signed=True)
    if not await try_lock(writer, number):
        raise InFlight(
            f"A request with the Idempotency-Key '{scope.key}' is still at work. Wait for its answer, or send it again in a moment."
        )
    row = await _sql.earlier(
        writer.connection, tenant_id=scope.tenant_id, user_id=scope.user_id, route=scope.route, key=scope.key
    )
    if row is None:
        return None
    if row["body_hash"] != scope.body_hash:
        raise KeyReused(
            f"The Idempotency-Key '{scope.key}' was used before with another body. Use a new key for a new request."
        )
    found: UUID = row["result_id"]
    return found


async def keep(writer: Writer, scope: Scope, *, result_id: UUID) -> None:
    """Remember what the request made, in the transaction that makes it."""
    await _sql.keep(
        writer.connection, tenant_id=scope.tenant_id, user_id=scope.user_id, route=scope.route, key=scope.key,
        body_hash=scope.body_hash, result_id=result_id,
    )  # fmt: skip


async def forget_old(writer: Writer) -> None:
    await _sql.forget_old(writer.connection)
