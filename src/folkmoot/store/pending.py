"""What waits or waited for a person: found, answered once, closed by a stop, listed.

Rows are opened by the pause, in a worker's append, and are a projection: the conversation and the calls say the same. An answer
locks the run first, as every writer does, so that of several at once one counts. Deliberately absent: what an answer means, and
expiry, which the sweep of `runs` sees to.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.inbox import InboxCursor, InboxEntry, InboxFilter, InboxStatus, PendingEntry, Settled
from folkmoot.domain.items import Item, StoredItem
from folkmoot.domain.pending import Pending, PendingKind, PendingOutcome
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.store.codecs import DETAIL, json_text, json_value, read_item, safe, safe_json, write_body
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("pending")


@dataclass(frozen=True, slots=True)
class LockedRun:
    """A run whose row this transaction holds."""

    status: RunStatus
    has_ended: bool


@dataclass(frozen=True, slots=True)
class Found:
    """`is_due`: its time has run out, though nobody has closed it yet. `chat_item_id`: where an agent run's approval stands; null: another
    run asks."""

    entry: PendingEntry
    is_due: bool
    chat_item_id: UUID | None = None

    @property
    def is_open(self) -> bool:
        return self.entry.settled is None and not self.is_due


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that is to count. `content`: as it is compared with a second one. `item`: what the conversation gets of it."""

    pending_id: UUID
    outcome: PendingOutcome
    content: dict[str, Any]
    by: UUID
    by_name: str
    channel: str
    item: Item | None = None


async def lock_run(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, run_type: ProcessType = ProcessType.INTERACTION
) -> LockedRun | None:
    """Lock the run's row until the transaction ends; null if there is none of this type."""
    row = await _sql.lock_run(writer.connection, tenant_id=tenant_id, run_id=run_id, run_type=run_type)
    return LockedRun(RunStatus(row["status"]), row["has_ended"]) if row is not None else None


async def find(reader: Reader, tenant_id: UUID, *, run_id: UUID, pending_id: UUID) -> Found | None:
    row = await _sql.find(reader.connection, tenant_id=tenant_id, run_id=run_id, pending_id=pending_id)
    return _found(row) if row is not None else None


