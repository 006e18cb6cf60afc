"""Runs that a participant of a run has started: what came of them, a list of them, and a stop; and for whom a run does that.

Deliberately absent: starting them (`sub_run_starts`), who may call (`engine`), and how results are worded (`runtime`).
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from folkmoot.domain.rights import Right, rights_of
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import Claim
from folkmoot.domain.swarms import SubRun
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotFound, NotPermitted, RunEnded
from folkmoot.services import runs as runs_service
from folkmoot.services.people import Tell
from folkmoot.store import runs, swarms, users
from folkmoot.store.database import Database, Reader
from folkmoot.store.swarms import SubRunResult


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


async def stop(database: Database, claim: Claim, *, run_id: UUID, participant: str, tell: Tell) -> RunStatus:
    """Ask a sub-run of a claimed run to stop, for one of its participants: its status then. One that has ended is left as it is.

    Raises NotFound, NotPermitted, and LeaseLost where the claim is no more: then nothing was stopped.
    """
    async with database.reader() as reader:
        status = (await swarms.statuses(reader, claim.tenant_id, run_id=claim.run_id)).get(run_id)
        if status is None:
            raise NotFound(f"No run {run_id} was started here. list_interactions shows those that were.")
        if status in FINAL:
            return status
        caller = await caller_of(reader, claim, right=Right.STOP)
    try:
        return await runs_service.request_stop(database, caller, run_id=run_id, participant=participant, tell=tell)
    except RunEnded:
        async with database.reader() as reader:
            return (await swarms.statuses(reader, claim.tenant_id, run_id=claim.run_id))[run_id]


async def caller_of(reader: Reader, claim: Claim, *, right: Right) -> Caller:
    """For whom the claimed run goes (B38): whoever started the tree, with the rights that they have now."""
    tenant_id = claim.tenant_id
    started_by = await runs.created_by(reader, tenant_id, run_id=claim.run_id)
    user = await users.get(reader, tenant_id, user_id=started_by)
    if user is None or user.removed_at is not None:
        name = user.name if user is not None else str(started_by)
        raise NotPermitted(f"This run goes for {name}, who is no user here any more.")
    rights = rights_of(user.role, None)
    caller = Caller(tenant_id, user.user_id, user.name, role=user.role, rights=rights, acts_by=claim)
    caller.require(right)
    return caller
