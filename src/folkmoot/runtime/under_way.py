"""What a drive has begun and not taken in yet: tasks, by the keys of their steps, and the model calls that are out.

Each task puts its outcome among the arrivals. Deliberately absent: what is begun, and what becomes of an outcome (`drive`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from contextlib import suppress
from typing import Any

from folkmoot.kernel.errors import LeaseLost, Unreachable
from folkmoot.runtime.arrivals import Arrivals
from folkmoot.runtime.perform import Asked, Performed
from folkmoot.store.appends import ModelCallBegun


class StepFault(Exception):
    """A step raised what it should have returned: a fault of ours or of an adapter, never the database's."""


class UnderWay:
    """Steps by their keys. True while there are any that are waited for."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, ModelCallBegun] = {}
        self._cut: list[asyncio.Task[None]] = []

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def __contains__(self, step_key: str) -> bool:
        return step_key in self._tasks

    @property
    def model_calls(self) -> Mapping[str, ModelCallBegun]:
        """Those that are waited for, by the keys of their steps."""
        return self._asked

    def ask(self, begun: ModelCallBegun, work: Coroutine[Any, Any, Performed]) -> None:
        """Begin a model call whose row is written."""
        self._asked[begun.step_key] = begun
        self.begin(begun.step_key, work)

    def begin(self, step_key: str, work: Coroutine[Any, Any, Performed]) -> None:
        self._tasks[step_key] = asyncio.create_task(self._performed(work))

    async def _performed(self, work: Coroutine[Any, Any, Performed]) -> None:
        try:
            self._arrivals.put(await work)
        except (LeaseLost, Unreachable) as lost:  # no fault of the step's
            self._arrivals.put(lost)
        except Exception as error:
            fault = StepFault(f"{type(error).__name__}: {error}")
            fault.__cause__ = error
            self._arrivals.put(fault)

    def take(self, done: Performed) -> bool:
        """Take an outcome in. False: its step was cut, and the outcome is nothing any more."""
        key = done.step.key
        if isinstance(done, Asked):
            asked = self._asked.get(key)
            if asked is None or asked.model_call_id != done.model_call_id:
                return False
            del self._asked[key]
        return self._tasks.pop(key, None) is not None

    def cut_off(self) -> Collection[ModelCallBegun]:
        """Nothing is waited for any more; an outcome that has come already is dropped. The model calls that were out."""
        cut = self._asked.values()
        for task in self._tasks.values():
            task.cancel()
        self._cut += self._tasks.values()
        self._asked, self._tasks = {}, {}
        return cut

    async def cancel(self) -> None:
        """Cancel what is there and wait until it has ended. `model_calls` stay, for whoever tells that they are lost."""
        tasks = [*self._tasks.values(), *self._cut]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = {}
