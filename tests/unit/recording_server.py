"""An HTTP server on loopback that keeps every request as it came, byte for byte, and answers what a test says."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Received:
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


Answer = Callable[[Received, asyncio.StreamWriter], Awaitable[None]]


def reply(
    body: bytes = b"{}", *, status: int = 200, content_type: str = "application/json", headers: tuple[str, ...] = ()
) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", *headers]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def saying(data: bytes) -> Answer:
    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()

    return answer


@dataclass
class RecordingServer:
    """`received`: the requests, in order. `connections`: how many were accepted. `answer` may be set anew at any time."""

    answer: Answer = field(default_factory=lambda: saying(reply()))
    host: str = "127.0.0.1"
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    port: int = 0
    tls: ssl.SSLContext | None = None
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            async for request in _requests(reader):
                self.received.append(request)
                await self.answer(request, writer)
        writer.close()


async def _requests(reader: asyncio.StreamReader) -> AsyncIterator[Received]:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return
        first, *lines = head.decode("latin-1").strip("\r\n").split("\r\n")
        method, target, _ = first.split(" ")
        headers = tuple((line.partition(":")[0], line.partition(":")[2].strip()) for line in lines)
        size = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
        body = await reader.readexactly(size) if size else b""
        yield Received(method, target, headers, body)
