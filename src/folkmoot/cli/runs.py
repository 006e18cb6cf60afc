"""`folkmoot runs`: list, show, watch, stop and answer runs of the tenant `default`, and draw their trees."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from uuid import UUID

import typer

from folkmoot.api.mapping import trees as trees_mapping
from folkmoot.api.mapping.runs import process, row
from folkmoot.cli import answers, cards, screen, tree
from folkmoot.cli.agent_ids import hint_of
from folkmoot.cli.conversation import Printer
from folkmoot.cli.opening import opened
from folkmoot.cli.watching import Watching
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Run
from folkmoot.kernel.errors import BadInput, FolkmootError
from folkmoot.services import inbox, runs, stops, trees
from folkmoot.services.runs import RunFilter

app = typer.Typer(help="Runs: list, show, watch, stop, answer, approve.", no_args_is_help=True)
RunId = typer.Argument(help="The run's id, as `runs list` shows it.")
AsJson = typer.Option(False, "--json", help="Print JSON, as the API gives it.")


def add_to(root: typer.Typer) -> None:
    answers.add_to(app)
    root.add_typer(app, name="runs")


@app.command("list")
def list_command(
    status: str | None = typer.Option(None, help="Only runs of this status."),
    root: str | None = typer.Option(None, help="Only this run and all runs below it: a run's or an App run's id."),
    parent: str | None = typer.Option(None, help="Only what this run or App run started itself."),
    limit: int = typer.Option(20, min=1, max=200, help="How many, the newest first."),
    as_json: bool = AsJson,
) -> None:
    """The newest runs."""
    root_id, parent_id = (_id(text) if text is not None else None for text in (root, parent))
    asyncio.run(_list(RunFilter(_status(status), root=root_id, parent=parent_id), limit, as_json=as_json))


async def _list(wanted: RunFilter, limit: int, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        views = await runs.page(installation.database, caller, wanted=wanted, after=None, limit=limit)
    if as_json:
        for view in views:
            screen.put(row(view).model_dump_json(by_alias=True))
        return
    found = [view.run for view in views]
    rows = [(str(r.run_id), r.status.value, r.created_at.isoformat(timespec="seconds"), _answer(r)) for r in found]
    screen.put_table(("id", "status", "created", "answer"), rows)


@app.command("show")
def show_command(run_id: str = RunId, as_json: bool = AsJson) -> None:
    """A run's conversation so far, and its answer."""
    asyncio.run(_show(_id(run_id), as_json=as_json))


async def _show(run_id: UUID, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        whole = await runs.get(installation.database, caller, run_id=run_id)
        waiting = await inbox.of_run(installation.database, caller, run_id=run_id)
    run = whole.view.run
    if as_json:
        screen.put(process(whole).model_dump_json(by_alias=True))
        return
    printer = Printer()
    for stored in whole.items:
        printer.show(stored)
    printer.clear()
    for failure in whole.credential_failures:
        printer.key_failed(failure)
    for entry in waiting:
        is_below = entry.entry.run_id != run_id
        for line in (*cards.lines(entry, is_below=is_below), f"   {cards.command(entry)}"):
            printer.line(screen.printable(line))
    if run.output is not None:
        screen.put(run.output)
    printer.end(run)


@app.command("watch")
def watch_command(run_id: str = RunId, as_json: bool = AsJson) -> None:
    """Watch a run to its end; lines that are typed are said to it. Ctrl-C ends the watching, not the run."""
    raise typer.Exit(asyncio.run(_watch(_id(run_id), as_json=as_json)))


async def _watch(run_id: UUID, *, as_json: bool) -> int:
    async with AsyncExitStack() as stack:
        installation, caller = await stack.enter_async_context(opened())
        watching = Watching(installation, caller, as_json=as_json)
        await watching.open()
        stack.push_async_callback(watching.close)
        return await watching.until_end(run_id)


@app.command("tree")
def tree_command(run_id: str = RunId, as_json: bool = AsJson) -> None:
    """The whole tree that a run belongs to, each run below what started it. An App run's id does as well."""
    asyncio.run(_tree(_id(run_id), as_json=as_json))


async def _tree(run_id: UUID, *, as_json: bool) -> None:
    async with opened() as (installation, caller):
        found = await trees.get(installation.database, caller, run_id=run_id)
    if as_json:
        screen.put(trees_mapping.tree(found).model_dump_json(by_alias=True))
        return
    for line in tree.lines(found):
        screen.put(line)


@app.command("stop")
def stop_command(
    run_ids: list[str] = typer.Argument(help="The runs' ids."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each run."),
) -> None:
    """Ask runs to stop, and what they started with them. A run under way stops as soon as its worker hears of it."""
    asyncio.run(_stop([_id(text) for text in run_ids], as_json=as_json))


async def _stop(run_ids: Sequence[UUID], *, as_json: bool) -> None:
    """Each of them, whatever becomes of the others; the last refusal decides how the command ends."""
    refused: list[FolkmootError] = []
    async with opened() as (installation, caller):
        for run_id in run_ids:
            try:
                tell = installation.notifier.tell
                status = (await stops.request(installation.database, caller, run_id=run_id, tell=tell)).status
            except FolkmootError as error:
                refused.append(error)
                continue
            if as_json:
                screen.put_json({"id": str(run_id), "status": status.value})
            else:
                screen.say(f"{run_id}: {'Stopped' if status is RunStatus.STOPPED else 'asked to stop'}")
    for refusal in refused[:-1]:
        screen.say(str(refusal))
    if refused:
        raise refused[-1]


def _status(text: str | None) -> RunStatus | None:
    try:
        return RunStatus(text) if text is not None else None
    except ValueError:
        raise BadInput(f"There is no status '{text}'; there are {', '.join(RunStatus)}.") from None


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadInput(f"'{text[:80]}' is no run's id; `folkmoot runs list` shows them.{hint_of(text)}") from None


def _answer(run: Run) -> str:
    return screen.shortened(run.output if run.output is not None else run.failure_details or "", 60)
