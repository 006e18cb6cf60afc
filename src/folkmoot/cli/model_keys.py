"""`folkmoot model-keys`: the keys of models of the tenant `default`, for every run without a credential stack.

A key is a secret that is named; its value is set with `folkmoot secrets set`. Deliberately absent: values.
"""

from __future__ import annotations

import asyncio

import typer

from folkmoot.api.mapping import credentials as mapping
from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.domain.credentials import ModelKey, StackEntry
from folkmoot.domain.definition_names import parse_reference
from folkmoot.kernel.errors import BadInput
from folkmoot.services import model_keys

app = typer.Typer(
    help="Keys of models: add, list, remove; and whether the operator's own may be used.", no_args_is_help=True
)
AsJson = typer.Option(False, "--json", help="Print JSON.")


@app.command("add")
def add_command(
    name: str = typer.Argument(metavar="NAME", help="What the key is called."),
    provider: str = typer.Argument(metavar="PROVIDER", help="The provider that it is for, such as openai."),
    secret: str | None = typer.Option(
        None, help="The secret that holds it, as name or namespace/name; none: the server needs no key."
    ),
    base_url: str | None = typer.Option(None, help="The only place that it is sent to; else the provider's own."),
    model: list[str] = typer.Option([], help="OURS=THEIRS: what the server calls a model. Give it once for each."),
    own_license: bool = typer.Option(
        False, "--own-license", help="Calls with it are paid for by its owner, not by us."
    ),
    priority: int = typer.Option(0, help="The lowest is tried first."),
    as_json: bool = AsJson,
) -> None:
    """Give every run without a credential stack a key, from its next call on."""
    credential = parse_reference(secret) if secret is not None else None
    key = StackEntry(name, provider, credential, base_url, dict(_pair(text) for text in model), own_license, priority)
    asyncio.run(_add(key, as_json=as_json))


async def _add(key: StackEntry, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        made = await model_keys.create(installation.database, caller, key=key, new_id=installation.new_id)
    if as_json:
        screen.put(_json(made))
    else:
        screen.say(f"Model key {screen.printable(made.name)} was added.")


@app.command("list")
def list_command(as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each key.")) -> None:
    """The keys by name: provider, priority, the secret that holds each, where it goes."""
    asyncio.run(_list(as_json=as_json))


async def _list(*, as_json: bool) -> None:
    found: list[ModelKey] = []
    async with opened() as (installation, caller):
        while page := await model_keys.page(
            installation.database, caller, after=found[-1].name if found else "", limit=200
        ):
            found += page
    if as_json:
        for key in found:
            screen.put(_json(key))
        return
    rows = [
        (
            key.name, key.entry.provider, str(key.entry.priority), key.secret_name or ("deleted" if key.entry.secret_id else "-"),
            key.entry.base_url or "-",
        )
        for key in found
    ]  # fmt: skip
    screen.put_table(("name", "provider", "priority", "secret", "base URL"), rows)


@app.command("remove")
def remove_command(name: str = typer.Argument(metavar="NAME", help="The key's name.")) -> None:
    """Withdraw a key: no call takes it any more. The secret stays."""
    asyncio.run(_remove(name))


async def _remove(name: str) -> None:
    async with opened() as (installation, caller):
        await model_keys.delete(installation.database, caller, name=name)
    screen.say(f"Model key {screen.printable(name)} is gone.")


@app.command("fallback")
def fallback_command(
    answer: str | None = typer.Argument(None, metavar="[ANSWER]", help="yes or no; without it, how it is now."),
) -> None:
    """Whether the tenant's runs may use the operator's own keys, from the environment, where a start asks for it."""
    if answer not in (None, "yes", "no"):
        raise BadInput(f"'{screen.printable(answer)[:40]}' is neither yes nor no.")
    asyncio.run(_fallback(answer))


async def _fallback(answer: str | None) -> None:
    async with opened() as (installation, caller):
        if answer is not None:
            await model_keys.set_platform_fallback(installation.database, caller, is_allowed=answer == "yes")
        screen.put("yes" if await model_keys.platform_fallback(installation.database, caller) else "no")


def _pair(text: str) -> tuple[str, str]:
    ours, mark, theirs = text.partition("=")
    if not mark or not ours or not theirs:
        raise BadInput(f"'{text[:80]}' names no model; write it as OURS=THEIRS.")
    return ours, theirs


def _json(key: ModelKey) -> str:
    return mapping.model_key(key).model_dump_json(by_alias=True)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="model-keys")
