"""Conversations between people and agents: messages and consent blocks, in the order in which they came.

Consent blocks are written and moved by the pause and by triggers (migration 0012); here they are read, and their secrets tried.
Deliberately absent: whether an answer counts (`services.consents`), and the conversations of runs (`conversations`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import ChatItem, ChatItemKind, Consent, ConsentStatus
from folkmoot.store.codecs import json_value, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("chats")


async def is_there(reader: Reader, tenant_id: UUID, *, conversation_id: UUID) -> bool:
    return bool(await _sql.conversation(reader.connection, tenant_id=tenant_id, conversation_id=conversation_id))


async def open_conversation(writer: Writer, tenant_id: UUID, *, conversation_id: UUID, created_by: UUID) -> None:
    """Unless there is one of this id already."""
    await _sql.open_conversation(
        writer.connection, tenant_id=tenant_id, conversation_id=conversation_id, created_by=created_by
    )


async def say(
    writer: Writer, tenant_id: UUID, *, chat_item_id: UUID, conversation_id: UUID, author: tuple[UUID | None, str], text: str,
    run_id: UUID | None = None,
) -> None:  # fmt: skip
    """A message. `author`: id and name."""
    await _sql.say(
        writer.connection, tenant_id=tenant_id, chat_item_id=chat_item_id, conversation_id=conversation_id, author_id=author[0],
        author_name=safe(author[1]), text=safe(text), run_id=run_id,
    )  # fmt: skip


async def page(
    reader: Reader, tenant_id: UUID, *, conversation_id: UUID, before: int | None, limit: int
) -> list[ChatItem]:
    """The newest first; those before the item with this number."""
    rows = _sql.page(
        reader.connection, tenant_id=tenant_id, conversation_id=conversation_id, before=before, limit=limit
    )
    return [_read(row) async for row in rows]


async def get(reader: Reader, tenant_id: UUID, *, chat_item_id: UUID) -> ChatItem | None:
    row = await _sql.get(reader.connection, tenant_id=tenant_id, chat_item_id=chat_item_id)
    return _read(row) if row is not None else None


async def of_secret(reader: Reader, tenant_id: UUID, *, conversation_id: UUID, secret_hash: bytes) -> UUID | None:
    """The request of a conversation that has this secret, whether it was used or not; null: none."""
    found: UUID | None = await _sql.of_secret(
        reader.connection, tenant_id=tenant_id, conversation_id=conversation_id, secret_hash=secret_hash
    )
    return found


@dataclass(frozen=True, slots=True)
class TriedSecret:
    """`secret_hash` null: the request had none."""

    secret_hash: bytes | None
    is_used: bool


async def try_secret(writer: Writer, tenant_id: UUID, *, chat_item_id: UUID) -> TriedSecret | None:
    """Count a try; null: there were ten, and no more is looked at."""
    row = await _sql.try_secret(writer.connection, tenant_id=tenant_id, chat_item_id=chat_item_id)
    return TriedSecret(*row.values()) if row is not None else None


async def use_secret(writer: Writer, tenant_id: UUID, *, chat_item_id: UUID, secret_hash: bytes) -> bool:
    """Whether this is its one use."""
    return bool(
        await _sql.use_secret(
            writer.connection, tenant_id=tenant_id, chat_item_id=chat_item_id, secret_hash=secret_hash
        )
    )


def _read(row: Any) -> ChatItem:
    consent = None
    if row["kind"] == ChatItemKind.CONSENT:
        consent = Consent(
            str(row["call_id"]), json_value(row["card"]), row["arguments_hash"], row["asked_by"], ConsentStatus(row["status"]),
            row["expires_at"], row["decided_at"], row["decided_by_name"], row["decided_over"], row["reason"], row["executed_at"],
        )  # fmt: skip
    return ChatItem(
        row["chat_item_id"], row["conversation_id"], row["number"], ChatItemKind(row["kind"]), row["author_name"], row["created_at"],
        row["run_id"], row["agent_run"], row["text"], consent,
    )  # fmt: skip
