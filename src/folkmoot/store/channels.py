"""Channels as those look for them who are of no tenant: requests from outside, and workers. Their definitions are in `definitions`.

Deliberately absent: settings and secrets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("channels")


@dataclass(frozen=True, slots=True)
class FoundChannel:
    """`name`: with its namespace, as its tenant calls it."""

    tenant_id: UUID
    channel_id: UUID
    app: str
    name: str


async def tenant_of(reader: Reader, *, channel_id: UUID) -> UUID | None:
    found: UUID | None = await _sql.tenant_of(reader.connection, channel_id=channel_id)
    return found


async def links_to(reader: Reader, tenant_id: UUID, *, secret_id: UUID) -> bool:
    """Whether a channel has this secret."""
    return bool(await _sql.links_to(reader.connection, tenant_id=tenant_id, secret_id=secret_id))


async def moment(reader: Reader) -> datetime:
    """The database's time."""
    found: datetime = await _sql.moment(reader.connection)
    return found


async def of_apps(reader: Reader, apps: Sequence[str]) -> list[FoundChannel]:
    """All channels of these apps, whosever they are."""
    return [FoundChannel(*row.values()) async for row in _sql.of_apps(reader.connection, apps=list(apps))]


async def take_look(writer: Writer, channel: FoundChannel, *, seconds: float) -> bool:
    """Whether the channel may be looked into here now; nobody else gets it for so long."""
    return bool(
        await _sql.take_look(
            writer.connection, tenant_id=channel.tenant_id, channel_id=channel.channel_id, seconds=seconds
        )
    )


async def put_off_look(writer: Writer, channel: FoundChannel, *, seconds: float) -> None:
    """It was looked into; not again for so long, by whomever."""
    await _sql.put_off_look(
        writer.connection, tenant_id=channel.tenant_id, channel_id=channel.channel_id, seconds=seconds
    )
