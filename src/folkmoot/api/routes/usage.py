"""What calls of models used and what they cost; how much the tenant may use in a day."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import usage as mapping
from folkmoot.api.mapping.cursors import call_cursor, read_call_cursor, read_usage_cursor, usage_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.budgets import Budget
from folkmoot.domain.rights import Right
from folkmoot.domain.usage import CallCursor, UsageFilter, UsageKey
from folkmoot.services import budgets, usage
from folkmoot.wire.formats import Datetime
from folkmoot.wire.usage import DayBudget, DayBudgetRequest, ProcessUsage, UsagePage

router = APIRouter(tags=["usage"], route_class=KeyedRoute)
_DATE = "RFC 3339, with an offset: of when a call began."
After = Annotated[str | None, Query(max_length=4000)]
Key = Literal["day", "namespace", "interaction", "tree", "run", "agent", "model", "credential"]


def _text(what: str) -> object:
    return Query(max_length=1024, description=what)


@router.get("/usage", responses=responses(401, 404, 422, 503))
async def get_usage(
    doors: Doorway,
    caller: Reader,
    since: Annotated[Datetime | None, Query(alias="from", description=_DATE)] = None,
    before: Annotated[Datetime | None, Query(alias="to", description=_DATE)] = None,
    namespace: Annotated[str | None, _text("A namespace's name.")] = None,
    interaction: Annotated[UUID | None, Query(description="An interaction's id.")] = None,
    process: Annotated[UUID | None, Query(description="A run's id.")] = None,
    root: Annotated[UUID | None, Query(description="That run and all runs below it.")] = None,
    agent: Annotated[str | None, _text("A participant's name.")] = None,
    provider: Annotated[str | None, _text("A model's provider.")] = None,
    model: Annotated[str | None, _text("A model's name with its provider.")] = None,
    credential: Annotated[str | None, _text("A credential's id.")] = None,
    group_by: Annotated[Key | None, Query(alias="groupBy", description="All calls are one group without.")] = None,
    then_by: Annotated[Key | None, Query(alias="thenBy", description="A second key.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    after: After = None,
) -> UsagePage:
    """Sums of what calls of models used and cost, in the order of their groups. Days are UTC's."""
    wanted = UsageFilter(
        since=since, before=before, run_id=process, root=root, interaction_id=interaction, agent=agent, provider=provider, model=model,
        credential=credential,
    )  # fmt: skip
    rows = await usage.sums(
        doors.of(caller), caller, wanted=wanted, namespace=namespace, by=[UsageKey(key) for key in (group_by, then_by) if key], after=read_usage_cursor(after), limit=limit + 1
    )  # fmt: skip
    found, following = cut(rows, limit, lambda each: usage_cursor(each.group))
    return UsagePage(items=tuple(mapping.grouped(each) for each in found), next=following)


@router.get("/interactions/processes/by-id/{run_id}/usage", responses=responses(401, 404, 422, 503))
async def get_run_usage(
    doors: Doorway,
    caller: Reader,
    run_id: UUID,
    *,
    include_tree: Annotated[bool, Query(alias="includeTree", description="Sum up the run's whole tree, too.")] = False,
    limit: Limit = DEFAULT_LIMIT,
    after: After = None,
) -> ProcessUsage:
    """What a run used, and a page of its calls, the first ones first."""
    found = await usage.of_run(
        doors.of(caller), caller, run_id=run_id, includes_tree=include_tree, after=read_call_cursor(after), limit=limit + 1
    )  # fmt: skip
    calls, following = cut(
        found.calls, limit, lambda call: call_cursor(CallCursor(call.started_at, call.model_call_id))
    )
    return mapping.run_usage(found, calls=calls, following=following)


@router.get("/budget", responses=responses(401, 503))
async def get_day_budget(doors: Doorway, caller: Reader) -> DayBudget:
    """How much the tenant may use in a day (UTC), and what today's calls have used."""
    return mapping.day_budget(await budgets.show(doors.of(caller), caller))


@router.put("/budget", responses=responses(400, 401, 413, 415, 422, 503))
async def set_day_budget(
    doors: Doorway,
    caller: Annotated[Caller, may(Right.MANAGE_BUDGETS)],
    body: Annotated[DayBudgetRequest, shown_as({"tokensPerDay": 5_000_000, "moneyPerDay": 20})],
) -> DayBudget:
    """Set how much the tenant may use in a day (UTC). Calls keep to it within seconds."""
    wanted = Budget(body.tokens_per_day, body.money_per_day)
    return mapping.day_budget(await budgets.save(doors.of(caller), caller, budget=wanted))
