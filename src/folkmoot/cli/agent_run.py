"""`folkmoot agent run`: one agent towards a goal, in this process, to its answer on stdout. It needs no server.

The run is a row in the database: whatever becomes of this command it goes on where a worker runs, and waits for its owner's consent as
long as it takes. Ctrl-C leaves it so.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from contextlib import AsyncExitStack
from decimal import Decimal, InvalidOperation
from pathlib import Path

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap import working
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import agent_json, exits, inputs, screen, sets
from folkmoot.cli.agent_ids import conversation_of
from folkmoot.cli.agent_watching import AgentWatching
from folkmoot.cli.opening import opened
from folkmoot.cli.run import bench_here, parent_of, refuse_lacking
from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.budgets import Budget
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput
from folkmoot.kernel.tokens import TOKEN_BYTES, token_of
from folkmoot.services import agent_runs
from folkmoot.services.agent_runs import AgentStart
from folkmoot.services.closure import StartFields

_STDIN = "-"


def run(
    what: str = typer.Argument(help="An agent, as name or namespace/name, or a YAML file of definitions."),
    goal: str | None = typer.Argument(None, help="What the run is to achieve; - reads it from stdin."),
    goal_file: Path | None = typer.Option(None, help="A file that holds the goal."),
    agent: str | None = typer.Option(None, help="Which agent of the file, where it holds several."),
    model: str | None = typer.Option(
        None, help="A model in place of every agent's own, as provider:name; else FOLKMOOT_MODEL."
    ),
    credential_stack: str | None = typer.Option(
        None, help="The credential stack whose keys alone are used, as name or namespace/name."
    ),
    channel: str | None = typer.Option(None, help="How its owner is reached, in place of the agent's own channel: web, or a channel."),
    reply_params: str | None = typer.Option(None, help="JSON for the channel, which hands it back untouched."),
    conversation: str | None = typer.Option(None, help="The conversation behind it, by its id; it begins with the run if there is none."),
    tokens: int | None = typer.Option(None, min=1, help="The most tokens that it may use with all that it delegates."),
    money: str | None = typer.Option(None, help="The most US dollars."),
    calls: int | None = typer.Option(None, min=1, help="The most calls of models."),
    tags: list[str] = typer.Option([], "--tag", help="A tag of the run. Give it once for each."),
    parent: str | None = typer.Option(None, help="The App run that it is started under, by its id."),
    detach: bool = typer.Option(False, "--detach", help="Start it, print its id, and leave it to a worker."),
    prompts: bool = typer.Option(False, "--prompts", help="Show the system prompts too."),
    as_json: bool = typer.Option(False, "--json", help="Print the run as JSON in place of its answer or id."),
) -> None:  # fmt: skip
    """Run an agent towards a goal. Progress goes to stderr, the answer to stdout; what needs consent is asked here."""
    found = installations.read_settings()
    request = AgentStart(
        _goal(goal, goal_file), channel, reply_params, conversation_of(conversation), _budget(tokens, money, calls),
        StartFields(
            model=inputs.model_of(model or found.model), credential_stack=credential_stack, parent_process_id=parent_of(parent), tags=tuple(tags),
            allow_platform_fallback=True,  # whoever runs it here is the operator, and pays for it
        ),
    )  # fmt: skip
    meant = sets.meant(what, agent, kind=DefinitionKind.AGENT)
    ends = (
        _start_only(meant, request, as_json=as_json)
        if detach
        else _work(meant, request, shows_prompts=prompts, as_json=as_json)
    )
    raise typer.Exit(asyncio.run(ends))


async def _work(meant: sets.InFiles | Reference, request: AgentStart, *, shows_prompts: bool, as_json: bool) -> int:
    """Start the run, work on it here, show it, and return the exit code."""
    async with AsyncExitStack() as stack:
        installation, caller = await stack.enter_async_context(opened())
        await refuse_lacking(installation, caller, request.fields)
        reference = await sets.settle(installation, caller, meant)
        worker = await stack.enter_async_context(working.open_worker(installation))
        run = await _start(installation, caller, reference, request)
        watching = AgentWatching(installation, caller, run, shows_prompts=shows_prompts, as_json=as_json)
        await watching.open()
        stack.push_async_callback(watching.close)
        screen.say(screen.paint(f"agent run {run.id}", screen.DIM))
        return await watching.until_end(worker=worker)


async def _start_only(meant: sets.InFiles | Reference, request: AgentStart, *, as_json: bool) -> int:
    async with opened() as (installation, caller):
        reference = await sets.settle(installation, caller, meant)
        run = await _start(installation, caller, reference, request)
    if as_json:
        screen.put_json({**agent_json.agent_run(run), "answer": None})
    else:
        screen.put(str(run.id))
    screen.say(f"A worker goes on with it. To see it: folkmoot agent watch {run.id}")
    return exits.DONE


async def _start(installation: Installation, caller: Caller, agent: Reference, request: AgentStart) -> AgentRun:
    return await agent_runs.start(
        installation.database, caller, agent=agent, request=request, bench=bench_here(installation), new_id=installation.new_id,
        new_token=lambda: token_of(secrets.token_bytes(TOKEN_BYTES)), tell=installation.notifier.tell,
    )  # fmt: skip


def _goal(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        raise BadInput(
            "Say what the run is to achieve: as an argument, with --goal-file, or with - from stdin; in one way."
        )
    try:
        if file is not None:
            return file.read_text(encoding="utf-8").strip()
        return sys.stdin.read().strip() if text == _STDIN else text or ""
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no UTF-8 text"
        raise BadInput(f"The goal cannot be read from '{str(file or 'stdin')[:200]}': {reason}.") from error


def _budget(tokens: int | None, money: str | None, calls: int | None) -> Budget | None:
    if tokens is None and money is None and calls is None:
        return None
    return Budget(tokens, _money(money) if money is not None else None, calls)


def _money(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not (amount.is_finite() and 0 < amount < 10**12):
        raise BadInput(f"--money takes an amount in US dollars, such as 12.50; not '{text[:80]}'.")
    return amount