async def open_ones(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[Found]:
    """What the run waits for now, in the order it was asked."""
    return [_found(row) async for row in _sql.open_ones(reader.connection, tenant_id=tenant_id, run_id=run_id)]


async def is_of_run(reader: Reader, tenant_id: UUID, *, run_id: UUID, pending_id: UUID) -> bool:
    """Whether the run's conversation has a vote, solution, question or turn of this id."""
    known: bool = await _sql.is_of_run(
        reader.connection, tenant_id=tenant_id, run_id=run_id, pending_id=pending_id, pending_text=str(pending_id)
    )
    return known


async def settle(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, answer: Answer
) -> tuple[PendingEntry, StoredItem | None] | None:
    """The answer, with its item, and the run woken; null if it is not open any more. The run's row is locked before."""
    row = await _sql.settle(
        writer.connection, tenant_id=tenant_id, run_id=run_id, pending_id=answer.pending_id, outcome=answer.outcome.value,
        answer=json_text(safe_json(answer.content)), answered_by=answer.by, answered_by_name=safe(answer.by_name),
        channel=answer.channel, items=0 if answer.item is None else 1,
    )  # fmt: skip
    if row is None:
        return None
    item = answer.item
    stored = None
    if item is not None:
        stored = await _insert_item(writer, tenant_id, run_id=run_id, sequence=row["last_sequence"], item=item)
    return read_entry(row), stored


async def _insert_item(writer: Writer, tenant_id: UUID, *, run_id: UUID, sequence: int, item: Item) -> StoredItem:
    return read_item(
        await _sql.insert_item(
            writer.connection, tenant_id=tenant_id, run_id=run_id, sequence=sequence, item_id=item.item_id, kind=item.body.kind,
            author_kind=item.author.kind.value, author_name=safe(item.author.name), author_id=item.author.id, thread_id=item.thread_id,
            turn_id=item.turn_id, body=write_body(item), detail=DETAIL.write(item.detail) if item.detail is not None else None,
        )
    )  # fmt: skip


async def stop(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, by: UUID | None, by_name: str, channel: str
) -> list[UUID]:
    """Close what the run waits for, since it is asked to stop (B13); the ids. `by` null: nobody. The run's row is locked before."""
    rows = _sql.stop(
        writer.connection, tenant_id=tenant_id, run_id=run_id, stopped_by=by, stopped_by_name=safe(by_name), channel=channel
    )  # fmt: skip
    return [row["pending_id"] async for row in rows]


# lists


async def page(
    reader: Reader, tenant_id: UUID, *, wanted: InboxFilter, after: InboxCursor | None, limit: int
) -> list[InboxEntry]:
    """Those after the cursor: what waits from the longest waiting on, anything else from the newest on."""
    values = parameters(tenant_id, wanted, after, limit)
    is_waiting = wanted.status is InboxStatus.PENDING
    # equal enums: PostgreSQL does not take their comparison for leakproof
    is_found_outside = wanted.status is not None and not is_waiting
    async with reader.one_moment():
        await reader.plan_anew()
        async with reader.outside_the_wall() if is_found_outside else nullcontext():
            if is_waiting:
                rows = [row async for row in _sql.waiting_keys(reader.connection, **values)]
            else:
                rows = [row async for row in _sql.page_keys(reader.connection, outcome=wanted.status, **values)]
        found = await entries(reader, tenant_id, keys=[(row["run_id"], row["pending_id"]) for row in rows])
    return found if is_waiting else found[::-1]


def parameters(tenant_id: UUID, wanted: InboxFilter, after: InboxCursor | None, limit: int) -> dict[str, Any]:
    """The statements' parameters; apart, so that their plans can be looked at."""
    return {
        "tenant_id": tenant_id, "kind": wanted.kind, "run_id": wanted.run_id, "root": wanted.root, "below": wanted.below, "limit": limit,
        "after_date": after.asked_at if after else None, "after_id": after.pending_id if after else None,
    }  # fmt: skip


async def entry(reader: Reader, tenant_id: UUID, *, run_id: UUID, pending_id: UUID) -> InboxEntry | None:
    found = await entries(reader, tenant_id, keys=[(run_id, pending_id)])
    return found[0] if found else None


async def counts(reader: Reader, tenant_id: UUID) -> dict[PendingKind, int]:
    """How many wait, of each kind that waits at all."""
    return {PendingKind(row["kind"]): row["count"] async for row in _sql.counts(reader.connection, tenant_id=tenant_id)}


# what a feed needs

Key = tuple[UUID, UUID]


async def open_keys(reader: Reader, tenant_id: UUID, *, limit: int) -> tuple[datetime, list[tuple[Key, datetime]]]:
    """What waits and since when, the longest first, and a moment before this look."""
    moment: datetime = await _sql.moment(reader.connection)
    rows = [row async for row in _sql.open_keys(reader.connection, tenant_id=tenant_id, limit=limit)]
    return moment, [((row["run_id"], row["pending_id"]), row["asked_at"]) for row in rows]


async def entries(reader: Reader, tenant_id: UUID, *, keys: Sequence[Key]) -> list[InboxEntry]:
    """The entries of these keys, the longest asked first."""
    rows = _sql.entries(
        reader.connection, tenant_id=tenant_id, run_ids=[run for run, _ in keys], pending_ids=[id_ for _, id_ in keys]
    )
    return [_entry(row) async for row in rows]


async def settled_since(
    reader: Reader, tenant_id: UUID, *, since: datetime, after: UUID, limit: int
) -> list[InboxEntry]:
    """What was closed after a moment, in that order; at that very moment only those with an id above `after`."""
    rows = _sql.settled_since(reader.connection, tenant_id=tenant_id, since=since, after_id=after, limit=limit)
    return [_entry(row) async for row in rows]


# rows


def _entry(row: Any) -> InboxEntry:
    kept = json_value(row["card"])
    chat_item_id = UUID(kept["chatItemId"]) if row["agent_run"] is not None and "chatItemId" in kept else None
    return InboxEntry(read_entry(row), row["interaction_name"], row["namespace_name"], row["agent_run"], chat_item_id)


def _found(row: Any) -> Found:
    chat_item: str | None = json_value(row["card"]).get("chatItemId")
    return Found(read_entry(row), row["is_due"], UUID(chat_item) if chat_item is not None else None)


def read_entry(row: Any) -> PendingEntry:
    """A row of `pending`, with all its columns, its card as it is shown, and its run's `tree_root_id`."""
    settled = None
    if row["outcome"] is not None:
        settled = Settled(
            PendingOutcome(row["outcome"]), row["answered_at"], json_value(row["answer"]) if row["answer"] is not None else None,
            row["answered_by"], row["answered_by_name"], row["channel"],
        )  # fmt: skip
    pending = Pending(row["pending_id"], PendingKind(row["kind"]), json_value(row["shown_card"]), row["binding_hash"])
    root_id = row["tree_root_id"] if row["tree_root_id"] != row["run_id"] else None
    return PendingEntry(row["run_id"], pending, row["asked_at"], row["expires_at"], settled, root_id)
