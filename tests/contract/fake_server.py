"""A small HTTP server on loopback for the fake providers: in a thread of its own, many connections at once, kept alive.

A provider is a `Protocol` of ours: it reads a request, checks it as the real one does, and writes answers in its own form. Run
by itself it serves one provider until it is stopped: `python tests/contract/fake_server.py anthropic --port 8099`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from fake_words import Answer, Asked, Booked, Counts, Piece, PrefixCache, Seen, counted

Json = Any
Problem = tuple[int, dict[str, str], bytes]

_LARGEST_HEAD = 1 << 16
_PATIENCE_SECONDS = 10.0
_REASONS = {200: "OK", 400: "Bad Request", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class Read:
    """A request as a provider understands it. `fault`: what is wrong with it in the provider's own words, else null."""

    model: str
    key: str
    is_stream: bool
    pieces: tuple[Piece, ...]
    must_call: bool
    fault: str | None


@dataclass(frozen=True, slots=True)
class _Played:
    answer: Answer
    counts: Counts


class Provider(Protocol):
    """One provider's protocol. `problems`: whole refusals, `plays`: answers, both by the model's name."""

    prefix: str
    problems: dict[str, Problem]
    plays: dict[str, Answer]

    def cache(self) -> PrefixCache: ...

    def read(self, path: str, headers: dict[str, str], body: Json) -> Read: ...

    def raw(self, play: str, *, is_stream: bool) -> bytes | None:
        """What is no reply at all; null for other plays."""
        ...

    def refusal(self, fault: str) -> Problem: ...

    def too_long(self, tokens: int, window: int) -> Problem: ...

    def chunks(self, answer: Answer, counts: Counts, model: str) -> Sequence[bytes]:
        """The events of a stream up to where the answer ends."""
        ...

    def whole(self, answer: Answer, counts: Counts, model: str) -> bytes: ...


@contextmanager
def faked(provider: Provider, seen: Seen | None = None, **settings: Any) -> Iterator[tuple[str, Seen]]:
    """The base URL of a running server, and what it sees. `settings`: fields of Seen."""
    seen = seen or Seen(**settings)
    with serving(provider, seen) as url:
        yield url, seen


@contextmanager
def serving(provider: Provider, seen: Seen, *, port: int = 0) -> Iterator[str]:
    """The base URL of a running server."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True, name="fake-provider")
    thread.start()
    host = _Host(provider, seen)
    starting = asyncio.start_server(host.connected, "127.0.0.1", port, limit=_LARGEST_HEAD, backlog=1024)
    server = asyncio.run_coroutine_threadsafe(starting, loop).result(10)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{provider.prefix}"
    finally:
        seen.held.set()
        asyncio.run_coroutine_threadsafe(host.close(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


class _Host:
    def __init__(self, provider: Provider, seen: Seen) -> None:
        self._provider = provider
        self._seen = seen
        self._cache = provider.cache()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self, server: asyncio.Server) -> None:
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            # Clients that go away in the middle are part of the tests.
            with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
                while await self._exchange(reader, writer):
                    pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its answer; false ends the connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        path = first.split(" ")[1]
        self._seen.add(path, headers, body)
        try:
            read = self._provider.read(path, headers, body)
            play = self._seen.play_of_key.get(read.key, read.model)
            outcome: Problem | bytes | str | _Played = "silent" if play == "silent" else self._outcome(read, play, body)
        except Exception as error:
            # A test's own function may fail; whoever looks at what was refused finds it there.
            self._seen.refused.append(f"The fake server failed: {error!r}")
            return await _send(writer, 500, {}, b'{"error": {"message": "The fake server failed."}}')
        if isinstance(outcome, str):
            await self._hold()
            return False
        if isinstance(outcome, tuple):
            return await _send(writer, *outcome)
        if isinstance(outcome, bytes):
            kind = "text/event-stream" if read.is_stream else "application/json"
            return await _send(writer, 200, {"content-type": kind}, outcome)
        answer, counts = outcome.answer, outcome.counts
        if answer.delay_seconds:
            await asyncio.sleep(answer.delay_seconds)
        if read.is_stream:
            return await self._stream(writer, read, answer, counts)
        return await self._whole(writer, read, answer, counts)

    def _outcome(self, read: Read, play: str, body: Json) -> Problem | bytes | _Played:
        provider, seen = self._provider, self._seen
        if read.fault is not None:
            seen.refused.append(read.fault)
            return provider.refusal(read.fault)
        if play in provider.problems:
            return provider.problems[play]
        raw = provider.raw(play, is_stream=read.is_stream)
        if raw is not None:
            return raw
        tokens = sum(piece.tokens for piece in read.pieces)
        if seen.window_tokens is not None and tokens > seen.window_tokens:
            seen.too_long += 1
            return provider.too_long(tokens, seen.window_tokens)
        seen.accepted += 1
        answer: Answer | str = provider.plays.get(play) or play
        if isinstance(answer, str) and seen.answer is not None:
            answer = seen.answer(Asked(seen.accepted, read.model, read.key, read.pieces, read.must_call, body))
            if isinstance(answer, str) and answer in provider.problems:
                return provider.problems[answer]
        if isinstance(answer, str):
            answer = provider.plays[answer]
        return _Played(answer, counted(answer, self._cache.split(read.pieces)))

    async def _whole(self, writer: asyncio.StreamWriter, read: Read, answer: Answer, counts: Counts) -> bool:
        if answer.end == "held":
            await self._hold()
            return False
        if answer.end == "error":
            return await _send(writer, *self._provider.problems["Overloaded"])
        body = self._provider.whole(answer, counts, read.model)
        if answer.end != "whole":
            self._book(read, counts, arrived=False)
            await _send(writer, 200, {"content-length": str(len(body))}, body[: len(body) // 2])
            return False
        # Booked before it goes out: who has the reply must find it in the books.
        self._book(read, counts, arrived=True)
        return await _send(writer, 200, {}, body)

    async def _stream(self, writer: asyncio.StreamWriter, read: Read, answer: Answer, counts: Counts) -> bool:
        chunks = self._provider.chunks(answer, counts, read.model)
        self._book(read, counts, arrived=answer.end == "whole")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        writer.write(b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks))
        if answer.end == "held":
            await writer.drain()
            await self._hold()
            return False
        if answer.end == "drop":
            await writer.drain()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    def _book(self, read: Read, counts: Counts, *, arrived: bool) -> None:
        self._seen.books.append(Booked(read.model, read.key, counts, arrived))

    async def _hold(self) -> None:
        self._seen.reached.set()
        await asyncio.to_thread(self._seen.held.wait, _PATIENCE_SECONDS)


async def _send(writer: asyncio.StreamWriter, status: int, headers: dict[str, str], body: bytes) -> bool:
    shown = {"content-type": "application/json", "content-length": str(len(body)), **headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in shown.items())
    writer.write(f"HTTP/1.1 {status} {_REASONS.get(status, 'Fake')}\r\n{lines}\r\n".encode() + body)
    await writer.drain()
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("provider", choices=("openai", "anthropic", "google"))
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--window", type=int, help="longer prompts, in tokens, are refused")
    asked = parser.parse_args()
    module = importlib.import_module(f"fake_{asked.provider}")
    seen = Seen(keeps=1, answer=lambda _: Answer("x" * 1024), window_tokens=asked.window)
    with serving(module.PROVIDER, seen, port=asked.port) as url:
        print(url, flush=True)
        # Whoever started it ends it by closing its input.
        sys.stdin.read()


if __name__ == "__main__":
    main()
