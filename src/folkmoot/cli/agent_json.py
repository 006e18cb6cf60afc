"""Agent runs and what they ask, as JSON: the contract's names, with a run's answer beside them.

Deliberately absent: the payload and the conversation, which have shapes of their own.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.shown_cards import shown_call
from folkmoot.domain.shown_text import shown

Json = Any


def agent_run(run: AgentRun) -> dict[str, Json]:
    return {
        "id": run.id, "adminOrg": {"id": str(run.tenant_id), "name": run.tenant_name},
        "agent": {"id": str(run.agent_id), "name": run.agent_name, "version": run.agent_version}, "status": run.status.value,
        "currentPhase": run.current_phase.value, "channel": run.channel, "replyParams": run.reply_params,
        "correlationToken": run.correlation_token, "conversationId": _id(run.conversation_id), "chatItemId": _id(run.chat_item_id),
        "pendingToolId": run.pending_tool_id, "pendingSpecialist": run.pending_specialist,
        "parentRun": {"id": run.parent_run} if run.parent_run is not None else None, "awaitingSince": _date(run.awaiting_since),
        "expiresAt": _date(run.expires_at), "claimedAt": _date(run.claimed_at), "completedDate": _date(run.completed_at),
        "lastError": run.last_error, "createdDate": _date(run.created_at), "modifiedDate": _date(run.modified_at),
    }  # fmt: skip


def consent(item: ChatItem) -> dict[str, Json]:
    """A request for consent, its texts as a person is shown them, and what became of it."""
    asked = item.consent
    assert asked is not None
    return {
        "id": str(item.chat_item_id), "conversationId": str(item.conversation_id), "agentRun": item.agent_run, "askedBy": shown(asked.asked_by).text,
        **shown_call(asked.card), "argumentsHash": asked.arguments_hash.hex(), "status": asked.status.value, "expiresAt": _date(asked.expires_at),
        "decidedDate": _date(asked.decided_at), "decidedBy": asked.decided_by_name, "decidedOver": asked.decided_over, "reason": asked.reason,
        "executedDate": _date(asked.executed_at),
    }  # fmt: skip


def _id(value: object) -> str | None:
    return str(value) if value is not None else None


def _date(at: datetime | None) -> str | None:
    """UTC, with seven digits of a second."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}0Z" if at is not None else None
