"""Delegations: an agent's run starts that of one of its specialists, and reads what came of it.

The delegated run's id is that of the call, so that the call made again starts nothing twice. It has the specialist's own prompt, tools
and owner, and what is left of the budget above. Deliberately absent: waiting (`engine.looped`), and how results are worded (`runtime`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from folkmoot.domain.agent_runs import PinnedLoop, PinnedSpecialist
from folkmoot.domain.agent_settings import MOST_DELEGATIONS_DEEP
from folkmoot.domain.budgets import BudgetAbove
from folkmoot.domain.definitions import DefinitionKind, Reference, ResolvedInteraction
from folkmoot.domain.rights import is_above, rights_of
from folkmoot.domain.runs import Claim, Place, ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import BadInput, Conflict, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_closure, agent_rights, budgets, references
from folkmoot.services.agent_closure import Above
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.services.people import Tell
from folkmoot.store import agent_runs, audit, runs, swarms, tenancy, users
from folkmoot.store.agent_runs import DelegatedResult, NewAgentRun
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.swarms import Parent


@dataclass(frozen=True, slots=True)
class Wanted:
    """A delegation: `run_id` is the call's. `tool_calls_left`: of the budget above; null: it has none."""

    run_id: UUID
    specialist: str
    task: str
    tool_calls_left: int | None = None


async def result(database: Database, claim: Claim, *, run_id: UUID) -> DelegatedResult | None:
    """What came of the run that a call started, so far; null: it has started none."""
    async with database.reader() as reader:
        return await agent_runs.delegated_result(reader, claim.tenant_id, run_id=run_id, parent_id=claim.run_id)


async def start(
    database: Database, claim: Claim, *, wanted: Wanted, bench: Workbench, new_id: NewId, new_token: Callable[[], str], tell: Tell
) -> None:  # fmt: skip
    """Start a specialist's run below a claimed one. Raises NotFound (no such specialist, or it is deleted), Conflict (depth, a circle, the run
    above is to stop), BadInput, NotPermitted, BudgetSpent; and LeaseLost and Unreachable, of which the first says that nothing was started.
    """
    async with database.writer() as writer:
        above = await runs.resolved(writer, claim.tenant_id, run_id=claim.run_id)
        loop = above.loop
        assert loop is not None
        chosen = _chosen(loop, wanted.specialist)
        caller = await _owner(writer, claim, loop)
        pinned = Reference(definition_id=chosen.agent_id, version=chosen.version)
        agent = await references.enabled(writer, claim.tenant_id, kind=DefinitionKind.AGENT, reference=pinned)
        if isinstance(agent, str):
            raise NotFound(f"Nothing was delegated to {chosen.name}. {agent}")
        stack = above.credential_stack
        request = StartFields(
            model=above.model_for_all,
            inherited_stack=stack if stack is not None and stack.passes_to_children else None,
            chooses_secrets=False,
        )
        resolved = await agent_closure.resolve(
            writer,
            caller,
            agent=agent,
            goal=wanted.task,
            request=request,
            bench=bench,
            new_id=new_id,
            above=Above(loop),
        )
        await _check_owner(writer, claim, chosen, loop, resolved)
        parent = await swarms.parent(writer, claim)
        if parent.is_to_stop:
            raise Conflict("Nothing was delegated: the run that asks for it is to be stopped.")
        resolved = _below(resolved, above, parent, wanted, parent_id=claim.run_id)
        faults = tuple(budgets.unpriced(resolved, None, bench.prices_of))
        if faults:
            raise BadInput(f"Nothing was delegated. {faults[0].message}", faults)
        await _insert(writer, claim, resolved, parent, wanted, token=new_token())
        detail = {"agent": chosen.name, "parentId": str(claim.run_id)}
        await audit.note(
            writer, caller, action="run.started", subject_kind="run", subject_id=wanted.run_id, detail=detail
        )
        fault_points.reach("before_delegation")
    fault_points.reach("after_delegation")
    tell({"to": "workers"})


