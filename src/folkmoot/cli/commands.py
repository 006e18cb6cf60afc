"""The tree of commands. Each command's module is imported when it is called, so that a worker does not load the API."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Sequence

import typer

from folkmoot import __version__
from folkmoot.cli import screen

MODULES = {
    "demo": "demo",
    "run": "run",
    "serve": "serve",
    "api": "serve",
    "worker": "work",
    "apply": "definitions",
    "check": "checking",
    "export": "definitions",
    "connectors": "connectors",
    "runs": "runs",
    "agent": "agents",
    "inbox": "inbox",
    "db": "db",
    "keys": "keys",
    "users": "users",
    "secrets": "secrets",
    "model-keys": "model_keys",
    "credential-stacks": "credential_stacks",
    "audit": "audit",
    "usage": "usage",
    "budget": "budget",
    "model": "model",
    "openapi": "serve",
}


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """The application with the command that `arguments` begin with; with all of them where they name none."""
    app = typer.Typer(
        name="folkmoot",
        help="Durable conversations between AI agents, tools and people.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(root)
    named = arguments[0] if arguments else ""
    # what a module makes while it is loaded stays, so looking for garbage in it is a tenth of the start for nothing
    gc.disable()
    for module in dict.fromkeys([MODULES[named]] if named in MODULES else MODULES.values()):
        importlib.import_module(f"folkmoot.cli.{module}").add_to(app)
    gc.freeze()
    gc.enable()
    return app


def print_version(wanted: bool) -> None:
    if wanted:
        screen.put(__version__)
        raise typer.Exit


def root(
    version: bool = typer.Option(
        False, "--version", help="Print the version and leave.", is_eager=True, callback=print_version
    ),
) -> None:
    """What holds for all commands."""
