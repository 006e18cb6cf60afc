"""`folkmoot apply` and `folkmoot export`: definitions from files, and back into files."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import typer

from folkmoot.api.definition_export import as_files, as_text
from folkmoot.api.definition_files import read_files
from folkmoot.cli import screen, sets
from folkmoot.cli.opening import opened
from folkmoot.kernel.errors import BadInput
from folkmoot.services import apply as applying
from folkmoot.services import exporting
from folkmoot.services.apply import Change
from folkmoot.store.definitions import Outcome


def add_to(app: typer.Typer) -> None:
    app.command("apply")(apply)
    app.command("export")(export)


def apply(
    paths: list[Path] = typer.Option(
        ..., "--file", "-f", help="A YAML file, or a folder of them. May be given several times."
    ),
    dry_run: bool = typer.Option(False, "--dry-run", help="Show the diff and change nothing."),
    prune: bool = typer.Option(
        False, "--prune", help="Delete what the namespaces that the files name hold beside them. Asks first."
    ),
    yes: bool = typer.Option(False, "--yes", "-y", help="Delete without asking."),
    as_json: bool = typer.Option(False, "--json", help="Print the diff as JSON, an object for each definition."),
) -> None:
    """Publish what is new or differs, all of it or nothing. Shows the diff first; a second time changes nothing."""
    asyncio.run(_apply(paths, is_dry=dry_run, prunes=prune, is_sure=yes, as_json=as_json))


async def _apply(paths: list[Path], *, is_dry: bool, prunes: bool, is_sure: bool, as_json: bool) -> None:
    documents = read_files(paths)
    async with opened() as (installation, caller):
        found = await sets.look(installation, caller, documents)
        changes = await applying.diff(
            installation.database, caller, documents, new_id=installation.new_id, found=found, prunes=prunes,
            channel_apps=installation.channel_apps,
        )  # fmt: skip
        sets.show(changes, as_json=as_json)
        changed = sum(change.outcome is not Outcome.UNCHANGED for change in changes)
        if is_dry:
            screen.say(f"{changed} of {len(changes)} would change. Nothing was changed.")
            return
        if not is_sure:
            _ask(changes)
        await applying.apply(
            installation.database, caller, documents, new_id=installation.new_id, found=found, prunes=prunes,
            channel_apps=installation.channel_apps,
        )  # fmt: skip
        screen.say(f"{changed} of {len(changes)} changed.")


def _ask(changes: Sequence[Change]) -> None:
    """Whether to go on, where something is to be deleted. Raises BadInput where nobody can answer, typer.Abort for a no."""
    deleted = sum(change.outcome is Outcome.DELETED for change in changes)
    if not deleted:
        return
    what = "1 definition" if deleted == 1 else f"{deleted} definitions"
    if not sys.stdin.isatty():
        raise BadInput(f"{what} would be deleted, and nobody is there to be asked. Say --yes, or leave out --prune.")
    typer.confirm(f"Delete {what}?", abort=True, err=True)


def export(
    namespace: str = typer.Argument(help="The namespace."),
    out: Path | None = typer.Option(None, "--out", "-o", help="A folder to write files into; stdout if left out."),
    as_json: bool = typer.Option(False, "--json", help="Print the names of the files that were written as JSON."),
) -> None:
    """Write a namespace's definitions as YAML that applies again without a change. Secrets are named, never written."""
    asyncio.run(_export(namespace, out, as_json=as_json))


async def _export(namespace: str, out: Path | None, *, as_json: bool) -> None:
    if out is None and as_json:
        raise BadInput("--json tells the names of files, and there are none without --out. Leave one of the two out.")
    async with opened() as (installation, caller):
        exported = await exporting.export(installation.database, caller, namespace=namespace)
    if out is None:
        screen.put(as_text(exported).rstrip("\n"))
        return
    files = as_files(exported)
    _write(out, files)
    if as_json:
        screen.put_json({"files": [str(out / name) for name in files], "definitions": len(exported.definitions)})
    else:
        screen.say(f"{len(exported.definitions)} definitions were written to {out}.")


def _write(folder: Path, files: dict[str, bytes]) -> None:
    """Into a folder without definitions, lest those of an earlier export stay among them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(path.suffix in (".yaml", ".yml") for path in folder.rglob("*")):
            raise BadInput(f"{folder} holds YAML files already. Name an empty folder.")
        for name, content in files.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise BadInput(f"{folder} cannot be written to ({error.strerror or error}). Name another folder.") from error
