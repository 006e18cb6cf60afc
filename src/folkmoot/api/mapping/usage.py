"""What was used and what it cost, as the wire shows it."""

from __future__ import annotations

from folkmoot.api.mapping.budgets import budget
from folkmoot.domain.budgets import DayBudget
from folkmoot.domain.model_calls import Usage
from folkmoot.domain.usage import GroupedUsage, UsageSum, UsedCall
from folkmoot.services.usage import RunUsage
from folkmoot.wire import usage as wire
from folkmoot.wire.runs.accounts import TokenKind, TokenUsageCount

_KINDS: tuple[tuple[TokenKind, str], ...] = (
    ("Input", "input"),
    ("CachedInput", "cached_input"),
    ("CacheWrite", "cache_write"),
    ("Output", "output"),
    ("Reasoning", "reasoning"),
)


def counts(*used: Usage) -> tuple[TokenUsageCount, ...]:
    """Tokens by kind, every kind in its place."""
    return tuple(TokenUsageCount(type=kind, count=sum(getattr(usage, name) for usage in used)) for kind, name in _KINDS)


def totals(found: UsageSum) -> wire.UsageTotals:
    return wire.UsageTotals(
        usages=counts(found.tokens),
        calls=found.calls,
        estimated_calls=found.estimated_calls,
        failed_calls=found.failed_calls,
        unpriced_calls=found.unpriced_calls,
        cost=found.cost,
    )


def grouped(found: GroupedUsage) -> wire.UsageSum:
    group = found.group
    return wire.UsageSum(
        **dict(totals(found.total)),
        group=wire.UsageGroup(
            day=group.day,
            namespace_name=group.namespace,
            interaction_name=group.interaction,
            interaction_id=group.interaction_id,
            root_process_id=group.root_id,
            process_id=group.run_id,
            agent_name=group.agent,
            provider=group.provider,
            model=group.model,
            credential_id=group.credential or None,
        ),
    )


def call(found: UsedCall) -> wire.ProcessCall:
    return wire.ProcessCall(
        id=found.model_call_id,
        turn_id=found.turn_id,
        date=found.started_at,
        date_ended=found.ended_at,
        agent_name=found.agent,
        provider=found.provider,
        model=found.model,
        purpose=found.purpose,
        credential_id=found.credential,
        is_own_license=found.is_own_license,
        tier=found.service_tier,
        usages=counts(found.usage) if found.usage is not None else counts(),
        is_estimated=found.usage is not None and found.usage.estimated,
        failure_reason=found.error_class,
        cost=found.cost,
    )


def run_usage(found: RunUsage, *, calls: list[UsedCall], following: str | None) -> wire.ProcessUsage:
    return wire.ProcessUsage(
        items=tuple(call(each) for each in calls),
        next=following,
        process_id=found.run_id,
        total=totals(found.total),
        tree=totals(found.tree) if found.tree is not None else None,
        budget=budget(found.budget),
    )


def day_budget(found: DayBudget) -> wire.DayBudget:
    used, reserved = found.spent.used, found.spent.reserved
    return wire.DayBudget(
        tokens_per_day=found.budget.tokens,
        money_per_day=found.budget.money,
        tokens_used=used.tokens,
        money_used=used.money,
        tokens_reserved=reserved.tokens,
        money_reserved=reserved.money,
        date_reset=found.ends_at,
    )
