"""The content store: texts too large for a conversation, in pieces, found by tenant, run and id; never shared by hash.

A part of a text is read without the rest of it. Deliberately absent: what texts mean, and changing them: one is written once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("contents")
_PIECE = 65_536  # characters


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a text of so many `characters`."""

    text: str
    characters: int


async def put(writer: Writer, tenant_id: UUID, *, run_id: UUID, content_id: UUID, text: str, size: int) -> None:
    """Keep `text`, which was made safe and has `size` bytes in UTF-8; written in the caller's transaction."""
    await _sql.insert_content(
        writer.connection, tenant_id=tenant_id, run_id=run_id, content_id=content_id, size=size, characters=len(text)
    )  # fmt: skip
    pieces = [text[start : start + _PIECE] for start in range(0, len(text), _PIECE)]
    await _sql.insert_chunks(
        writer.connection, tenant_id=tenant_id, run_id=run_id, content_id=content_id, pieces=pieces
    )


async def read(
    reader: Reader, tenant_id: UUID, *, run_id: UUID, content_id: UUID, offset: int, length: int
) -> Part | None:
    """Up to `length` characters from `offset` on; null if the run has no such content."""
    key = {"tenant_id": tenant_id, "run_id": run_id, "content_id": content_id}
    characters = await _sql.characters(reader.connection, **key)
    if characters is None:
        return None
    offset = min(offset, characters)
    first = offset // _PIECE
    last = (offset + length - 1) // _PIECE
    pieces = [row["piece"] async for row in _sql.chunks(reader.connection, **key, first=first, last=last)]
    start = offset - first * _PIECE
    return Part("".join(pieces)[start : start + length], characters)


async def sweep(writer: Writer) -> None:
    """Removes what no item came to refer to within an hour."""
    await _sql.sweep(writer.connection)
