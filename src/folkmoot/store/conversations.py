"""Items of a conversation and the facts beside them: read by position, never as a whole document.

Writers are the worker's fenced append (`appends`) and a person's message here. Deliberately absent: what items mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.items import Author, HumanMessage, Item, StoredItem
from folkmoot.domain.model_calls import NEVER_MADE, FailureClass, ModelCallFact, Replay, Usage
from folkmoot.domain.pending import Decision, PendingOutcome
from folkmoot.domain.rights import Right, Role, rights_of
from folkmoot.store.codecs import USAGE, json_value, read_item, safe, write_body
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("conversations")


async def items_after(reader: Reader, tenant_id: UUID, *, run_id: UUID, after: int, limit: int) -> list[StoredItem]:
    """A page of the conversation by sequence."""
    return [
        read_item(row)
        async for row in _sql.items_after(
            reader.connection, tenant_id=tenant_id, run_id=run_id, after=after, limit=limit
        )
    ]


async def items_between(reader: Reader, tenant_id: UUID, *, run_id: UUID, after: int, upto: int) -> list[StoredItem]:
    """Items with after < sequence <= upto."""
    return [
        read_item(row)
        async for row in _sql.items_between(
            reader.connection, tenant_id=tenant_id, run_id=run_id, after=after, upto=upto
        )
    ]


async def result_of_call(reader: Reader, tenant_id: UUID, *, run_id: UUID, call_id: str) -> str | None:
    """What the conversation carries of a call's result; null if it has none."""
    found: str | None = await _sql.result_of_call(
        reader.connection, tenant_id=tenant_id, run_id=run_id, call_id=call_id
    )
    return found


@dataclass(frozen=True, slots=True)
class NotedModelCalls:
    """`unsettled`: calls under way (failure null) or failed. `replays`: what adapters need of those that were answered."""

    unsettled: tuple[ModelCallFact, ...]
    replays: dict[UUID, Replay]


async def noted_model_calls(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> NotedModelCalls:
    """What is to be known of a run's model calls beside its items."""
    rows = [row async for row in _sql.noted_model_calls(reader.connection, tenant_id=tenant_id, run_id=run_id)]
    unsettled = tuple(
        ModelCallFact(
            row["model_call_id"], row["step_key"], FailureClass(row["error_class"]) if row["error_class"] else None,
            row["error_message"] or "", row["not_before"], row["guessed_tokens"],
            row["estimated_tokens"], (row["participant"], row["provider"], row["model"]),
        )
        for row in rows if row["ended_at"] is None or row["error_class"]
    )  # fmt: skip
    replays = {
        row["model_call_id"]: Replay(row["provider"], row["model"], json_value(row["replay"]))
        for row in rows
        if row["replay"] is not None
    }
    return NotedModelCalls(unsettled, replays)


@dataclass(frozen=True, slots=True)
class Prompted:
    """What a run's calls of a model tell of a participant's prompts. `trimmed_upto`: a sequence, 0 if nothing was trimmed.

    `refused_tokens`: the smallest guess that a provider refused as too long; `refused_part`: likewise of what a summariser was shown.
    `guessed_tokens` and `usage`: of the newest prompt that a provider counted. Null: there is none.
    """

    participant: str
    model: str
    trimmed_upto: int
    refused_tokens: int | None
    refused_part: int | None
    guessed_tokens: int | None
    usage: Usage | None


async def prompted(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[Prompted]:
    rows = [row async for row in _sql.prompted(reader.connection, tenant_id=tenant_id, run_id=run_id)]
    return [
        Prompted(
            row["participant"], row["model"], row["trimmed_upto"], row["refused_tokens"], row["refused_part"], row["guessed_tokens"],
            USAGE.read(row["usage"]) if row["usage"] else None,
        )
        for row in rows
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call without a result. `decision`: a person's word on it, if it is gated and decided."""

    has_begun: bool
    decision: Decision | None = None


async def open_calls(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> dict[str, OpenCall]:
    """The calls without a result, by our ids."""
    rows = [row async for row in _sql.open_calls(reader.connection, tenant_id=tenant_id, run_id=run_id)]
    return {str(row["call_id"]): OpenCall(row["begun_at"] is not None, _decision(row)) for row in rows}


def _decision(row: Any) -> Decision | None:
    if row["outcome"] is None:
        return None
    may = rights_of(Role(row["role"]), None) if row["role"] is not None and row["removed_at"] is None else frozenset()
    is_approved = row["outcome"] == PendingOutcome.APPROVED
    return Decision(
        is_approved,
        row["answered_by_name"],
        row["binding_hash"],
        row["reason"],
        is_void=Right.APPROVE not in may or not row["is_asked"],
    )


async def append_message(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, item_id: UUID, author: Author, message: str, thread_id: str
) -> StoredItem | None:
    """Append a person's message at once, whatever a worker is doing; null if the run has ended or is not there."""
    item = Item(item_id, author, HumanMessage(message))
    row = await _sql.append_message(
        writer.connection, tenant_id=tenant_id, run_id=run_id, item_id=item_id, author_name=safe(author.name), author_id=author.id,
        thread_id=thread_id, body=write_body(item),
    )  # fmt: skip
    return read_item(row) if row is not None else None


@dataclass(frozen=True, slots=True)
class ModelCallRecord:
    """One provider call, for usage. `usage` null: still under way, or it failed without one."""

    model_call_id: UUID
    turn_id: UUID | None
    started_at: datetime
    ended_at: datetime | None
    participant: str
    provider: str
    model: str
    credential: str | None
    usage: Usage | None
    service_tier: str | None
    error_class: str | None
    is_own_license: bool = False


async def usage_of_run(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[ModelCallRecord]:
    """The calls that were made, once each (B45); those that never were are no calls."""
    found = _sql.usage_of_run(reader.connection, tenant_id=tenant_id, run_id=run_id, not_made=sorted(NEVER_MADE))
    rows = [row async for row in found]
    return [
        ModelCallRecord(
            row["model_call_id"], row["turn_id"], row["started_at"], row["ended_at"], row["participant"], row["provider"], row["model"],
            row["credential"], USAGE.read(row["usage"]) if row["usage"] else None, row["service_tier"], row["error_class"],
            row["is_own_license"],
        )
        for row in rows
    ]  # fmt: skip
