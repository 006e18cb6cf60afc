"""What the fenced append's statement takes: an array of rows for runs, items and model calls, arrays of columns for tool calls.

Deliberately absent: what they mean (`appends`), and sending them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from folkmoot.domain.items import Item
from folkmoot.domain.pending import Pending
from folkmoot.domain.shown_cards import shown_card
from folkmoot.domain.swarms import Await
from folkmoot.store.codecs import DETAIL, USAGE, json_text, safe, safe_json, write_body
from folkmoot.store.outcomes import AgentChange, Append

_PARAMETERS = 21
_RUNS, _ITEMS, _BEGUN, _ENDED = range(4)
_PENDING = 20
TOOL_PARAMETERS = range(4, _PARAMETERS)  # what a batch without tool calls, voided model calls and pauses leaves empty


def is_lean(batch: Sequence[Append], made: Sequence[Sequence[Any]]) -> bool:
    """Whether the statement does without the parts for those."""
    return not any(made[n] for n in TOOL_PARAMETERS) and all(a.pause is None for a in batch)


def parameters(batch: Sequence[Append]) -> list[list[Any]]:
    """The statement's arrays, in the order of its parameters."""
    made: list[list[Any]] = [[] for _ in range(_PARAMETERS)]
    for ord_, a in enumerate(batch):
        made[_RUNS].append(_run(ord_, a))
        made[_ITEMS] += [_item(ord_, n, item) for n, item in enumerate(a.items, 1)]
        if a.model_calls_begun or a.model_calls_ended or a.model_calls_voided:
            _add_model_calls(made, ord_, a)
        if a.calls_asked or a.calls_begun or a.calls_ended:
            _add_calls(made, ord_, a)
        if a.pause is not None and a.pause.pending is not None:
            made[_PENDING].append(_pending(ord_, a.pause.pending, a.agent))
    return made


def _run(ord_: int, a: Append) -> tuple[Any, ...]:
    claim, end, back, pause = a.claim, a.end, a.hand_back, a.pause
    pending = pause.pending if pause else None
    awaits = [_await(each) for each in pause.awaits] if pause and pause.awaits else None
    return (
        ord_, claim.tenant_id, claim.run_id, claim.number, claim.claim_id, a.signal_number, a.firm, len(a.items),
        end.status.value if end else None, back is not None, safe(end.output) if end and end.output is not None else None,
        safe(end.failure) if end and end.failure is not None else None, back.ready_in_seconds if back else None, a.driver_errors,
        pause.status.value if pause else None, pending.pending_id if pending else None,
        awaits, pause.ready_by if pause else None,
    )  # fmt: skip


def _item(ord_: int, n: int, item: Item) -> tuple[Any, ...]:
    author = item.author
    return (
        ord_, n, item.item_id, item.body.kind, author.kind.value, safe(author.name), author.id, item.thread_id, item.turn_id,
        item.model_call_id, write_body(item), DETAIL.write(item.detail) if item.detail is not None else None,
    )  # fmt: skip


# what a version that knows no consents reads of a card, and says nothing
_EMPTY_CARD = {
    "toolCallId": "",
    "functionName": "",
    "argumentsJson": "{}",
    "agentId": "",
    "agentName": "",
    "argumentsHash": "",
}


def _pending(ord_: int, pending: Pending, agent: AgentChange | None) -> tuple[Any, ...]:
    card = safe_json(pending.card)
    consent = agent.consent if agent is not None else None
    # what a consent is about stands in its chat item alone
    kept = card if consent is None else {**_EMPTY_CARD, "chatItemId": str(consent.chat_item_id)}
    # of what is kept, so that webhooks and the API say the same
    told = {
        **shown_card(pending.kind, card).fields,
        "chatItemId": str(consent.chat_item_id) if consent is not None else None,
    }
    return (ord_, pending.pending_id, pending.kind.value, json_text(kept), pending.binding_hash, json_text(told))


def _await(awaits: Await) -> tuple[Any, ...]:
    return awaits.await_id, awaits.run_ids, awaits.is_all, safe(awaits.participant), awaits.author_id, awaits.thread_id


def _add_model_calls(made: list[list[Any]], ord_: int, a: Append) -> None:
    made[_BEGUN] += [
        (
            ord_, b.model_call_id, b.turn_id, b.step_key, b.participant, b.provider, b.model, b.purpose, b.guessed_tokens,
            b.estimated_tokens, b.trimmed_upto,
        )
        for b in a.model_calls_begun
    ]  # fmt: skip
    made[_ENDED] += [
        (
            ord_, e.model_call_id, USAGE.write(e.usage) if e.usage else None, json_text(e.replay) if e.replay else None,
            e.service_tier, e.error_class, safe(e.error_message) if e.error_message else None, e.wait_seconds, e.is_firm, e.cost,
        )
        for e in a.model_calls_ended
    ]  # fmt: skip
    _add_columns(made, 4, [(ord_, voided) for voided in a.model_calls_voided])


def _add_calls(made: list[list[Any]], ord_: int, a: Append) -> None:
    # a call's own id is its idempotency key: the same at every attempt, never shared by two calls
    asked = [
        (
            ord_, call.call_id, call.model_call_id, safe(call.operation), call.operation_version, call.arguments_hash,
            str(call.call_id), call.closed_as,
        )
        for call in a.calls_asked
    ]  # fmt: skip
    _add_columns(made, 6, asked)
    _add_columns(made, 14, [(ord_, call_id) for call_id in a.calls_begun])
    _add_columns(made, 16, [(ord_, call.call_id, call.outcome, call.is_firm) for call in a.calls_ended])


def _add_columns(made: list[list[Any]], first: int, rows: Sequence[tuple[Any, ...]]) -> None:
    for row in rows:
        for column, value in enumerate(row, first):
            made[column].append(value)
