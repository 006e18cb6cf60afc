"""The content store: bytes too large for a row, in pieces, found by tenant, run and id; never shared by hash.

Deliberately absent: what they mean, and changing them: a content is written once.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("contents")
_PIECE_BYTES = 256 * 1024


async def put(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, content_id: UUID, data: bytes, media_type: str = "text/plain"
) -> None:
    """Keep `data`; written in the caller's transaction."""
    await _sql.insert_content(
        writer.connection,
        tenant_id=tenant_id,
        run_id=run_id,
        content_id=content_id,
        size=len(data),
        media_type=media_type,
    )
    pieces = [data[start : start + _PIECE_BYTES] for start in range(0, len(data), _PIECE_BYTES)]
    await _sql.insert_chunks(
        writer.connection, tenant_id=tenant_id, run_id=run_id, content_id=content_id, pieces=pieces
    )


async def get(reader: Reader, tenant_id: UUID, *, run_id: UUID, content_id: UUID) -> bytes | None:
    """All of it; null if the run has no such content."""
    rows = _sql.chunks(reader.connection, tenant_id=tenant_id, run_id=run_id, content_id=content_id)
    pieces = [bytes(row["piece"]) async for row in rows]
    return b"".join(pieces) if pieces else None


async def sweep(writer: Writer) -> None:
    """Removes what no item came to refer to within an hour."""
    await _sql.sweep(writer.connection)
