"""`folkmoot run`: a conversation from a file or a name, in this process, to its answer on stdout. It needs no server.

The run is a row in the database like any other: killed at any moment, it goes on where a worker runs. Ctrl-C once stops the
run; twice leaves it as it is, to be gone on with.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import UUID

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap import working
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import inputs, screen, sets
from folkmoot.cli.opening import opened
from folkmoot.cli.watching import Watching
from folkmoot.domain.definitions import Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, ModelUnavailable
from folkmoot.services import start_credentials, starting
from folkmoot.services.closure import StartFields, Workbench


def add_to(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    what: str = typer.Argument(help="A YAML file of definitions, or an interaction, as name or namespace/name."),
    values: list[str] = typer.Option(
        [], "--input", "-i", help="An input, as name=value or name=@file. Give it once for each input."
    ),
    interaction: str | None = typer.Option(None, help="Which interaction of the file, where it holds several."),
    model: str | None = typer.Option(
        None, help="A model in place of every agent's own, as provider:name; else FOLKMOOT_MODEL."
    ),
    credential_stack: str | None = typer.Option(
        None, help="The credential stack whose keys alone are used, as name or namespace/name."
    ),
    parent: str | None = typer.Option(None, help="The App run that it is started under, by its id."),
    prompts: bool = typer.Option(False, "--prompts", help="Show the system prompts too."),
    as_json: bool = typer.Option(False, "--json", help="Print the ended run as JSON in place of its answer."),
) -> None:
    """Run a conversation to its answer. Progress goes to stderr, the answer to stdout; type a line to say something."""
    raise typer.Exit(
        asyncio.run(
            converse(
                what, values, interaction=interaction, model=model, credential_stack=credential_stack, shows_prompts=prompts,
                as_json=as_json, parent=parent_of(parent),
            )
        )
    )  # fmt: skip


async def converse(
    what: str, values: list[str], *, interaction: str | None = None, model: str | None = None, credential_stack: str | None = None,
    shows_prompts: bool = False, as_json: bool = False, parent: UUID | None = None,
) -> int:  # fmt: skip
    """Apply the file, if it is one, start the run, work on it here, show it, and return the exit code."""
    found = installations.read_settings()
    meant = sets.meant(what, interaction)
    request = StartFields(
        inputs=inputs.read_inputs(values), model=inputs.model_of(model or found.model), credential_stack=credential_stack,
        parent_process_id=parent,
        allow_platform_fallback=True,  # whoever runs it here is the operator, and pays for it
    )  # fmt: skip
    async with AsyncExitStack() as stack:
        installation, caller = await stack.enter_async_context(opened(found))
        await refuse_lacking(installation, caller, request)
        reference = await sets.settle(installation, caller, meant)
        worker = await stack.enter_async_context(working.open_worker(installation))
        watching = Watching(installation, caller, shows_prompts=shows_prompts, as_json=as_json)
        await watching.open()
        stack.push_async_callback(watching.close)
        run_id = await _start(installation, caller, reference, request)
        screen.say(screen.paint(f"run {run_id}", screen.DIM))
        return await watching.until_end(run_id, worker=worker)


def parent_of(text: str | None) -> UUID | None:
    """The App run that `--parent` names."""
    try:
        return UUID(text) if text is not None else None
    except ValueError:
        raise BadInput(f"'{text[:80] if text else ''}' is no App run's id; it is what opening the run gave.") from None


async def refuse_lacking(installation: Installation, caller: Caller, request: StartFields) -> None:
    """Before anything is applied. What the definitions' own models lack, the start says."""
    if request.model is None:
        return
    lack = installation.models.lack_of(request.model)
    if lack is None and request.credential_stack is None:
        lack = await start_credentials.lack_of(
            installation.database, caller, model=request.model, read_key=installations.read_key
        )
    if lack is not None:
        raise ModelUnavailable(lack)


async def _start(installation: Installation, caller: Caller, reference: Reference, request: StartFields) -> UUID:
    return await starting.start(
        installation.database, caller, interaction=reference, request=request, bench=bench_here(installation), new_id=installation.new_id,
        tell=installation.notifier.tell,
    )  # fmt: skip


def bench_here(installation: Installation) -> Workbench:
    """What this machine adds to a start that is worked on here: what its models lack is said at once."""
    return replace(
        installations.bench_of(installation), lack_of=installation.models.lack_of, read_key=installations.read_key
    )
