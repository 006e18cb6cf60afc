"""What the server's pages list for one person: their agent runs, conversations with agents, and the agents they may start.

Deliberately absent: what is known of one run (`agent_runs`), and any form of a page (`console`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.definitions import DefinitionKind
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotFound
from folkmoot.services import agent_runs as agent_run_service
from folkmoot.store import agent_runs, chats, definitions
from folkmoot.store.agent_runs import WaitingCursor
from folkmoot.store.database import Database
from folkmoot.store.definitions import Named

__all__ = ["Named", "WaitingCursor"]

_MOST_AGENTS = 1_000


async def runs(database: Database, caller: Caller, *, of_all: bool, after: int | None, limit: int) -> list[AgentRun]:
    """Root runs that the caller started or whose agent is theirs, or of everybody, and that do not await consent. The newest first, after
    the run with this number."""
    user_id = None if of_all else caller.user_id
    async with database.reader() as reader:
        return await agent_runs.page_of_person(reader, caller.tenant_id, user_id=user_id, after=after, limit=limit)


async def waiting(
    database: Database, caller: Caller, *, of_all: bool, after: WaitingCursor | None, limit: int
) -> list[AgentRun]:
    """Those of them that await consent, the longest waiting first."""
    user_id = None if of_all else caller.user_id
    async with database.reader() as reader:
        return await agent_runs.waiting_of_person(reader, caller.tenant_id, user_id=user_id, after=after, limit=limit)


async def conversation(
    database: Database, caller: Caller, *, conversation_id: UUID, before: int | None, limit: int
) -> list[ChatItem]:
    """What was said, the newest first; before the item with this number. Raises NotFound."""
    async with database.reader() as reader:
        if not await chats.is_there(reader, caller.tenant_id, conversation_id=conversation_id):
            raise NotFound(f"There is no conversation {conversation_id}.")
        return await chats.page(reader, caller.tenant_id, conversation_id=conversation_id, before=before, limit=limit)


@dataclass(frozen=True, slots=True)
class Asked:
    """`run`: that the token finds. `for_agent`: the root's, whose owner decides. `item` null: nothing was asked there yet."""

    run: AgentRun
    for_agent: str
    item: ChatItem | None
    may_answer: bool


async def asked(database: Database, caller: Caller, *, token: str) -> Asked:
    """What the run with this correlation token asks, or asked last. Raises NotFound."""
    async with database.reader() as reader:
        run = await agent_runs.by_token(reader, caller.tenant_id, token=token)
        if run is None:
            raise NotFound("There is no such request here. It may be another tenant's: sign in with a key of that one.")
        root = await agent_runs.root(reader, caller.tenant_id, run_id=run.run_id)
        top = await agent_runs.by_run(reader, caller.tenant_id, run_id=root.run_id) if root is not None else None
        item = None
        if run.chat_item_id is not None:
            item = await chats.get(reader, caller.tenant_id, chat_item_id=run.chat_item_id)
        may_answer = await agent_run_service.may_answer(reader, caller, run)
    return Asked(run, (top or run).agent_name, item, may_answer)


async def agents(database: Database, caller: Caller) -> list[Named]:
    """Agents with a version that can be started, by namespace and name; no more than a list in a form can hold."""
    async with database.reader() as reader:
        return await definitions.enabled_names(reader, caller.tenant_id, kind=DefinitionKind.AGENT, limit=_MOST_AGENTS)
