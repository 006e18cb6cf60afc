"""A worker: claims runs under its lease, drives each in a task of its own, and lets go of them in order.

Tasks are keyed by run and claim number: a run may be claimed again before its former task has cleaned up. A worker that is
taken for dead drops everything and begins a new incarnation. SIGTERM (`drain`): no more claims, step boundaries, exit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import FolkmootError, LeaseLost, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.apart import Apart
from folkmoot.runtime.drive import Drive
from folkmoot.runtime.lease import Lease
from folkmoot.runtime.options import WorkerOptions, backoff_seconds
from folkmoot.runtime.timekeeper import Timekeeper
from folkmoot.runtime.under_way import StepFault
from folkmoot.runtime.workshop import Workshop
from folkmoot.store import runs, workers
from folkmoot.store.appends import Append, HandBack
from folkmoot.store.database import FAILURES, OUTAGES, Database, Listener

_log = logging.getLogger("folkmoot.worker")
_FAILURES = (FolkmootError, *FAILURES)
_AGAIN_SECONDS = 1.0
_APART_AGAIN_SECONDS = 0.05
_PARTING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is: its host's name, process id and version. `worker_id` null: a new one at each incarnation."""

    host: str
    pid: int
    version: str
    is_apart: bool = False
    worker_id: UUID | None = None


