"""The arrays that the fenced append's statement takes: one element a run, an item, a model call or a tool call.

Deliberately absent: what they mean (`appends`), and sending them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from folkmoot.domain.items import Item
from folkmoot.store.codecs import DETAIL, USAGE, json_text, safe, write_body
from folkmoot.store.outcomes import Append

_COLUMNS = 57
TOOL_COLUMNS = range(42, _COLUMNS)  # those that a batch without tool calls and voided model calls leaves empty


def columns(batch: Sequence[Append]) -> list[list[Any]]:
    """The statement's arrays, in the order of its parameters."""
    c: list[list[Any]] = [[] for _ in range(_COLUMNS)]
    for ord_, a in enumerate(batch):
        claim, end, back = a.claim, a.end, a.hand_back
        row = (
            ord_, claim.tenant_id, claim.run_id, claim.number, claim.claim_id, a.signal_number, a.firm, len(a.items),
            end.status.value if end else None, back is not None, safe(end.output) if end and end.output is not None else None,
            safe(end.failure) if end and end.failure is not None else None, back.ready_in_seconds if back else None, a.driver_errors,
        )  # fmt: skip
        for column, value in enumerate(row):
            c[column].append(value)
        _add_items(c, ord_, a.items)
        if a.model_calls_begun or a.model_calls_ended or a.model_calls_voided:
            _add_model_calls(c, ord_, a)
        if a.calls_asked or a.calls_begun or a.calls_ended:
            _add_calls(c, ord_, a)
    return c


def _add_items(c: list[list[Any]], ord_: int, items: Sequence[Item]) -> None:
    for n, item in enumerate(items, 1):
        author = item.author
        c[14].append(ord_)
        c[15].append(n)
        c[16].append(item.item_id)
        c[17].append(item.body.kind)
        c[18].append(author.kind.value)
        c[19].append(safe(author.name))
        c[20].append(author.id)
        c[21].append(item.thread_id)
        c[22].append(item.turn_id)
        c[23].append(item.model_call_id)
        c[24].append(write_body(item))
        c[25].append(DETAIL.write(item.detail) if item.detail is not None else None)


def _add_model_calls(c: list[list[Any]], ord_: int, a: Append) -> None:
    for begun in a.model_calls_begun:
        row: tuple[Any, ...] = (
            ord_,
            begun.model_call_id,
            begun.turn_id,
            begun.step_key,
            begun.participant,
            begun.provider,
            begun.model,
        )
        for column, value in enumerate(row, 26):
            c[column].append(value)
    for ended in a.model_calls_ended:
        row = (
            ord_, ended.model_call_id, USAGE.write(ended.usage) if ended.usage else None, json_text(ended.replay) if ended.replay else None,
            ended.service_tier, ended.error_class, safe(ended.error_message) if ended.error_message else None, ended.wait_seconds,
            ended.is_firm,
        )  # fmt: skip
        for column, value in enumerate(row, 33):
            c[column].append(value)
    for voided in a.model_calls_voided:
        c[42].append(ord_)
        c[43].append(voided)


def _add_calls(c: list[list[Any]], ord_: int, a: Append) -> None:
    for asked in a.calls_asked:
        # a call's own id is its idempotency key: the same at every attempt, never shared by two calls
        row: tuple[Any, ...] = (
            ord_,
            asked.call_id,
            asked.model_call_id,
            safe(asked.operation),
            asked.arguments_hash,
            str(asked.call_id),
            asked.closed_as,
        )
        for column, value in enumerate(row, 44):
            c[column].append(value)
    for call_id in a.calls_begun:
        c[51].append(ord_)
        c[52].append(call_id)
    for ended in a.calls_ended:
        for column, value in enumerate((ord_, ended.call_id, ended.outcome, ended.is_firm), 53):
            c[column].append(value)
