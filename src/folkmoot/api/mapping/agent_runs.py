"""Agent runs as the API shows them, their chat items and messages, and what their requests say.

Deliberately absent: the kernel's own states, and an owner's id, which is the agent's affair.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from folkmoot.api.mapping import items as item_mapping
from folkmoot.api.mapping.budgets import budget_of
from folkmoot.domain import agent_runs as domain
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_cards import shown_card
from folkmoot.domain.shown_text import shown
from folkmoot.kernel.errors import BadInput
from folkmoot.services.agent_run_reading import RunConversation
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.closure import StartFields
from folkmoot.store.channel_messages import RunMessage
from folkmoot.wire import agent_runs as wire
from folkmoot.wire.definitions import InteractionBudgetRequest


def start_of(request: wire.AgentRunRequest) -> AgentStart:
    """All but the version, which belongs to the reference to the agent."""
    asked = request.budget or wire.AgentRunBudgetRequest()
    budget = budget_of(InteractionBudgetRequest(tokens=asked.tokens, money=asked.money, calls=asked.model_calls))
    fields = StartFields(
        tags=request.tags,
        priority=request.priority,
        credential_stack=request.credential_stack,
        allow_platform_fallback=request.allow_platform_fallback,
        parent_process_id=request.parent_process_id,
    )
    return AgentStart(request.goal, request.channel, request.reply_params, request.conversation_id, budget, fields)


@contextmanager
def faults_named_as_sent() -> Iterator[None]:
    """A budget's calls are the agent's `modelCalls` here; so is the pointer of their fault."""
    try:
        yield
    except BadInput as error:
        faults = (
            replace(fault, pointer="/budget/modelCalls") if fault.pointer == "/budget/calls" else fault
            for fault in error.faults
        )
        raise type(error)(str(error), tuple(faults)) from error


def agent_run(run: domain.AgentRun) -> wire.AgentRun:
    return wire.AgentRun(
        id=run.id, admin_org=wire.AdminOrg(id=run.tenant_id, name=run.tenant_name),
        agent=wire.AgentRunAgent(id=run.agent_id, name=run.agent_name, version=run.agent_version),
        status=wire.AgentRunStatus(run.status), current_phase=wire.AgentRunPhase(run.current_phase), channel=run.channel,
        reply_params=run.reply_params, correlation_token=run.correlation_token,
        conversation_id=str(run.conversation_id) if run.conversation_id is not None else None,
        chat_item_id=str(run.chat_item_id) if run.chat_item_id is not None else None, pending_tool_id=run.pending_tool_id,
        pending_specialist=run.pending_specialist, parent_run=_reference(run.parent_run), awaiting_since=run.awaiting_since,
        expires_at=run.expires_at, claimed_at=run.claimed_at, completed_date=run.completed_at, last_error=run.last_error,
        created_date=run.created_at, modified_date=run.modified_at,
    )  # fmt: skip


def conversation(found: RunConversation, *, limit: int) -> wire.AgentRunConversation:
    """`found.items` were read with one more than `limit`."""
    items = found.items[:limit]
    run = found.run
    return wire.AgentRunConversation(
        items=tuple(item_mapping.conversation_item(stored) for stored in items),
        next=str(items[-1].sequence) if len(found.items) > limit else None,
        output=found.output,
        conversation_id=str(run.conversation_id) if run.conversation_id is not None else None,
        chat_items=tuple(chat_item(item) for item in found.chat),
    )


def chat_item(item: domain.ChatItem) -> wire.ChatItem:
    return wire.ChatItem(
        id=item.chat_item_id, conversation_id=item.conversation_id, number=item.number, kind=wire.ChatItemKind(item.kind),
        author_name=item.author_name, created_date=item.created_at, agent_run=_reference(item.agent_run), text=item.text,
        consent=_consent(item.consent) if item.consent is not None else None,
    )  # fmt: skip


def _consent(consent: domain.Consent) -> wire.ConsentBlock:
    fields = shown_card(PendingKind.APPROVAL, consent.card).fields["approval"]
    return wire.ConsentBlock(
        # what a decision is held against is the item's own hash, whatever its card says
        call={**fields, "argumentsHash": consent.arguments_hash.hex()}, asked_by=shown(consent.asked_by).text,
        status=wire.ConsentStatus(consent.status), expires_at=consent.expires_at, executed=consent.executed_at is not None,
        executed_at=consent.executed_at, decided_at=consent.decided_at, decided_by_name=consent.decided_by_name,
        decided_over=consent.decided_over, reason=consent.reason,
    )  # fmt: skip


def message(sent: RunMessage) -> wire.ChannelMessage:
    status = wire.ChannelMessageStatus.WAITING
    if sent.message.delivered_at is not None:
        status = wire.ChannelMessageStatus.DELIVERED
    elif sent.message.given_up_at is not None:
        status = wire.ChannelMessageStatus.GIVEN_UP
    found = sent.message
    return wire.ChannelMessage(
        id=found.message_id, kind=wire.ChannelMessageKind(found.kind), status=status, chat_item_id=sent.chat_item_id,
        created_date=found.created_at, attempts=found.attempts, next_attempt_at=found.ready_at, delivered_at=found.delivered_at,
        last_error=found.last_error,
    )  # fmt: skip


def _reference(id_: int | None) -> wire.AgentRunReference | None:
    return wire.AgentRunReference(id=id_) if id_ is not None else None
