"""`folkmoot agent`: run agents, list, show, watch and cancel their runs, and answer what these ask."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import typer

from folkmoot.api.mapping.items import conversation_item
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import agent_consents, agent_json, agent_printer, agent_run, cards, screen, sets
from folkmoot.cli.agent_consents import decided_before
from folkmoot.cli.agent_ids import AgentRunId, id_of
from folkmoot.cli.agent_printer import AgentPrinter
from folkmoot.cli.agent_watching import AgentWatching
from folkmoot.cli.opening import opened
from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus
from folkmoot.domain.definitions import DefinitionKind
from folkmoot.domain.items import StoredItem
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, FolkmootError
from folkmoot.services import agent_run_reading, agent_runs, definitions
from folkmoot.services.agent_run_reading import RunMessage
from folkmoot.services.agent_runs import AgentRunFilter

app = typer.Typer(help="Agents' own runs: run, list, show, watch, consent, cancel.", no_args_is_help=True)
AsJson = typer.Option(False, "--json", help="Print JSON.")
_PAGE = 200


def add_to(root: typer.Typer) -> None:
    app.command("run")(agent_run.run)
    app.command("consent")(agent_consents.consent)
    root.add_typer(app, name="agent")


@app.command("list")
def list_command(
    status: str | None = typer.Option(None, help="Only runs of this status."),
    agent: str | None = typer.Option(None, help="Only runs of this agent, as name or namespace/name."),
    limit: int = typer.Option(20, min=1, max=200, help="How many, the newest first."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each run."),
) -> None:
    """The newest agent runs."""
    asyncio.run(_list(_status(status), agent, limit, as_json=as_json))


async def _list(status: AgentRunStatus | None, agent: str | None, limit: int, *, as_json: bool) -> None:
    wanted = AgentRunFilter(status)
    async with opened() as (installation, caller):
        if agent is not None:
            reference = sets.reference(agent, noun="agent")
            stored = await definitions.get(
                installation.database, caller, kind=DefinitionKind.AGENT, reference=reference
            )
            wanted = AgentRunFilter(status, stored.definition.definition_id)
        found = await agent_runs.page(installation.database, caller, wanted=wanted, after=None, limit=limit)
    if as_json:
        for run in found:
            screen.put_json(agent_json.agent_run(run))
        return
    rows = [
        (str(r.id), r.agent_name, r.status.value, r.current_phase.value, r.created_at.isoformat(timespec="seconds"), _note(r))
        for r in found
    ]  # fmt: skip
    screen.put_table(("id", "agent", "status", "phase", "created", "note"), rows)


@app.command("show")
def show_command(
    run_id: str = AgentRunId,
    payload: bool = typer.Option(False, "--payload", help="Print the payload as JSON in place of the answer: plan, budget, verification."),
    items: bool = typer.Option(False, "--items", help="Show the run's conversation so far, too."),
    as_json: bool = AsJson,
) -> None:  # fmt: skip
    """How an agent run stands and what it asks, and its answer."""
    asyncio.run(_show(id_of(run_id), with_payload=payload, with_items=items, as_json=as_json))


async def _show(id_: int, *, with_payload: bool, with_items: bool, as_json: bool) -> None:
    async with opened() as (installation, caller):
        run = await agent_runs.get(installation.database, caller, id_=id_)
        said = await _items(installation, caller, run)
        asked = await agent_runs.asked(installation.database, caller, id_=id_)
        settled = await decided_before(installation, caller, run)
        payload = await agent_runs.payload(installation.database, caller, id_=id_) if with_payload else None
        lost = await _undelivered(installation, caller, run)
        answer = await agent_run_reading.output(installation.database, caller, id_=id_)
    if as_json:
        more: dict[str, Any] = {"payload": payload} if with_payload else {}
        if with_items:
            more["items"] = [conversation_item(stored).model_dump(mode="json", by_alias=True) for stored in said]
        consent = agent_json.consent(asked) if asked is not None else None
        screen.put_json({**agent_json.agent_run(run), "answer": answer, "consent": consent, **more})
        return
    printer = AgentPrinter(run)
    goal = next((told for stored in said if (told := agent_run_reading.goal_in(stored)) is not None), None)
    for line in (*agent_printer.state_lines(run), *agent_printer.history_lines(goal, settled, lost)):
        printer.line(screen.printable(line))
    for stored in said if with_items else ():
        printer.show(stored)
    if asked is not None:
        for line in (*agent_printer.card(asked, run), f"   To answer: {cards.consent_command(id_)}"):
            printer.line(screen.printable(line))
    elif run.status is AgentRunStatus.AWAITING_CONSENT:
        printer.line("   It goes on where a worker runs: `folkmoot serve`, or `folkmoot worker`.")
    printer.clear()
    if with_payload:
        screen.put_json(payload)
    elif answer is not None:
        screen.put(answer)
    if run.completed_at is not None:
        printer.end(run)


async def _undelivered(installation: Installation, caller: Caller, run: AgentRun) -> list[RunMessage]:
    """What the run's owner was to be told and was not, or not yet; of the oldest messages."""
    found = await agent_run_reading.messages(installation.database, caller, id_=run.id, after=None, limit=_PAGE)
    return [each for each in found if each.message.delivered_at is None and each.message.last_error is not None]


