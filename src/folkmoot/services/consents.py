"""Answers to what agent runs ask their owners, by id: who answers is known by their key, or by their session. The first valid one counts.

Deliberately absent: answers over channels (`channel_answers`), and what an answer leads to, which the engine decides.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, ChatItem, ConsentStatus
from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import (
    NotFound,
    NotPermitted,
)
from folkmoot.services import agent_runs as agent_run_service
from folkmoot.services import answers
from folkmoot.services.people import Tell
from folkmoot.store import agent_runs, audit, chats
from folkmoot.store.database import Database, Reader

_DECIDED = {ConsentStatus.APPROVED: "approved", ConsentStatus.DECLINED: "declined"}


async def answer(
    database: Database, caller: Caller, *, id_: int, chat_item_id: UUID, approves: bool, arguments_hash: str, reason: str | None, tell: Tell
) -> ChatItem:  # fmt: skip
    """Approve or decline a call, as its chat item shows it; the item as it stands then. At the run that asks, or at one above it.

    Raises NotFound, NotPermitted, BadInput, and Conflicts: AlreadyDecided, StaleApproval, TooLate.
    """
    async with database.reader() as reader:
        run = await agent_run_service.found(reader, caller, id_)
        item = await _item_of(reader, caller.tenant_id, run, chat_item_id)
        is_allowed = await agent_run_service.may_answer(reader, caller, run)
    if not is_allowed:
        await _note_refusal(database, caller, run, item)
        raise NotPermitted(
            f"What agent run {id_} asks is for its agent's owner to answer, or for an owner or admin of the tenant."
        )
    return await decide(
        database, caller, item, approves=approves, arguments_hash=arguments_hash, reason=reason, tell=tell
    )


async def decide(
    database: Database, caller: Caller, item: ChatItem, *, approves: bool, arguments_hash: str, reason: str | None, tell: Tell,
    guard: answers.Guard | None = None,
) -> ChatItem:  # fmt: skip
    """Settle what an item asks, once it is known that the caller may; the item as it stands then. Raises as `answer` does."""
    assert item.consent is not None and item.run_id is not None
    await answers.decide(
        database, caller, run_id=item.run_id, call_id=UUID(item.consent.call_id), approves=approves, arguments_hash=arguments_hash,
        reason=reason, tell=tell, run_type=ProcessType.AGENT_RUN, guard=guard,
    )  # fmt: skip
    async with database.reader() as reader:
        now = await chats.get(reader, caller.tenant_id, chat_item_id=item.chat_item_id)
    assert now is not None
    return now


async def _item_of(reader: Reader, tenant_id: UUID, run: AgentRun, chat_item_id: UUID) -> ChatItem:
    """A consent that this run's delegation asked for. Raises NotFound."""
    item = await chats.get(reader, tenant_id, chat_item_id=chat_item_id)
    asks = item.run_id if item is not None and item.consent is not None else None
    if asks is None or not await agent_runs.is_within(reader, tenant_id, run_id=asks, top=run.run_id):
        item = None
    if item is None:
        raise NotFound(
            f"Agent run {run.id} has no consent {chat_item_id}. GET /agent-runs/{run.id} shows what it asks now (chatItemId)."
        )
    return item


async def _note_refusal(database: Database, caller: Caller, run: AgentRun, item: ChatItem) -> None:
    async with database.writer() as writer:
        await audit.note(
            writer, caller, action="approval.refused", subject_kind="run", subject_id=run.run_id,
            detail={"chatItemId": str(item.chat_item_id), "code": "not-permitted"},
        )  # fmt: skip
