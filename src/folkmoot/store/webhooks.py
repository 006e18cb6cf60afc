"""Webhooks and the outbox: endpoints, and messages that were written with the changes that they tell of.

A message is claimed by moving its time on, so no transaction is open while it is sent, and one whose sender died is sent again.
Deliberately absent: secrets in the clear, and who writes messages (the changes' own statements).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.webhooks import MessageCursor, Webhook, WebhookKind, WebhookMessage
from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("webhooks")


async def insert(
    writer: Writer, tenant_id: UUID, *, webhook_id: UUID, url: str, kinds: Sequence[WebhookKind], sealed_secret: bytes, created_by: UUID
) -> Webhook:  # fmt: skip
    return _webhook(
        await _sql.insert(
            writer.connection, tenant_id=tenant_id, webhook_id=webhook_id, url=safe(url), kinds=[kind.value for kind in kinds],
            sealed_secret=sealed_secret, created_by=created_by,
        )
    )  # fmt: skip


async def page(reader: Reader, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[Webhook]:
    """From the oldest on; those after the webhook `after`."""
    rows = _sql.page(reader.connection, tenant_id=tenant_id, after=after or UUID(int=0), limit=limit)
    return [_webhook(row) async for row in rows]


async def find(reader: Reader, tenant_id: UUID, *, webhook_id: UUID) -> Webhook | None:
    row = await _sql.find(reader.connection, tenant_id=tenant_id, webhook_id=webhook_id)
    return _webhook(row) if row is not None else None


async def delete(writer: Writer, tenant_id: UUID, *, webhook_id: UUID) -> Webhook | None:
    """What it was; null if there is none. Its messages go with it."""
    row = await _sql.delete(writer.connection, tenant_id=tenant_id, webhook_id=webhook_id)
    return _webhook(row) if row is not None else None


async def rotate(
    writer: Writer, tenant_id: UUID, *, webhook_id: UUID, sealed_secret: bytes, overlap_seconds: float
) -> Webhook | None:
    """A new secret; the one before it signs beside it for so long. Null if there is no such webhook."""
    row = await _sql.rotate(
        writer.connection, tenant_id=tenant_id, webhook_id=webhook_id, sealed_secret=sealed_secret, overlap_seconds=overlap_seconds
    )  # fmt: skip
    return _webhook(row) if row is not None else None


async def messages(
    reader: Reader, tenant_id: UUID, *, webhook_id: UUID, after: MessageCursor | None, limit: int
) -> list[WebhookMessage]:
    """An endpoint's messages, the newest first, those after the cursor."""
    rows = _sql.messages(
        reader.connection, tenant_id=tenant_id, webhook_id=webhook_id, limit=limit,
        after_date=after.created_at if after else None, after_id=after.message_id if after else None,
    )  # fmt: skip
    return [WebhookMessage(*row.values()) async for row in rows]


# sealing again


@dataclass(frozen=True, slots=True)
class SealedWebhook:
    """An endpoint's secrets as they are stored."""

    tenant_id: UUID
    webhook_id: UUID
    sealed_secret: bytes
    previous_secret: bytes | None


async def sealed_by_others(reader: Reader, *, key_id: bytes, limit: int) -> list[SealedWebhook]:
    """Of all tenants, those with a secret that another key than this one has sealed."""
    rows = _sql.sealed_by_others(reader.connection, key_id=key_id, limit=limit)
    return [SealedWebhook(*row.values()) async for row in rows]


async def reseal(
    writer: Writer, found: SealedWebhook, *, sealed_secret: bytes, previous_secret: bytes | None
) -> None:  # fmt: skip
    """The same secrets under another key, unless they were changed since they were read."""
    await _sql.reseal(
        writer.connection, tenant_id=found.tenant_id, webhook_id=found.webhook_id, before=found.sealed_secret,
        sealed_secret=sealed_secret, previous_secret=previous_secret,
    )  # fmt: skip


# sending


@dataclass(frozen=True, slots=True)
class DueMessage:
    """A message to be sent now. `body`: as it is sent and signed, the same at each attempt. `attempts`: this one counted."""

    tenant_id: UUID
    message_id: UUID
    webhook_id: UUID
    body: str
    attempts: int
    url: str
    sealed_secret: bytes
    previous_secret: bytes | None
    is_disabled: bool
    now: datetime


async def claim(
    writer: Writer, *, limit: int, limit_each: int, busy: Mapping[tuple[UUID, UUID], int], lease_seconds: float
) -> list[DueMessage]:
    """Messages that are due; nobody else gets them for `lease_seconds`.

    No endpoint has more than `limit_each` with those that it is being sent: `busy`, by its tenant's and its own id. Each endpoint
    gets its first message before another gets its second.
    """
    rows = _sql.claim(
        writer.connection, limit=limit, limit_each=limit_each, lease_seconds=lease_seconds, busy_counts=list(busy.values()),
        busy_tenants=[tenant_id for tenant_id, _ in busy], busy_webhooks=[webhook_id for _, webhook_id in busy],
    )  # fmt: skip
    return [DueMessage(*row.values()) async for row in rows]


async def delivered(writer: Writer, message: DueMessage) -> None:
    await _sql.delivered(writer.connection, tenant_id=message.tenant_id, message_id=message.message_id)


async def try_later(writer: Writer, message: DueMessage, *, seconds: float, error: str) -> None:
    """Once more in so many seconds."""
    await _sql.try_later(
        writer.connection, tenant_id=message.tenant_id, message_id=message.message_id, seconds=seconds, error=safe(error)
    )  # fmt: skip


async def hold_others(writer: Writer, message: DueMessage, *, seconds: float) -> None:
    """The other messages of its endpoint wait so long, too. Apart from `try_later`: it waits for no lock, and holds none."""
    await _sql.hold_others(
        writer.connection, tenant_id=message.tenant_id, webhook_id=message.webhook_id, seconds=seconds
    )


async def give_up(writer: Writer, message: DueMessage, *, error: str) -> None:
    await _sql.give_up(
        writer.connection, tenant_id=message.tenant_id, message_id=message.message_id, error=safe(error)
    )  # fmt: skip


async def disable(writer: Writer, message: DueMessage, *, error: str) -> None:
    """The endpoint is told nothing any more; what waited for it is given up."""
    await _sql.disable(
        writer.connection, tenant_id=message.tenant_id, webhook_id=message.webhook_id, error=safe(error)
    )  # fmt: skip


async def forget_old(writer: Writer) -> None:
    """Removes messages of 30 days ago that were delivered or given up, a thousand at a time."""
    await _sql.forget_old(writer.connection)


def _webhook(row: Any) -> Webhook:
    values = dict(row.items())
    return Webhook(**{**values, "kinds": tuple(WebhookKind(kind) for kind in values["kinds"])})
