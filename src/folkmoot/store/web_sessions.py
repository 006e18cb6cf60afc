"""Sessions on the server's pages: made at a sign-in, found by the hash of their token before the tenant is known.

Deliberately absent: a token's text, which is the browser's alone, and whether a session's key still counts (`services.keys`).
"""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from folkmoot.store.database import Reader, Writer, queries
from folkmoot.store.tenancy import FoundKey, found_key

_sql: Any = queries("web_sessions")


async def insert(writer: Writer, tenant_id: UUID, *, token: str, key_id: UUID, user_id: UUID, seconds: float) -> None:
    """A session that lasts so long, unless its key ends before."""
    await _sql.insert_session(
        writer.connection, tenant_id=tenant_id, token_hash=_hash(token), key_id=key_id, user_id=user_id, seconds=seconds
    )


async def find_key(reader: Reader, *, token: str) -> FoundKey | None:
    """The key that the session rests on; null if there is no such session, or its time is over."""
    row = await _sql.key_of_session(reader.connection, token_hash=_hash(token))
    return found_key(row) if row is not None else None


async def delete(writer: Writer, *, token: str) -> None:
    await _sql.delete_session(writer.connection, token_hash=_hash(token))


async def forget_old(writer: Writer) -> None:
    await _sql.forget_old(writer.connection)


def _hash(token: str) -> bytes:
    # Without salt and stretching: a token is 256 bits of chance, and each request looks one up.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
