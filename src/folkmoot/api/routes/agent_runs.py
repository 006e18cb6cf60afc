"""Runs of agents: started, listed, read, watched, answered, cancelled. No route writes a run: its fields are the worker's."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Path, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import AGENT_RUN_EVENTS, shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may, still_may
from folkmoot.api.mapping import agent_runs as mapping
from folkmoot.api.mapping.cursors import (
    agent_run_cursor,
    read_agent_run_cursor,
    read_run_message_cursor,
    run_message_cursor,
)
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.runs import IdempotencyKey
from folkmoot.api.stream import EventStream
from folkmoot.domain import agent_runs as domain
from folkmoot.domain.definitions import Reference
from folkmoot.domain.rights import Right
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.services import agent_run_reading, agent_runs, consents, events
from folkmoot.services.agent_run_reading import RunMessageCursor
from folkmoot.services.agent_runs import AgentRunFilter
from folkmoot.services.snapshots import OF_AGENT_RUN
from folkmoot.store.idempotency import Scope
from folkmoot.wire.agent_runs import (
    AgentRun,
    AgentRunConversation,
    AgentRunPage,
    AgentRunPayload,
    AgentRunRequest,
    AgentRunStatus,
    ChannelMessagePage,
    ChatItem,
    ConsentDecision,
    ConsentRequest,
)

router = APIRouter(tags=["agent runs"], route_class=KeyedRoute)
_MOST_ID = 2**63 - 1
_READ = responses(401, 404, 422, 503)
_RUN = "/agent-runs/{agent_run_id}"
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_ITEM = "01920000-0000-7000-8000-000000000000"
AgentRunId = Annotated[int, Path(ge=1, le=_MOST_ID, description="The run's number.")]
Start = Annotated[AgentRunRequest, shown_as({"goal": "Pay the invoice 7 if it is right.", "tags": ["demo"]})]
Answer = Annotated[
    ConsentRequest,
    shown_as({"chatItemId": _ITEM, "argumentsHash": _HASH, "decision": "decline", "reason": "Too much."}),
]


@router.post(
    "/agents/by-id/{definition_id}/runs", status_code=201, responses=responses(400, 401, 404, 409, 413, 415, 422, 429, 503)
)  # fmt: skip
async def start_agent_run(
    doors: Doorway,
    caller: Annotated[Caller, may(Right.START)],
    definition_id: UUID,
    body: Start,
    idempotency_key: IdempotencyKey = None,
) -> AgentRun:
    """Start a run of the agent with this id, which acts with the rights of the agent's owner. Everything is checked before it exists."""
    scope = None
    if idempotency_key is not None:
        digest = hashlib.sha256(body.model_dump_json().encode()).digest()
        scope = Scope(caller.tenant_id, caller.user_id, f"agent-runs/{definition_id}", idempotency_key, digest)
    with mapping.faults_named_as_sent():
        run = await agent_runs.start(
            doors.of(caller), caller, agent=Reference(definition_id=definition_id, version=body.version or None),
            request=mapping.start_of(body), bench=doors.bench, new_id=doors.new_id,
            new_token=lambda: token_of(doors.random_bytes(TOKEN_BYTES)), tell=doors.tell, scope=scope,
        )  # fmt: skip
    return mapping.agent_run(run)


