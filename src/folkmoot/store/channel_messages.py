"""The outbox of channels, and what has come in over them.

A message is claimed by moving its time on, so no transaction is open while it is sent, and one whose sender died is sent again, with the
same id. Deliberately absent: secrets in the clear, and who writes messages (the changes' own statements, migration 0012).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.channels import AnswerOutcome, MessageKind, OutcomeKind
from folkmoot.store.codecs import json_text, json_value, safe, safe_json
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("channel_messages")


@dataclass(frozen=True, slots=True)
class DueChannelMessage:
    """A message to be sent now. `run_id`: of the root whose owner is told. `attempts`: this one counted. `agent_run` and `channel_name`:
    the root's number and the channel, as people know them."""

    tenant_id: UUID
    message_id: UUID
    channel_id: UUID
    run_id: UUID
    chat_item_id: UUID | None
    kind: MessageKind
    body: dict[str, Any]
    sealed_secret: bytes | None
    attempts: int
    created_at: datetime
    now: datetime
    agent_run: int
    channel_name: str


async def claim(
    writer: Writer, *, limit: int, limit_each: int, busy: Mapping[tuple[UUID, UUID], int], lease_seconds: float
) -> list[DueChannelMessage]:
    """Messages that are due; nobody else gets them for `lease_seconds`. No channel has more than `limit_each` with those of `busy`."""
    rows = _sql.claim(
        writer.connection, limit=limit, limit_each=limit_each, lease_seconds=lease_seconds, busy_counts=list(busy.values()),
        busy_tenants=[tenant_id for tenant_id, _ in busy], busy_channels=[channel_id for _, channel_id in busy],
    )  # fmt: skip
    return [
        DueChannelMessage(
            row["tenant_id"], row["message_id"], row["channel_id"], row["run_id"], row["chat_item_id"], MessageKind(row["kind"]),
            json_value(row["body"]), row["sealed_secret"], row["attempts"], row["created_at"], row["now"],
            row["agent_run"], row["channel_name"],
        )
        async for row in rows
    ]  # fmt: skip


async def delivered(writer: Writer, message: DueChannelMessage, *, reference: str | None) -> None:
    await _sql.delivered(
        writer.connection,
        tenant_id=message.tenant_id,
        message_id=message.message_id,
        reference=reference and safe(reference),
    )


async def try_later(writer: Writer, message: DueChannelMessage, *, seconds: float, error: str) -> None:
    await _sql.try_later(
        writer.connection,
        tenant_id=message.tenant_id,
        message_id=message.message_id,
        seconds=seconds,
        error=safe(error),
    )


async def put_off(writer: Writer, message: DueChannelMessage, *, seconds: float, error: str) -> None:
    """Have it claimed again later. It was not tried."""
    await _sql.put_off(
        writer.connection,
        tenant_id=message.tenant_id,
        message_id=message.message_id,
        seconds=seconds,
        error=safe(error),
    )


async def discard_request(writer: Writer, tenant_id: UUID, *, chat_item_id: UUID, error: str) -> bool:
    """Give up a settled consent's request that is not being sent just now. Whether it was on its way."""
    return bool(
        await _sql.discard_request(writer.connection, tenant_id=tenant_id, chat_item_id=chat_item_id, error=error)
    )


async def give_up(writer: Writer, message: DueChannelMessage, *, error: str) -> None:
    await _sql.give_up(writer.connection, tenant_id=message.tenant_id, message_id=message.message_id, error=safe(error))


@dataclass(frozen=True, slots=True)
class SealedMessage:
    """A request's secret as it is stored."""

    tenant_id: UUID
    message_id: UUID
    sealed_secret: bytes


async def sealed_by_others(reader: Reader, *, key_id: bytes, limit: int) -> list[SealedMessage]:
    """Of all tenants, those with a secret that another key than this one has sealed."""
    return [
        SealedMessage(*row.values())
        async for row in _sql.sealed_by_others(reader.connection, key_id=key_id, limit=limit)
    ]


