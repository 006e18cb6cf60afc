"""What was used and what it cost: sums, a run's calls, and the limits of a tenant's day. Deliberately absent: keys; a credential is an id."""

from datetime import date

from folkmoot.wire.definitions.budgets import InteractionBudget
from folkmoot.wire.formats import Amount, Datetime, Page, RequestShape, ResponseShape, Tokens, Uuid
from folkmoot.wire.runs.accounts import TokenUsageCount


class UsageTotals(ResponseShape):
    """Calls, and their tokens by kind. `estimatedCalls`: those whose tokens are guessed, since the provider told none or the reply was lost.

    `failedCalls` brought no reply. `cost`: US dollars of the calls with a known price, null if there are none; `unpricedCalls` are
    those without, which it does not hold.
    """

    usages: tuple[TokenUsageCount, ...]
    calls: int
    estimated_calls: int
    failed_calls: int
    unpriced_calls: int
    cost: Amount | None


class UsageGroup(ResponseShape):
    """What the calls of a sum have in common: null where it was not grouped by, and for calls without a credential."""

    day: date | None
    namespace_name: str | None
    interaction_name: str | None
    interaction_id: Uuid | None
    root_process_id: Uuid | None
    process_id: Uuid | None
    agent_name: str | None
    provider: str | None
    model: str | None
    credential_id: str | None


class UsageSum(UsageTotals):
    """One group with its sum."""

    group: UsageGroup


class UsagePage(Page[UsageSum]):
    """A page of sums, in the order of their groups."""


class ProcessCall(ResponseShape):
    """One call of a model. `isEstimated`: its tokens are guessed. `failureReason`: why it brought no reply; `Lost`: with its worker.

    `purpose` is `turn`, `ballot`, `answer`, `compaction` or `route`. `cost`: US dollars, null where no price is known.
    """

    id: Uuid
    turn_id: Uuid | None
    date: Datetime
    date_ended: Datetime | None
    agent_name: str
    provider: str
    model: str
    purpose: str
    credential_id: str | None
    is_own_license: bool
    tier: str | None
    usages: tuple[TokenUsageCount, ...]
    is_estimated: bool
    failure_reason: str | None
    cost: Amount | None


class ProcessUsage(Page[ProcessCall]):
    """What a run used: `total`, a page of its calls, the first ones first; `tree` is null unless it was asked for."""

    process_id: Uuid
    total: UsageTotals
    tree: UsageTotals | None
    budget: InteractionBudget | None


class DayBudget(ResponseShape):
    """How much the tenant may use in a day (UTC), and what today's calls have used. Null: no limit. Money is in US dollars.

    `reserved…`: set aside for calls under way. At `dateReset` the next day begins.
    """

    tokens_per_day: int | None
    money_per_day: Amount | None
    tokens_used: int
    money_used: Amount
    tokens_reserved: int
    money_reserved: Amount
    date_reset: Datetime


class DayBudgetRequest(RequestShape):
    """How much the tenant may use in a day (UTC). Null, or left out: no limit."""

    tokens_per_day: Tokens | None = None
    money_per_day: Amount | None = None
