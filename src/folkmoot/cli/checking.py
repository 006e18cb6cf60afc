"""`folkmoot check`: files of definitions, looked at without a server or a database."""

from __future__ import annotations

from pathlib import Path

import typer

from folkmoot.api.definition_files import check as check_documents
from folkmoot.api.definition_files import read_files
from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap.channels import channel_shapes
from folkmoot.cli import exits, screen
from folkmoot.kernel.errors import BadInput

Paths = typer.Argument(help="YAML files, or folders of them.")


def add_to(app: typer.Typer) -> None:
    app.command("check")(check)


def check(
    paths: list[Path] = Paths,
    as_json: bool = typer.Option(False, "--json", help="Print each fault as JSON on stdout."),
) -> None:
    """Check files of definitions without a server or database: every fault with its file, line and field."""
    try:
        documents = read_files(paths)
        check_documents(
            documents,
            read_script=installations.read_script,
            channel_apps=channel_shapes(),
        )
    except BadInput as error:
        if not as_json:
            raise
        for fault in error.faults:
            screen.put_json(
                {"file": fault.file, "line": fault.line, "pointer": fault.pointer, "message": fault.message}
            )
        raise typer.Exit(exits.WRONG_INPUT) from None
    screen.say(f"{len(documents)} {'definition' if len(documents) == 1 else 'definitions'}, no faults.")
