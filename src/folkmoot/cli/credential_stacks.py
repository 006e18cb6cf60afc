"""`folkmoot credential-stacks`: which stack runs take that name none. Stacks themselves are kept in files (`folkmoot apply`)."""

from __future__ import annotations

import asyncio

import typer

from folkmoot.cli import screen
from folkmoot.cli.opening import opened
from folkmoot.kernel.errors import BadInput
from folkmoot.services import credential_stacks

app = typer.Typer(help="Credential stacks: which one is the default.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Credential stacks: which one is the default."""


@app.command("default")
def default_command(
    stack: str | None = typer.Argument(
        None, metavar="[STACK]", help="As name or namespace/name; without it, what it is now."
    ),
    namespace: str | None = typer.Option(None, help="For this namespace's runs; else for the whole tenant's."),
    none: bool = typer.Option(False, "--none", help="No default from now on."),
) -> None:
    """The stack of runs that name none, for runs that start from now on."""
    if stack is not None and none:
        raise BadInput("A stack and --none are both given. Leave one out.")
    asyncio.run(_default(stack, namespace, is_set=stack is not None or none))


async def _default(stack: str | None, namespace: str | None, *, is_set: bool) -> None:
    async with opened() as (installation, caller):
        if is_set:
            found = await credential_stacks.set_default(installation.database, caller, stack=stack, namespace=namespace)
        else:
            found = await credential_stacks.default(installation.database, caller, namespace=namespace)
    screen.put(screen.printable(found[1] or str(found[0])) if found is not None else "none")


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="credential-stacks")
