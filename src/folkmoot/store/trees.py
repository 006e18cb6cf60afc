"""The runs of a tree: who started whom, what waits below a run, and the stop that goes from an ended run to what is below it.

A stop locks children only, and never waits for one, so that it can have no deadlock with a child's own end, which locks the child
and then its parent. Deliberately absent: a walk down the whole tree: a child's own end leads to its children, and only where that was
Completed a stop further up goes on to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.trees import MOST_COUNTED, MOST_NODES, Node, Tree, with_depths
from folkmoot.store import run_lists
from folkmoot.store.database import Reader, Writer, queries
from folkmoot.store.pending import Key

_sql: Any = queries("trees")


@dataclass(frozen=True, slots=True)
class LockedParent:
    """A run that cannot end before this transaction does. `app_name`: null for a run of an interaction. `is_lost`: it was
    not pinged in time, though the sweep has not said so yet."""

    type: ProcessType
    status: RunStatus
    tree_root_id: UUID
    app_name: str | None
    is_lost: bool


async def lock_parent(writer: Writer, tenant_id: UUID, *, run_id: UUID) -> LockedParent | None:
    """Keep the run from ending until the transaction ends; null if there is none."""
    row = await _sql.lock_parent(writer.connection, tenant_id=tenant_id, run_id=run_id)
    if row is None:
        return None
    return LockedParent(
        ProcessType(row["kind"]), RunStatus(row["status"]), row["tree_root_id"], row["app_name"], row["is_lost"]
    )


async def type_of(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> ProcessType | None:
    """What kind of run it is; null if there is none."""
    kind = await _sql.kind_of(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return ProcessType(kind) if kind is not None else None


async def root_of(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> UUID | None:
    """The root of the tree that a run is in; null if there is no such run."""
    found: UUID | None = await _sql.root_of(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return found


async def get(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> Tree | None:
    """The whole tree of a run, wherever in it the run is, up to MOST_NODES; null if there is no such run."""
    rows = [
        row
        async for row in _sql.nodes(
            reader.connection, tenant_id=tenant_id, run_id=run_id, limit=MOST_NODES, most=MOST_COUNTED
        )
    ]
    if not rows:
        return None
    root_id = rows[0]["tree_root_id"]
    counts = await run_lists.tree_counts(reader, tenant_id, root=root_id)
    return Tree(root_id, counts.total, counts.active, with_depths(_node(row) for row in rows))


async def node(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> Node | None:
    """One run as its tree shows it."""
    row = await _sql.node(reader.connection, tenant_id=tenant_id, run_id=run_id, most=MOST_COUNTED)
    return replace(_node(row), depth=row["depth"]) if row is not None else None


@dataclass(frozen=True, slots=True)
class ChildToStop:
    """`ended_as`: how the run above it ended, on account of which it is to stop."""

    run_id: UUID
    ended_as: RunStatus


async def stop_children(
    writer: Writer, tenant_id: UUID, *, ended_id: UUID, parent_id: UUID, limit: int
) -> list[ChildToStop]:
    """Ask the children of a run to stop, at most `limit`, since `ended_id` ended, and not as Completed: the run itself, or one above it
    where the run is Completed; those that were asked."""
    rows = _sql.stop_children(
        writer.connection, tenant_id=tenant_id, ended_id=ended_id, parent_id=parent_id, limit=limit
    )
    return [ChildToStop(row["run_id"], RunStatus(row["ended_status"])) async for row in rows]


async def delegating_children(reader: Reader, tenant_id: UUID, *, ended_id: UUID, parent_id: UUID) -> list[ChildToStop]:
    """The children of a run that `stop_children` leaves out, and that are to stop for the same reasons."""
    rows = _sql.delegating_children(reader.connection, tenant_id=tenant_id, ended_id=ended_id, parent_id=parent_id)
    return [ChildToStop(row["run_id"], RunStatus(row["ended_status"])) async for row in rows]


async def completed_below(reader: Reader, tenant_id: UUID, *, ended_id: UUID, limit: int) -> list[UUID]:
    """Completed runs below an ended one that have children still to be asked."""
    rows = _sql.completed_below(reader.connection, tenant_id=tenant_id, ended_id=ended_id, limit=limit)
    return [row["run_id"] async for row in rows]


async def settle_below(writer: Writer, tenant_id: UUID, *, ended_id: UUID) -> None:
    """Take the run from `ended_parents`, if all below it were asked to stop."""
    await _sql.settle_below(writer.connection, tenant_id=tenant_id, ended_id=ended_id)


async def ended_parents(reader: Reader, *, limit: int) -> list[tuple[UUID, UUID]]:
    """Tenants and ids of ended runs below which some may still have to be asked to stop."""
    return [(row["tenant_id"], row["run_id"]) async for row in _sql.ended_parents(reader.connection, limit=limit)]


async def holder(reader: Reader, tenant_id: UUID, *, run_id: UUID, pending_id: UUID) -> UUID | None:
    """Which run asks this: the run itself or one below it; null if none does."""
    found: UUID | None = await _sql.holder(reader.connection, tenant_id=tenant_id, run_id=run_id, pending_id=pending_id)
    return found


async def waiting_below(reader: Reader, tenant_id: UUID, *, run_id: UUID, limit: int) -> list[Key]:
    """What waits in the runs below a run, the longest first."""
    rows = _sql.waiting_below(reader.connection, tenant_id=tenant_id, run_id=run_id, limit=limit)
    return [(row["run_id"], row["pending_id"]) async for row in rows]


async def goes_on_below(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> bool:
    """Whether anything below the run has not ended."""
    return bool(await _sql.goes_on_below(reader.connection, tenant_id=tenant_id, run_id=run_id))


async def has_swarm(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> bool:
    """Whether the run may have sub-runs, as its start settled it."""
    return bool(await _sql.has_swarm(reader.connection, tenant_id=tenant_id, run_id=run_id))


def _node(row: Any) -> Node:
    return Node(
        run_id=row["run_id"], type=ProcessType(row["kind"]), parent_id=row["parent_id"], status=RunStatus(row["status"]), name=row["name"],
        namespace=row["namespace_name"], interaction_id=row["definition_id"], interaction_version=row["definition_version"],
        created_by=row["created_by"], started_by=row["created_by_name"] or "", created_at=row["created_at"], started_at=row["started_at"],
        ended_at=row["ended_at"], children=row["children"], waiting=row["waiting"], is_to_stop=row["is_to_stop"],
        agent_run=row["agent_run"],
    )  # fmt: skip
