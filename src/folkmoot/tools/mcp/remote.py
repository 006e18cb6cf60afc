"""Servers at a URL: a client of its own for each piece of work, over a connection that the address guard has passed.

Nothing is shared between two calls but what version of the protocol a URL speaks, so that no session, connection or header of
one user serves another. Deliberately absent: the stream on which a server speaks unasked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import httpx2
from mcp.client.client import Client
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from folkmoot.tools.addresses import Guard, guarded_client
from folkmoot.tools.mcp.talk import CLIENT_INFO
from folkmoot.tools.mcp.trace import ServerFailure, Trace, explained

CONNECT_SECONDS = 10.0
FAREWELL_SECONDS = 2.0
_REMEMBERED = 1_024
_CALL = b'"tools/call"'
_MISUNDERSTOOD = frozenset((400, 404, 405, 406, 415, 422, 501))

T = TypeVar("T")


class RemoteServers:
    """The way to servers over HTTP. Remembers which version of the protocol a URL spoke, which saves asking at every call."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._modes: dict[str, str] = {}

    async def work(
        self,
        url: str,
        task: Callable[[ClientSession], Awaitable[T]],
        *,
        headers: dict[str, str],
        limit_bytes: int,
        trace: Trace,
    ) -> T:
        """Open a session, do the task, close it. `limit_bytes` of each response's body. Raises ServerFailure and what the
        task raises of its own."""
        mode = self._modes.get(url, "auto")
        try:
            with explained(trace):
                return await self._done(url, task, mode=mode, headers=headers, limit_bytes=limit_bytes, trace=trace)
        except ServerFailure as failure:
            # It may speak another version of the protocol by now.
            self._modes.pop(url, None)
            if mode != "auto" and not trace.is_sent and trace.status in _MISUNDERSTOOD:
                failure.is_worth_another = True
            raise

    async def _done(
        self,
        url: str,
        task: Callable[[ClientSession], Awaitable[T]],
        *,
        mode: str,
        headers: dict[str, str],
        limit_bytes: int,
        trace: Trace,
    ) -> T:
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
        async with guarded_client(self._guard, headers=headers, timeout=timeout, limit_bytes=limit_bytes) as http:
            http.event_hooks = _hooks(trace)
            transport = streamable_http_client(url, http_client=http, max_sse_event_size=limit_bytes)
            async with Client(transport, mode=mode, cache=None, client_info=CLIENT_INFO) as client:
                self._remember(url, client.protocol_version)
                return await task(client.session)

    def _remember(self, url: str, version: str) -> None:
        self._modes.pop(url, None)
        self._modes[url] = version if version in MODERN_PROTOCOL_VERSIONS else "legacy"
        while len(self._modes) > _REMEMBERED:
            del self._modes[next(iter(self._modes))]


def _hooks(trace: Trace) -> dict[str, list[Callable[..., Awaitable[None]]]]:
    async def leaving(request: httpx2.Request) -> None:
        if request.method == "GET" and ("Last-Event-ID" not in request.headers or trace.breach is not None):
            raise httpx2.RequestError("The server is not listened to beyond its answers.")
        if request.method == "DELETE":
            request.extensions["timeout"] = httpx2.Timeout(FAREWELL_SECONDS).as_dict()
        elif request.method == "POST" and _CALL in request.content:
            trace.is_sent = True

    async def arrived(response: httpx2.Response) -> None:
        if response.request.method != "POST":
            return
        trace.status = response.status_code
        trace.media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Observed(response.stream, trace)

    return {"request": [leaving], "response": [arrived]}


class _Observed(httpx2.AsyncByteStream):
    """A body that notes in the trace what broke it off, which the library tells nobody of."""

    def __init__(self, source: httpx2.AsyncByteStream, trace: Trace) -> None:
        self._source = source
        self._trace = trace

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._source:
                yield piece
        except httpx2.HTTPError as error:
            self._trace.breach = error
            raise

    async def aclose(self) -> None:
        await self._source.aclose()