async def _items(installation: Installation, caller: Caller, run: AgentRun) -> list[StoredItem]:
    found: list[StoredItem] = []
    while True:
        after = found[-1].sequence if found else 0
        page = await agent_runs.items(installation.database, caller, id_=run.id, after=after, limit=_PAGE)
        found += page
        if len(page) < _PAGE:
            return found


@app.command("watch")
def watch_command(run_id: str = AgentRunId, as_json: bool = AsJson) -> None:
    """Watch an agent run to its end, and answer what it asks. Ctrl-C ends the watching, not the run."""
    raise typer.Exit(asyncio.run(_watch(id_of(run_id), as_json=as_json)))


async def _watch(id_: int, *, as_json: bool) -> int:
    async with AsyncExitStack() as stack:
        installation, caller = await stack.enter_async_context(opened())
        run = await agent_runs.get(installation.database, caller, id_=id_)
        for line in agent_printer.history_lines(None, await decided_before(installation, caller, run), ()):
            screen.say(screen.printable(line))
        watching = AgentWatching(installation, caller, run, as_json=as_json)
        await watching.open()
        stack.push_async_callback(watching.close)
        return await watching.until_end()


@app.command("cancel")
def cancel_command(
    run_ids: list[str] = typer.Argument(metavar="IDS", help="The agent runs' ids."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, an object for each run."),
) -> None:
    """Ask agent runs to end, and what they delegated with them. A run under way ends as soon as its worker hears of it."""
    asyncio.run(_cancel([id_of(text) for text in run_ids], as_json=as_json))


async def _cancel(ids: Sequence[int], *, as_json: bool) -> None:
    """Each of them, whatever becomes of the others; the last refusal decides how the command ends."""
    refused: list[FolkmootError] = []
    async with opened() as (installation, caller):
        for id_ in ids:
            try:
                run = await agent_runs.cancel(installation.database, caller, id_=id_, tell=installation.notifier.tell)
            except FolkmootError as error:
                refused.append(error)
                continue
            if as_json:
                screen.put_json({"id": id_, "status": run.status.value})
            else:
                screen.say(f"{id_}: {'cancelled' if run.completed_at is not None else 'asked to end'}")
    for refusal in refused[:-1]:
        screen.say(str(refusal))
    if refused:
        raise refused[-1]


def _status(text: str | None) -> AgentRunStatus | None:
    try:
        return AgentRunStatus(text) if text is not None else None
    except ValueError:
        raise BadInput(f"There is no status '{text}'; there are {', '.join(AgentRunStatus)}.") from None


def _note(run: AgentRun) -> str:
    """Why it failed, or that it waits for a specialist's call."""
    if run.pending_specialist is not None:
        return f"{run.pending_specialist} asks"
    return screen.shortened(run.last_error or "", 60)
