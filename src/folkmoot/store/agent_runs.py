"""Agent runs: the row of pointers, the payload that it points to, and the statements that a worker's append adds of both.

What awaits consent is written by the pause, taken out by the claim, and ended by triggers beside the run's own moves (migration
0012). Deliberately absent: chat items and what is sent over channels (`chats`, `channel_messages`), and what a payload means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg

from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, Phase
from folkmoot.domain.run_status import RunStatus
from folkmoot.store.codecs import json_text, json_value, safe, safe_json
from folkmoot.store.database import Reader, Writer, queries
from folkmoot.store.outcomes import Append, ConsentAsked

_sql: Any = queries("agent_runs")


@dataclass(frozen=True, slots=True)
class NewAgentRun:
    """The pointers that a start sets. `parent_id`: the run that delegates; null for a root. `channel_id` null: the server's own pages."""

    owner_id: UUID
    correlation_token: str
    channel: str | None = None
    channel_id: UUID | None = None
    reply_params: str | None = None
    conversation_id: UUID | None = None
    parent_id: UUID | None = None


async def insert(writer: Writer, tenant_id: UUID, *, run_id: UUID, new: NewAgentRun) -> int:
    """The run's number. The row of `process` is there already, in the same transaction."""
    made: int = await _sql.insert_agent_run(
        writer.connection, tenant_id=tenant_id, run_id=run_id, owner_id=new.owner_id, channel=new.channel and safe(new.channel),
        channel_id=new.channel_id, reply_params=new.reply_params and safe(new.reply_params), correlation_token=new.correlation_token,
        conversation_id=new.conversation_id, parent_id=new.parent_id,
    )  # fmt: skip
    return made


async def note(connection: asyncpg.Connection, appends: Sequence[Append]) -> None:
    """What appends of agent runs add beside items and facts, in their transaction, once all of each was written. Several are gathered: each
    kind of change takes one passage to the server, however many runs there are."""
    for append in appends:
        if append.pause is not None and append.pause.awaits:
            awaited = [run_id for each in append.pause.awaits for run_id in each.run_ids]
            await _sql.join_consent(connection, tenant_id=append.claim.tenant_id, sub_run_ids=awaited)
    await _sql.note(connection, [_changed(append) for append in appends])
    begun = [append for append in appends if append.calls_begun]
    if begun:
        await _sql.executed(connection, [
            {"tenant_id": append.claim.tenant_id, "run_id": append.claim.run_id, "call_ids": list(append.calls_begun)} for append in begun
        ])  # fmt: skip
    for append in appends:
        if append.agent is not None and append.agent.consent is not None:
            await _await_consent(connection, append, append.agent.consent)


def _changed(append: Append) -> dict[str, Any]:
    claim, change = append.claim, append.agent
    assert change is not None
    payload = json_text(safe_json(change.payload))
    return {
        "tenant_id": claim.tenant_id, "run_id": claim.run_id, "phase": change.phase.value, "payload_id": change.payload_id,
        "payload": payload, "size": len(payload.encode()), "characters": len(payload),
    }  # fmt: skip


async def _await_consent(connection: asyncpg.Connection, append: Append, asked: ConsentAsked) -> None:
    pending = append.pause.pending if append.pause is not None else None
    assert pending is not None
    await _sql.await_consent(
        connection, tenant_id=append.claim.tenant_id, run_id=append.claim.run_id, call_id=pending.pending_id,
        chat_item_id=asked.chat_item_id, conversation_id=asked.conversation_id, card=json_text(safe_json(pending.card)),
        hash=pending.binding_hash, asked_by=safe(asked.asked_by), secret_hash=asked.secret_hash, sealed_secret=asked.sealed_secret,
        message_id=asked.message_id,
    )  # fmt: skip


async def get(reader: Reader, tenant_id: UUID, *, id_: int) -> AgentRun | None:
    row = await _sql.get(reader.connection, tenant_id=tenant_id, id=id_)
    return _read(row) if row is not None else None


