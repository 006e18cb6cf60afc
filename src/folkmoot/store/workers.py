"""A worker's lease: a row per worker and process start, lengthened by its pings, and what becomes of the runs of a lost one.

Database time is the only clock. Deliberately absent: when to ping or to sweep (`runtime`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.items import Item
from folkmoot.domain.runs import STATE_VERSION
from folkmoot.store.codecs import DETAIL, safe, write_body
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("workers")


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """`is_apart`: it runs one suspect at a time, in a process of its own."""

    worker_id: UUID
    host: str
    pid: int
    version: str
    is_apart: bool
    started_at: datetime
    pinged_at: datetime
    lease_until: datetime


async def register(
    writer: Writer, worker_id: UUID, *, host: str, pid: int, version: str, is_apart: bool, lease_seconds: float
) -> None:
    await _sql.register(
        writer.connection,
        worker_id=worker_id,
        host=host,
        pid=pid,
        version=version,
        is_apart=is_apart,
        lease_seconds=lease_seconds,
    )


async def ping(writer: Reader, worker_id: UUID, *, lease_seconds: float) -> bool:
    """False: the worker is taken for dead, and must drop everything."""
    return bool(await _sql.ping(writer.connection, worker_id=worker_id, lease_seconds=lease_seconds))


async def end_lease(writer: Writer, worker_id: UUID) -> None:
    """For a worker that is known to be gone."""
    await _sql.end_lease(writer.connection, worker_id=worker_id)


async def remove(writer: Writer, worker_id: UUID) -> None:
    """After a drain: only a worker that holds nothing is removed."""
    await _sql.remove(writer.connection, worker_id=worker_id)


async def live(reader: Reader) -> list[WorkerRow]:
    return [WorkerRow(*row.values()) async for row in _sql.live(reader.connection)]


async def take_from_lost(writer: Writer) -> list[UUID]:
    """Runs that lost workers held become claimable, as suspects; a crash counts only while apart. Returns them."""
    taken = [row["run_id"] async for row in _sql.take_from_lost(writer.connection)]
    await _sql.remove_lost(writer.connection)
    return taken


async def poisonous(writer: Writer, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Tenant and run of one that crashed `limit` times or more while apart, if there is any; locked until the transaction ends."""
    return [
        (row["tenant_id"], row["run_id"])
        async for row in _sql.poisonous(writer.connection, limit=limit, state_version=STATE_VERSION)
    ]


async def fail_poisonous(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, closing: Sequence[Item], reason: str
) -> None:
    """Such a run is Failed, and its conversation ends with the items of `closing`; its open calls are closed."""
    await _sql.fail_poisonous(
        writer.connection, tenant_id=tenant_id, run_id=run_id, reason=safe(reason), item_ids=[i.item_id for i in closing],
        kinds=[i.body.kind for i in closing], author_kinds=[i.author.kind.value for i in closing],
        author_names=[safe(i.author.name) for i in closing], thread_ids=[i.thread_id for i in closing],
        bodies=[write_body(i) for i in closing], details=[DETAIL.write(i.detail) if i.detail else None for i in closing],
    )  # fmt: skip
