"""App runs for the programs that open them: opened, pinged, ended, read.

A run that was not pinged in time is Failed by the sweep, or here, should its program come back first: so that it hears what
happened. Deliberately absent: what the program does between, and starting runs under it (`starting`).
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.apps import AppCursor, AppRun, Ending, Opening, faults_of_ending, faults_of_opening
from folkmoot.domain.rights import Right
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Conflict, NotFound, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import trees
from folkmoot.services.people import Tell
from folkmoot.store import apps, audit, idempotency
from folkmoot.store.database import Database
from folkmoot.store.idempotency import Scope

__all__ = ["AppCursor", "AppRun", "Ending", "Opening"]


async def open_run(
    database: Database, caller: Caller, *, opening: Opening, new_id: NewId, scope: Scope | None = None
) -> AppRun:
    """A new run, at work; with `scope` (an Idempotency-Key) the one which the first request with it opened, as it stands now.

    Raises BadInput, InFlight and KeyReused.
    """
    faults = faults_of_opening(opening)
    if faults:
        raise BadInput(f"The run was not opened. {faults[0].message}", faults)
    async with database.writer() as writer:
        earlier = await idempotency.earlier(writer, scope) if scope is not None else None
        if earlier is not None:
            found = await apps.get(writer, caller.tenant_id, name=opening.name, run_id=earlier)
            assert found is not None
            return found
        run = await apps.insert(writer, caller.tenant_id, run_id=new_id(), opening=opening, created_by=caller.user_id)
        detail = {"app": opening.name}
        await audit.note(writer, caller, action="run.opened", subject_kind="run", subject_id=run.run_id, detail=detail)
        if scope is not None:
            await idempotency.keep(writer, scope, result_id=run.run_id)
    return run


async def ping(database: Database, caller: Caller, *, name: str, run_id: UUID, tell: Tell) -> AppRun:
    """The run, which goes on. Raises NotFound, and RunEnded with what happened."""
    async with database.writer() as writer:
        run = await apps.ping(writer, caller.tenant_id, name=name, run_id=run_id)
    if run is None:
        raise await _refusal(database, caller, name=name, run_id=run_id, what="takes no more pings", tell=tell)
    return run


async def end(database: Database, caller: Caller, *, name: str, run_id: UUID, ending: Ending, tell: Tell) -> AppRun:
    """The run as it ended; what it started is asked to stop if it is Failed, which takes the right to stop runs where the run is somebody
    else's. Raises BadInput, NotFound, NotPermitted, and RunEnded."""
    faults = faults_of_ending(ending)
    if faults:
        raise BadInput(f"The run was not ended. {faults[0].message}", faults)
    async with database.writer() as writer:
        found = await apps.get(writer, caller.tenant_id, name=name, run_id=run_id)
        if found is not None and found.created_by != caller.user_id and ending.status is RunStatus.FAILED:
            caller.require(Right.STOP)
        run = await apps.end(writer, caller.tenant_id, name=name, run_id=run_id, ending=ending)
        if run is not None:
            detail = {"app": name, "status": run.status.value}
            await audit.note(writer, caller, action="run.ended", subject_kind="run", subject_id=run_id, detail=detail)
    if run is None:
        raise await _refusal(database, caller, name=name, run_id=run_id, what="cannot be ended again", tell=tell)
    if run.status is not RunStatus.COMPLETED:
        await trees.stop_below(database, tenant_id=caller.tenant_id, ended_id=run_id, tell=tell)
    return run


async def get(database: Database, caller: Caller, *, name: str, run_id: UUID) -> AppRun:
    """Raises NotFound."""
    async with database.reader() as reader:
        run = await apps.get(reader, caller.tenant_id, name=name, run_id=run_id)
    if run is None:
        raise NotFound(f"The app '{name}' has no run {run_id}. GET /apps/{{name}}/runs lists those there are.")
    return run


async def page(
    database: Database, caller: Caller, *, name: str, status: RunStatus | None, after: AppCursor | None, limit: int
) -> list[AppRun]:
    """An app's runs, the newest first; a name that nobody has used has none."""
    async with database.reader() as reader:
        return await apps.page(reader, caller.tenant_id, name=name, status=status, after=after, limit=limit)


async def _refusal(
    database: Database, caller: Caller, *, name: str, run_id: UUID, what: str, tell: Tell
) -> Conflict | NotFound:
    """Why a ping or an end counts for nothing. A run whose time has run out is Failed first, by the sweep's own statement."""
    try:
        run = await get(database, caller, name=name, run_id=run_id)
    except NotFound as missing:
        return missing
    if run.ended_at is None:
        async with database.writer() as writer:
            lost = await apps.lose(writer, tenant_id=caller.tenant_id, run_id=run_id)
        if lost:
            await trees.stop_below(database, tenant_id=caller.tenant_id, ended_id=run_id, tell=tell)
        run = await get(database, caller, name=name, run_id=run_id)
    if run.ended_at is None:  # somebody was ending it, or had it in hand, at this moment
        return Conflict(f"The run {run_id} is being changed by somebody else. Send this again.")
    told = (run.failure_details or "").rstrip()  # in the app's own words, which may lack a full stop
    why = f": {told}" if told else ""
    if not why.endswith((".", "!", "?")):
        why += "."
    return RunEnded(
        f"The run {run_id} {what}. It is {run.status} since {run.ended_at.isoformat(timespec='seconds')}{why}"
    )
