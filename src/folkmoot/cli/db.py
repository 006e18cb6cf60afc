"""`folkmoot db`: the database's schema and health."""

from __future__ import annotations

import asyncio

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.cli import exits, screen
from folkmoot.cli.opening import FIRST_KEY
from folkmoot.store.database import applied, migrations, upgrade

app = typer.Typer(help="The database: upgrade it, check it.", no_args_is_help=True)
AsJson = typer.Option(False, "--json", help="Print JSON.")


@app.command("upgrade")
def upgrade_command(as_json: bool = AsJson) -> None:
    """Apply what is missing. On an empty database also make the default tenant, its owner and one key, shown once."""
    asyncio.run(_upgrade(as_json=as_json))


async def _upgrade(*, as_json: bool) -> None:
    async with installations.open_installation(installations.read_settings(), migrates=False) as installation:
        new = await upgrade(installation.database)
        screen.say(f"Applied: {', '.join(new)}." if new else "The database is up to date.")
        await installations.make_default_tenant(installation)
        await installations.settle_vault(installation)
        if as_json:
            screen.put_json({"applied": new, "key": installation.new_key})
        elif installation.new_key:
            screen.say(FIRST_KEY)
            screen.put(installation.new_key)


@app.command("check")
def check_command(as_json: bool = AsJson) -> None:
    """Say whether the database can be reached and is up to date; exit code 1 if it is not."""
    raise typer.Exit(asyncio.run(_check(as_json=as_json)))


async def _check(*, as_json: bool) -> int:
    async with (
        installations.open_installation(installations.read_settings(), migrates=False) as installation,
        installation.database.reader() as reader,
    ):
        have = await applied(reader)
    known = [name for name, _ in migrations()]
    missing = [name for name in known if name not in have]
    unknown = [name for name in have if name not in known]
    if as_json:
        screen.put_json({"isUpToDate": not missing and not unknown, "missing": missing, "unknown": unknown})
    elif unknown:
        screen.put(f"The database has {', '.join(unknown)}, which this version does not know. Use a newer Folkmoot.")
    elif missing:
        screen.put(f"The database lacks {', '.join(missing)}. Run `folkmoot db upgrade`.")
    else:
        screen.put("The database is up to date.")
    return exits.FAILED if missing or unknown else exits.DONE


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="db")
