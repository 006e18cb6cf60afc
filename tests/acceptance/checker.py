"""Compares what tools wrote into their own log with our tables (faults.md, head): what is wrong, in sentences.

Every non-idempotent call at most once; every one has an earlier begun mark; every run ended or claimable; sequences without
gap; every call at most one result, and exactly one when its run has ended; no row of one tenant seen by another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import panels

from folkmoot.store import conversations, runs
from folkmoot.store.database import Database

REPEATABLE = frozenset({"look", "note", "wait", "break_down", "dump"})
GATED = frozenset({"sign"})
_OWNED = ("item", "model_call", "call", "resolved_definition", "pending", "content", "sub_run_await")


@dataclass(frozen=True)
class Entry:
    """A line of the tools' log. `time`: Unix seconds by this machine's clock, which is the database's too."""

    time: float
    pid: int
    name: str
    call_id: str
    key: str
    run_id: str
    arguments: dict[str, Any]


def log_of(path: Path) -> list[Entry]:
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


async def faults(database: Database, log: Path) -> list[str]:
    """All that is wrong; empty if nothing is."""
    entries = log_of(log)
    found = list(_repeated(entries))
    found += await _without_begun_mark(database, entries)
    found += await _stuck(database)
    found += await _gaps(database)
    found += await _results(database)
    found += await _unsettled(database)
    found += await _without_approval(database, entries)
    found += await _strangers(database)
    return found


def _repeated(entries: Iterable[Entry]) -> Iterable[str]:
    counts = Counter((entry.name, entry.key) for entry in entries)
    for (name, key), count in counts.items():
        if count > 1 and name not in REPEATABLE:
            yield f"The call {key} of {name} was made {count} times."
    calls: dict[str, set[str]] = {}
    for entry in entries:
        calls.setdefault(entry.key, set()).add(
            f"{entry.call_id} {entry.name} {json.dumps(entry.arguments, sort_keys=True)}"
        )
    for key, made in calls.items():
        if len(made) > 1:
            yield f"The key {key} was used for {len(made)} different calls."


async def _without_begun_mark(database: Database, entries: Iterable[Entry]) -> list[str]:
    rows = await panels.fetch(
        database, "select run_id, call_id, extract(epoch from begun_at)::float8 as begun_at, attempts from call"
    )
    begun = {(str(row["run_id"]), str(row["call_id"])): row for row in rows}
    found = []
    made = Counter((entry.run_id, entry.call_id) for entry in entries)
    first: dict[tuple[str, str], float] = {}
    for entry in entries:
        first.setdefault((entry.run_id, entry.call_id), entry.time)
    for call, count in made.items():
        row = begun.get(call)
        if row is None or row["begun_at"] is None:
            found.append(f"The call {call[1]} was made without a begun mark.")
        elif count == 1 and row["attempts"] == 1 and row["begun_at"] > first[call] + 0.001:
            found.append(f"The call {call[1]} was marked as begun only after it was made.")
        elif row["attempts"] < count:
            found.append(f"The call {call[1]} was made {count} times and marked as begun {row['attempts']} times.")
    return found


async def _stuck(database: Database) -> list[str]:
    """A run whose worker's lease has run out is claimable: the next sweep sees to it."""
    rows = await panels.fetch(
        database,
        """select run_id, status from process p where ended_at is null and ready_at is null and worker_id is null
           and not exists (select from pending w where (w.tenant_id, w.run_id, w.pending_id) = (p.tenant_id, p.run_id, p.pending_id)
                           and w.outcome is null)""",
    )
    return [f"The run {row['run_id']} is {row['status']}, and nobody can claim it." for row in rows]


async def _without_approval(database: Database, entries: Iterable[Entry]) -> list[str]:
    """A gated call that was made has an approval from before; nothing that is answered is asked again."""
    rows = await panels.fetch(
        database, "select pending_id, outcome, extract(epoch from answered_at)::float8 as at from pending"
    )
    approved = {str(row["pending_id"]): row["at"] for row in rows if row["outcome"] == "Approved"}
    return [
        f"The call {entry.call_id} of {entry.name} was made without an approval."
        for entry in entries
        if entry.name in GATED and not approved.get(entry.call_id, float("inf")) < entry.time
    ]


async def _gaps(database: Database) -> list[str]:
    rows = await panels.fetch(
        database,
        """select p.run_id, p.last_sequence, count(i.*) as items, coalesce(max(i.sequence), 0) as highest,
                  count(distinct i.item_id) as ids
           from process p left join item i using (tenant_id, run_id) group by p.tenant_id, p.run_id""",
    )
    return [
        f"The run {row['run_id']} has {row['items']} items up to {row['highest']}, of {row['last_sequence']}."
        for row in rows
        if not row["items"] == row["highest"] == row["last_sequence"] == row["ids"]
    ]


async def _results(database: Database) -> list[str]:
    rows = await panels.fetch(
        database,
        """select run_id, body ->> 'tool_call_id' as call_id, count(*) filter (where i.kind = 'toolCall') as calls,
                  count(*) filter (where i.kind = 'toolResult') as results, bool_and(p.ended_at is not null) as has_ended
           from item i join process p using (tenant_id, run_id) where i.kind in ('toolCall', 'toolResult') group by 1, 2""",
    )
    return [
        f"The call {row['call_id']} has {row['calls']} items and {row['results']} results."
        for row in rows
        if row["calls"] != 1 or row["results"] > 1 or (row["has_ended"] and row["results"] != 1)
    ]


async def _unsettled(database: Database) -> list[str]:
    rows = await panels.fetch(
        database,
        """select 'tool' as kind, run_id from call join process p using (tenant_id, run_id)
           where p.ended_at is not null and call.ended_at is null
           union all select 'model', run_id from model_call m join process p using (tenant_id, run_id)
           where p.ended_at is not null and m.ended_at is null""",
    )
    return [f"The ended run {row['run_id']} has a {row['kind']} call that is open." for row in rows]


async def _strangers(database: Database) -> list[str]:
    found = []
    for table in _OWNED:
        rows = await panels.fetch(
            database,
            f"select run_id from {table} t where not exists (select from process p where (p.tenant_id, p.run_id) = (t.tenant_id, t.run_id))",
        )
        found += [f"A row of {table} is of another tenant than its run {row['run_id']}." for row in rows]
    owners = await panels.fetch(database, "select tenant_id, run_id from process")
    for row in owners:
        for other in {r["tenant_id"] for r in owners} - {row["tenant_id"]}:
            if await _sees(database, other, row["run_id"]):
                found.append(f"The tenant {other} sees the run {row['run_id']} of another.")
    return found


async def _sees(database: Database, tenant_id: UUID, run_id: UUID) -> bool:
    async with database.reader() as reader:
        return bool(
            await runs.get(reader, tenant_id, run_id=run_id)
            or await conversations.items_after(reader, tenant_id, run_id=run_id, after=0, limit=1)
            or await conversations.usage_of_run(reader, tenant_id, run_id=run_id)
        )
