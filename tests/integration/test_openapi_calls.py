"""Calls of operations over real sockets: what the server is sent, what comes of its answer, and how a call ends that fails."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from recording_server import Answer, Received, RecordingServer, reply, saying

from folkmoot.domain.calls import CallBounds, CallResult
from folkmoot.domain.operations import Http, OpenApiDescriptor, OperationTarget, Stdio
from folkmoot.tools.addresses import Guard, guarded_client
from folkmoot.tools.openapi import call, discover

Json = Any
ID = UUID(int=1)
SECRET = 's3cr3t-"value/+'
Call = Callable[..., Coroutine[Any, Any, CallResult]]

DOCUMENT: Json = {
    "openapi": "3.1.0",
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {"operationId": "read", "parameters": [{"name": "q", "in": "query", "schema": {}}]},
            "head": {"operationId": "look"},
            "put": {
                "operationId": "write",
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object", "properties": {"name": {}}}}},
                },
            },
        }
    },
}
OPERATIONS = {found.name: found.descriptor for found in discover(DOCUMENT).operations}


@pytest_asyncio.fixture
async def server() -> AsyncIterator[RecordingServer]:
    async with RecordingServer() as opened:
        yield opened


@pytest_asyncio.fixture
async def made(server: RecordingServer) -> AsyncIterator[Call]:
    """Makes a call of the server's operation `name`."""
    async with guarded_client(Guard(("127.0.0.0/8",))) as client:

        async def make(name: str, arguments: dict[str, Json] | None = None, **options: Any) -> CallResult:
            url = options.pop("url", f"{server.url}/v1")
            target = OperationTarget(ID, "pets", ID, 1, Http(url), OPERATIONS[name])
            headers = options.pop("headers", {"Authorization": f"Bearer {SECRET}"})
            bounds = replace(CallBounds(5.0, 100_000, "call-1"), **options)
            return await call(
                client, target, {"id": "7"} if arguments is None else arguments, headers=headers, bounds=bounds
            )

        yield make


async def test_a_call_is_sent_as_described_and_its_answer_is_the_result(server: RecordingServer, made: Call) -> None:
    server.answer = saying(reply(b'{"name": "Rex"}'))
    result = await made("write", {"id": "a/b?c#d%", "name": None})
    assert result == CallResult('{"name": "Rex"}', is_error=False)
    (received,) = server.received
    assert (received.method, received.target, received.body) == ("PUT", "/v1/pets/a%2Fb%3Fc%23d%25", b'{"name":null}')
    assert received.header("Authorization") == f"Bearer {SECRET}"
    assert received.header("Idempotency-Key") == "call-1"
    assert received.header("Content-Type") == "application/json"


@pytest.mark.parametrize("value", ["..", "../admin", "%2e%2e%2f", "a\r\nX: y", "..%5c"])
async def test_a_value_that_leaves_its_step_sends_nothing(server: RecordingServer, made: Call, value: str) -> None:
    """F51"""
    result = await made("read", {"id": value})
    assert result.is_error and not result.unknown
    assert result.text.endswith("Nothing was sent.")
    assert server.connections == 0


