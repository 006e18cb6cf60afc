"""`folkmoot apply` and `folkmoot check`: files of definitions."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from folkmoot.api.definition_files import check as check_documents
from folkmoot.api.definition_files import read_files
from folkmoot.bootstrap import installation as installations
from folkmoot.cli import exits, screen, sets
from folkmoot.cli.opening import opened
from folkmoot.kernel.errors import BadInput
from folkmoot.services import apply as applying
from folkmoot.store.definitions import Outcome

Paths = typer.Argument(help="YAML files, or folders of them.")


def add_to(app: typer.Typer) -> None:
    app.command("apply")(apply)
    app.command("check")(check)


def check(
    paths: list[Path] = Paths,
    as_json: bool = typer.Option(False, "--json", help="Print each fault as JSON on stdout."),
) -> None:
    """Check files of definitions without a server or database: every fault with its file, line and field."""
    try:
        documents = read_files(paths)
        check_documents(documents, read_script=installations.read_script)
    except BadInput as error:
        if not as_json:
            raise
        for fault in error.faults:
            screen.put_json(
                {"file": fault.file, "line": fault.line, "pointer": fault.pointer, "message": fault.message}
            )
        raise typer.Exit(exits.WRONG_INPUT) from None
    screen.say(f"{len(documents)} definitions, no faults.")


def apply(
    paths: list[Path] = typer.Option(
        ..., "--file", "-f", help="A YAML file, or a folder of them. May be given several times."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show the diff and change nothing."),
    as_json: bool = typer.Option(False, "--json", help="Print the diff as JSON, an object for each definition."),
) -> None:
    """Publish what is new or differs, all of it or nothing. Shows the diff first; a second time changes nothing."""
    asyncio.run(_apply(paths, is_dry=dry_run, as_json=as_json))


async def _apply(paths: list[Path], *, is_dry: bool, as_json: bool) -> None:
    documents = read_files(paths)
    async with opened() as (installation, caller):
        changes = await applying.diff(installation.database, caller, documents, new_id=installation.new_id)
        sets.show(changes, as_json=as_json)
        changed = sum(change.outcome is not Outcome.UNCHANGED for change in changes)
        if is_dry:
            screen.say(f"{changed} of {len(changes)} would change. Nothing was changed.")
            return
        await applying.apply(installation.database, caller, documents, new_id=installation.new_id)
        screen.say(f"{changed} of {len(changes)} changed.")
