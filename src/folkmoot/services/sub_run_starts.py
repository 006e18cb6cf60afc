"""Starts runs for a participant of a run: those that it asks for at once in one transaction, each refused alone.

A sub-run is a run like any other, resolved and checked as `starting` does. What it gets comes from the run above: it can be given
less, never more. Its id is that of the call that starts it, so that the call made again starts nothing twice. Deliberately absent:
who may call (`engine`), and how results are worded (`runtime`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from folkmoot.domain.budgets import Budget, BudgetAbove
from folkmoot.domain.definitions import (
    DefinitionKind,
    InteractionVersion,
    Reference,
    ResolvedInteraction,
    StoredVersion,
)
from folkmoot.domain.rights import Right
from folkmoot.domain.runs import Claim, Place, ProcessType
from folkmoot.domain.swarms import PinnedSwarm, StartableInteraction, SwarmLimits
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import BadInput, Conflict, FolkmootError, LeaseLost, NotFound, NotPermitted, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.services import budgets, references, starting
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.services.people import Tell
from folkmoot.services.sub_runs import caller_of
from folkmoot.store import audit, runs, swarms, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.runs import NewRun
from folkmoot.store.swarms import Counts, Parent


@dataclass(frozen=True, slots=True)
class Wanted:
    """A start: `name` is that of an interaction of the swarm; `duration` null: as its interaction says, or as the run above has it."""

    run_id: UUID
    participant: str
    name: str
    inputs: tuple[tuple[str, str], ...] = ()
    duration: timedelta | None = None


# The time that a run may work (null: no limit), or why it was not started.
Outcome = timedelta | None | FolkmootError


@dataclass(slots=True)
class _Starts:
    """The starts of a transaction: what came of some, and those that are left, in the order in which they were asked for."""

    left: list[Wanted]
    outcomes: dict[UUID, Outcome] = field(default_factory=dict)
    has_started: bool = False

    def settle(self, wanted: Wanted, outcome: Outcome) -> None:
        self.outcomes[wanted.run_id] = outcome
        self.left = [each for each in self.left if each.run_id != wanted.run_id]

    async def settle_those_there(self, reader: Reader, tenant_id: UUID) -> None:
        """Whatever the same calls have started already."""
        there = await swarms.those_there(reader, tenant_id, run_ids=[each.run_id for each in self.left])
        for wanted in [each for each in self.left if each.run_id in there]:
            self.settle(
                wanted, (await runs.resolved(reader, tenant_id, run_id=wanted.run_id)).duration_auto_termination
            )


async def start(
    database: Database,
    claim: Claim,
    *,
    wanted: Sequence[Wanted],
    bench: Workbench,
    new_id: NewId,
    tell: Tell,
) -> list[Outcome]:
    """Start sub-runs of a claimed run, in the order given: what came of each. Where its call has started one already, nothing is done.

    Why one was not started: NotFound (no such interaction in the swarm), BadInput (all that is wrong with the start, each thing a
    fault), Conflict (a limit of the tree, or the run above is to stop), NotPermitted (whoever the run goes for may start none),
    BudgetSpent. Raises Unreachable, and LeaseLost where the claim is no more: then nothing was started.
    """
    starts = _Starts(list(wanted))
    async with database.writer() as writer:
        await starts.settle_those_there(writer, claim.tenant_id)
        await _start_left(writer, claim, starts, bench=bench, new_id=new_id)
        if starts.has_started:
            fault_points.reach("before_sub_run")
    if starts.has_started:
        fault_points.reach("after_sub_run")
        tell({"to": "workers"})
    return [starts.outcomes[each.run_id] for each in wanted]


async def _start_left(writer: Writer, claim: Claim, starts: _Starts, *, bench: Workbench, new_id: NewId) -> None:
    """Nothing is locked until all is resolved; then the run above is, and after it the tree's row."""
    if not starts.left:
        return
    parent_id = claim.run_id
    above = await runs.resolved(writer, claim.tenant_id, run_id=parent_id)
    try:
        caller = await caller_of(writer, claim, right=Right.START)
        resolved = await _resolve_all(writer, caller, starts, above=above, bench=bench, new_id=new_id)
        parent = await swarms.parent(writer, claim)
        if parent.is_to_stop:
            raise Conflict("The run was not started: the run that asks for it is to be stopped.")
    except (Unreachable, LeaseLost):
        raise
    except FolkmootError as refusal:
        for wanted in starts.left:
            starts.settle(wanted, refusal)
        return
    ready: dict[UUID, ResolvedInteraction] = {}
    known: dict[tuple[int, timedelta | None], ResolvedInteraction] = {}
    for wanted in starts.left:
        found = resolved[wanted.run_id]
        key = (id(found), wanted.duration)
        try:
            if key not in known:
                in_time = _in_time(found, parent, wanted.duration)
                known[key] = _below(in_time, above, parent_id=parent_id, depth=parent.depth + 1)
                _refuse_unpriced(known[key], bench)
            ready[wanted.run_id] = known[key]
        except FolkmootError as refusal:
            known.pop(key, None)
            starts.settle(wanted, refusal)
    if starts.left:
        assert above.swarm is not None
        await _insert(writer, caller, parent, starts, parent_id=parent_id, limits=above.swarm.limits, resolved=ready)