ANSWERS: dict[str, tuple[bytes, str, bool]] = {
    "no content": (reply(b"", status=204), "Done. The server answered 204 without content.", False),
    "plain text": (reply("grün".encode("latin-1"), content_type="text/plain; charset=latin-1"), "grün", False),
    "an unknown charset": (reply("grün".encode(), content_type="text/plain; charset=rot13"), "grün", False),
    "an unnamed text": (reply(b"hello", content_type=""), "hello", False),
    "a NUL": (reply(b"a\x00b", content_type="text/plain"), "a\u2400b", False),
    "a picture": (
        reply(b"\x89PNG\x00\xff", content_type="image/png"),
        "The answer is binary and is not shown: 6 bytes of image/png.",
        False,
    ),
    "gzip": (reply(gzip.compress(b"[1]"), headers=("Content-Encoding: gzip",)), "[1]", False),
    "an error": (reply(b'{"why": "gone"}', status=404), 'The server answered 404 Not Found. It says:\n{"why": "gone"}', True),
    "an error in pictures": (reply(b"\xff\x00", status=500, content_type="image/png"), "The server answered 500 Internal Server Error.", True),
    "a long error": (reply(b"x" * 9_000, status=400, content_type="text/html"), "x" * 2_000 + "…", True),
    "another encoding": (reply(b"abc", headers=("Content-Encoding: br",)), "encoding 'br', which was not asked for", True),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "text", "is_error"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_every_answer_is_a_result(
    server: RecordingServer, made: Call, answer: bytes, text: str, is_error: bool
) -> None:
    server.answer = saying(answer)
    result = await made("read", is_repeatable=True)
    assert (result.is_error, result.unknown) == (is_error, False)
    assert text in result.text


async def test_an_answer_to_head_has_no_content(server: RecordingServer, made: Call) -> None:
    server.answer = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
    assert (await made("look")).text == "Done. The server answered 200 without content."


async def test_an_answer_larger_than_the_limit_is_an_error_that_shows_its_head(
    server: RecordingServer, made: Call
) -> None:
    server.answer = saying(reply(b"word " * 40_000))
    result = await made("read")
    assert result.is_error and not result.unknown
    assert "more than 100,000 bytes" in result.text
    assert len(result.text) < 2_400


async def test_a_secret_is_in_no_result(server: RecordingServer, made: Call) -> None:
    """B52"""

    async def echo(received: Received, writer: asyncio.StreamWriter) -> None:
        value = received.header("Authorization") or ""
        body = json.dumps({"sent": value, "token": value.partition(" ")[2], "plain": SECRET}) + SECRET
        for status in (b"200", b"400"):
            if received.target.endswith(status.decode()):
                writer.write(
                    reply(
                        (body + "x" * 200_000).encode() if "long" in received.target else body.encode(),
                        status=int(status),
                    )
                )

    server.answer = echo
    seen = [await made("read", {"id": step}) for step in ("200", "400", "long200", "long400")]
    seen.append(await made("read", url=f"http://{SECRET[:6]}.invalid"))
    seen.append(await made("read", headers={"X-Key": SECRET + "\r\nX: y"}))
    seen.append(await made("read", {"id": "cut200"}, limit_bytes=30))
    assert all("s3cr3t-" not in result.text for result in seen)
    assert seen[0].text.count("[secret]") == 4
    assert len(server.received) == 5


async def _silence(received: Received, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def _hang_up(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def _half(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
    writer.close()


async def _drip(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _endless(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
        await writer.drain()


async def _endless_head(received: Received, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"X: y\r\n" * 1_000)
        await writer.drain()


FAILURES: dict[str, tuple[Answer, str, bool]] = {
    "silence": (_silence, "took longer than its 0.2 seconds", True),
    "a server that hangs up": (_hang_up, "The connection failed", True),
    "half an answer": (_half, "after the server had answered 200", False),
    "a dripping answer": (_drip, "after the server had answered 200", False),
    "an endless answer": (_endless, "more than 100,000 bytes", False),
    "an endless head": (_endless_head, "The connection failed", True),
    "no HTTP": (saying(b"SSH-2.0-OpenSSH\r\n\r\n"), "The connection failed", True),
    "a gateway that gave up": (saying(reply(status=504)), "answered 504", True),
    "a gateway that failed": (saying(reply(status=502)), "answered 502", True),
    "a server that refuses": (saying(reply(status=503)), "answered 503", False),
}


@pytest.mark.parametrize(("answer", "text", "is_open"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_failure_after_sending_is_unknown_unless_the_call_can_be_repeated(
    server: RecordingServer, made: Call, answer: Answer, text: str, is_open: bool
) -> None:
    """F52"""
    server.answer = answer
    for is_repeatable in (False, True):
        result = await made("write", {"id": "7", "name": "x"}, limit_seconds=0.2, is_repeatable=is_repeatable)
        assert text in result.text
        assert (result.is_error, result.unknown) == (True, is_open and not is_repeatable)
        assert ("may or may not have happened" in result.text) == result.unknown


async def test_a_failure_before_sending_is_a_plain_error(server: RecordingServer, made: Call) -> None:
    """F50"""
    url = server.url
    closed = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = closed.sockets[0].getsockname()[1]
    closed.close()
    await closed.wait_closed()
    cases = {
        f"http://127.0.0.1:{port}": "The connection failed",
        f"http://[::1]:{server.port}": "FOLKMOOT_ALLOW_ADDRESSES",
        "http://169.254.169.254/latest": "FOLKMOOT_ALLOW_ADDRESSES",
        "http://no-such-host.invalid": "has no address",
        "ftp://a.test": "begins with 'https://'",
        f"{url}/?x=1": "base URL",
        "http://a..b": "The connection failed",
        "": "begins with 'https://'",
        url.replace("http", "https"): "took longer than its 0.3 seconds",
    }
    for base, text in cases.items():
        result = await made("write", {"id": "7", "name": "x"}, url=base, limit_seconds=0.3)
        assert (result.is_error, result.unknown) == (True, False), base
        assert text in result.text
        assert result.text.endswith("Nothing was sent."), base
    assert server.received == []


async def test_a_redirect_of_a_call_that_writes_is_an_error_and_carries_nothing_on(
    server: RecordingServer, made: Call
) -> None:
    """F51"""
    async with RecordingServer() as other:
        server.answer = saying(reply(status=307, headers=(f"Location: {other.url}/x",)))
        result = await made("write", {"id": "7", "name": "private"})
        assert (result.is_error, result.unknown, other.connections) == (True, False, 0)
        assert "it redirects this call, which is not followed" in result.text
        other.answer = saying(reply(b"moved"))
        assert (await made("read")).text == "moved"
        assert [received.header("Authorization") for received in other.received] == [None]


async def test_a_redirect_to_an_inside_address_after_sending_is_told_as_open(
    server: RecordingServer, made: Call
) -> None:
    """F50: a 303 answers a call that was made."""
    server.answer = saying(reply(status=303, headers=("Location: http://169.254.169.254/",)))
    assert (await made("write", {"id": "7"})).unknown
    assert not (await made("read", is_repeatable=True)).unknown


async def test_a_target_of_another_kind_and_arguments_that_do_not_fit_are_results(
    made: Call, server: RecordingServer
) -> None:
    async with guarded_client(Guard()) as client:
        target = OperationTarget(ID, "c", ID, 1, Stdio("ls"), OpenApiDescriptor("GET", "/", "", {}))
        result = await call(client, target, {}, headers={}, bounds=CallBounds(1, 1, "call-1"))
    assert result.is_error and "none of a service over HTTP" in result.text
    for arguments in ({}, {"id": "7", "other": 1}):
        assert "The arguments do not fit." in (await made("read", arguments)).text
    assert server.connections == 0


async def test_cancelling_a_call_is_raised_and_leaves_the_client_at_work(server: RecordingServer, made: Call) -> None:
    """B53"""
    server.answer = _silence
    task = asyncio.create_task(made("read", limit_seconds=60.0))
    while not server.received:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.answer = saying(reply(b"again"))
    assert (await made("read")).text == "again"


async def test_bombs_and_endless_answers_leave_the_memory_where_it_was(server: RecordingServer, made: Call) -> None:
    """F52"""
    bomb = gzip.compress(bytes(200_000_000), 1)
    await made("read")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    server.answer = saying(reply(bomb, headers=("Content-Encoding: gzip",)))
    results = [await made("read")]
    server.answer = _endless
    results.append(await made("read"))
    assert [result.is_error for result in results] == [True, True]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 65_536  # KiB


async def test_the_client_is_httpx2s_for_whoever_speaks_another_protocol_over_it(server: RecordingServer) -> None:
    async with guarded_client(Guard(("127.0.0.0/8",)), headers={"X-Own": "1"}, timeout=httpx2.Timeout(5)) as client:
        server.answer = saying(reply(b"data: one\n\n", content_type="text/event-stream"))
        async with client.stream("POST", server.url, json={"a": 1}) as response:
            assert [line async for line in response.aiter_lines()] == ["data: one", ""]
    assert (server.received[0].body, server.received[0].header("X-Own")) == (b'{"a":1}', "1")