@router.get("/agent-runs", responses=responses(401, 422, 503))
async def list_agent_runs(
    doors: Doorway,
    caller: Reader,
    status: Annotated[AgentRunStatus | None, Query()] = None,
    agent: Annotated[UUID | None, Query(description="The agent's id.")] = None,
    parent: Annotated[int | None, Query(ge=1, le=_MOST_ID, description="The run that delegated them.")] = None,
    conversation: Annotated[UUID | None, Query(description="The conversation behind them.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> AgentRunPage:
    """Agent runs, the newest first."""
    wanted = AgentRunFilter(domain.AgentRunStatus(status.value) if status else None, agent, parent, conversation)
    rows = await agent_runs.page(
        doors.of(caller), caller, wanted=wanted, after=read_agent_run_cursor(after), limit=limit + 1
    )
    found, following = cut(rows, limit, lambda run: agent_run_cursor(run.id))
    return AgentRunPage(items=tuple(mapping.agent_run(run) for run in found), next=following)


@router.get(_RUN, responses=_READ)
async def get_agent_run(doors: Doorway, caller: Reader, agent_run_id: AgentRunId) -> AgentRun:
    """An agent run."""
    return mapping.agent_run(await agent_runs.get(doors.of(caller), caller, id_=agent_run_id))


@router.get(f"{_RUN}/conversation", responses=_READ)
async def get_agent_run_conversation(
    doors: Doorway, caller: Reader, agent_run_id: AgentRunId, limit: Limit = DEFAULT_LIMIT,
    after: Annotated[int, Query(ge=0, le=2**53, description="The sequence of the last item that is known.")] = 0,
) -> AgentRunConversation:  # fmt: skip
    """A page of the run's own conversation, by sequence, with its answer and the conversation behind it. Reading it decides nothing."""
    found = await agent_run_reading.conversation(
        doors.of(caller), caller, id_=agent_run_id, after=after, limit=limit + 1
    )
    return mapping.conversation(found, limit=limit)


@router.get(f"{_RUN}/payload", responses=_READ)
async def get_agent_run_payload(doors: Doorway, caller: Reader, agent_run_id: AgentRunId) -> AgentRunPayload:
    """What the run carries from step to step: for its root's owner, and owners and admins of the tenant; a 403 for anybody else."""
    return AgentRunPayload(payload=await agent_runs.payload(doors.of(caller), caller, id_=agent_run_id))


@router.get(f"{_RUN}/messages", responses=_READ)
async def list_agent_run_messages(
    doors: Doorway, caller: Reader, agent_run_id: AgentRunId, limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> ChannelMessagePage:  # fmt: skip
    """What went, or goes, to the run's owner over its channel, the oldest first. A delegated run has none: its root's owner is told."""
    rows = await agent_run_reading.messages(
        doors.of(caller), caller, id_=agent_run_id, after=read_run_message_cursor(after), limit=limit + 1
    )
    found, following = cut(
        rows, limit, lambda row: run_message_cursor(RunMessageCursor(row.message.created_at, row.message.message_id))
    )
    return ChannelMessagePage(items=tuple(mapping.message(row) for row in found), next=following)


@router.post(f"{_RUN}/consent", responses=responses(400, 401, 404, 409, 413, 415, 422, 503))
async def answer_consent(
    doors: Doorway, caller: Annotated[Caller, may(Right.APPROVE)], agent_run_id: AgentRunId, body: Answer
) -> ChatItem:
    """Approve or decline what the run, or one below it, asks its owner: for that owner, and owners and admins of the tenant. The first
    valid answer counts; the identical one again gives the same item, another one a 409. A stale hash is a 409."""
    # The right that decides approvals: whoever's role or key lacks it consents to nothing, be the agent theirs or not. An agent's
    # owner who may have tools used has it, for it is below the right to start.
    item = await consents.answer(
        doors.of(caller), caller, id_=agent_run_id, chat_item_id=body.chat_item_id,
        approves=body.decision is ConsentDecision.APPROVE, arguments_hash=body.arguments_hash, reason=body.reason, tell=doors.tell,
    )  # fmt: skip
    return mapping.chat_item(item)


@router.post(f"{_RUN}/cancel", responses=responses(401, 404, 409, 422, 503))
async def cancel_agent_run(
    doors: Doorway, caller: Annotated[Caller, may(Right.STOP)], agent_run_id: AgentRunId
) -> AgentRun:
    """Ask a run to end. One that nobody has begun is failed at once, any other as soon as its worker hears of it; what it delegated ends
    with it."""
    return mapping.agent_run(await agent_runs.cancel(doors.of(caller), caller, id_=agent_run_id, tell=doors.tell))


async def _watchable(doors: Doorway, caller: Reader, agent_run_id: AgentRunId) -> UUID:
    """The kernel's id of the run, once it is known to be the caller's: a stream that has begun can give no 404 any more."""
    return (await agent_runs.get(doors.of(caller), caller, id_=agent_run_id)).run_id


_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `item` (with its sequence as id), `delta`, `status`, `approval`, `usage`, `end`.",
        "content": {EventStream.media_type: AGENT_RUN_EVENTS},
    }
}


@router.get(f"{_RUN}/events", response_class=EventStream, responses=_EVENTS | _READ)
async def watch_agent_run(
    doors: Doorway,
    caller: Reader,
    run_id: Annotated[UUID, Depends(_watchable)],
    last_event_id: Annotated[
        int, Header(alias="Last-Event-ID", ge=0, le=2**53, description="The id of the last event that is known.")
    ] = 0,
) -> EventStream:
    """Watch an agent run as SSE, from the item after `Last-Event-ID` on, until its end. What a specialist asks is shown at every run above it."""
    following = events.follow(
        doors.of(caller), doors.hub, doors.tell, tenant_id=caller.tenant_id, run_id=run_id, after=last_event_id, sight=OF_AGENT_RUN
    )  # fmt: skip
    return EventStream(following, is_welcome=still_may(doors, caller, Right.READ))
