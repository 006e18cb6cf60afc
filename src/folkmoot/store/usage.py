"""What calls of models used, summed in the database or call by call. The rows are the model calls themselves: there is no second book.

Deliberately absent: prices, and limits (`budgets`).
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Any
from uuid import UUID

from folkmoot.domain.costs import KINDS
from folkmoot.domain.model_calls import NEVER_MADE, Usage
from folkmoot.domain.usage import CallCursor, GroupedUsage, UsageFilter, UsageGroup, UsageKey, UsageSum, UsedCall
from folkmoot.store.codecs import USAGE, safe
from folkmoot.store.database import Reader, queries

_sql: Any = queries("usage")
_NOT_MADE = sorted(NEVER_MADE)
_BY = {
    UsageKey.DAY: "by_day",
    UsageKey.NAMESPACE: "by_namespace",
    UsageKey.INTERACTION: "by_interaction",
    UsageKey.TREE: "by_root",
    UsageKey.RUN: "by_process",
    UsageKey.AGENT: "by_agent",
    UsageKey.MODEL: "by_model",
    UsageKey.CREDENTIAL: "by_credential",
}


async def sums(
    reader: Reader, tenant_id: UUID, *, wanted: UsageFilter, by: Collection[UsageKey] = (), after: UsageGroup | None = None,
    limit: int,
) -> list[GroupedUsage]:  # fmt: skip
    """Groups of calls under a filter, those after a group; none where there are no calls."""
    async with reader.one_moment():
        await reader.plan_anew()
        return [
            _grouped(row)
            async for row in _sql.sums(reader.connection, **parameters(tenant_id, wanted, by, after, limit))
        ]


async def total(reader: Reader, tenant_id: UUID, *, wanted: UsageFilter) -> UsageSum:
    """All calls under a filter as one sum."""
    found = await sums(reader, tenant_id, wanted=wanted, limit=1)
    return found[0].total if found else UsageSum(Usage(), 0, 0, 0, 0, Decimal(0))


def parameters(
    tenant_id: UUID, wanted: UsageFilter, by: Collection[UsageKey], after: UsageGroup | None, limit: int
) -> dict[str, Any]:
    """The statement's parameters; apart, so that its plans can be looked at."""
    return {
        "tenant_id": tenant_id,
        "not_made": _NOT_MADE,
        "since": wanted.since,
        "before": wanted.before,
        "run_id": wanted.run_id,
        "root": wanted.root,
        "below": wanted.below,
        "namespace_id": wanted.namespace_id,
        "definition_id": wanted.interaction_id,
        "agent": _safe(wanted.agent),
        "provider": _safe(wanted.provider),
        "model": _safe(wanted.model),
        "credential": _safe(wanted.credential),
        **{name: key in by for key, name in _BY.items()},
        "has_after": after is not None,
        **_after(after or UsageGroup()),
        "limit": limit,
    }


async def calls(
    reader: Reader, tenant_id: UUID, *, run_id: UUID, after: CallCursor | None, limit: int
) -> list[UsedCall]:
    """A run's calls in the order in which they began, those after the cursor."""
    rows = _sql.calls(
        reader.connection, tenant_id=tenant_id, run_id=run_id, not_made=_NOT_MADE, after_at=after.started_at if after else None,
        after_id=after.model_call_id if after else None, limit=limit,
    )  # fmt: skip
    return [_call(row) async for row in rows]


def _after(group: UsageGroup) -> dict[str, Any]:
    return {
        "after_day": group.day,
        "after_namespace": group.namespace_id,
        "after_definition": group.interaction_id,
        "after_root": group.root_id,
        "after_run": group.run_id,
        "after_agent": _safe(group.agent),
        "after_provider": _safe(group.provider),
        "after_model": _safe(group.model),
        "after_credential": _safe(group.credential),
    }


def _safe(text: str | None) -> str | None:
    return safe(text) if text is not None else None


def _grouped(row: Any) -> GroupedUsage:
    group = UsageGroup(
        row["day"], row["namespace_id"], row["definition_id"], row["root_id"], row["run_id"], row["participant"], row["provider"],
        row["model"], row["credential"], row["namespace"], row["interaction"],
    )  # fmt: skip
    tokens = Usage(**{kind: int(row[kind]) for kind in KINDS}, estimated=row["estimated_calls"] > 0)
    found = UsageSum(
        tokens, row["calls"], row["estimated_calls"], row["failed_calls"], row["unpriced_calls"], _cost(row)
    )
    return GroupedUsage(group, found)


def _call(row: Any) -> UsedCall:
    return UsedCall(
        row["model_call_id"], row["turn_id"], row["started_at"], row["ended_at"], row["participant"], row["provider"], row["model"],
        row["purpose"], row["credential"], row["is_own_license"], row["service_tier"],
        USAGE.read(row["usage"]) if row["usage"] is not None else None, row["error_class"], row["cost"],
    )  # fmt: skip


def _cost(row: Any) -> Decimal | None:
    """Nothing used costs nothing; null is a price that is not known."""
    return row["cost"] if row["cost"] is not None or row["unpriced_calls"] else Decimal(0)
