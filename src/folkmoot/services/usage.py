"""What was used and what it cost, for those who ask: sums over a tenant's calls, and a run's calls one by one.

Whoever may read runs may read this. Deliberately absent: limits (`budgets`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain.budgets import Budget
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.usage import CallCursor, GroupedUsage, UsageFilter, UsageGroup, UsageKey, UsageSum, UsedCall
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import namespaces, trees
from folkmoot.services.runs import view_of
from folkmoot.store import runs, usage
from folkmoot.store.database import Database

MOST_KEYS = 2


@dataclass(frozen=True, slots=True)
class RunUsage:
    """`tree`: of all runs in its tree; null where it was not asked for. `calls`: a page. `budget`: as the run started with it."""

    run_id: UUID
    total: UsageSum
    tree: UsageSum | None
    budget: Budget | None
    calls: tuple[UsedCall, ...]


async def sums(
    database: Database, caller: Caller, *, wanted: UsageFilter, namespace: str | None = None, by: Collection[UsageKey] = (),
    after: UsageGroup | None = None, limit: int,
) -> list[GroupedUsage]:  # fmt: skip
    """Sums under a filter by one or two keys, or the one sum of all without any. `namespace` by name (one that is not there has none).

    Raises BadInput for more keys, and NotFound for a root that is no run.
    """
    if wanted.since is not None and wanted.before is not None and wanted.since >= wanted.before:
        message = "The time that usage is asked for ends before it begins: 'to' must be after 'from'."
        raise BadInput(message, (Fault("/query/to", message),))
    if len(set(by)) < len(by):
        message = "Usage is grouped by two different keys; leave one out."
        raise BadInput(f"'thenBy': {message}", (Fault("/query/thenBy", message),))
    if len(set(by)) > MOST_KEYS:
        message = f"Usage is grouped by {MOST_KEYS} keys at most; these are {len(set(by))}. Leave some out."
        raise BadInput(f"'groupBy': {message}", (Fault("", message),))
    async with database.reader() as reader:
        within = await namespaces.narrowed(reader, caller, wanted, name=namespace)
        if within is None:
            return []
        within = await trees.within(reader, caller, within)
        return await usage.sums(reader, caller.tenant_id, wanted=within, by=by, after=after, limit=limit)


async def of_run(
    database: Database, caller: Caller, *, run_id: UUID, includes_tree: bool, after: CallCursor | None, limit: int
) -> RunUsage:
    """What a run used, with a page of its calls. Raises NotFound."""
    tenant_id = caller.tenant_id
    async with database.reader() as reader:
        view = await view_of(reader, caller, run_id)
        resolved = await runs.resolved(reader, tenant_id, run_id=run_id)
        total = await usage.total(reader, tenant_id, wanted=UsageFilter(run_id=run_id))
        whole = UsageFilter(root=view.run.tree_root_id)
        tree = await usage.total(reader, tenant_id, wanted=whole) if includes_tree else None
        calls = await usage.calls(reader, tenant_id, run_id=run_id, after=after, limit=limit)
        return RunUsage(run_id, total, tree, resolved.budget, tuple(calls))
