"""`folkmoot usage`: what calls of models used and what they cost in the tenant `default`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import typer

from folkmoot.api.mapping import usage as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.budgets import shown_money
from folkmoot.domain.usage import GroupedUsage, UsageFilter, UsageGroup, UsageKey
from folkmoot.kernel.errors import BadInput
from folkmoot.services import usage

_HEAD = ("calls", "input", "cached", "cache write", "output", "reasoning", "estimated", "failed", "unpriced", "cost")


def add_to(app: typer.Typer) -> None:
    app.command("usage")(usage_command)


def usage_command(
    by: list[str] = typer.Option(
        ["model"], "--by", help=f"What to group by: {', '.join(UsageKey)}, or all. May be given twice."
    ),
    since: str | None = typer.Option(None, "--from", help="Only calls from this day (UTC) or time on."),
    before: str | None = typer.Option(None, "--to", help="Only calls before this day (UTC) or time."),
    namespace: str | None = typer.Option(None, help="Only runs of this namespace."),
    interaction: str | None = typer.Option(None, help="Only runs of the interaction with this id."),
    run: str | None = typer.Option(None, help="Only the run with this id."),
    tree: str | None = typer.Option(None, help="Only the run with this id and all that it started."),
    agent: str | None = typer.Option(None, help="Only this participant."),
    model: str | None = typer.Option(None, help="Only this model, as PROVIDER/NAME or NAME."),
    credential: str | None = typer.Option(None, help="Only calls with this credential."),
    limit: int = typer.Option(100, min=1, max=200, help="How many groups."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each group, as the API gives it."),
) -> None:
    """What calls of models used and what they cost, summed up."""
    provider, _, name = model.rpartition("/") if model is not None else ("", "", None)
    wanted = UsageFilter(
        since=_moment(since), before=_moment(before), run_id=_id(run, "run"), root=_id(tree, "run"),
        interaction_id=_id(interaction, "interaction"), agent=agent, provider=provider or None, model=name, credential=credential,
    )  # fmt: skip
    asyncio.run(_usage(wanted, namespace=namespace, by=_keys(by), limit=limit, as_json=as_json))


async def _usage(
    wanted: UsageFilter, *, namespace: str | None, by: Sequence[UsageKey], limit: int, as_json: bool
) -> None:
    async with opened() as (installation, caller):
        found = await usage.sums(
            installation.database, caller, wanted=wanted, namespace=namespace, by=by, limit=limit + 1
        )
    shown = found[:limit]
    if as_json:
        for each in shown:
            screen.put(mapping.grouped(each).model_dump_json(by_alias=True))
    else:
        keys = [key for key in UsageKey if key in by]
        screen.put_table((*keys, *_HEAD), [_row(each, keys) for each in shown])
    if len(found) > limit:
        screen.say(
            f"There are more groups; these are the first {limit}. Narrow them with --from and --to, or raise --limit."
        )


def _row(found: GroupedUsage, keys: Sequence[UsageKey]) -> tuple[str, ...]:
    total, tokens = found.total, found.total.tokens
    numbers = (
        total.calls, tokens.input, tokens.cached_input, tokens.cache_write, tokens.output, tokens.reasoning, total.estimated_calls,
        total.failed_calls, total.unpriced_calls,
    )  # fmt: skip
    cost = shown_money(total.cost) if total.cost is not None else "-"
    return (*(_key(found.group, key) for key in keys), *(f"{number:,}" for number in numbers), cost)


def _key(group: UsageGroup, key: UsageKey) -> str:
    match key:
        case UsageKey.DAY:
            found: object = group.day
        case UsageKey.NAMESPACE:
            found = group.namespace
        case UsageKey.INTERACTION:
            found = group.interaction
        case UsageKey.TREE:
            found = group.root_id
        case UsageKey.RUN:
            found = group.run_id
        case UsageKey.AGENT:
            found = group.agent
        case UsageKey.MODEL:
            found = f"{group.provider}/{group.model}"
        case UsageKey.CREDENTIAL:
            found = group.credential or None
    return str(found) if found is not None else "-"


def _keys(by: Sequence[str]) -> list[UsageKey]:
    try:
        return [UsageKey(name) for name in by if name != "all"]
    except ValueError:
        raise BadInput(f"--by takes {', '.join(UsageKey)}, or all; not {', '.join(by)[:80]}.") from None


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(f"'{text[:80]}' is no day or time. Write it like 2026-10-26 or 2026-10-26T12:00:00Z.") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _id(text: str | None, what: str) -> UUID | None:
    try:
        return UUID(text) if text is not None else None
    except ValueError:
        raise BadInput(f"'{(text or '')[:80]}' is no id of a {what}.") from None