async def _resolve_all(
    reader: Reader, caller: Caller, starts: _Starts, *, above: ResolvedInteraction, bench: Workbench, new_id: NewId
) -> dict[UUID, ResolvedInteraction]:
    """By run. Starts that say the same have one closure, which is looked for once."""
    day = await budgets.refuse_where_used_up(reader, caller)
    known: dict[tuple[str, str, tuple[tuple[str, str], ...]], ResolvedInteraction | FolkmootError] = {}
    found: dict[UUID, ResolvedInteraction] = {}
    for wanted in starts.left:
        key = (wanted.participant, wanted.name, wanted.inputs)
        if key not in known:
            try:
                known[key] = await _resolved(
                    reader, caller, above=above, wanted=wanted, bench=bench, day=day, new_id=new_id
                )
            except Unreachable:
                raise
            except FolkmootError as refusal:
                known[key] = refusal
        outcome = known[key]
        if isinstance(outcome, FolkmootError):
            starts.settle(wanted, outcome)
        else:
            found[wanted.run_id] = outcome
    return found


def _chosen(above: ResolvedInteraction, wanted: Wanted) -> tuple[PinnedSwarm, StartableInteraction]:
    swarm = above.swarm
    if swarm is None or wanted.participant not in swarm.participants:
        raise NotPermitted(f"{wanted.participant} may start no runs here.")
    for each in swarm.interactions:
        if each.name == wanted.name:
            return swarm, each
    names = ", ".join(each.name for each in swarm.interactions) or "none"
    raise NotFound(f"There is no interaction '{wanted.name[:100]}' to be started here. There are: {names}.")


async def _resolved(
    reader: Reader, caller: Caller, *, above: ResolvedInteraction, wanted: Wanted, bench: Workbench, day: Budget | None, new_id: NewId
) -> ResolvedInteraction:  # fmt: skip
    """The closure of the pinned version, with the keys, the disabled tools and the model for all of the run above."""
    swarm, chosen = _chosen(above, wanted)
    stack = above.credential_stack
    request = StartFields(
        inputs=wanted.inputs,
        chooses_secrets=False,
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
    own = stored.body.swarm
    limits = swarm.limits.lowered(own, depth=swarm.depth + 1) if own is not None else swarm.limits
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
    writer: Writer, caller: Caller, parent: Parent, starts: _Starts, *, parent_id: UUID, limits: SwarmLimits, resolved: dict[UUID, ResolvedInteraction]
) -> None:  # fmt: skip
    """Take places in the tree for as many as there are places, and write those runs."""
    tenant_id, root, depth = caller.tenant_id, parent.swarm_root_id, parent.depth + 1
    await swarms.make(writer, tenant_id, root=root, limits=limits)
    await swarms.lock(writer, tenant_id, root=root)
    await starts.settle_those_there(writer, tenant_id)
    asked = list(starts.left)
    places = await swarms.take_places(writer, tenant_id, root=root, depth=depth, limits=limits, wanted=len(asked))
    new = [(wanted, resolved[wanted.run_id]) for wanted in asked[:places]]
    if new:
        await _write(writer, caller, parent, new, parent_id=parent_id)
        starts.has_started = True
    for wanted, found in new:
        starts.settle(wanted, found.duration_auto_termination)
    if starts.left:
        full = Conflict(_no_place(await swarms.counts(writer, tenant_id, root=root), limits, depth))
        for wanted in starts.left:
            starts.settle(wanted, full)


async def _write(
    writer: Writer, caller: Caller, parent: Parent, new: Sequence[tuple[Wanted, ResolvedInteraction]], *, parent_id: UUID
) -> None:  # fmt: skip
    tenant_id = caller.tenant_id
    namespaces: dict[str, UUID] = {}
    for name in {found.namespace for _, found in new}:
        namespace = await tenancy.find_namespace(writer, tenant_id, name=name)
        assert namespace is not None
        namespaces[name] = namespace.namespace_id
    rows: list[NewRun] = []
    notes: list[tuple[UUID, dict[str, Any]]] = []
    for wanted, found in new:
        place = Place(
            parent.tree_root_id, parent.swarm_root_id, parent_id, ProcessType.INTERACTION, parent.depth + 1, wanted.participant
        )  # fmt: skip
        rows.append(NewRun(wanted.run_id, namespaces[found.namespace], found, place))
        notes.append((wanted.run_id, {
            "namespace": found.namespace, "name": found.interaction_name, "version": found.interaction_version,
            "parent": str(parent_id), "participant": wanted.participant,
        }))  # fmt: skip
    await runs.insert_all(writer, tenant_id, rows, created_by=caller.user_id, priority=parent.priority)
    await audit.note_all(writer, caller, action="run.started", subject_kind="run", subjects=notes)


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
