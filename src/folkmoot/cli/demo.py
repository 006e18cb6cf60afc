"""`folkmoot demo`: the example panel, on the small local model unless another is named, to its agreed answer."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from pathlib import Path

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.cli import inputs, run, screen
from folkmoot.cli.model import fetch
from folkmoot.domain.providers import HERE
from folkmoot.kernel.errors import BadInput
from folkmoot.llm.registry import offers

QUESTION = "Should a small team write its tests before its code?"


def add_to(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    question: str = typer.Option(QUESTION, help="What the panel is to decide."),
    model: str | None = typer.Option(
        None, help="A model in place of the local one, as provider:name; else FOLKMOOT_MODEL."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the ended run as JSON in place of its answer."),
) -> None:
    """Three agents discuss a question, vote, and agree on an answer. Needs no key: a small model runs on this machine."""
    raise typer.Exit(asyncio.run(_demo(question, model, as_json=as_json)))


async def _demo(question: str, model: str | None, *, as_json: bool) -> int:
    found = installations.read_settings()
    named = model or found.model
    chosen = inputs.model_of(named)
    if chosen is None or (chosen.provider == "local" and chosen.path is None):
        screen.say(
            "The model is SmolLM2-135M, a toy that runs on this machine: it shows that everything works, not what agents can do."
        )
        await fetch(installations.data_dir_of(found))
    if chosen is None or chosen.provider in HERE:
        for offer in await offers(installations.read_key):
            screen.say(screen.paint(f"-- {screen.printable(offer)}", screen.DIM))
    screen.say(f"The question: {screen.printable(question)}")
    return await run.converse(str(example("panel.yaml")), [f"question={question}"], model=named, as_json=as_json)


def example(name: str) -> Path:
    """An example's file: in the package where it was installed, in the folder `examples` of a clone."""
    package = Path(str(files("folkmoot")))
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / name).is_file():
            return folder / name
    raise BadInput(f"The example {name} is not there. Run `folkmoot run FILE` with a file of your own.")
