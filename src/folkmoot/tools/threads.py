"""Threads for sync functions, a daemon thread for each call.

A call that never ends keeps neither other calls nor the process's exit waiting, as a shared pool would. Deliberately absent:
stopping a thread, which Python cannot do; their number is bounded instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from folkmoot.tools.results import failure_text

MAX_THREADS = 64


class TooManyThreads(Exception):
    """The call was not begun, since MAX_THREADS others are under way, given up ones included."""


class CallThreads:
    """The threads of one process's calls."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MAX_THREADS)

    def run(self, call: Callable[[], Any]) -> asyncio.Future[Any]:
        """Begin the call at once, in the caller's context. The future fails as the call does. Raises TooManyThreads."""
        if not self._free.acquire(blocking=False):
            raise TooManyThreads
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        work = partial(self._work, partial(contextvars.copy_context().run, call), loop, future)
        try:
            threading.Thread(target=work, daemon=True, name="folkmoot-function").start()
        except RuntimeError:  # the machine has no more threads
            self._free.release()
            raise TooManyThreads from None
        return future

    def _work(self, call: Callable[[], Any], loop: asyncio.AbstractEventLoop, future: asyncio.Future[Any]) -> None:
        try:
            settle = partial(_succeed, future, call())
        except BaseException as error:
            # A future refuses StopIteration, and SystemExit must not end the process.
            is_ordinary = isinstance(error, Exception) and not isinstance(error, StopIteration)
            settle = partial(_fail, future, error if is_ordinary else as_ordinary(error))
        finally:
            self._free.release()
        # A loop that was closed meanwhile has nobody left who waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)


def as_ordinary(error: BaseException) -> RuntimeError:
    """An error that ends neither the task that holds it nor the process."""
    return RuntimeError(failure_text(error))


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
