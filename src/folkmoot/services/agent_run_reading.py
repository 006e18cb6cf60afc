"""What an agent run's pointers point to, for those who read it: its conversation with the chat behind it, and what its owner was told.

Deliberately absent: the payload, which is not for everybody (`agent_runs`).
"""

from __future__ import annotations

from dataclasses import dataclass

from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.items import StoredItem
from folkmoot.domain.tenancy import Caller
from folkmoot.services import agent_runs as agent_runs_service
from folkmoot.services.agent_runs import found
from folkmoot.store import agent_runs, channel_messages, chats, conversations
from folkmoot.store.channel_messages import RunMessage, RunMessageCursor
from folkmoot.store.database import Database

__all__ = ["RunMessage", "RunMessageCursor"]

MOST_CHAT_ITEMS = 200
_FIRST_ITEMS = 5  # of which the second is the goal


@dataclass(frozen=True, slots=True)
class RunConversation:
    """`items`: a page of the run's own. `chat`: the newest MOST_CHAT_ITEMS of the conversation behind it, the oldest first."""

    run: AgentRun
    output: str | None
    items: tuple[StoredItem, ...]
    chat: tuple[ChatItem, ...]


async def conversation(database: Database, caller: Caller, *, id_: int, after: int, limit: int) -> RunConversation:
    """Items with a sequence above `after`, and the chat, all of one moment. Raises NotFound."""
    async with database.reader() as reader, reader.one_moment():
        run = await found(reader, caller, id_)
        items = await conversations.items_after(reader, caller.tenant_id, run_id=run.run_id, after=after, limit=limit)
        output = await agent_runs.output(reader, caller.tenant_id, run_id=run.run_id)
        newest: list[ChatItem] = []
        if run.conversation_id is not None:
            newest = await chats.page(
                reader, caller.tenant_id, conversation_id=run.conversation_id, before=None, limit=MOST_CHAT_ITEMS
            )
        return RunConversation(run, output, tuple(items), tuple(reversed(newest)))


async def output(database: Database, caller: Caller, *, id_: int) -> str | None:
    """The run's answer; null before its end, and where it came to none. Raises NotFound."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        return await agent_runs.output(reader, caller.tenant_id, run_id=run.run_id)


async def goal(database: Database, caller: Caller, *, id_: int) -> str | None:
    """What the run is to do, as it was told; null before its first step. Raises NotFound."""
    begun = await agent_runs_service.items(database, caller, id_=id_, after=0, limit=_FIRST_ITEMS)
    return next((told for stored in begun if (told := goal_in(stored)) is not None), None)


def goal_in(stored: StoredItem) -> str | None:
    """The run's goal, where this is the item that holds it."""
    body = stored.item.body
    if isinstance(stored.item.detail, items.Task) and isinstance(body, items.OrchestratorMessage):
        return body.message
    return None


async def messages(
    database: Database, caller: Caller, *, id_: int, after: RunMessageCursor | None, limit: int
) -> list[RunMessage]:
    """What went or goes to the run's owner over its channel, the oldest first; a delegated run has none, for its root's owner is told.
    Raises NotFound."""
    async with database.reader() as reader:
        run = await found(reader, caller, id_)
        return await channel_messages.page_of_run(reader, caller.tenant_id, run_id=run.run_id, after=after, limit=limit)
