"""The fenced append: the only way a worker writes. Outcomes of many runs are gathered into one statement, each fenced alone.

An append has a firm part (the outcome of I/O, written whatever others wrote in between) and a soft part (what the engine
decided from it, written only if the run's signal is what the worker knew). Deliberately absent: what the parts mean.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg

from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import LeaseLost, Unreachable
from folkmoot.store import agent_runs
from folkmoot.store.append_parameters import TOOL_PARAMETERS, is_lean, parameters
from folkmoot.store.database import OUTAGES, Database, queries
from folkmoot.store.outcomes import (
    AgentChange,
    Append,
    Appended,
    CallAsked,
    CallEnded,
    ConsentAsked,
    End,
    HandBack,
    ModelCallBegun,
    ModelCallEnded,
    Pause,
)

_WHOLE: str = queries("appends").append.sql
# most outcomes have no tool calls: without their parts the statement costs the server a fifth less
_LEAN = _WHOLE[: _WHOLE.index("model_calls_voided as (")] + _WHOLE[_WHOLE.index("last as (") :]
# The plan is made once, for tables of any size: by key, never by scanning what is small today.
_PLANS = "set plan_cache_mode = force_generic_plan; " + "; ".join(
    f"set enable_{way} = off" for way in ("seqscan", "hashjoin", "mergejoin", "bitmapscan")
)
_LOCK_MILLISECONDS = 100  # others commit in a few; whoever is locked for longer waits apart
_GATHERED = 64
_LANES = 2


__all__ = [
    "AgentChange",
    "Append",
    "Appended",
    "Appender",
    "CallAsked",
    "CallEnded",
    "ConsentAsked",
    "End",
    "HandBack",
    "ModelCallBegun",
    "ModelCallEnded",
    "Pause",
]


@dataclass(slots=True)
class _Waiting:
    append: Append
    done: asyncio.Future[Appended] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Appender:
    """Gathers what is waiting and commits it, on two connections; a run that is locked waits on a third one. The end of a sub-run
    locks its parent too, and is gathered only with ends under the same parent, which lock that one last: of two mixed batches each
    could hold the run that the other one wants.

    `append` raises LeaseLost where the claim is no more, and Unreachable where the connection was lost: whether the
    statement was committed is then unknown, the caller drops the run, and what is in the database decides. Any other
    error is of that append alone, and nothing of it was written. A caller that is cancelled withdraws an append that
    was not sent yet; one that was sent may be written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._locked: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._is_closed = False
        self._lanes = [asyncio.create_task(self._gather()) for _ in range(_LANES)]
        self._lanes.append(asyncio.create_task(self._wait_for_locks()))

    async def append(self, append: Append) -> Appended:
        fault_points.reach("before_commit")
        waiting = _Waiting(append)
        if self._is_closed:
            raise Unreachable("The process is ending; nothing more is committed.")
        self._waiting.put_nowait(waiting)
        appended = await waiting.done
        fault_points.reach("after_commit")
        return appended

    async def close(self) -> None:
        """What is still waiting fails as Unreachable."""
        self._is_closed = True
        for lane in self._lanes:
            lane.cancel()
        for lane in self._lanes:
            with suppress(asyncio.CancelledError):
                await lane
        for queue in (self._waiting, self._locked):
            while not queue.empty():
                _fail([queue.get_nowait()], Unreachable("The process is ending; nothing more is committed."))

    async def _gather(self) -> None:
        lane = _Lane(self._database, lock_milliseconds=_LOCK_MILLISECONDS)
        try:
            while True:
                batch = [await self._waiting.get()]
                while len(batch) < _GATHERED and not self._waiting.empty():
                    batch.append(self._waiting.get_nowait())
                together: dict[UUID | None, list[_Waiting]] = {}
                for waiting in batch:
                    together.setdefault(waiting.append.ends_under, []).append(waiting)
                for gathered in together.values():
                    for locked in await lane.commit(gathered):
                        self._locked.put_nowait(locked)
        finally:
            lane.close()

    async def _wait_for_locks(self) -> None:
        lane = _Lane(self._database, lock_milliseconds=0)
        try:
            while True:
                for locked in await lane.commit([await self._locked.get()]):
                    self._locked.put_nowait(locked)
        finally:
            lane.close()


