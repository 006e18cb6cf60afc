"""A run's row: started, claimed, stopped, read. Its items are in `conversations`; a worker's writes are in `appends`.

Every transition is one statement whose WHERE names the states it may leave. Deliberately absent: what a run decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import (
    NO_INTERACTION,
    STATE_VERSION,
    WRITTEN_STATE,
    Claim,
    ClaimedRun,
    Place,
    ProcessType,
    Run,
)
from folkmoot.store.codecs import RESOLVED, safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("runs")
SEARCHED_CHARACTERS = 8000


@dataclass(frozen=True, slots=True)
class NewRun:
    """`place`: in the tree of the run that starts it; null: nothing does."""

    run_id: UUID
    namespace_id: UUID
    resolved: ResolvedInteraction
    place: Place | None = None
    response_json_schema: str | None = None
    tags: tuple[str, ...] = ()


async def insert(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, namespace_id: UUID, created_by: UUID, resolved: ResolvedInteraction,
    response_json_schema: str | None, tags: tuple[str, ...], priority: int, place: Place | None = None,
) -> None:  # fmt: skip
    """A new run, claimable at once when the transaction commits. `place`: in the tree of the run that starts it; null: nothing does."""
    new = NewRun(run_id, namespace_id, resolved, place, response_json_schema, tags)
    await insert_all(writer, tenant_id, [new], created_by=created_by, priority=priority)


async def insert_all(
    writer: Writer, tenant_id: UUID, new: Sequence[NewRun], *, created_by: UUID, priority: int
) -> None:
    """New runs, claimable at once when the transaction commits, in the order given."""
    bodies: dict[int, str] = {}  # runs that were resolved alike share a closure, which is written out once
    for run in new:
        if id(run.resolved) not in bodies:
            bodies[id(run.resolved)] = RESOLVED.write(run.resolved)
    rows = [_row_of(tenant_id, run, created_by=created_by, priority=priority) for run in new]
    await _sql.insert_run(writer.connection, rows)
    await _sql.insert_resolved(
        writer.connection, [{"tenant_id": tenant_id, "run_id": run.run_id, "body": bodies[id(run.resolved)]} for run in new]
    )  # fmt: skip


def _row_of(tenant_id: UUID, new: NewRun, *, created_by: UUID, priority: int) -> dict[str, Any]:
    resolved, place, tags = new.resolved, new.place, new.tags
    kind = ProcessType.AGENT_RUN if resolved.loop is not None else ProcessType.INTERACTION
    words = " ".join((resolved.interaction_name, *tags, *(value for _, value in resolved.inputs)))
    return {
        "tenant_id": tenant_id, "run_id": new.run_id, "namespace_id": new.namespace_id, "definition_id": resolved.interaction_id,
        "definition_version": resolved.interaction_version, "created_by": created_by, "kind": kind, "state_version": WRITTEN_STATE[kind],
        "duration_auto_termination": resolved.duration_auto_termination, "duration_human_timeout": resolved.duration_human_timeout,
        "response_json_schema": new.response_json_schema and safe(new.response_json_schema),
        "tags": [safe(tag) for tag in tags], "search": safe(words[:SEARCHED_CHARACTERS]), "priority": priority,
        "tree_root_id": place.tree_root_id if place else new.run_id, "swarm_root_id": place.swarm_root_id if place else new.run_id,
        "parent_id": place.parent_id if place else None, "parent_kind": place.parent_type if place else None,
        "depth": place.depth if place else 0, "stops_below": resolved.starts_runs,
        "started_by": safe(place.started_by) if place and place.started_by is not None else None,
    }  # fmt: skip


async def resolved(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> ResolvedInteraction:
    """What the run was pinned to when it started."""
    return RESOLVED.read(await _sql.resolved(reader.connection, tenant_id=tenant_id, run_id=run_id))


async def claim(
    writer: Reader, worker_id: UUID, *, batch: int, suspects: bool
) -> list[tuple[ClaimedRun, str | None, int]]:
    """Claim up to `batch` runs (suspects or others): each with who asked it to stop, and its driver errors in a row."""
    rows = [
        row
        async for row in _sql.claim(
            writer.connection, worker_id=worker_id, batch=batch, suspects=suspects, state_version=STATE_VERSION
        )
    ]
    return [
        (
            ClaimedRun(
                Claim(row["tenant_id"], row["run_id"], row["claim_number"], row["claim_id"]), row["signal_number"], row["last_sequence"],
                row["deadline_at"], row["is_suspect"], row["now"],
                RunStatus(row["before_timeout_status"]) if row["before_timeout_status"] else None, row["parent_id"],
                row["execution_time"],
            ),
            row["stopped_by"],
            row["driver_errors"],
        )
        for row in rows
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Claimable:
    """`next_in`: until the next run that waits for its time becomes ready; null if there is none."""

    suspects: bool
    next_in: timedelta | None


async def are_claimable(reader: Reader) -> Claimable:
    row = await _sql.are_claimable(reader.connection, state_version=STATE_VERSION)
    return Claimable(row["suspects"], row["next_in"])


async def held(reader: Reader, worker_id: UUID) -> list[tuple[Claim, int]]:
    """The claims that a worker has, each with its run's signal number."""
    return [
        (Claim(row["tenant_id"], row["run_id"], row["claim_number"], row["claim_id"]), row["signal_number"])
        async for row in _sql.held(reader.connection, worker_id=worker_id)
    ]


