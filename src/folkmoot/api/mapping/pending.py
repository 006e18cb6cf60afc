"""What waits for a person, as the API shows it: cards whose text cannot deceive, receipts, and a run's pending approval.

Deliberately absent: what a card means to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from folkmoot.domain.inbox import InboxEntry, PendingEntry
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_text import shown, shown_json
from folkmoot.wire import pending as wire
from folkmoot.wire import runs as run_wire

LISTED_CHARACTERS = 2_000
_DEFERRED = "deferred"


class _Shower:
    """Shows texts, and knows whether one was cut. `limit` null: nothing is."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.has_cut = False

    def text(self, value: Any) -> str:
        made = shown(str(value), limit=self._limit)
        self.has_cut = self.has_cut or made.is_cut
        return made.text

    def text_or_null(self, value: Any) -> str | None:
        return None if value is None else self.text(value)

    def json(self, value: Any) -> str:
        made = shown_json(str(value), limit=self._limit)
        self.has_cut = self.has_cut or made.is_cut
        return made.text


def pending_work(shown_entry: InboxEntry, *, limit: int | None = None) -> wire.PendingWork:
    """`limit`: how many characters of a text are shown; lists give LISTED_CHARACTERS."""
    entry = shown_entry.entry
    kind, card = entry.pending.kind, entry.pending.card
    shower = _Shower(limit)
    cards = {
        "approval": _approval(card, shower) if kind is PendingKind.APPROVAL else None,
        "vote": _vote(card, shower) if kind is PendingKind.VOTE else None,
        "question": _question(card, shower) if kind is PendingKind.QUESTION else None,
        "turn": wire.TurnCard(round=card.get("round", 0)) if kind is PendingKind.TURN else None,
    }
    return wire.PendingWork(
        id=entry.pending.pending_id, run_id=entry.run_id, kind=wire.PendingKind(kind), status=wire.PendingStatus(entry.status),
        interaction_name=shown_entry.interaction_name, namespace_name=shown_entry.namespace, date_requested=entry.asked_at,
        date_expires=entry.expires_at, is_cut=shower.has_cut, receipt=receipt(entry) if entry.settled is not None else None, **cards,
    )  # fmt: skip


def receipt(entry: PendingEntry) -> wire.AnswerReceipt:
    """Of an entry that is settled."""
    settled = entry.settled
    assert settled is not None
    answer = settled.answer or {}
    return wire.AnswerReceipt(
        run_id=entry.run_id, id=entry.pending.pending_id, kind=wire.PendingKind(entry.pending.kind), status=wire.PendingStatus(entry.status),
        agree=answer.get("agree"), text=answer.get("answer", answer.get("message")), passed=answer.get("pass"),
        arguments_hash=answer.get("argumentsHash"), reason=answer.get("reason"), date_answered=settled.at,
        answered_by_id=settled.by, answered_by_name=settled.by_name, channel=settled.channel,
    )  # fmt: skip


def pending_approval(entry: PendingEntry, *, limit: int | None = None) -> run_wire.PendingToolCallApproval:
    """The contract's shape of what an approval is about. It was answered if nobody has claimed the run since."""
    card, shower = entry.pending.card, _Shower(limit)
    return run_wire.PendingToolCallApproval(
        id=entry.pending.pending_id, function_name=shower.text(card["functionName"]), arguments_json=shower.json(card["argumentsJson"]),
        tool_call_id=card["toolCallId"], date_requested=entry.asked_at, status=_status(entry), agent_id=card["agentId"],
        agent_name=shower.text(card["agentName"]),
    )  # fmt: skip


def deferred_tool_calls(card: Mapping[str, Any], *, limit: int | None = None) -> tuple[run_wire.DeferredToolCall, ...]:
    return _deferred(card, _Shower(limit))


def _status(entry: PendingEntry) -> Any:
    return entry.status.value if entry.status.value in ("Approved", "Rejected") else "Pending"


def _deferred(card: Mapping[str, Any], shower: _Shower) -> tuple[run_wire.DeferredToolCall, ...]:
    return tuple(
        run_wire.DeferredToolCall(
            tool_call_id=call["toolCallId"], function_name=shower.text(call["functionName"]), arguments_json=shower.json(call["argumentsJson"]),
            agent_id=call["agentId"], agent_name=shower.text(call["agentName"]),
        )
        for call in card.get(_DEFERRED, ())
    )  # fmt: skip


def _approval(card: Mapping[str, Any], shower: _Shower) -> wire.ApprovalCard:
    return wire.ApprovalCard(
        function_name=shower.text(card["functionName"]), arguments_json=shower.json(card["argumentsJson"]),
        arguments_hash=card["argumentsHash"], tool_call_id=card["toolCallId"], agent_id=card["agentId"],
        agent_name=shower.text(card["agentName"]), description=shower.text(card.get("description") or ""),
        connector=shower.text_or_null(card.get("connector")), operation=shower.text_or_null(card.get("operation")),
        operation_version=card.get("operationVersion"), server=shower.text_or_null(card.get("server")),
        deferred_tool_calls=_deferred(card, shower),
    )  # fmt: skip


def _vote(card: Mapping[str, Any], shower: _Shower) -> wire.VoteCard:
    return wire.VoteCard(
        proposer=shower.text(card["proposer"]), text=shower.text(card["text"]), is_solution=bool(card["isSolution"])
    )


def _question(card: Mapping[str, Any], shower: _Shower) -> wire.QuestionCard:
    return wire.QuestionCard(asker=shower.text(card["asker"]), question=shower.text(card["question"]))
