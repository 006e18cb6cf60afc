"""Trees of runs for those who ask, and the stop that goes down a tree once a parent has ended other than Completed.

It goes level by level: a child that was asked to stop ends in its worker, and its own end leads to its children. What a Completed run
left behind is reached through it. What a crash or a lock kept from that is found by the sweep. Deliberately absent: starting sub-runs, and a wait for any of this.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from folkmoot.domain.inbox import InboxFilter
from folkmoot.domain.run_status import FINAL
from folkmoot.domain.runs import Place, ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.trees import Node, Tree
from folkmoot.domain.usage import UsageFilter
from folkmoot.kernel.errors import BadInput, Fault, NotFound, RunEnded
from folkmoot.services import agent_stops
from folkmoot.services.agent_stops import Cause
from folkmoot.services.people import Tell
from folkmoot.store import audit, pending, trees
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.run_lists import RunFilter

_BATCH = 100
_Filter = TypeVar("_Filter", RunFilter, InboxFilter, UsageFilter)


async def get(database: Database, caller: Caller, *, run_id: UUID, run_type: ProcessType | None = None) -> Tree:
    """The whole tree that a run belongs to. `run_type`: what the run must be; null: anything. Raises NotFound."""
    async with database.reader() as reader:
        found = await trees.get(reader, caller.tenant_id, run_id=run_id)
        is_such = run_type is None or await trees.type_of(reader, caller.tenant_id, run_id=run_id) is run_type
    if found is None or not is_such:
        raise NotFound(f"There is no {f'{run_type} ' if run_type else ''}run {run_id}.")
    return found


async def within(reader: Reader, caller: Caller, wanted: _Filter) -> _Filter:
    """The filter by the tree of a run, as asked for: one that is not the root of the tree it is in has below it a tree of its own.
    Raises NotFound."""
    if wanted.root is None:
        return wanted
    root_id = await trees.root_of(reader, caller.tenant_id, run_id=wanted.root)
    if root_id is None:
        raise NotFound(
            f"There is no run {wanted.root}, and no tree of it. `folkmoot runs list` shows the runs there are."
        )
    return wanted if wanted.root == root_id else replace(wanted, root=None, below=wanted.root)


async def type_of(database: Database, caller: Caller, *, run_id: UUID) -> ProcessType:
    """What kind of run it is. Raises NotFound."""
    async with database.reader() as reader:
        found = await trees.type_of(reader, caller.tenant_id, run_id=run_id)
    if found is None:
        raise NotFound(f"There is no run {run_id}. `folkmoot runs list` shows those there are.")
    return found


async def node(database: Database, caller: Caller, *, run_id: UUID, run_type: ProcessType) -> Node:
    """One run as its tree shows it. Raises NotFound."""
    async with database.reader() as reader:
        found = await trees.node(reader, caller.tenant_id, run_id=run_id)
    if found is None or found.type is not run_type:
        raise NotFound(f"There is no {run_type} run {run_id}.")
    return found


async def goes_on_below(database: Database, caller: Caller, *, run_id: UUID) -> bool:
    """Whether anything that the run started, or what that started, has not ended."""
    async with database.reader() as reader:
        return await trees.goes_on_below(reader, caller.tenant_id, run_id=run_id)


async def place_under(writer: Writer, caller: Caller, *, app_run_id: UUID, run_id: UUID) -> Place:
    """Where the new run `run_id` stands under an App run, which cannot end before this transaction does.

    Raises NotFound, RunEnded, and BadInput where it is no App run: only such a run has others started under it from outside.
    """
    found = await trees.lock_parent(writer, caller.tenant_id, run_id=app_run_id)
    if found is None:
        raise NotFound(
            f"The run was not started. There is no App run {app_run_id} to start it under (parentProcessId)."
        )
    if found.type is not ProcessType.APP:
        message = f"The run {app_run_id} is no App run but one of an interaction, which starts its sub-runs itself. Name an App run's id."
        raise BadInput(f"The run was not started. {message}", (Fault("/parentProcessId", message),))
    if found.status in FINAL:
        raise RunEnded(
            f"The run was not started. The run {app_run_id} of the app '{found.app_name}' is {found.status}, and starts nothing any more. "
            "Open a new run of the app."
        )
    if found.is_lost:
        raise RunEnded(
            f"The run was not started. The run {app_run_id} of the app '{found.app_name}' was not pinged within its limit, and starts nothing "
            "any more. Open a new run of the app."
        )
    return Place(found.tree_root_id, run_id, app_run_id, ProcessType.APP)


async def stop_below(database: Database, *, tenant_id: UUID, ended_id: UUID, tell: Tell) -> None:
    """Ask what a run started to stop, if it has ended other than Completed; what that waits for is closed (B13). An agent run is asked with all
    that it delegated, at once (F34)."""
    await _stop_children(database, tenant_id=tenant_id, ended_id=ended_id, parent_id=ended_id, tell=tell)
    has_asked = True
    while has_asked:
        async with database.reader() as reader:
            completed = await trees.completed_below(reader, tenant_id, ended_id=ended_id, limit=_BATCH)
        has_asked = False
        for parent_id in completed:
            asked = await _stop_children(
                database, tenant_id=tenant_id, ended_id=ended_id, parent_id=parent_id, tell=tell
            )
            has_asked = has_asked or asked
    async with database.writer() as writer:
        await trees.settle_below(writer, tenant_id, ended_id=ended_id)


async def _stop_children(database: Database, *, tenant_id: UUID, ended_id: UUID, parent_id: UUID, tell: Tell) -> bool:
    """Whether any was asked. Those of one run: each end of a New one locks its parent, and no other."""
    asked = 0
    while True:
        has_closed = False
        async with database.writer() as writer:
            stopped = await trees.stop_children(writer, tenant_id, ended_id=ended_id, parent_id=parent_id, limit=_BATCH)
            for child in stopped:
                closed = await pending.stop(
                    writer, tenant_id, run_id=child.run_id, by=None, by_name=audit.ORCHESTRATOR, channel=audit.CLOCK
                )
                has_closed = has_closed or bool(closed)
                detail = {"endedId": str(ended_id), "endedAs": child.ended_as.value}
                if closed:
                    detail["closed"] = ", ".join(map(str, closed))
                await audit.note_of_clock(
                    writer, tenant_id, action="run.stop_requested", subject_kind="run", subject_id=child.run_id, detail=detail
                )  # fmt: skip
        for child in stopped:
            tell({"to": "run", "run": str(child.run_id)})
        if stopped:
            tell({"to": "workers"})
        if has_closed:
            tell({"to": "inbox", "tenant": str(tenant_id)})
        asked += len(stopped)
        if len(stopped) < _BATCH:
            break
    asked += await _stop_delegating_ones(
        database, tenant_id=tenant_id, ended_id=ended_id, parent_id=parent_id, tell=tell
    )
    return asked > 0


async def _stop_delegating_ones(
    database: Database, *, tenant_id: UUID, ended_id: UUID, parent_id: UUID, tell: Tell
) -> int:
    """Of one run's children the agent runs that may have delegated something; how many were asked."""
    async with database.reader() as reader:
        found = await trees.delegating_children(reader, tenant_id, ended_id=ended_id, parent_id=parent_id)
    asked = 0
    for child in found:
        words = f"{audit.ORCHESTRATOR}: the run {ended_id} above it was {child.ended_as}"
        cause = Cause(words, detail=(("endedId", str(ended_id)), ("endedAs", child.ended_as.value)))
        try:
            stopped = await agent_stops.stop(database, tenant_id, run_id=child.run_id, cause=cause)
        except RunEnded:  # meanwhile, by itself
            continue
        asked += len(stopped)
        for each in stopped:
            tell({"to": "run", "run": str(each)})
    if asked:
        tell({"to": "workers"})
        tell({"to": "inbox", "tenant": str(tenant_id)})
    return asked


async def stop_orphans(database: Database, *, tell: Tell) -> None:
    """The sweep's part: whatever runs have ended below which some were not asked yet."""
    async with database.reader() as reader:
        parents = await trees.ended_parents(reader, limit=_BATCH)
    for tenant_id, ended_id in parents:
        await stop_below(database, tenant_id=tenant_id, ended_id=ended_id, tell=tell)
