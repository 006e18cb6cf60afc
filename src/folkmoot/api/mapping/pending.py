"""What waits for a person, as the API shows it: cards whose text cannot deceive, receipts, and a run's pending approval.

Deliberately absent: how a card is shown (`domain.shown_cards`), and what it means to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.domain.inbox import InboxEntry, PendingEntry
from folkmoot.domain.shown_cards import deferred_calls, shown_call, shown_card
from folkmoot.wire import pending as wire
from folkmoot.wire import runs as run_wire

LISTED_CHARACTERS = 2_000


def pending_work(shown_entry: InboxEntry, *, limit: int | None = None) -> wire.PendingWork:
    """`limit`: how many characters of a text are shown; lists give LISTED_CHARACTERS."""
    entry = shown_entry.entry
    kind = entry.pending.kind
    made = shown_card(kind, entry.pending.card, limit=limit)
    return wire.PendingWork(
        id=entry.pending.pending_id, run_id=entry.run_id, agent_run=shown_entry.agent_run, chat_item_id=shown_entry.chat_item_id,
        root_process_id=entry.root_id, kind=wire.PendingKind(kind), status=wire.PendingStatus(entry.status),
        interaction_name=shown_entry.interaction_name, namespace_name=shown_entry.namespace, date_requested=entry.asked_at,
        date_expires=entry.expires_at, is_cut=made.is_cut, receipt=receipt(entry) if entry.settled is not None else None, **made.fields,
    )  # fmt: skip


def receipt(entry: PendingEntry) -> wire.AnswerReceipt:
    """Of an entry that is settled."""
    settled = entry.settled
    assert settled is not None
    answer = settled.answer or {}
    return wire.AnswerReceipt(
        run_id=entry.run_id, root_process_id=entry.root_id, id=entry.pending.pending_id, kind=wire.PendingKind(entry.pending.kind), status=wire.PendingStatus(entry.status),
        agree=answer.get("agree"), text=answer.get("answer", answer.get("message")), passed=answer.get("pass"),
        arguments_hash=answer.get("argumentsHash"), reason=answer.get("reason"), date_answered=settled.at,
        answered_by_id=settled.by, answered_by_name=settled.by_name, channel=settled.channel,
    )  # fmt: skip


def pending_approval(entry: PendingEntry, *, limit: int | None = None) -> run_wire.PendingToolCallApproval:
    """The contract's shape of what an approval is about. It was answered if nobody has claimed the run since."""
    return run_wire.PendingToolCallApproval(
        id=entry.pending.pending_id, date_requested=entry.asked_at, status=_status(entry), **shown_call(entry.pending.card, limit=limit)
    )  # fmt: skip


def deferred_tool_calls(card: Mapping[str, Any], *, limit: int | None = None) -> tuple[run_wire.DeferredToolCall, ...]:
    return tuple(run_wire.DeferredToolCall(**call) for call in deferred_calls(card, limit=limit))


def _status(entry: PendingEntry) -> Any:
    return entry.status.value if entry.status.value in ("Approved", "Rejected") else "Pending"