async def overdue(writer: Writer) -> list[UUID]:
    """Raises the signal of runs at work past their time limit; returns them."""
    return [row["run_id"] async for row in _sql.overdue(writer.connection)]


async def tenants_due(reader: Reader) -> list[UUID]:
    """The tenants in which something is to expire."""
    return [row["tenant_id"] async for row in _sql.tenants_due(reader.connection)]


async def expire(writer: Writer, tenant_id: UUID) -> list[UUID]:
    """Wakes the runs of a tenant whose person let the time run out, with nothing left to answer; returns them."""
    return [row["run_id"] async for row in _sql.expire(writer.connection, tenant_id=tenant_id)]


async def request_stop(
    writer: Writer, tenant_id: UUID, *, run_id: UUID, stopped_by: str, run_type: ProcessType = ProcessType.INTERACTION
) -> RunStatus | None:
    """The status after the request (Stopped only where no worker has to see to it); null if it has ended or is no such run."""
    row = await _sql.request_stop(
        writer.connection, tenant_id=tenant_id, run_id=run_id, stopped_by=safe(stopped_by), run_type=run_type
    )
    return RunStatus(row["status"]) if row is not None else None


@dataclass(frozen=True, slots=True)
class Signals:
    signal_number: int
    stopped_by: str | None
    last_sequence: int
    now: datetime


async def signals(reader: Reader, claim: Claim) -> Signals | None:
    """What a worker reads again when the signal has moved; null: its claim is no more."""
    row = await _sql.signals(
        reader.connection, tenant_id=claim.tenant_id, run_id=claim.run_id, number=claim.number, claim_id=claim.claim_id
    )
    return Signals(*row.values()) if row is not None else None


async def get(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> Run | None:
    """A run of an interaction."""
    row = await _sql.get(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return read_run(row) if row is not None else None


async def created_by(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> UUID:
    """Who started the tree of a run, of whatever type."""
    found: UUID = await _sql.created_by(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return found


def read_run(row: Any) -> Run:
    """A row of `process` with its worker's ping as `worker_pinged_at`."""
    return Run(
        tenant_id=row["tenant_id"], run_id=row["run_id"], interaction_id=row["definition_id"] or NO_INTERACTION,
        interaction_version=row["definition_version"] or 0, type=ProcessType(row["kind"]),
        status=RunStatus(row["status"]), created_by=row["created_by"], created_at=row["created_at"], updated_at=row["updated_at"],
        started_at=row["started_at"], claimed_at=row["claimed_at"], ended_at=row["ended_at"],
        pinged_at=row["worker_pinged_at"] or row["pinged_at"], hostname=row["hostname"], execution_time=row["execution_time"],
        output=row["output"], failure_details=row["failure_details"], last_sequence=row["last_sequence"], tree_root_id=row["tree_root_id"],
        parent_id=row["parent_id"], parent_type=ProcessType(row["parent_kind"]) if row["parent_kind"] else None,
        duration_auto_termination=row["duration_auto_termination"], response_json_schema=row["response_json_schema"], tags=tuple(row["tags"]),
        pending_id=row["pending_id"],
        before_timeout_status=RunStatus(row["before_timeout_status"]) if row["before_timeout_status"] else None,
        awaits_since=row["awaits_since"],
    )  # fmt: skip
