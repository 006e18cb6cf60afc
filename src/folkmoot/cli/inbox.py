"""`folkmoot inbox`: everything that waits for a person, the longest waiting first; once, or as it comes."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import typer

from folkmoot.api.mapping.pending import pending_work
from folkmoot.bootstrap import working
from folkmoot.cli import cards, exits, screen
from folkmoot.cli.opening import opened
from folkmoot.domain.inbox import InboxCursor, InboxEntry, InboxFilter, InboxStatus
from folkmoot.services import inbox
from folkmoot.services.events import Hub
from folkmoot.services.inbox import Closed, Waiting

_PAGE = 200


def add_to(app: typer.Typer) -> None:
    app.command("inbox")(show)


def show(
    watch: bool = typer.Option(False, "--watch", help="Go on, and show what comes, until Ctrl-C."),
    limit: int = typer.Option(50, min=1, max=10_000, help="How many, the longest waiting first."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON, as the API gives it."),
) -> None:
    """Show what waits for a person: approvals, votes, questions, turns."""
    raise typer.Exit(asyncio.run(_watch(as_json=as_json) if watch else _list(limit, as_json=as_json)))


async def _list(limit: int, *, as_json: bool) -> int:
    async with opened() as (installation, caller):
        found: list[InboxEntry] = []
        wanted = InboxFilter(InboxStatus.PENDING)
        while len(found) < limit:
            last = found[-1].entry if found else None
            after = InboxCursor(last.asked_at, last.pending.pending_id) if last is not None else None
            wants = min(_PAGE, limit - len(found))
            page = await inbox.page(installation.database, caller, wanted=wanted, after=after, limit=wants)
            found += page
            if len(page) < wants:
                break
    if as_json:
        for entry in found:
            _put_json(entry)
    elif found:
        screen.put_table(("id", "run", "kind", "asked", "what"), [_row(entry) for entry in found])
        if any(entry.agent_run is not None for entry in found):
            screen.say("What an agent run asks is answered by: folkmoot agent consent ID, with the number of the run.")
    else:
        screen.say("Nothing waits for a person.")
    return exits.DONE


async def _watch(*, as_json: bool) -> int:
    """Until a signal."""
    async with AsyncExitStack() as stack:
        installation, caller = await stack.enter_async_context(opened())
        hub = Hub(installation.database)
        await hub.start()
        stack.push_async_callback(hub.close)
        left = asyncio.Event()
        stack.enter_context(working.signals(lambda _: left.set()))
        showing = asyncio.create_task(
            _show_all(inbox.follow(installation.database, hub, tenant_id=caller.tenant_id), as_json=as_json)
        )
        leaving = asyncio.create_task(left.wait())
        await asyncio.wait({showing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if showing.done():
            showing.result()  # raises what ended it
        showing.cancel()
        await asyncio.wait({showing})
    return exits.INTERRUPTED


async def _show_all(events: inbox.Feed, *, as_json: bool) -> None:
    async for event in events:
        if not isinstance(event, Waiting | Closed):
            continue
        if as_json:
            _put_json(event.entry)
        elif isinstance(event, Waiting):
            for line in (*cards.lines(event.entry), f"   {cards.command(event.entry)}"):
                screen.put(screen.printable(line))
        else:
            settled = event.entry.entry.settled
            who = f" by {screen.printable(settled.by_name)}" if settled is not None and settled.by_name else ""
            screen.put(f"-- {event.entry.entry.pending.pending_id}: {event.entry.entry.status}{who}")


def _row(entry: InboxEntry) -> tuple[str, ...]:
    asked = entry.entry
    run = str(asked.run_id) if entry.agent_run is None else f"agent run {entry.agent_run}"
    return (
        str(asked.pending.pending_id), run, asked.pending.kind, asked.asked_at.isoformat(timespec="seconds"),
        screen.shortened(cards.summary(entry), 60),
    )  # fmt: skip


def _put_json(entry: InboxEntry) -> None:
    screen.put(pending_work(entry).model_dump_json(by_alias=True))
