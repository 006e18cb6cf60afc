"""Runs for those who ask: shown, listed, stopped, spoken to.

Deliberately absent: starting (`starting`), watching (`events`), and setting a status: a stop is a request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from folkmoot.domain.definitions import ChatMode, ResolvedInteraction
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, Author, AuthorKind, StoredItem
from folkmoot.domain.participant_names import RESERVED, name_key
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Conflict, Fault, NotFound, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.store import conversations, run_lists, runs, tenancy
from folkmoot.store.conversations import ModelCallRecord
from folkmoot.store.database import Database, Reader
from folkmoot.store.run_lists import RunCursor, RunFilter, RunView, TreeCounts

__all__ = ["RunCursor", "RunDetails", "RunFilter", "RunView", "WholeRun"]

Tell = Callable[[dict[str, Any]], None]

_PAGE = 1000
_MAX_MESSAGE_CHARACTERS = 1_000_000
_PERSON = RESERVED[0]


@dataclass(frozen=True, slots=True)
class WholeRun:
    """A run with its closure, its conversation and the provider calls it made."""

    view: RunView
    resolved: ResolvedInteraction
    items: tuple[StoredItem, ...]
    calls: tuple[ModelCallRecord, ...]


@dataclass(frozen=True, slots=True)
class RunDetails:
    """What a page about a run shows beside. `user_name`: who started it."""

    whole: WholeRun
    user_name: str
    tree: TreeCounts


async def get(database: Database, caller: Caller, *, run_id: UUID) -> WholeRun:
    """The run as it stands, with all of its items. Raises NotFound."""
    async with database.reader() as reader, run_lists.one_moment(reader):
        return await _whole(reader, caller, run_id)


async def details(database: Database, caller: Caller, *, run_id: UUID) -> RunDetails:
    """The same, with names and counts. Raises NotFound."""
    async with database.reader() as reader, run_lists.one_moment(reader):
        whole = await _whole(reader, caller, run_id)
        run = whole.view.run
        name = await tenancy.user_name(reader, caller.tenant_id, user_id=run.created_by)
        tree = await run_lists.tree_counts(reader, caller.tenant_id, root=run.tree_root_id)
        return RunDetails(whole, name or "", tree)


async def _whole(reader: Reader, caller: Caller, run_id: UUID) -> WholeRun:
    view = await _view(reader, caller, run_id)
    resolved = await runs.resolved(reader, caller.tenant_id, run_id=run_id)
    items: list[StoredItem] = []
    while (
        len(page := await _items(reader, caller, run_id, after=items[-1].sequence if items else 0, limit=_PAGE))
        == _PAGE
    ):
        items += page
    items += page
    calls = await conversations.usage_of_run(reader, caller.tenant_id, run_id=run_id)
    return WholeRun(view, resolved, tuple(items), tuple(calls))


async def items(database: Database, caller: Caller, *, run_id: UUID, after: int, limit: int) -> list[StoredItem]:
    """A page of the conversation: items with a sequence above `after`. Raises NotFound."""
    async with database.reader() as reader:
        await _view(reader, caller, run_id)
        return await _items(reader, caller, run_id, after=after, limit=limit)


async def page(
    database: Database, caller: Caller, *, wanted: RunFilter, namespace: str | None = None, after: RunCursor | None, limit: int
) -> list[RunView]:  # fmt: skip
    """Runs under a filter, the newest first; `namespace` by name (one that is not there has no runs)."""
    async with database.reader() as reader:
        if namespace is not None:
            found = await tenancy.find_namespace(reader, caller.tenant_id, name=namespace)
            if found is None:
                return []
            wanted = replace(wanted, namespace_id=found.namespace_id)
        return await run_lists.page(reader, caller.tenant_id, wanted=wanted, after=after, limit=limit)


async def request_stop(database: Database, caller: Caller, *, run_id: UUID, tell: Tell) -> RunStatus:
    """Ask a run to stop: its status, Stopped at once only where nobody had begun it. Raises NotFound, RunEnded."""
    async with database.writer() as writer:
        status = await runs.request_stop(writer, caller.tenant_id, run_id=run_id, stopped_by=caller.user_name)
        if status is None:
            raise _ended(await _view(writer, caller, run_id), "cannot be stopped")
    tell({"to": "run", "run": str(run_id)})
    return status


async def post_message(
    database: Database, caller: Caller, *, run_id: UUID, message: str, new_id: NewId, tell: Tell
) -> StoredItem:
    """Say something to a run at once, whatever it is doing. Raises NotFound, RunEnded, Conflict where no person may speak."""
    if not 1 <= len(message) <= _MAX_MESSAGE_CHARACTERS:
        text = f"A message has 1 to {_MAX_MESSAGE_CHARACTERS:,} characters; write one."
        raise BadInput(text, (Fault("/message", text),))
    async with database.writer() as writer:
        view = await _view(writer, caller, run_id)
        if view.run.status in FINAL:
            raise _ended(view, "takes no more messages")
        resolved = await runs.resolved(writer, caller.tenant_id, run_id=run_id)
        _refuse_where_unwanted(resolved)
        stored = await conversations.append_message(
            writer, caller.tenant_id, run_id=run_id, item_id=new_id(), author=_author(caller, resolved), message=message,
            thread_id=MAIN_THREAD,
        )  # fmt: skip
        if stored is None:
            raise _ended(await _view(writer, caller, run_id), "takes no more messages")
    tell({"to": "watchers", "run": str(run_id), "sequence": stored.sequence})
    return stored


def _refuse_where_unwanted(resolved: ResolvedInteraction) -> None:
    settings = resolved.human_settings
    title = f"the interaction '{resolved.namespace}/{resolved.interaction_name}'"
    if settings is None:
        raise Conflict(
            f"No person takes part in this run: {title} has no humanSettings. Set them for the runs to come."
        )
    if settings.chat_mode is ChatMode.EXCLUDED:
        raise Conflict(f"People cannot write in this run: {title} has the chatMode '{ChatMode.EXCLUDED}'.")


def _author(caller: Caller, resolved: ResolvedInteraction) -> Author:
    """A person whose name a participant bears, or looks like bearing, speaks as the reserved `Human`."""
    taken = {name_key(participant.name) for participant in resolved.participants} | {name_key(ORCHESTRATOR.name)}
    name = _PERSON if name_key(caller.user_name) in taken else caller.user_name
    return Author(AuthorKind.HUMAN, name, caller.user_id)


async def _view(reader: Reader, caller: Caller, run_id: UUID) -> RunView:
    view = await run_lists.get(reader, caller.tenant_id, run_id=run_id)
    if view is None:
        raise NotFound(f"There is no run {run_id}. `folkmoot runs list` shows those there are.")
    return view


async def _items(reader: Reader, caller: Caller, run_id: UUID, *, after: int, limit: int) -> list[StoredItem]:
    return await conversations.items_after(reader, caller.tenant_id, run_id=run_id, after=after, limit=limit)


def _ended(view: RunView, what: str) -> RunEnded:
    return RunEnded(f"The run {view.run.run_id} is {view.run.status} and {what}.")