class Worker:
    """`apart_command`: starts a worker process for suspects; null in a worker that is one, or must not start any.

    `on_inbox`: called when something has come to wait for people, or was answered: there may be messages to send.
    """

    def __init__(
        self,
        workshop: Workshop,
        identity: Identity,
        *,
        apart_command: tuple[str, ...] | None = None,
        on_inbox: Callable[[], None] = lambda: None,
    ) -> None:
        self._workshop = replace(workshop, may_act=lambda: self.is_ready)
        self._identity = identity
        self._options: WorkerOptions = workshop.options
        self._database: Database = workshop.database
        self._drives: dict[tuple[UUID, int], Drive] = {}
        self._tasks: dict[tuple[UUID, int], asyncio.Task[None]] = {}
        self._dropped: dict[Claim, Append] = {}
        self._compared_at = time.monotonic()
        self._wake = asyncio.Event()
        self._is_draining = False
        self._is_cut_short = asyncio.Event()
        self._lease: Lease | None = None
        self._listener = Listener(self._database, self._hear)
        self._timekeeper = Timekeeper(
            self._database, self._options, workshop.chance, workshop.new_id, hear=self._hear, tell=workshop.watched.tell
        )
        self._apart: Apart | None = None
        if apart_command is not None:
            self._apart = Apart(self._database, workshop.new_id, apart_command, self._wake.set)
        self._new_id: NewId = workshop.new_id
        self._on_inbox = on_inbox

    def drain(self) -> None:
        """Take no more claims, let every run go at its next step boundary, then return from `run`."""
        if not self._is_draining:
            _log.info("This worker drains: it takes no more claims, and lets its runs go at their next step.")
        self._is_draining = True
        for drive in self._drives.values():
            drive.drain()
        self._wake.set()

    @property
    def is_ready(self) -> bool:
        """Whether the lease is live: runs may be claimed, and side effects begun."""
        return self._lease is not None and self._lease.is_live()

    async def run(self) -> None:
        """Until drained. A cancellation cuts that short: what is under way is given back as it is."""
        try:
            await self._listener.start()
            await self._begin_incarnation()
            self._timekeeper.start()
            while not self._is_draining:
                self._wake.clear()
                wait = await self._claim()
                if self._identity.is_apart and not self._tasks and wait is None:
                    break
                longest = self._options.poll_seconds
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), min(wait or longest, longest))
                await self._renew_if_lost()
        finally:
            await self._finish()

    # claiming

    async def _claim(self) -> float | None:
        """Claim what there is room for. Returns the seconds until something may be claimable; null where nothing is to be expected."""
        try:
            await self._return_dropped()
            await self._compare()
            if await self._fill():
                return self._options.poll_seconds
            async with self._database.reader() as reader:
                ready = await runs.are_claimable(reader)
        except _FAILURES as error:
            _log.warning("The database cannot be reached: %s", error)
            return _AGAIN_SECONDS
        except Exception:  # one bad row must not end a worker that drives others
            _log.exception("Claiming failed, and will be tried again")
            return _AGAIN_SECONDS
        if self._identity.is_apart:
            return _APART_AGAIN_SECONDS if ready.suspects and not self._tasks else None
        if ready.suspects and self._apart is not None and not self._is_draining:
            self._apart.start()
        return ready.next_in.total_seconds() + 0.001 if ready.next_in is not None else self._options.poll_seconds

    async def _fill(self) -> bool:
        """Claim and start as many runs as there is room for. Whether an apart worker has got one: it takes one at a time."""
        slots = 1 if self._identity.is_apart else self._options.slots
        room = slots - len(self._tasks)
        if room <= 0 or not self.is_ready or self._lease is None:
            return False
        async with self._database.reader() as reader:
            claimed = await runs.claim(reader, self._lease.worker_id, batch=room, suspects=self._identity.is_apart)
        for run, stopped_by, errors in claimed:
            self._start(
                Drive(
                    self._workshop, run, stopped_by=stopped_by, driver_errors=errors, is_apart=self._identity.is_apart
                )
            )
        if len(claimed) == room and len(self._tasks) < slots:
            # There may be more. Runs that ended meanwhile have made room, and woke nobody, since the worker was not full then.
            self._wake.set()
        return self._identity.is_apart and bool(claimed)

    async def _compare(self) -> None:
        """Once a poll interval: compare what is driven here with what the database says this worker holds.

        A lost notification costs a poll interval: a drive whose signal has moved looks again. A claim that nobody drives
        (its answer was lost on the way) is given back.
        """
        now = time.monotonic()
        if self._lease is None or now < self._compared_at + self._options.poll_seconds:
            return
        self._compared_at = now
        async with self._database.reader() as reader:
            held = await runs.held(reader, self._lease.worker_id)
        signals = {(claim.run_id, claim.number): signal for claim, signal in held}
        for key, drive in self._drives.items():
            if signals.get(key) != drive.signal_number:
                drive.nudge()
        for claim, _ in held:
            if (claim.run_id, claim.number) not in self._tasks:
                await self._give_back(_bare(claim))

    def _start(self, drive: Drive) -> None:
        key = (drive.claim.run_id, drive.claim.number)
        self._drives[key] = drive
        self._tasks[key] = asyncio.create_task(self._drive(drive))
        self._tasks[key].add_done_callback(lambda _: self._ended(key))

    def _ended(self, key: tuple[UUID, int]) -> None:
        self._drives.pop(key, None)
        self._tasks.pop(key, None)
        if len(self._tasks) + 1 >= self._options.slots or self._is_draining or self._identity.is_apart:
            self._wake.set()

    async def _drive(self, drive: Drive) -> None:
        """One run under one claim. Whatever happens, the run is ended, given back, or somebody else's."""
        try:
            await drive.run()
            return
        except asyncio.CancelledError:
            parting = drive.parting()
        except (LeaseLost, Unreachable, *OUTAGES) as lost:
            _log.warning("Run %s is dropped: %s", drive.claim.run_id, lost)
            parting = drive.parting()
        except Exception as error:
            _log.exception("An unexpected error in run %s", drive.claim.run_id)
            if await self._has_failed(drive, error):
                return
            errors = drive.driver_errors + 1
            wait = backoff_seconds(self._options, errors, self._workshop.chance())
            parting = drive.parting(ready_in_seconds=wait, driver_errors=errors)
        await self._give_back(parting)

    async def _has_failed(self, drive: Drive, error: Exception) -> bool:
        """After too many unexpected errors in a row the run is Failed, and says so. Whether that came about."""
        errors = drive.driver_errors + 1
        if errors < self._options.driver_errors_limit:
            return False
        what = str(error) if isinstance(error, StepFault) else f"{type(error).__name__}: {error}"
        words = f"The server failed {errors} times in a row on this run, the last time with {what}. Its log has the details; please report it."
        try:
            await drive.fail(words)
        except Exception:
            _log.exception("Run %s cannot be failed, and is given back", drive.claim.run_id)
            return False
        return True

    async def _give_back(self, parting: Append) -> None:
        """Give a run back now, or once the database answers again; a claim that is no more has been taken over."""
        self._dropped.pop(parting.claim, None)
        try:
            await self._workshop.appender.append(parting)
        except LeaseLost:
            pass
        except (Unreachable, *OUTAGES):
            self._dropped[parting.claim] = parting
        except Exception:
            _log.exception("What run %s leaves behind cannot be written", parting.claim.run_id)
            self._dropped[parting.claim] = _bare(parting.claim)

    async def _return_dropped(self) -> None:
        for parting in list(self._dropped.values()):
            await self._give_back(parting)

    # the lease

    async def _begin_incarnation(self) -> None:
        identity = self._identity
        worker_id = identity.worker_id if identity.worker_id is not None and self._lease is None else self._new_id()
        began_at = time.monotonic()
        async with self._database.writer() as writer:
            await workers.register(
                writer, worker_id, host=identity.host, pid=identity.pid, version=identity.version, is_apart=identity.is_apart,
                lease_seconds=self._options.lease_seconds,
            )  # fmt: skip
        loop = asyncio.get_running_loop()
        on_lost = partial(loop.call_soon_threadsafe, self._wake.set)
        self._lease = Lease(self._database, worker_id, self._options, began_at=began_at, on_lost=on_lost)
        self._lease.start()

    async def _renew_if_lost(self) -> None:
        """Taken for dead: drop everything, and begin anew."""
        if self._lease is None or not self._lease.is_lost:
            return
        _log.warning("This worker's lease ran out; it drops its runs and begins a new incarnation.")
        await self._cancel_tasks()
        if self._identity.is_apart:
            self._is_draining = True
            return
        with suppress(*_FAILURES):
            await self._begin_incarnation()

    # hearing

    def _hear(self, message: dict[str, Any]) -> None:
        """What other processes tell: runs to claim, a run's signal, a run to be watched."""
        to = message.get("to")
        if to == "workers":
            self._wake.set()
        elif to == "run":
            run_id = UUID(message["run"])
            for (run, _), drive in list(self._drives.items()):
                if run == run_id:
                    drive.nudge()
        elif to == "inbox":
            self._on_inbox()
        elif to == "watch":
            self._workshop.watched.expect(UUID(message["run"]))

    # the end

    async def _finish(self) -> None:
        """Not cut off itself, however often the task is cancelled: what it gives back would stay held."""
        finishing = asyncio.create_task(self._let_all_go())
        this = asyncio.current_task()
        # asked of the task as well, since a wait that has just ended may have swallowed its cancellation
        if this is not None and this.cancelling():
            self._is_cut_short.set()
        while not finishing.done():
            try:
                await asyncio.shield(finishing)
            except asyncio.CancelledError:
                self._is_cut_short.set()

    async def _let_all_go(self) -> None:
        self.drain()
        if self._apart is not None:
            self._apart.drain()
        cut = asyncio.create_task(self._is_cut_short.wait())
        until = time.monotonic() + self._options.drain_seconds
        while self._tasks and not cut.done() and time.monotonic() < until:
            tasks = {cut, *self._tasks.values()}
            await asyncio.wait(tasks, timeout=until - time.monotonic(), return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        await self._cancel_tasks()
        if self._apart is not None:
            await self._apart.close(drain_seconds=0.0 if self._is_cut_short.is_set() else until - time.monotonic())
        await self._timekeeper.close()
        await self._listener.close()
        if self._lease is not None:
            await asyncio.to_thread(self._lease.stop)
            with suppress(*_FAILURES):
                await self._return_dropped()
                async with self._database.writer() as writer:
                    await workers.end_lease(writer, self._lease.worker_id)
                    await workers.remove(writer, self._lease.worker_id)

    async def _cancel_tasks(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=_PARTING_SECONDS)


def _bare(claim: Claim) -> Append:
    return Append(claim, -1, hand_back=HandBack())
