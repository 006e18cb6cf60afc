"""`folkmoot model`: the small model that runs on this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.cli import screen
from folkmoot.llm.model_file import model_path, pull

app = typer.Typer(help="The local model: fetch it.", no_args_is_help=True)


@app.command("pull")
def pull_command(as_json: bool = typer.Option(False, "--json", help="Print JSON.")) -> None:
    """Fetch the small local model (93 MB), check its checksum, keep it in the data directory, and print its path."""
    path = asyncio.run(fetch(installations.data_dir_of(installations.read_settings())))
    if as_json:
        screen.put_json({"path": str(path)})
    else:
        screen.put(str(path))


async def fetch(data_dir: Path) -> Path:
    """Have the small model's file, and say so where that takes time."""
    if not model_path(None, data_dir).is_file():
        screen.say("Fetching the local model (93 MB, this once).")
    return await asyncio.to_thread(pull, data_dir)


def add_to(root: typer.Typer) -> None:
    root.add_typer(app, name="model")
