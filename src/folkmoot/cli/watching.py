"""Watches a run on the terminal to its end, passes on what is typed, and turns Ctrl-C into a stop.

With a worker in this process the run is worked on here; without one it is only watched, and Ctrl-C ends the watching.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from uuid import UUID

from folkmoot.api.mapping.runs import process
from folkmoot.bootstrap import working
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import exits, parting, screen
from folkmoot.cli.conversation import Printer
from folkmoot.cli.keyboard import is_terminal, typed_lines
from folkmoot.cli.typed_answers import Person
from folkmoot.domain.inbox import PendingEntry
from folkmoot.domain.items import StoredItem
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import Run
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import Conflict, FolkmootError, RunEnded
from folkmoot.runtime.worker import Worker
from folkmoot.services import events, runs
from folkmoot.services.events import ApprovalSnapshot, Ended, Hub

_GOES_ON = "The run is left as it is, and goes on where a worker runs"
_SECOND_THOUGHT_SECONDS = 0.7
_LOOK_SECONDS = 0.2  # what happened before the worker heard of this watcher is seen at the next look


class Watching:
    """`open` before the run starts, so that nothing is missed."""

    def __init__(
        self, installation: Installation, caller: Caller, *, shows_prompts: bool = False, as_json: bool = False
    ) -> None:
        self._installation = installation
        self._caller = caller
        self._as_json = as_json
        self._hub = Hub(installation.database)
        self._printer = Printer(shows_prompts=shows_prompts, is_typed_to=is_terminal())
        self._waits_for: PendingEntry | None = None
        self._hits = 0
        self._is_stop_asked = False
        self._is_left = asyncio.Event()
        self._ended: Run | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        await self._hub.start()

    async def close(self) -> None:
        await self._hub.close()

    async def until_end(self, run_id: UUID, *, worker: Worker | None = None) -> int:
        """Shows the run to its end, prints its answer, and returns the exit code."""
        work = asyncio.create_task(worker.run()) if worker is not None else None
        with working.signals(lambda number: self._on_signal(number, run_id, has_worker=worker is not None)):
            try:
                await parting.until_end_or_left(
                    self._watch(run_id), self._pass_on(run_id), is_left=self._is_left, work=work
                )
                if self._ended is not None:
                    await self._show_result(self._ended)
                    if worker is not None and self._ended.status is not RunStatus.COMPLETED:
                        await parting.until_stopped_below(
                            self._installation, self._caller, run_id, is_left=self._is_left, say=self._printer.line
                        )
            finally:
                self._printer.clear()
                if worker is not None and work is not None:
                    await parting.let_go(worker, work, is_left=self._is_left, say=self._printer.line)
            if self._ended is None:
                await self._show_left(run_id)
        return exits.INTERRUPTED if self._hits or self._ended is None else exits.of_run(self._ended.status)

    async def _watch(self, run_id: UUID) -> None:
        after = 0
        while self._ended is None:
            # ends early where the terminal was too slow for the buffer: then on from the last item
            following = events.follow(
                self._installation.database, self._hub, self._installation.notifier.tell,
                tenant_id=self._caller.tenant_id, run_id=run_id, after=after, poll_seconds=_LOOK_SECONDS,
            )  # fmt: skip
            async for event in following:
                self._printer.show(event)
                if isinstance(event, ApprovalSnapshot):
                    self._waits_for = event.open_ones[0].entry if event.open_ones else None
                if isinstance(event, StoredItem):
                    after = event.sequence
                elif isinstance(event, Ended):
                    self._ended = event.run

    async def _pass_on(self, run_id: UUID) -> None:
        """Each typed line answers what the run waits for, or is a message to it."""
        person = Person(self._installation, self._caller, run_id)
        async for line in typed_lines():
            asked = self._waits_for
            try:
                if asked is None:
                    await person.say(line)
                elif await person.answer(asked, line) and self._waits_for is asked:
                    self._waits_for = None
            except FolkmootError as error:
                self._printer.line(f"folkmoot: {screen.printable(str(error))}")
                if type(error) is Conflict:  # no person may speak, now or later
                    return

    def _on_signal(self, number: signal.Signals, run_id: UUID, *, has_worker: bool) -> None:
        self._hits += 1
        if self._ended is not None:
            self._is_left.set()  # it is over; only what else this process was at is waited for
        elif number == signal.SIGINT and has_worker and self._hits == 1:
            self._printer.line("Stopping the run. Ctrl-C again at once leaves it as it is, to be gone on with.")
            self._tasks.append(asyncio.create_task(self._stop(run_id)))
        else:
            self._is_left.set()

    async def _stop(self, run_id: UUID) -> None:
        """Not at once: what was asked of the database is not taken back, and a second Ctrl-C may be on its way."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_left.wait(), _SECOND_THOUGHT_SECONDS)
            return
        try:
            await runs.request_stop(
                self._installation.database, self._caller, run_id=run_id, tell=self._installation.notifier.tell
            )
            self._is_stop_asked = True
        except RunEnded:
            pass
        except FolkmootError as error:
            self._printer.line(f"folkmoot: {screen.printable(str(error))}")

    async def _show_result(self, run: Run) -> None:
        if self._as_json:
            whole = await runs.get(self._installation.database, self._caller, run_id=run.run_id)
            screen.put(process(whole).model_dump_json(by_alias=True))
        elif run.output is not None:
            self._printer.clear()
            screen.put(run.output)
        self._printer.end(run)

    async def _show_left(self, run_id: UUID) -> None:
        """How the run stands now that nobody watches it: it may have ended meanwhile."""
        run = (await runs.get(self._installation.database, self._caller, run_id=run_id)).view.run
        if run.status in FINAL:
            self._ended = run
            await self._show_result(run)
        else:
            what = "The run is asked to stop, which a worker sees to" if self._is_stop_asked else _GOES_ON
            self._printer.line(f"{what}. To see it: folkmoot runs watch {run_id}")
