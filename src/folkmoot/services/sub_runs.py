"""Runs that a participant of a run starts, awaits, lists and stops.

A sub-run is a run like any other, resolved and checked as `starting` does. What it gets comes from the run above: it can be given
less, never more. Its id is that of the call that starts it, so that the call made again starts nothing twice. Deliberately absent:
who may call (`engine`), and how results are worded (`runtime`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from folkmoot.domain.budgets import Budget, BudgetAbove
from folkmoot.domain.definitions import (
    DefinitionKind,
    InteractionVersion,
    Reference,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.rights import Right, rights_of
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import Place, ProcessType
from folkmoot.domain.swarms import PinnedSwarm, StartableInteraction, SubRun, SwarmLimits
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import BadInput, Conflict, NotFound, NotPermitted, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import budgets, references, starting
from folkmoot.services import runs as runs_service
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.services.people import Tell
from folkmoot.store import audit, runs, swarms, tenancy, users
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.swarms import Counts, Parent, SubRunResult


@dataclass(frozen=True, slots=True)
class Wanted:
    """A start: `name` is that of an interaction of the swarm; `duration` null: as its interaction says, or as the run above has it."""

    run_id: UUID
    participant: str
    name: str
    inputs: tuple[tuple[str, str], ...] = ()
    duration: timedelta | None = None


async def start(
    database: Database, tenant_id: UUID, *, parent_id: UUID, wanted: Wanted, bench: Workbench, new_id: NewId, tell: Tell
) -> timedelta | None:
    """Start a sub-run; the time it may work, null for no limit. If the call has started it already, nothing is done.

    Raises NotFound (no such interaction in the swarm), BadInput (all that is wrong with the start, each thing a fault), Conflict (a
    limit of the tree, or the run above is over), NotPermitted (whoever the run goes for may start none), BudgetSpent.
    """
    async with database.writer() as writer:
        if await swarms.is_there(writer, tenant_id, run_id=wanted.run_id):
            return (await runs.resolved(writer, tenant_id, run_id=wanted.run_id)).duration_auto_termination
        above = await runs.resolved(writer, tenant_id, run_id=parent_id)
        swarm, chosen = _chosen(above, wanted)
        caller = await _caller(writer, tenant_id, parent_id=parent_id, right=Right.START)
        resolved = await _resolved(
            writer, caller, above=above, swarm=swarm, chosen=chosen, wanted=wanted, bench=bench, new_id=new_id
        )
        parent = await swarms.parent(writer, tenant_id, run_id=parent_id)
        if parent.is_over:
            raise Conflict("The run was not started: the run that asks for it has ended, or is to be stopped.")
        resolved = _in_time(resolved, parent, wanted.duration)
        resolved = _below(resolved, above, parent_id=parent_id, depth=parent.depth + 1)
        _refuse_unpriced(resolved, bench)
        if not await _insert(
            writer, caller, parent, parent_id=parent_id, swarm=swarm, resolved=resolved, wanted=wanted
        ):
            return (await runs.resolved(writer, tenant_id, run_id=wanted.run_id)).duration_auto_termination
        fault_points.reach("before_sub_run")
    fault_points.reach("after_sub_run")
    tell({"to": "workers"})
    return resolved.duration_auto_termination


async def results(
    database: Database, tenant_id: UUID, *, parent_id: UUID, run_ids: Sequence[UUID] | None
) -> tuple[SubRunResult, ...]:
    """What came of these sub-runs, in the order given; null: of all. Those that are none of the run's are left out."""
    async with database.reader() as reader:
        if run_ids is None:
            run_ids = list(await swarms.statuses(reader, tenant_id, run_id=parent_id))
        found = await swarms.results(reader, tenant_id, run_id=parent_id, sub_run_ids=run_ids)
    return tuple(found[run_id] for run_id in dict.fromkeys(run_ids) if run_id in found)