async def reseal(writer: Writer, found: SealedMessage, *, sealed_secret: bytes) -> None:
    """The same secret under another key, unless the message was settled since it was read."""
    await _sql.reseal(
        writer.connection,
        tenant_id=found.tenant_id,
        message_id=found.message_id,
        before=found.sealed_secret,
        sealed_secret=sealed_secret,
    )


@dataclass(frozen=True, slots=True)
class SentRequest:
    reference: str | None
    is_delivered: bool
    is_waiting: bool


async def request(reader: Reader, tenant_id: UUID, *, chat_item_id: UUID) -> SentRequest | None:
    """How a consent's request fared; null: none was sent over a channel."""
    row = await _sql.request_reference(reader.connection, tenant_id=tenant_id, chat_item_id=chat_item_id)
    return SentRequest(*row.values()) if row is not None else None


@dataclass(frozen=True, slots=True)
class SentMessage:
    """How a message fares. `ready_at`: when it is sent, or sent again; null: it is settled."""

    message_id: UUID
    kind: MessageKind
    created_at: datetime
    ready_at: datetime | None
    attempts: int
    delivered_at: datetime | None
    given_up_at: datetime | None
    last_error: str | None


async def of_run(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[SentMessage]:
    """What was sent to a root run's owner, the oldest first."""
    rows = _sql.of_run(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return [SentMessage(row[0], MessageKind(row[1]), *list(row.values())[2:]) async for row in rows]


@dataclass(frozen=True, slots=True)
class RunMessage:
    """A message with the consent that it is about; null: it is about none."""

    message: SentMessage
    chat_item_id: UUID | None


@dataclass(frozen=True, slots=True)
class RunMessageCursor:
    """The last message of a page; the next page begins after it."""

    created_at: datetime
    message_id: UUID


async def page_of_run(
    reader: Reader, tenant_id: UUID, *, run_id: UUID, after: RunMessageCursor | None, limit: int
) -> list[RunMessage]:
    """The same page by page."""
    rows = _sql.page_of_run(
        reader.connection, tenant_id=tenant_id, run_id=run_id, after_date=after.created_at if after else None,
        after_id=after.message_id if after else None, limit=limit,
    )  # fmt: skip
    return [
        RunMessage(SentMessage(row[0], MessageKind(row[1]), *list(row.values())[2:-1]), row["chat_item_id"])
        async for row in rows
    ]


# what has come in


async def earlier_outcome(
    reader: Reader, tenant_id: UUID, *, channel_id: UUID, inbound_id: str
) -> AnswerOutcome | None:
    """What a message of this id was answered before; null: it is new."""
    row = await _sql.earlier_outcome(
        reader.connection, tenant_id=tenant_id, channel_id=channel_id, inbound_hash=_hash(inbound_id)
    )
    if row is None:
        return None
    found = json_value(row["outcome"])
    return AnswerOutcome(OutcomeKind(found["kind"]), found["words"], found["isKnown"], row["is_told"])


async def note_inbound(
    writer: Writer, tenant_id: UUID, *, channel_id: UUID, inbound_id: str, outcome: AnswerOutcome
) -> None:
    told = json_text(safe_json({"kind": outcome.kind.value, "words": outcome.words, "isKnown": outcome.is_known}))
    await _sql.note_inbound(
        writer.connection, tenant_id=tenant_id, channel_id=channel_id, inbound_hash=_hash(inbound_id), outcome=told
    )


async def note_told(writer: Writer, tenant_id: UUID, *, channel_id: UUID, inbound_id: str) -> None:
    """The sender of what came in knows what became of it."""
    await _sql.note_told(writer.connection, tenant_id=tenant_id, channel_id=channel_id, inbound_hash=_hash(inbound_id))


async def forget_old(writer: Writer) -> None:
    await _sql.forget_old(writer.connection)


def _hash(inbound_id: str) -> bytes:
    """Of any length, it is an index entry of one (B67)."""
    return hashlib.sha256(inbound_id.encode("utf-8", "surrogatepass")).digest()
