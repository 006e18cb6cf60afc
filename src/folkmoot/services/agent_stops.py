"""The stop of an agent run with all that it delegated, in one transaction: nothing there begins any more, approved or not (F34).

Deliberately absent: who may ask for it (`agent_runs`), and what of a tree is to stop (`trees`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRunStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import RunEnded
from folkmoot.store import agent_runs, audit, pending, runs
from folkmoot.store.database import Database, Writer


@dataclass(frozen=True, slots=True)
class Cause:
    """Why it stops: `words` are for the run, `detail` is for the audit log. `caller` null: nobody asked, it follows from another run's end."""

    words: str
    caller: Caller | None = None
    detail: tuple[tuple[str, str], ...] = ()


async def stop(database: Database, tenant_id: UUID, *, run_id: UUID, cause: Cause) -> list[UUID]:
    """The runs that were asked, which have to be told. Raises RunEnded, also for one that has expired and is about to end."""
    stopped: list[UUID] | None = None
    while stopped is None:
        async with database.writer() as writer:
            stopped = await _stop_all(writer, tenant_id, run_id, cause)
    return stopped


async def _stop_all(writer: Writer, tenant_id: UUID, run_id: UUID, cause: Cause) -> list[UUID] | None:
    """Null: something was delegated while this waited for the locks, which go from a run to the one above it; it is to be done anew."""
    below = await agent_runs.delegated(writer, tenant_id, run_id=run_id)
    for each in (*below, run_id):
        await pending.lock_run(writer, tenant_id, run_id=each, run_type=ProcessType.AGENT_RUN)
    if set(await agent_runs.delegated(writer, tenant_id, run_id=run_id)) - set(below):
        return None
    run = await agent_runs.by_run(writer, tenant_id, run_id=run_id)  # what it is now that nobody else moves it
    assert run is not None
    if run.status is AgentRunStatus.EXPIRED:
        raise RunEnded(f"The agent run {run.id} has expired, and cannot be cancelled.")
    for each in below:
        await _stop_one(writer, tenant_id, each, cause)
    if not await _stop_one(writer, tenant_id, run_id, cause):
        raise RunEnded(f"The agent run {run.id} is {run.status} already, and cannot be cancelled.")
    return [*below, run_id]


async def _stop_one(writer: Writer, tenant_id: UUID, run_id: UUID, cause: Cause) -> bool:
    """Ask a run to stop, whose row is locked, and close what it asks; whether it had not ended."""
    status = await runs.request_stop(
        writer, tenant_id, run_id=run_id, stopped_by=cause.words, run_type=ProcessType.AGENT_RUN
    )
    if status is None:
        return False
    caller = cause.caller
    by, by_name, channel = None, audit.ORCHESTRATOR, audit.CLOCK
    if caller is not None:
        by, by_name, channel = caller.user_id, caller.user_name, audit.channel_of(caller)
    closed = await pending.stop(writer, tenant_id, run_id=run_id, by=by, by_name=by_name, channel=channel)
    detail: dict[str, Any] = dict(cause.detail)
    if closed:
        detail["closed"] = ", ".join(map(str, closed))
    noted: dict[str, Any] = {
        "action": "run.stop_requested", "subject_kind": "run", "subject_id": run_id, "detail": detail
    }  # fmt: skip
    if caller is not None:
        await audit.note(writer, caller, **noted)
    else:
        await audit.note_of_clock(writer, tenant_id, **noted)
    return True
