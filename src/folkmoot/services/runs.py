"""Runs for those who ask: shown, listed, stopped, spoken to.

Deliberately absent: starting (`starting`), watching (`events`), and setting a status: a stop is a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from folkmoot.domain.credentials import CredentialFailure
from folkmoot.domain.definitions import ChatMode, ResolvedInteraction
from folkmoot.domain.items import MAIN_THREAD, Author, HumanMessage, Item, StoredItem, TurnEnd
from folkmoot.domain.pending import PendingKind, PendingOutcome
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.usage import UsageFilter, UsageSum
from folkmoot.kernel.errors import BadInput, Conflict, Fault, NotFound, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import namespaces, trees
from folkmoot.services.people import Tell, author_of, tell_of_answer
from folkmoot.store import (
    agent_runs,
    audit,
    conversations,
    credentials,
    pending,
    run_lists,
    runs,
    swarms,
    tenancy,
    usage,
)
from folkmoot.store.conversations import ModelCallRecord
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.run_lists import RunCursor, RunFilter, RunView, TreeCounts

__all__ = ["RunCursor", "RunDetails", "RunFilter", "RunView", "WholeRun"]

_PAGE = 1000
_MAX_MESSAGE_CHARACTERS = 1_000_000
_NoAgentRun = Literal[ProcessType.INTERACTION, ProcessType.APP]


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run with its closure, its conversation, the provider calls it made, and the keys that failed."""

    view: RunView
    resolved: ResolvedInteraction
    items: tuple[StoredItem, ...]
    calls: tuple[ModelCallRecord, ...]
    credential_failures: tuple[CredentialFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What a page about a run shows beside. `user_name`: who started it. `total`: what its calls used."""

    whole: WholeRun
    user_name: str
    tree: TreeCounts
    total: UsageSum


async def get(database: Database, caller: Caller, *, run_id: UUID) -> WholeRun:
    """The run as it stands, with all of its items. Raises NotFound."""
    async with database.reader() as reader, reader.one_moment():
        return await _whole(reader, caller, run_id)


async def details(database: Database, caller: Caller, *, run_id: UUID) -> RunDetails:
    """The same, with names and counts. Raises NotFound."""
    async with database.reader() as reader, reader.one_moment():
        whole = await _whole(reader, caller, run_id)
        run = whole.view.run
        name = await tenancy.user_name(reader, caller.tenant_id, user_id=run.created_by)
        tree = await run_lists.tree_counts(reader, caller.tenant_id, root=run.tree_root_id)
        total = await usage.total(reader, caller.tenant_id, wanted=UsageFilter(run_id=run_id))
        return RunDetails(whole, name or "", tree, total)


async def _whole(reader: Reader, caller: Caller, run_id: UUID) -> WholeRun:
    view = await view_of(reader, caller, run_id)
    resolved = await runs.resolved(reader, caller.tenant_id, run_id=run_id)
    items: list[StoredItem] = []
    while (
        len(page := await _items(reader, caller, run_id, after=items[-1].sequence if items else 0, limit=_PAGE))
        == _PAGE
    ):
        items += page
    items += page
    calls = await conversations.usage_of_run(reader, caller.tenant_id, run_id=run_id)
    failures = await credentials.failures_of_run(reader, caller.tenant_id, run_id=run_id)
    return WholeRun(view, resolved, tuple(items), tuple(calls), tuple(failures))


async def items(database: Database, caller: Caller, *, run_id: UUID, after: int, limit: int) -> list[StoredItem]:
    """A page of the conversation: items with a sequence above `after`. Raises NotFound."""
    async with database.reader() as reader:
        await view_of(reader, caller, run_id)
        return await _items(reader, caller, run_id, after=after, limit=limit)


async def page(
    database: Database, caller: Caller, *, wanted: RunFilter, namespace: str | None = None, after: RunCursor | None, limit: int
) -> list[RunView]:  # fmt: skip
    """Runs under a filter, the newest first; `namespace` by name (one that is not there has no runs). Raises NotFound for a root."""
    async with database.reader() as reader:
        within = await namespaces.narrowed(reader, caller, wanted, name=namespace)
        if within is None:
            return []
        within = await trees.within(reader, caller, within)
        return await run_lists.page(reader, caller.tenant_id, wanted=within, after=after, limit=limit)


async def request_stop(
    database: Database, caller: Caller, *, run_id: UUID, run_type: _NoAgentRun = ProcessType.INTERACTION, participant: str | None = None,
    tell: Tell,
) -> RunStatus:  # fmt: skip
    """Ask a run to stop: its status, Stopped at once only where no worker has to see to it. What it waits for is closed (B13), and
    what it started is asked to stop once it has ended. An agent run is stopped by `agent_runs`. `participant`: of the run that asks for it, where one does.

    Raises NotFound, RunEnded, and LeaseLost where the claim of the run that asks for it is no more.
    """
    channel = audit.channel_of(caller)
    async with database.writer() as writer:
        status = await runs.request_stop(
            writer, caller.tenant_id, run_id=run_id, stopped_by=caller.user_name, run_type=run_type
        )
        if status is None:
            raise await _not_to_stop(writer, caller, run_id, run_type)
        closed = await pending.stop(
            writer, caller.tenant_id, run_id=run_id, by=caller.user_id, by_name=caller.user_name, channel=channel
        )
        detail: dict[str, Any] = {"closed": [str(id_) for id_ in closed]} if closed else {}
        if caller.acts_by is not None:  # its row is locked last: locks go from child to parent
            await swarms.parent(writer, caller.acts_by)
            detail |= {"parent": str(caller.acts_by.run_id), "participant": participant}
        await audit.note(
            writer, caller, action="run.stop_requested", subject_kind="run", subject_id=run_id, detail=detail
        )
        stopped = await runs.get(writer, caller.tenant_id, run_id=run_id) if status is RunStatus.STOPPED else None
    if stopped is not None and stopped.parent_id is not None:  # which may have awaited it
        tell({"to": "run", "run": str(stopped.parent_id)})
        tell({"to": "workers"})
    if closed:
        tell_of_answer(tell, caller.tenant_id, run_id=run_id, sequence=None)
    else:
        tell({"to": "run", "run": str(run_id)})
    if run_type is ProcessType.APP:  # a run of an interaction that is Stopped at once has started nothing yet
        await trees.stop_below(database, tenant_id=caller.tenant_id, ended_id=run_id, tell=tell)
    return status


async def _not_to_stop(reader: Reader, caller: Caller, run_id: UUID, run_type: ProcessType) -> NotFound | RunEnded:
    """Why a request to stop touched no run."""
    view = await run_lists.get(reader, caller.tenant_id, run_id=run_id)
    if view is None or view.run.type is not run_type:
        return await _missing(reader, caller, run_id, view, run_type)
    return _ended(view, "cannot be stopped")


async def post_message(
    database: Database, caller: Caller, *, run_id: UUID, message: str, new_id: NewId, tell: Tell
) -> StoredItem:
    """Say something to a run at once, whatever it is doing; while the person has the floor, it is their turn.

    Raises NotFound, RunEnded, Conflict where no person may speak.
    """
    if not 1 <= len(message) <= _MAX_MESSAGE_CHARACTERS:
        text = f"A message has 1 to {_MAX_MESSAGE_CHARACTERS:,} characters; write one."
        raise BadInput(text, (Fault("/message", text),))
    async with database.writer() as writer:
        await pending.lock_run(writer, caller.tenant_id, run_id=run_id)
        view = await view_of(writer, caller, run_id)
        if view.run.status in FINAL:
            raise _ended(view, "takes no more messages")
        resolved = await runs.resolved(writer, caller.tenant_id, run_id=run_id)
        _refuse_where_unwanted(resolved)
        author = author_of(caller, resolved)
        turn = await _take_turn(writer, caller, run_id=run_id, message=message, author=author, new_id=new_id)
        stored = turn or await conversations.append_message(
            writer,
            caller.tenant_id,
            run_id=run_id,
            item_id=new_id(),
            author=author,
            message=message,
            thread_id=MAIN_THREAD,
        )
        if stored is None:
            raise _ended(await view_of(writer, caller, run_id), "takes no more messages")
        if turn is None:
            said = {"sequence": stored.sequence}
            await audit.note(writer, caller, action="run.message", subject_kind="run", subject_id=run_id, detail=said)
    if turn is not None:
        tell_of_answer(tell, caller.tenant_id, run_id=run_id, sequence=stored.sequence)
    else:
        tell({"to": "watchers", "run": str(run_id), "sequence": stored.sequence})
    return stored


async def _take_turn(
    writer: Writer, caller: Caller, *, run_id: UUID, message: str, author: Author, new_id: NewId
) -> StoredItem | None:
    """The message as the person's turn; null if the floor is not the person's now. The run's row is locked."""
    for found in await pending.open_ones(writer, caller.tenant_id, run_id=run_id):
        if found.entry.pending.kind is not PendingKind.TURN or found.is_due:
            continue
        turn_id = found.entry.pending.pending_id
        item = Item(new_id(), author, HumanMessage(message), TurnEnd(), turn_id)
        answer = pending.Answer(
            turn_id,
            PendingOutcome.ANSWERED,
            {"message": message},
            caller.user_id,
            caller.user_name,
            audit.channel_of(caller),
            item,
        )
        settled = await pending.settle(writer, caller.tenant_id, run_id=run_id, answer=answer)
        if settled is not None:
            detail = {"pendingId": str(turn_id)}
            await audit.note(writer, caller, action="turn.taken", subject_kind="run", subject_id=run_id, detail=detail)
            return settled[1]
    return None


def _refuse_where_unwanted(resolved: ResolvedInteraction) -> None:
    settings = resolved.human_settings
    title = f"the interaction '{resolved.namespace}/{resolved.interaction_name}'"
    if settings is None:
        raise Conflict(
            f"No person takes part in this run: {title} has no humanSettings. Set them for the runs to come."
        )
    if settings.chat_mode is ChatMode.EXCLUDED:
        raise Conflict(f"People cannot write in this run: {title} has the chatMode '{ChatMode.EXCLUDED}'.")


async def view_of(reader: Reader, caller: Caller, run_id: UUID) -> RunView:
    """A run of an interaction. Raises NotFound."""
    view = await run_lists.get(reader, caller.tenant_id, run_id=run_id)
    if view is None or view.run.type is not ProcessType.INTERACTION:
        raise await _missing(reader, caller, run_id, view, ProcessType.INTERACTION)
    return view


async def _missing(
    reader: Reader, caller: Caller, run_id: UUID, view: RunView | None, run_type: ProcessType
) -> NotFound:
    if view is not None and view.run.type is ProcessType.AGENT_RUN:
        found = await agent_runs.by_run(reader, caller.tenant_id, run_id=run_id)
        assert found is not None
        return NotFound(
            f"The run {run_id} is no {run_type} run but the agent run {found.id}: GET /agent-runs/{found.id} shows it, and POST "
            f"/agent-runs/{found.id}/consent answers what it asks."
        )
    if view is not None:
        return NotFound(f"The run {run_id} is no {run_type} run but an {view.run.type} run; ask for it as such.")
    return NotFound(f"There is no run {run_id}. `folkmoot runs list` shows those there are.")


async def _items(reader: Reader, caller: Caller, run_id: UUID, *, after: int, limit: int) -> list[StoredItem]:
    return await conversations.items_after(reader, caller.tenant_id, run_id=run_id, after=after, limit=limit)


def _ended(view: RunView, what: str) -> RunEnded:
    return RunEnded(f"The run {view.run.run_id} is {view.run.status} and {what}.")
