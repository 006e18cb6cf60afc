"""Swarms: the places that a tree has for sub-runs, the sub-runs of a run, and what one awaits.

Whoever starts a sub-run holds the tree's row from counting to the end of the transaction. An await is written by the pause, in a
worker's append, and is over by a trigger where a sub-run ends (migration 0011). Deliberately absent: what is started (`services`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Claim
from folkmoot.domain.swarms import Await, AwaitView, SubRun, SwarmLimits, SwarmView
from folkmoot.kernel.errors import LeaseLost
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("swarms")


@dataclass(frozen=True, slots=True)
class Parent:
    """A run that starts another one. `deadline_at`: when its time is used up; null: it has no limit. `is_to_stop`: it was asked to."""

    tree_root_id: UUID
    swarm_root_id: UUID
    depth: int
    created_by: UUID
    deadline_at: datetime | None
    is_to_stop: bool
    priority: int
    now: datetime


async def parent(writer: Writer, claim: Claim) -> Parent:
    """Lock the run's row against its end until the transaction ends; after that of a child, where one is locked, too.

    Raises LeaseLost where the claim is no more.
    """
    row = await _sql.parent(
        writer.connection, tenant_id=claim.tenant_id, run_id=claim.run_id, number=claim.number, claim_id=claim.claim_id
    )
    if row is None:
        raise LeaseLost(f"Another claim of run {claim.run_id} exists; nothing is started or stopped under this one.")
    return Parent(
        row["tree_root_id"], row["swarm_root_id"], row["depth"], row["created_by"], row["deadline_at"], row["stopped_by"] is not None,
        row["priority"], row["now"],
    )  # fmt: skip


async def lock(writer: Writer, tenant_id: UUID, *, root: UUID) -> None:
    """Until the transaction ends nobody else starts a sub-run of this tree. Lock its runs before."""
    await _sql.lock(writer.connection, tenant_id=tenant_id, root=root)


async def make(writer: Writer, tenant_id: UUID, *, root: UUID, limits: SwarmLimits) -> None:
    """The tree's row, if it has none yet: its limits are those of the run that starts its first sub-run."""
    await _sql.make(
        writer.connection, tenant_id=tenant_id, root=root, max_depth=limits.max_depth, max_concurrent=limits.max_concurrent,
        max_total=limits.max_total,
    )  # fmt: skip


async def those_there(reader: Reader, tenant_id: UUID, *, run_ids: Sequence[UUID]) -> set[UUID]:
    """Which of these runs exist."""
    return {row["run_id"] async for row in _sql.those_there(reader.connection, tenant_id=tenant_id, run_ids=run_ids)}


@dataclass(frozen=True, slots=True)
class Counts:
    """Of a tree: its limits, how many sub-runs were ever started, how many have not ended."""

    limits: SwarmLimits
    started: int
    running: int


async def take_places(
    writer: Writer, tenant_id: UUID, *, root: UUID, depth: int, limits: SwarmLimits, wanted: int
) -> int:
    """Places for more sub-runs of this depth: as many as are wanted, or as there are. `limits`: of their starter, which may be lower."""
    taken = await _sql.take_places(
        writer.connection, tenant_id=tenant_id, root=root, depth=depth, max_depth=limits.max_depth,
        max_concurrent=limits.max_concurrent, max_total=limits.max_total, wanted=wanted,
    )  # fmt: skip
    return taken or 0


async def counts(reader: Reader, tenant_id: UUID, *, root: UUID) -> Counts:
    row = await _sql.counts(reader.connection, tenant_id=tenant_id, root=root)
    return Counts(
        SwarmLimits(row["max_depth"], row["max_concurrent"], row["max_total"]), row["started"], row["running"]
    )


async def statuses(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> dict[UUID, RunStatus]:
    """The sub-runs of a run, in the order in which they were started."""
    rows = _sql.statuses(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return {row["run_id"]: RunStatus(row["status"]) async for row in rows}


async def children(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> tuple[SubRun, ...]:
    return (await _children(reader, tenant_id, [run_id])).get(run_id, ())


async def _children(reader: Reader, tenant_id: UUID, run_ids: Sequence[UUID]) -> dict[UUID, tuple[SubRun, ...]]:
    found: dict[UUID, list[SubRun]] = {}
    async for row in _sql.children(reader.connection, tenant_id=tenant_id, run_ids=run_ids):
        made = SubRun(
            row["run_id"], row["definition_id"], row["definition_version"], row["name"], RunStatus(row["status"]), row["started_by"] or "",
            row["created_at"], row["started_at"], row["ended_at"],
        )  # fmt: skip
        found.setdefault(row["parent_id"], []).append(made)
    return {run_id: tuple(each) for run_id, each in found.items()}


@dataclass(frozen=True, slots=True)
class SubRunResult:
    """What came of a sub-run; as long as it has not ended, its status alone."""

    run_id: UUID
    name: str
    status: RunStatus
    output: str | None
    failure_details: str | None


async def results(
    reader: Reader, tenant_id: UUID, *, run_id: UUID, sub_run_ids: Sequence[UUID]
) -> dict[UUID, SubRunResult]:
    rows = _sql.results(reader.connection, tenant_id=tenant_id, run_id=run_id, sub_run_ids=sub_run_ids)
    return {
        row["run_id"]: SubRunResult(
            row["run_id"], row["name"], RunStatus(row["status"]), row["output"], row["failure_details"]
        )
        async for row in rows
    }


async def views(
    reader: Reader, tenant_id: UUID, *, limits: Mapping[UUID, SwarmLimits | None], with_children: bool
) -> dict[UUID, SwarmView]:
    """The places of runs in their trees. `limits`: by run, those it is pinned to, which hold until the tree's first sub-run is
    started; null: it may start none. `with_children`: else `children` are empty."""
    if not limits:
        return {}
    run_ids = list(limits)
    own = await _children(reader, tenant_id, run_ids) if with_children else {}
    rows = [row async for row in _sql.places(reader.connection, tenant_id=tenant_id, run_ids=run_ids)]
    return {row["run_id"]: _view(row, limits[row["run_id"]], own.get(row["run_id"], ())) for row in rows}


def _view(row: Any, pinned: SwarmLimits | None, own: tuple[SubRun, ...]) -> SwarmView:
    limits = pinned or SwarmLimits()
    if row["max_depth"] is not None:
        limits = SwarmLimits(row["max_depth"], row["max_concurrent"], row["max_total"])
    awaiting = None
    if row["await_id"] is not None:
        awaited = Await(
            row["await_id"], tuple(row["sub_run_ids"]), row["is_all"], row["participant"], row["thread_id"], row["author_id"]
        )  # fmt: skip
        awaiting = AwaitView(awaited, row["is_taken"], row["awaited_at"])
    return SwarmView(
        row["swarm_root_id"], row["depth"], limits, row["started"], row["running"], own, row["is_released"], awaiting
    )
