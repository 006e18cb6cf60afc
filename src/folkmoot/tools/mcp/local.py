"""Servers that are commands: one process and one session each, kept for many calls, in a task of its own.

The task that opens a session must be the one that closes it, so calls come from other tasks, and a call that is cancelled takes
nothing with it. A server is kept apart by connector, command, arguments and environment, its secrets included, so that a changed
secret starts another one; one that nobody called for a while is ended. Deliberately absent: restarts of its own accord; the next call starts what has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import TypeVar

from mcp.client.client import Client
from mcp.client.session import ClientSession

from folkmoot.domain.operations import Stdio
from folkmoot.tools.mcp.pipes import ProcessLog, open_pipes
from folkmoot.tools.mcp.talk import CLIENT_INFO
from folkmoot.tools.mcp.texts import shortened
from folkmoot.tools.mcp.trace import ServerFailure, Trace, explained

MAX_SERVERS = 64
IDLE_SECONDS = 600.0
START_SECONDS = 60.0

T = TypeVar("T")
_log = logging.getLogger("folkmoot.tools.mcp")


class LocalServer:
    """One process with its session, started at once and ended by `close`, or when it has been idle for `idle_seconds`."""

    def __init__(self, server: Stdio, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._log = ProcessLog(server)
        self._idle_seconds = idle_seconds
        self._is_ready = asyncio.Event()
        self._is_leaving = asyncio.Event()
        self._session: ClientSession | None = None
        self._failure: ServerFailure | None = None
        self._users = 0
        self.used_at = asyncio.get_running_loop().time()
        self._task = asyncio.create_task(self._own(), name="folkmoot-mcp-server")

    @property
    def is_over(self) -> bool:
        return self._log.over.is_set() or self._is_leaving.is_set() or self._task.done()

    @property
    def is_busy(self) -> bool:
        return self._users > 0

    async def work(
        self, task: Callable[[ClientSession], Awaitable[T]], *, limit_bytes: int, key: str | None, trace: Trace
    ) -> T:
        """Do the task with the session once it is open. `key`: the idempotency key of the task's call. Raises ServerFailure
        and what the task raises of its own."""
        with self._in_use(key, trace), explained(trace):
            await self._is_ready.wait()
            if self._session is None:
                raise self._failure or ServerFailure("has ended.", is_worth_another=True)
            self._log.lines.limit_bytes = max(self._log.lines.limit_bytes, limit_bytes)
            return await task(self._session)

    async def close(self) -> None:
        """End the process and all it started. Takes seconds where it does not end by itself."""
        self._is_leaving.set()
        if not self._is_ready.is_set():
            self._task.cancel()
        await asyncio.wait((self._task,))

    @contextmanager
    def _in_use(self, key: str | None, trace: Trace) -> Iterator[None]:
        self._users += 1
        if key is not None:
            self._log.traces[key] = trace
        try:
            yield
        finally:
            self._users -= 1
            self.used_at = asyncio.get_running_loop().time()
            if key is not None and self._log.traces.get(key) is trace:
                del self._log.traces[key]

    async def _own(self) -> None:
        name = shortened(self._log.server.command, 100)
        was_ready = False
        client = Client(open_pipes(self._log), cache=None, client_info=CLIENT_INFO)
        try:
            with explained(Trace()):
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(START_SECONDS):
                        await stack.enter_async_context(client)
                    self._session = client.session
                    was_ready = True
                    self._is_ready.set()
                    await self._ending()
                    self._session = None
        except ServerFailure as failure:
            self._failure = self._told(failure)
        finally:
            self._session = None
            self._is_ready.set()
            self._log.over.set()
        if was_ready and not self._is_leaving.is_set():
            _log.warning("The MCP server '%s' %s. %s", name, self._log.ended(), self._log.last_words())

    def _told(self, failure: ServerFailure) -> ServerFailure:
        """Why it did not open, with what it left behind."""
        words = self._log.last_words() or self._log.noise
        _log.info("The MCP server '%s' did not start. %s", shortened(self._log.server.command, 100), words)
        if not failure.is_worth_another:
            failure.aside = words
            return failure
        return ServerFailure(f"{self._log.ended()} before it could be spoken to.", aside=words)

    async def _ending(self) -> None:
        """Until the process ends, somebody closes it, or it has been idle long enough."""
        loop = asyncio.get_running_loop()
        waits = [asyncio.ensure_future(self._log.over.wait()), asyncio.ensure_future(self._is_leaving.wait())]
        try:
            while True:
                rest = self.used_at + self._idle_seconds - loop.time()
                if rest <= 0 and not self.is_busy:
                    self._is_leaving.set()
                    return
                done, _ = await asyncio.wait(
                    waits, timeout=rest if rest > 0 else self._idle_seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if done:
                    return
        finally:
            for wait in waits:
                wait.cancel()


class LocalServers:
    """The servers of this process that are kept."""

    def __init__(self) -> None:
        self._servers: dict[Hashable, LocalServer] = {}
        self._farewells: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def server(self, owner: Hashable, server: Stdio) -> LocalServer:
        """The running server of an owner, or a new one. Raises ServerFailure where too many are at work, or after `close`."""
        if self._is_closed:
            raise ServerFailure("is not started, since this process is stopping.")
        key = (owner, server.command, server.arguments, tuple(sorted(server.environment.items())))
        known = self._servers.pop(key, None)
        if known is None or known.is_over:
            self._make_room()
            known = LocalServer(server)
        self._servers[key] = known
        return known

    async def close(self) -> None:
        """End them all, and start none any more."""
        self._is_closed = True
        servers = [*self._servers.values()]
        self._servers.clear()
        await asyncio.gather(*(server.close() for server in servers), *self._farewells)

    def _make_room(self) -> None:
        self._servers = {key: server for key, server in self._servers.items() if not server.is_over}
        if len(self._servers) < MAX_SERVERS:
            return
        for key, server in self._servers.items():  # the longest unused first
            if not server.is_busy:
                del self._servers[key]
                farewell = asyncio.create_task(server.close())
                self._farewells.add(farewell)
                farewell.add_done_callback(self._farewells.discard)
                return
        raise ServerFailure(f"is not started: {MAX_SERVERS} others are at work. Try again later.")


def line_limit(limit_bytes: int) -> int:
    """How many bytes an answer may have on its way, whose text may have `limit_bytes`: servers send text and structure."""
    return 2 * limit_bytes + 65_536
