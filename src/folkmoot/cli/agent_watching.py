"""Watches an agent run on the terminal to its end, and takes what is typed as the answer to what it asks.

With a worker in this process the run is worked on here; without one it is only watched. Ctrl-C leaves the run as it is. Deliberately
absent: messages to an agent run, which takes none.
"""

from __future__ import annotations

import asyncio
import signal

from folkmoot.bootstrap import working
from folkmoot.bootstrap.installation import Installation
from folkmoot.cli import agent_json, exits, parting, screen
from folkmoot.cli.agent_consents import Answering
from folkmoot.cli.agent_printer import AgentPrinter
from folkmoot.cli.keyboard import is_terminal, typed_lines
from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, ChatItem, ConsentStatus
from folkmoot.domain.items import StoredItem
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import FolkmootError
from folkmoot.runtime.worker import Worker
from folkmoot.services import agent_runs, events
from folkmoot.services.events import AgentRunEnded, ConsentSnapshot, Hub
from folkmoot.services.snapshots import OF_AGENT_RUN

_LOOK_SECONDS = 0.2  # what happened before the worker heard of this watcher is seen at the next look
_NEWEST_ITEMS = 50  # of the conversation behind a run, among which is what was asked just now


class AgentWatching:
    """`open` before the run is worked on, so that nothing is missed."""

    def __init__(
        self, installation: Installation, caller: Caller, run: AgentRun, *, shows_prompts: bool = False, as_json: bool = False
    ) -> None:  # fmt: skip
        self._installation = installation
        self._caller = caller
        self._run = run
        self._as_json = as_json
        self._hub = Hub(installation.database)
        self._printer = AgentPrinter(run, shows_prompts=shows_prompts, is_typed_to=is_terminal())
        self._shown: ChatItem | None = None  # the request that was shown last and is not known to be decided
        self._asked: ChatItem | None = None  # the same, as long as nothing was typed
        self._answer: str | None = None
        self._is_left = asyncio.Event()
        self._ended: AgentRun | None = None

    async def open(self) -> None:
        await self._hub.start()

    async def close(self) -> None:
        await self._hub.close()

    async def until_end(self, *, worker: Worker | None = None) -> int:
        """Shows the run to its end, prints its answer, and returns the exit code."""
        work = asyncio.create_task(worker.run()) if worker is not None else None
        with working.signals(self._on_signal):
            try:
                await parting.until_end_or_left(self._watch(), self._pass_on(), is_left=self._is_left, work=work)
                if self._ended is not None:
                    self._show_result(self._ended)
                    if worker is not None and self._ended.status is not AgentRunStatus.COMPLETED:
                        await parting.until_stopped_below(
                            self._installation, self._caller, self._run.run_id, is_left=self._is_left, say=self._printer.line
                        )  # fmt: skip
            finally:
                self._printer.clear()
                if worker is not None and work is not None:
                    await parting.let_go(worker, work, is_left=self._is_left, say=self._printer.line)
            if self._ended is None:
                await self._show_left()
        if self._ended is None or self._is_left.is_set():
            return exits.INTERRUPTED
        return exits.of_agent_run(self._ended.status)

    async def _watch(self) -> None:
        after = 0
        while self._ended is None:
            # ends early where the terminal was too slow for the buffer: then on from the last item
            following = events.follow(
                self._installation.database, self._hub, self._installation.notifier.tell, tenant_id=self._caller.tenant_id,
                run_id=self._run.run_id, after=after, sight=OF_AGENT_RUN, poll_seconds=_LOOK_SECONDS,
            )  # fmt: skip
            async for event in following:
                self._printer.show(event)
                match event:
                    case StoredItem():
                        after = event.sequence
                    case ConsentSnapshot(asked=item):
                        await self._now_asks(item)
                    case AgentRunEnded():
                        self._ended, self._answer = event.run, event.output

    async def _now_asks(self, item: ChatItem | None) -> None:
        """What was decided of the request before, once; then what is asked now."""
        before = self._shown
        is_open = item is not None and item.consent is not None and item.consent.status is ConsentStatus.PENDING
        self._shown = self._asked = item if is_open else None
        if self._shown == before:
            return
        if before is not None and (settled := await self._now(before)) is not None:
            self._printer.decided(settled)
        if self._shown is not None:
            self._printer.ask(self._shown)

    async def _now(self, asked: ChatItem) -> ChatItem | None:
        """A request as it stands now, also once the run has gone on."""
        newest = await agent_runs.chat(
            self._installation.database, self._caller, id_=self._run.id, before=None, limit=_NEWEST_ITEMS
        )
        return next((item for item in newest if item.chat_item_id == asked.chat_item_id), None)

    async def _pass_on(self) -> None:
        """Each typed line answers what is asked, as it was shown."""
        answering = Answering(self._installation, self._caller, self._run.id)
        async for line in typed_lines():
            asked = self._asked
            try:
                await answering.answer(asked, line)
                if self._asked is asked:
                    self._asked = None
            except FolkmootError as error:
                self._printer.line(f"folkmoot: {screen.printable(str(error))}")

    def _on_signal(self, _: signal.Signals) -> None:
        self._is_left.set()

    def _show_result(self, run: AgentRun) -> None:
        self._printer.clear()
        if self._as_json:
            screen.put_json({**agent_json.agent_run(run), "answer": self._answer})
        elif run.status is AgentRunStatus.COMPLETED and self._answer is not None:
            screen.put(self._answer)
        self._printer.end(run)

    async def _show_left(self) -> None:
        """How the run stands now that nobody watches it: it may have ended meanwhile."""
        run = await agent_runs.get(self._installation.database, self._caller, id_=self._run.id)
        if run.completed_at is not None:
            self._printer.end(run)
            return
        self._printer.line(
            f"The run is left as it is, and goes on where a worker runs. To see it: folkmoot agent watch {run.id}; to end it: folkmoot agent cancel {run.id}"
        )
