"""`folkmoot worker`: a worker in this process, until a signal drains it."""

from __future__ import annotations

import asyncio
from uuid import UUID

import typer

from folkmoot.bootstrap import installation as installations
from folkmoot.bootstrap import working
from folkmoot.cli import screen
from folkmoot.cli.opening import opened


def add_to(app: typer.Typer) -> None:
    app.command("worker")(worker)


def worker(
    apart: bool = typer.Option(False, hidden=True, help="Run suspects one at a time, then end."),
    worker_id: str | None = typer.Option(None, hidden=True),
) -> None:
    """Claim and run conversations until SIGTERM or Ctrl-C; runs under way are then handed back. A second signal cuts that short."""
    asyncio.run(_worker(is_apart=apart, worker_id=UUID(worker_id) if worker_id else None))


async def _worker(*, is_apart: bool, worker_id: UUID | None) -> None:
    found = installations.read_settings()
    if is_apart:
        async with (
            installations.open_installation(found, migrates=False, connections=4) as installation,
            working.open_worker(installation, is_apart=True, worker_id=worker_id) as made,
        ):
            await working.run_until_drained(made, ends_with_stdin=True)
        return
    async with opened(found) as (installation, _), working.open_worker(installation, worker_id=worker_id) as made:
        await working.run_until_drained(made, on_begin=_say_ready)


def _say_ready() -> None:
    screen.say("folkmoot worker: ready. Ctrl-C hands its runs back and ends it.")
