"""`folkmoot budget`: how much the tenant `default` may use in a day."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import typer

from folkmoot.api.mapping import usage as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.budgets import Budget, DayBudget, shown_money
from folkmoot.kernel.errors import BadInput
from folkmoot.services import budgets

app = typer.Typer(help="How much may be used in a day (UTC): show, set.", no_args_is_help=True)
AsJson = typer.Option(False, "--json", help="Print JSON, as the API gives it.")
_NONE = "none"


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="budget")


@app.command("show")
def show_command(as_json: bool = AsJson) -> None:
    """The budget of the day, and what today's calls have used."""
    asyncio.run(_show(as_json=as_json))


@app.command("set")
def set_command(
    tokens: str | None = typer.Option(None, "--tokens-per-day", help=f"Tokens of all kinds, or {_NONE} for no limit."),
    money: str | None = typer.Option(None, "--money-per-day", help=f"US dollars, or {_NONE} for no limit."),
    as_json: bool = AsJson,
) -> None:
    """Set the budget of the day. What is not named stays as it is."""
    if tokens is None and money is None:
        raise BadInput("Name what is to be set: --tokens-per-day, --money-per-day, or both.")
    asyncio.run(_set(tokens, money, as_json=as_json))


async def _show(*, as_json: bool) -> None:
    async with opened() as (installation, caller):
        found = await budgets.show(installation.database, caller)
    _put(found, as_json=as_json)


async def _set(tokens: str | None, money: str | None, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        budget = (await budgets.show(installation.database, caller)).budget
        if tokens is not None:
            budget = replace(budget, tokens=_tokens(tokens))
        if money is not None:
            budget = replace(budget, money=_money(money))
        found = await budgets.save(installation.database, caller, budget=budget)
    _put(found, as_json=as_json)


def _put(found: DayBudget, *, as_json: bool) -> None:
    if as_json:
        screen.put(mapping.day_budget(found).model_dump_json(by_alias=True))
        return
    spent = found.spent
    screen.put_table(
        ("", "per day", "used", "set aside"),
        [
            ("tokens", _limit(found.budget), f"{spent.used.tokens:,}", f"{spent.reserved.tokens:,}"),
            ("money", _money_limit(found.budget), shown_money(spent.used.money), shown_money(spent.reserved.money)),
        ],
    )
    screen.say(f"The next day begins at {found.ends_at:%Y-%m-%d %H:%M} UTC.")


def _limit(budget: Budget) -> str:
    return f"{budget.tokens:,}" if budget.tokens is not None else _NONE


def _money_limit(budget: Budget) -> str:
    return shown_money(budget.money) if budget.money is not None else _NONE


def _tokens(text: str) -> int | None:
    if text == _NONE:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise BadInput(f"--tokens-per-day takes a whole number or {_NONE}; not '{text[:80]}'.")
    return int(text)


def _money(text: str) -> Decimal | None:
    if text == _NONE:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not (amount.is_finite() and 0 <= amount < 10**12):
        raise BadInput(f"--money-per-day takes an amount in US dollars, such as 12.50, or {_NONE}; not '{text[:80]}'.")
    return amount