def _chosen(loop: PinnedLoop, name: str) -> PinnedSpecialist:
    chosen = next((s for s in loop.specialists if s.name == name), None)
    if chosen is None:
        names = ", ".join(s.name for s in loop.specialists) or "none"
        raise NotFound(f"There is no specialist '{name[:100]}' here. There are: {names}.")
    if loop.depth >= MOST_DELEGATIONS_DEEP:
        raise Conflict(
            f"Nothing was delegated: runs may be delegated down to depth {MOST_DELEGATIONS_DEEP}, and this one would be at {loop.depth + 1}. "
            "Do the work here."
        )
    if chosen.agent_id in loop.lineage:
        raise Conflict(
            f"Nothing was delegated: {chosen.name} is above this run already, and would go round in a circle. Do the work here."
        )
    return chosen


async def _owner(reader: Reader, claim: Claim, loop: PinnedLoop) -> Caller:
    """In whose name an agent delegates: its owner's, whoever started the run. Raises NotPermitted."""
    refusal = await agent_rights.refusal_of(reader, claim.tenant_id, user_ids=(loop.owner_id, *loop.owners_above))
    owner = await users.get(reader, claim.tenant_id, user_id=loop.owner_id)
    if refusal is not None or owner is None:
        raise NotPermitted(f"Nothing was delegated. {refusal}")
    return Caller(
        claim.tenant_id, owner.user_id, owner.name, role=owner.role, rights=rights_of(owner.role, None), acts_by=claim
    )


async def _check_owner(
    reader: Reader, claim: Claim, chosen: PinnedSpecialist, loop: PinnedLoop, resolved: ResolvedInteraction
) -> None:
    """What a specialist asks is the root's owner's to answer, who may not be below the specialist's own: links take the newest version, and
    owners change."""
    assert resolved.loop is not None
    root_id = loop.owners_above[0] if loop.owners_above else loop.owner_id
    root = await users.get(reader, claim.tenant_id, user_id=root_id)
    own = await users.get(reader, claim.tenant_id, user_id=resolved.loop.owner_id)
    if root is None or own is None or is_above(own.role, root.role):
        name = own.name if own is not None else "somebody who is gone"
        raise NotPermitted(
            f"Nothing was delegated: {chosen.name} acts for {name}, whose role is above that of the owner who would be asked here. Do the work here."
        )


def _below(
    resolved: ResolvedInteraction, above: ResolvedInteraction, parent: Parent, wanted: Wanted, *, parent_id: UUID
) -> ResolvedInteraction:
    """What holds above holds below: budgets, time, the operator's keys, and how long the owner may take to consent."""
    assert resolved.loop is not None
    shared = above.budgets_above
    if above.budget is not None:
        shared = (*shared, BudgetAbove(parent_id, above.budget))
    limits = [n for n in (resolved.loop.tool_calls, wanted.tool_calls_left) if n is not None]
    return replace(
        resolved,
        loop=replace(resolved.loop, tool_calls=min(limits, default=None)),
        budgets_above=shared,
        allow_platform_fallback=above.allow_platform_fallback,
        duration_human_timeout=above.duration_human_timeout,
        duration_auto_termination=_time_of(resolved, parent),
    )


def _time_of(resolved: ResolvedInteraction, parent: Parent) -> timedelta | None:
    limit = resolved.duration_auto_termination
    if parent.deadline_at is None:
        return limit
    left = parent.deadline_at - parent.now
    if left <= timedelta(0):
        raise Conflict("Nothing was delegated: the time limit of the run that asks for it is reached.")
    return min(limit, left) if limit is not None else left


async def _insert(
    writer: Writer, claim: Claim, resolved: ResolvedInteraction, parent: Parent, wanted: Wanted, *, token: str
) -> None:
    tenant_id, loop = claim.tenant_id, resolved.loop
    assert loop is not None
    namespace = await tenancy.find_namespace(writer, tenant_id, name=resolved.namespace)
    own = await agent_runs.by_run(writer, tenant_id, run_id=claim.run_id)
    assert namespace is not None and own is not None
    place = Place(
        parent.tree_root_id, parent.swarm_root_id, claim.run_id, ProcessType.AGENT_RUN, parent.depth + 1, own.agent_name
    )
    await runs.insert(
        writer, tenant_id, run_id=wanted.run_id, namespace_id=namespace.namespace_id, created_by=parent.created_by, resolved=resolved,
        response_json_schema=None, tags=(), priority=parent.priority, place=place,
    )  # fmt: skip
    new = NewAgentRun(
        loop.owner_id, token, own.channel, own.channel_id, None, own.conversation_id, parent_id=claim.run_id
    )
    await agent_runs.insert(writer, tenant_id, run_id=wanted.run_id, new=new)
