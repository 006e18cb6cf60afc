"""Runs as they are shown: one, or a page of many under filters, newest first.

Keyset pages: a page costs the same wherever it begins. Deliberately absent: conversations and usage, which grow.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from folkmoot.domain.credentials import CredentialEntry, StackSnapshot
from folkmoot.domain.definitions import ModelOverride
from folkmoot.domain.inbox import PendingEntry
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ProcessType, Run
from folkmoot.domain.swarms import SwarmLimits, SwarmView
from folkmoot.domain.trees import MOST_COUNTED
from folkmoot.store import swarms
from folkmoot.store.codecs import OVERRIDES, SPAN, Codec, json_value, safe
from folkmoot.store.database import Reader, queries
from folkmoot.store.pending import read_entry
from folkmoot.store.runs import read_run

_sql: Any = queries("runs")


@dataclass(frozen=True, slots=True)
class RunKeys:
    """What a run's calls may take, as its start settled it."""

    credential_stack: StackSnapshot | None = None
    credentials: tuple[CredentialEntry, ...] = ()
    allow_platform_fallback: bool | None = None


@dataclass(frozen=True, slots=True)
class RunView:
    """A run beside what was given at its start. `now`: the database's time at which this held. `pending`: what it waits for.

    `dispatch_began_at`: of the dispatch whose call it waits about; null: it is no dispatch's.
    `swarm`: of a run that may start others, or was started by one.
    """

    run: Run
    now: datetime
    inputs: tuple[tuple[str, str], ...]
    disabled_tools: tuple[str, ...]
    pending: PendingEntry | None = None
    duration_warning_to_ai: timedelta | None = None
    ai_model_overrides: tuple[ModelOverride, ...] = ()
    keys: RunKeys = field(default_factory=RunKeys)
    dispatch_began_at: datetime | None = None
    swarm: SwarmView | None = None


_KEYS: Codec[RunKeys] = Codec(RunKeys)
_LIMITS: Codec[SwarmLimits] = Codec(SwarmLimits)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Null: any. `root`: everything in the tree whose root it is; `below`: this run and all below it. `text`: words to be found in name, inputs and tags."""

    status: RunStatus | None = None
    interaction_id: UUID | None = None
    namespace_id: UUID | None = None
    root: UUID | None = None
    below: UUID | None = None
    parent: UUID | None = None
    tag: str | None = None
    text: str | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunCursor:
    """The last run of a page; the next page begins after it."""

    created_at: datetime
    run_id: UUID


async def get(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> RunView | None:
    found = await _views(reader, tenant_id, [run_id], with_children=True)
    return found[0] if found else None


async def page(
    reader: Reader, tenant_id: UUID, *, wanted: RunFilter, after: RunCursor | None, limit: int
) -> list[RunView]:
    """Runs under a filter, the newest first, those after the cursor; without their sub-runs, of which one may have thousands (B63)."""
    values = parameters(tenant_id, wanted, after, limit)
    async with reader.one_moment():
        await reader.plan_anew()
        async with reader.outside_the_wall() if is_found_outside(wanted) else nullcontext():
            ids = [row["run_id"] async for row in _sql.page_ids(reader.connection, **values)]
        return await _views(reader, tenant_id, ids, with_children=False)


async def _views(reader: Reader, tenant_id: UUID, run_ids: list[UUID], *, with_children: bool) -> list[RunView]:
    rows = [row async for row in _sql.views(reader.connection, tenant_id=tenant_id, run_ids=run_ids)]
    in_swarms = {
        row["run_id"]: _LIMITS.read(row["swarm_limits"]) if row["swarm_limits"] else None
        for row in rows
        if row["swarm_limits"] is not None or row["parent_kind"] == ProcessType.INTERACTION
    }
    swarm_of = await swarms.views(reader, tenant_id, limits=in_swarms, with_children=with_children)
    return [replace(_view(row), swarm=swarm_of.get(row["run_id"])) for row in rows]


def is_found_outside(wanted: RunFilter) -> bool:
    """Whether an index serves the filter only outside of the wall: equal enums, tags and words are compared by functions that
    PostgreSQL does not take for leakproof."""
    return not (wanted.status is wanted.tag is wanted.text is None)


def parameters(tenant_id: UUID, wanted: RunFilter, after: RunCursor | None, limit: int) -> dict[str, Any]:
    """The statement's parameters; apart, so that its plans can be looked at."""
    return {
        "tenant_id": tenant_id,
        "status": wanted.status,
        "definition_id": wanted.interaction_id,
        "namespace_id": wanted.namespace_id,
        "root": wanted.root,
        "below": wanted.below,
        "parent": wanted.parent,
        "tag": safe(wanted.tag) if wanted.tag is not None else None,
        "text": safe(wanted.text) if wanted.text is not None else None,
        "from_date": wanted.created_from,
        "to_date": wanted.created_before,
        "after_date": after.created_at if after else None,
        "after_id": after.run_id if after else None,
        "limit": limit,
    }


@dataclass(frozen=True, slots=True)
class TreeCounts:
    """Of the oldest MOST_COUNTED runs of a tree."""

    total: int
    active: int


async def tree_counts(reader: Reader, tenant_id: UUID, *, root: UUID) -> TreeCounts:
    row = await _sql.tree_counts(reader.connection, tenant_id=tenant_id, root=root, most=MOST_COUNTED)
    return TreeCounts(row["total"], row["active"])


def _view(row: Any) -> RunView:
    inputs = tuple((name, value) for name, value in json_value(row["inputs"] or "[]"))
    disabled = tuple(json_value(row["disabled_tools"] or "[]"))
    entry = None
    if row["x_pending_id"] is not None:
        columns = {name.removeprefix("x_"): value for name, value in row.items() if name.startswith("x_")}
        entry = read_entry({**columns, "run_id": row["run_id"], "tree_root_id": row["tree_root_id"]})
    warning = SPAN.read(row["duration_warning_to_ai"] or "null")
    overrides = OVERRIDES.read(row["ai_model_overrides"] or "[]")
    keys = _KEYS.read(row["keys"]) if row["keys"] is not None else RunKeys()
    return RunView(
        read_run(row), row["now"], inputs, disabled, entry, warning, overrides, keys, row["dispatch_began_at"]
    )
