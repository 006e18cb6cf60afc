"""How a command comes away from a run that it shows or works on: it ends or is left, the worker hands back what it holds, and what
the run started is stopped.

Deliberately absent: the run that was watched, and what is said of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from uuid import UUID

from folkmoot.bootstrap.installation import Installation
from folkmoot.domain.tenancy import Caller
from folkmoot.runtime.worker import Worker
from folkmoot.services import trees

Say = Callable[[str], None]

_PATIENCE_SECONDS = 1.0
_AT_ONCE_SECONDS = 0.2
_LOOK_SECONDS = 0.2
_BELOW_SECONDS = 10.0  # what was started is mostly stopped in a moment, and a worker to come sees to the rest
_PARTING_SECONDS = 12.0  # longer than a worker gives its runs to part


async def until_end_or_left(
    watching: Coroutine[Any, Any, None], typing: Coroutine[Any, Any, None], *, is_left: asyncio.Event, work: asyncio.Task[None] | None
) -> None:  # fmt: skip
    """Until `watching` has seen the run end, a signal said to leave it, or its worker failed; that error is raised."""
    watched, typed = asyncio.create_task(watching), asyncio.create_task(typing)
    leaving = asyncio.create_task(is_left.wait())
    ends = {watched} if work is None else {watched, work}
    try:
        await asyncio.wait({*ends, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in ends:
            if task.done():
                task.result()
    finally:
        others: tuple[asyncio.Task[Any], ...] = (watched, typed, leaving)
        for other in others:
            other.cancel()
        await asyncio.wait(others)


async def let_go(worker: Worker, work: asyncio.Task[None], *, is_left: asyncio.Event, say: Say) -> None:
    """Let the worker hand back what it holds: in order, or cut short where a signal asks for that."""
    worker.drain()
    leaving = asyncio.create_task(is_left.wait())
    await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED, timeout=_PATIENCE_SECONDS)
    if not work.done() and not leaving.done():
        say("Other runs are handed back to where a worker runs. Ctrl-C cuts that short.")
        await asyncio.wait({work, leaving}, return_when=asyncio.FIRST_COMPLETED)
    leaving.cancel()
    await asyncio.wait({work}, timeout=_AT_ONCE_SECONDS)
    while not work.done():  # the first cancellation may only begin the drain that the next one cuts short
        work.cancel()
        await asyncio.wait({work}, timeout=_PARTING_SECONDS)
    with suppress(asyncio.CancelledError):
        await work


async def until_stopped_below(
    installation: Installation, caller: Caller, run_id: UUID, *, is_left: asyncio.Event, say: Say
) -> None:
    """What the run started is stopped with it, by a worker: this one, if there is no other."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_BELOW_SECONDS):
            while not is_left.is_set():
                if not await trees.goes_on_below(installation.database, caller, run_id=run_id):
                    return
                await asyncio.sleep(_LOOK_SECONDS)
    say(f"What it started is asked to stop, which a worker sees to. To see it: folkmoot runs tree {run_id}")