class _Lane:
    """One connection, opened again when it was lost. `lock_milliseconds` 0: it waits for locks."""

    def __init__(self, database: Database, *, lock_milliseconds: int) -> None:
        self._database = database
        self._lock_milliseconds = lock_milliseconds
        self._connection: asyncpg.Connection | None = None
        self._whole: Any = None
        self._lean: Any = None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def commit(self, batch: Sequence[_Waiting]) -> list[_Waiting]:
        """Settle all of the batch, but for those that somebody else has locked: they are returned."""
        try:
            await self._connect()
            return await self._commit(batch)
        except asyncio.CancelledError:
            _fail(batch, Unreachable("The process is ending; whether this was committed is not known."))
            raise
        except Exception as error:  # whatever it was, the lane lives on for others
            self.close()
            is_outage = isinstance(error, OUTAGES)
            words = "The connection to the database was lost; whether this was committed is not known."
            _fail(batch, Unreachable(words) if is_outage else error)
            return []

    async def _connect(self) -> None:
        if self._connection is not None and not self._connection.is_closed():
            return
        self._connection = await self._database.connect()
        await self._connection.execute(f"set lock_timeout = {self._lock_milliseconds}; {_PLANS}")
        self._whole = await self._connection.prepare(_WHOLE)
        self._lean = await self._connection.prepare(_LEAN)

    async def _commit(self, batch: Sequence[_Waiting]) -> list[_Waiting]:
        batch = [waiting for waiting in batch if not waiting.done.done()]
        if not batch:
            return []
        of_agents = [waiting for waiting in batch if waiting.append.agent is not None]
        if 0 < len(of_agents) < len(batch):  # theirs is a transaction of several statements
            together = [waiting for waiting in batch if waiting.append.agent is None]
            return [*await self._commit(together), *await self._commit(of_agents)]
        try:
            appends = [waiting.append for waiting in batch]
            rows = await (self._fetch_and_note(appends) if of_agents else self._fetch(appends))
        except OUTAGES:
            raise
        except Exception as error:
            if len(batch) > 1:  # one bad or locked run must not take the others along
                return [locked for waiting in batch for locked in await self._commit([waiting])]
            if isinstance(error, asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError):
                return list(batch)
            _fail(batch, error)
            return []
        _settle(batch, rows)
        return []

    async def _fetch_and_note(self, batch: Sequence[Append]) -> Sequence[Any]:
        assert self._connection is not None
        async with self._connection.transaction():
            rows = await self._fetch(batch)
            written = {row["ord"] for row in rows if row["is_whole"]}
            if written:
                await agent_runs.note(
                    self._connection, [append for ord_, append in enumerate(batch) if ord_ in written]
                )
        return rows

    async def _fetch(self, batch: Sequence[Append]) -> Sequence[Any]:
        made = parameters(batch)
        rows: Sequence[Any] = await (
            self._lean.fetch(*made[: TOOL_PARAMETERS.start]) if is_lean(batch, made) else self._whole.fetch(*made)
        )
        return rows


def _settle(batch: Sequence[_Waiting], rows: Sequence[Any]) -> None:
    by_ord = {row["ord"]: row for row in rows}
    for ord_, waiting in enumerate(batch):
        if waiting.done.done():
            continue
        row = by_ord.get(ord_)
        if row is None:
            waiting.done.set_exception(LeaseLost(f"Another claim of run {waiting.append.claim.run_id} exists."))
        else:
            appended = Appended(row["before"], row["signal_number"], row["is_whole"], row["stopped_by"], row["now"])
            waiting.done.set_result(appended)


def _fail(batch: Sequence[_Waiting], error: Exception) -> None:
    for waiting in batch:
        if not waiting.done.done():
            waiting.done.set_exception(error)