async def listed(database: Database, tenant_id: UUID, *, parent_id: UUID) -> tuple[SubRun, ...]:
    """The run's sub-runs, in the order in which they were started."""
    async with database.reader() as reader:
        return await swarms.children(reader, tenant_id, run_id=parent_id)


async def stop(database: Database, tenant_id: UUID, *, parent_id: UUID, run_id: UUID, tell: Tell) -> RunStatus:
    """Ask a sub-run to stop: its status then. One that has ended is left as it is. Raises NotFound, NotPermitted."""
    async with database.reader() as reader:
        status = (await swarms.statuses(reader, tenant_id, run_id=parent_id)).get(run_id)
        if status is None:
            raise NotFound(f"No run {run_id} was started here. list_interactions shows those that were.")
        if status in FINAL:
            return status
        caller = await _caller(reader, tenant_id, parent_id=parent_id, right=Right.STOP)
    try:
        return await runs_service.request_stop(database, caller, run_id=run_id, tell=tell)
    except RunEnded:
        async with database.reader() as reader:
            return (await swarms.statuses(reader, tenant_id, run_id=parent_id))[run_id]


def _chosen(above: ResolvedInteraction, wanted: Wanted) -> tuple[PinnedSwarm, StartableInteraction]:
    swarm = above.swarm
    if swarm is None or wanted.participant not in swarm.participants:
        raise NotPermitted(f"{wanted.participant} may start no runs here.")
    for each in swarm.interactions:
        if each.name == wanted.name:
            return swarm, each
    names = ", ".join(each.name for each in swarm.interactions) or "none"
    raise NotFound(f"There is no interaction '{wanted.name[:100]}' to be started here. There are: {names}.")


async def _caller(reader: Reader, tenant_id: UUID, *, parent_id: UUID, right: Right) -> Caller:
    """For whom the run goes (B38): whoever started the tree, with the rights that they have now."""
    run = await runs.get(reader, tenant_id, run_id=parent_id)
    assert run is not None
    user = await users.get(reader, tenant_id, user_id=run.created_by)
    if user is None or user.removed_at is not None:
        name = user.name if user is not None else str(run.created_by)
        raise NotPermitted(f"This run goes for {name}, who is no user here any more.")
    caller = Caller(tenant_id, user.user_id, user.name, role=user.role, rights=rights_of(user.role, None))
    caller.require(right)
    return caller


async def _resolved(
    reader: Reader, caller: Caller, *, above: ResolvedInteraction, swarm: PinnedSwarm, chosen: StartableInteraction, wanted: Wanted,
    bench: Workbench, new_id: NewId,
) -> ResolvedInteraction:  # fmt: skip
    """The closure of the pinned version, with the keys, the disabled tools and the model for all of the run above."""
    day: Budget | None = await budgets.refuse_where_used_up(reader, caller)
    stack = above.credential_stack
    request = StartFields(
        inputs=wanted.inputs,
        inherited_disabled_tools=above.disabled_tools,
        inherited_stack=stack if stack is not None and stack.passes_to_children else None,
        model=above.model_for_all,
    )
    pinned = Reference(definition_id=chosen.interaction_id, version=chosen.version)
    resolved = await starting.resolve(
        reader, caller, interaction=pinned, request=request, bench=bench, day=day, new_id=new_id
    )
    if resolved.swarm is None:
        return resolved
    stored = await references.enabled(reader, caller.tenant_id, kind=DefinitionKind.INTERACTION, reference=pinned)
    assert isinstance(stored, StoredVersion) and isinstance(stored.body, InteractionVersion)
    limits = swarm.limits.lowered(stored.body.swarm) if stored.body.swarm is not None else swarm.limits
    return replace(resolved, swarm=replace(resolved.swarm, limits=limits))