async def by_run(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> AgentRun | None:
    row = await _sql.by_run(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return _read(row) if row is not None else None


async def by_token(reader: Reader, tenant_id: UUID, *, token: str) -> AgentRun | None:
    row = await _sql.by_token(reader.connection, tenant_id=tenant_id, token=safe(token))
    return _read(row) if row is not None else None


@dataclass(frozen=True, slots=True)
class AgentRunFilter:
    """Null: any."""

    status: AgentRunStatus | None = None
    agent_id: UUID | None = None
    parent: int | None = None
    conversation_id: UUID | None = None


async def page(
    reader: Reader, tenant_id: UUID, *, wanted: AgentRunFilter, after: int | None, limit: int
) -> list[AgentRun]:
    """The newest first, those after the run with this number."""
    async with reader.one_moment():
        await reader.plan_anew()
        rows = _sql.page(
            reader.connection, tenant_id=tenant_id, status=wanted.status, agent_id=wanted.agent_id, parent=wanted.parent,
            conversation_id=wanted.conversation_id, after=after, limit=limit,
        )  # fmt: skip
        return [_read(row) async for row in rows]


async def page_of_person(
    reader: Reader, tenant_id: UUID, *, user_id: UUID | None, after: int | None, limit: int
) -> list[AgentRun]:
    """Root runs of a person, or with null of everybody, that do not await consent. The newest first, after the run with this number."""
    async with reader.one_moment():
        await reader.plan_anew()
        rows = _sql.page_of_person(reader.connection, tenant_id=tenant_id, user_id=user_id, after=after, limit=limit)
        return [_read(row) async for row in rows]


@dataclass(frozen=True, slots=True)
class WaitingCursor:
    """The last run of a page of those that wait, and since when it does."""

    since: datetime
    id_: int


async def waiting_of_person(
    reader: Reader, tenant_id: UUID, *, user_id: UUID | None, after: WaitingCursor | None, limit: int
) -> list[AgentRun]:
    """Root runs of a person, or with null of everybody, that await consent. The longest waiting first."""
    since, id_ = (after.since, after.id_) if after is not None else (None, None)
    async with reader.one_moment():
        await reader.plan_anew()
        rows = _sql.waiting_of_person(
            reader.connection, tenant_id=tenant_id, user_id=user_id, after_since=since, after_id=id_, limit=limit
        )
        return [_read(row) async for row in rows]


async def tenant_of_token(reader: Reader, *, token: str) -> UUID | None:
    """Whose run a correlation token finds, among those of all tenants."""
    found: UUID | None = await _sql.tenant_of_token(reader.connection, token=safe(token))
    return found


async def payload(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> dict[str, Any] | None:
    """The newest revision; null before the first step."""
    text = await _sql.payload(reader.connection, tenant_id=tenant_id, run_id=run_id)
    found: dict[str, Any] | None = json_value(text) if text is not None else None
    return found


async def output(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> str | None:
    """What the run answered; null before its end, and where it came to no answer."""
    text: str | None = await _sql.output(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return text


async def delegated(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> list[UUID]:
    """What a run delegated, directly or not, and has not ended, the deepest first."""
    return [row["run_id"] async for row in _sql.delegated(reader.connection, tenant_id=tenant_id, run_id=run_id)]


async def may_delegate(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> bool:
    """Whether the run has specialists, as its start settled it."""
    return bool(await _sql.may_delegate(reader.connection, tenant_id=tenant_id, run_id=run_id))


@dataclass(frozen=True, slots=True)
class RootRun:
    """Where a delegation's owner is reached."""

    id: int
    run_id: UUID
    owner_id: UUID
    channel: str | None
    channel_id: UUID | None
    reply_params: str | None
    correlation_token: str
    conversation_id: UUID | None


async def root(reader: Reader, tenant_id: UUID, *, run_id: UUID) -> RootRun | None:
    """The topmost agent run above a run, or itself."""
    row = await _sql.root(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return RootRun(*row.values()) if row is not None else None


async def is_within(reader: Reader, tenant_id: UUID, *, run_id: UUID, top: UUID) -> bool:
    """Whether a run is `top` itself, or was delegated by it, directly or not."""
    return bool(await _sql.is_within(reader.connection, tenant_id=tenant_id, run_id=run_id, top=top))


@dataclass(frozen=True, slots=True)
class DelegatedResult:
    """What came of a delegated run so far. `tool_calls`: made by it and by those below it."""

    status: RunStatus
    output: str | None
    failure_details: str | None
    stopped_by: str | None
    tool_calls: int


async def delegated_result(reader: Reader, tenant_id: UUID, *, run_id: UUID, parent_id: UUID) -> DelegatedResult | None:
    """Null: the call has started no run."""
    row = await _sql.delegated_result(reader.connection, tenant_id=tenant_id, run_id=run_id, parent_id=parent_id)
    if row is None:
        return None
    calls = await _sql.delegated_calls(reader.connection, tenant_id=tenant_id, run_id=run_id)
    return DelegatedResult(
        RunStatus(row["status"]), row["output"], row["failure_details"], row["stopped_by"], calls or 0
    )


async def tidy(writer: Writer) -> None:
    """Removes payloads that newer ones took the place of a day ago."""
    await _sql.tidy_payloads(writer.connection)


def _read(row: Any) -> AgentRun:
    return AgentRun(
        tenant_id=row["tenant_id"], tenant_name=row["tenant_name"], id=row["id"], run_id=row["run_id"], agent_id=row["definition_id"],
        agent_name=row["agent_name"], agent_version=row["definition_version"], owner_id=row["owner_id"],
        status=AgentRunStatus(row["status"]), current_phase=Phase(row["current_phase"]), channel=row["channel"], channel_id=row["channel_id"],
        reply_params=row["reply_params"], correlation_token=row["correlation_token"], conversation_id=row["conversation_id"],
        chat_item_id=row["chat_item_id"], pending_tool_id=str(row["pending_tool_id"]) if row["pending_tool_id"] else None,
        pending_specialist=row["pending_specialist"], parent_run=row["parent_run"], awaiting_since=row["awaiting_since"],
        expires_at=row["expires_at"], claimed_at=row["claimed_at"], completed_at=row["completed_at"], last_error=row["last_error"],
        created_at=row["created_at"], modified_at=row["modified_at"], created_by=row["created_by"], last_sequence=row["last_sequence"],
    )  # fmt: skip