def _in_time(resolved: ResolvedInteraction, parent: Parent, asked: timedelta | None) -> ResolvedInteraction:
    """At most the time that the run above has left. The warning keeps its place within the time."""
    own = resolved.duration_auto_termination
    limit = asked or own
    if parent.deadline_at is not None:
        left = parent.deadline_at - parent.now
        if left <= timedelta(0):
            raise Conflict("The run was not started: the time limit of the run that asks for it is reached.")
        limit = min(limit, left) if limit is not None else left
    warning = resolved.duration_warning_to_ai
    if warning is not None and own is not None and limit is not None and limit < own:
        warning = warning * (limit / own)
    return replace(resolved, duration_auto_termination=limit, duration_warning_to_ai=warning)


def _below(
    resolved: ResolvedInteraction, above: ResolvedInteraction, *, parent_id: UUID, depth: int
) -> ResolvedInteraction:
    """What holds above holds below: rounds, budgets, the operator's keys."""
    bounds = [rounds for rounds in (resolved.maximum_rounds, above.maximum_rounds) if rounds is not None]
    shared = above.budgets_above
    if above.budget is not None:
        shared = (*shared, BudgetAbove(parent_id, above.budget))
    return replace(
        resolved,
        maximum_rounds=min(bounds, default=None),
        allow_platform_fallback=above.allow_platform_fallback,
        budgets_above=shared,
        swarm=replace(resolved.swarm, depth=depth) if resolved.swarm is not None else None,
    )


def _refuse_unpriced(resolved: ResolvedInteraction, bench: Workbench) -> None:
    """Where a budget above limits money, a model without known prices could not be held to it."""
    faults = tuple(budgets.unpriced(resolved, None, bench.prices_of))
    if faults:
        raise BadInput(f"The run was not started. {faults[0].message}", faults)


async def _insert(
    writer: Writer, caller: Caller, parent: Parent, *, parent_id: UUID, swarm: PinnedSwarm, resolved: ResolvedInteraction, wanted: Wanted
) -> bool:  # fmt: skip
    """Take a place in the tree for the run, and write it. False: the same call has started it meanwhile."""
    tenant_id, root, depth = caller.tenant_id, parent.swarm_root_id, parent.depth + 1
    await swarms.make(writer, tenant_id, root=root, limits=swarm.limits)
    await swarms.lock(writer, tenant_id, root=root)
    if await swarms.is_there(writer, tenant_id, run_id=wanted.run_id):
        return False
    full = await swarms.take_place(writer, tenant_id, root=root, depth=depth, limits=swarm.limits)
    if full is not None:
        raise Conflict(_no_place(full, swarm.limits, depth))
    namespace = await tenancy.find_namespace(writer, tenant_id, name=resolved.namespace)
    assert namespace is not None
    place = Place(parent.tree_root_id, root, parent_id, ProcessType.INTERACTION, depth, wanted.participant)
    await runs.insert(
        writer, tenant_id, run_id=wanted.run_id, namespace_id=namespace.namespace_id, created_by=caller.user_id, resolved=resolved,
        response_json_schema=None, tags=(), priority=parent.priority, place=place,
    )  # fmt: skip
    detail = {
        "namespace": resolved.namespace,
        "name": resolved.interaction_name,
        "version": resolved.interaction_version,
        "parent": str(parent_id),
        "participant": wanted.participant,
    }
    await audit.note(writer, caller, action="run.started", subject_kind="run", subject_id=wanted.run_id, detail=detail)
    return True


def _no_place(found: Counts, own: SwarmLimits, depth: int) -> str:
    """Which limit leaves no place for a run of this depth, and what to do."""
    most = SwarmLimits(
        min(found.limits.max_depth, own.max_depth),
        min(found.limits.max_concurrent, own.max_concurrent),
        min(found.limits.max_total, own.max_total),
    )
    if depth > most.max_depth:
        words = f"runs may be started down to depth {most.max_depth} (maxDepth), and this one would be at {depth}. Do the work here."
    elif found.started >= most.max_total:
        words = f"at most {most.max_total} runs may ever be started in this tree (maxTotal), and {found.started} were. Do the rest here."
    else:
        words = (
            f"at most {most.max_concurrent} started runs may go on in this tree at once (maxConcurrent), and {found.running} do. Await "
            "or stop one first."
        )
    return f"The run was not started: {words}"
