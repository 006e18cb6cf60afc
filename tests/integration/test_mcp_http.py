"""MCP servers at a URL: the official library's, and ones on loopback that answer as they should not (B52, B53, F32, F50, F52)."""

from __future__ import annotations

import asyncio
import json
import logging
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_at_hand import Caller, serving, workshop
from recording_server import Received, RecordingServer, reply

from folkmoot.domain.operations import Http, McpDescriptor
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.addresses import Guard
from folkmoot.tools.mcp.service import McpTools

SECRET = "s3cr3t-t0ken-of-ours"
HEADERS = {"Authorization": f"Bearer {SECRET}"}


@pytest.fixture
def tools() -> McpTools:
    """Nothing to close: over HTTP nothing is kept."""
    return McpTools(Guard(allow=("127.0.0.1",)), is_stdio_allowed=False)


@pytest.mark.parametrize("is_stateless", [True, False])
async def test_a_server_of_the_official_library_is_discovered_and_called(
    tools: McpTools, tmp_path: Path, is_stateless: bool
) -> None:
    """B53; a secret in a header arrives, and does not come back (B52)."""
    journal = tmp_path / "journal"
    async with serving(workshop(journal).streamable_http_app(stateless_http=is_stateless)) as url:
        server = Http(f"{url}/mcp")
        found = {
            entry.name: entry.descriptor for entry in await tools.discover(server, headers=HEADERS, limit_seconds=20)
        }
        call = Caller(tools, server, headers=HEADERS)
        for tool, arguments, is_error, said in (
            ("add", {"first": 1, "second": 2}, False, "3"),
            ("only_structured", {}, False, '{"rows":[1,2],"none":null}'),
            ("nothing_needed", {}, False, '{"result":""}'),
            ("break_down", {}, True, "the blade is blunt"),
            ("ask", {}, True, "no back-channel"),
            ("credentials", {}, False, "came with [secret]"),
        ):
            descriptor = found[tool]
            assert isinstance(descriptor, McpDescriptor)
            result = await call(descriptor, verify=True, **arguments)
            assert (result.is_error, result.unknown) == (is_error, False), result
            assert said in result.text
        await call("note", text="once", idempotency_key="key-1")
        assert journal.read_text() == "once key-1\n"
        late = await call("note", text="slow", seconds=30, limit_seconds=1.0)
        assert late.unknown and "outcome is unknown" in late.text


async def test_a_cancelled_call_leaves_the_server_at_work(tools: McpTools, tmp_path: Path) -> None:
    """B53; a call given up while it is under way is over in a moment."""
    journal = tmp_path / "journal"
    async with serving(workshop(journal).streamable_http_app()) as url:
        call = Caller(tools, Http(f"{url}/mcp"))
        task = asyncio.create_task(call("note", text="first", seconds=30))
        await _until(lambda: journal.exists())
        task.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert (await call("add", first=2, second=2)).text == "4"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (reply(b"", status=401), "answered 401 Unauthorized. The credentials"),
        (reply(b"no", status=403, content_type="text/plain"), "answered 403 Forbidden"),
        (reply(b"", status=404), "answered 404 Not Found. Check the path"),
        (reply(b"<html>", content_type="text/html"), "answered with 'text/html': that is no MCP endpoint"),
        (reply(b"not json"), "refused it"),
        (reply(b'{"jsonrpc":"2.0","id":1,"result":{}}'), "does not follow the protocol"),
        (reply(b"", status=500), "answered 500 Internal Server Error"),
        (reply(b"", status=307, headers=("Location: http://10.0.0.1/",)), "redirect"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "broke off the connection"),
        (b"", "did not answer within 0.5 seconds"),
    ],
)
async def test_what_is_no_server_is_refused_with_the_reason(tools: McpTools, answer: bytes, reason: str) -> None:
    """B52: the sentence names the host, and neither path nor query nor header, which may hold what is secret."""

    async def said(received: Received, writer: asyncio.StreamWriter) -> None:
        if not answer:
            await asyncio.sleep(3600)
        writer.write(answer.replace(b'"id":1', f'"id":{json.loads(received.body or b"{}").get("id", 1)}'.encode()))

    async with RecordingServer(answer=said) as listener:
        url = f"{listener.url}/hidden-{SECRET}?key={SECRET}"
        with pytest.raises(ConnectorFault) as caught:
            await tools.discover(Http(url), headers=HEADERS, limit_seconds=20 if answer else 0.5)
    assert reason in str(caught.value)
    assert f"127.0.0.1:{listener.port}" in str(caught.value) and SECRET not in str(caught.value)


async def test_what_cannot_be_reached_is_an_error_and_nothing_is_unknown(tools: McpTools) -> None:
    """F50: an address inside is refused unless it is allowed; nobody listens on the second."""
    async with RecordingServer() as listener:
        closed = McpTools(Guard(), is_stdio_allowed=False)
        refused = await Caller(closed, Http(f"{listener.url}/mcp"))("touch")
        assert not refused.unknown and "is not called" in refused.text and "at an address inside" in refused.text
        assert listener.connections == 0
        with pytest.raises(ConnectorFault, match="at an address inside"):
            await closed.discover(Http(listener.url), headers={}, limit_seconds=5)
        gone = listener.url
    down = await Caller(tools, Http(gone))("touch")
    assert down.is_error and not down.unknown and "cannot be reached" in down.text


@pytest.mark.parametrize(
    ("fault", "is_repeatable", "text", "unknown", "calls"),
    [
        ("drops", False, "broke off the connection", True, 1),
        ("drops", True, "broke off the connection", False, 2),
        ("drops once", True, "done", False, 2),
        ("loses the session once", False, "done", False, 2),
        ("fails", False, "answered 502 Bad Gateway", True, 1),
        ("rejects", False, "answered 400 Bad Request. It says: no such thing", False, 1),
        ("hangs", True, "It can be called again", False, 1),
    ],
)
async def test_a_session_that_dropped_is_opened_again_once(
    tools: McpTools, fault: str, is_repeatable: bool, text: str, unknown: bool, calls: int
) -> None:
    """B53: a call that had begun is sent again only if that does no harm; a session that is not known is made anew."""
    server = OlderServer(fault)
    async with RecordingServer(answer=server.answer) as listener:
        call = Caller(tools, Http(listener.url))
        result = await call("touch", is_repeatable=is_repeatable, limit_seconds=2.0 if fault == "hangs" else 20.0)
    assert text in result.text and result.unknown is unknown
    assert server.calls == calls


async def test_a_tool_that_changed_is_not_called(tools: McpTools) -> None:
    """F32."""
    server = OlderServer("")
    async with RecordingServer(answer=server.answer) as listener:
        (found,) = await tools.discover(Http(listener.url), headers={}, limit_seconds=20)
        assert isinstance(found.descriptor, McpDescriptor)
        call = Caller(tools, Http(listener.url))
        assert (await call(found.descriptor, verify=True)).text == "done"
        server.description = "deletes everything"
        result = await call(found.descriptor, verify=True)
    assert result.is_error and "was not called, since it has changed there: its description." in result.text
    assert server.calls == 1


async def test_a_url_that_speaks_another_version_by_now_is_asked_anew(tools: McpTools, tmp_path: Path) -> None:
    """What was remembered of a URL saves asking, and does no harm when it is no longer so."""
    async with serving(workshop(tmp_path / "journal").streamable_http_app()) as url:
        call = Caller(tools, Http(f"{url}/mcp"))
        assert (await call("add", first=1, second=1)).text == "2"
        port = int(url.rpartition(":")[2])
    older = OlderServer("")
    async with RecordingServer(answer=older.answer, port=port):
        assert (await call("touch")).text == "done"
        count = older.requests
        assert (await call("touch")).text == "done"
        assert older.requests - count == 4  # initialize, initialized, the call, the end; no probe


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
async def test_a_result_of_50_megabytes_is_not_kept(tools: McpTools, media_type: str) -> None:
    """F52: memory stays under 64 MB."""
    server = OlderServer("is huge", media_type)
    async with RecordingServer(answer=server.answer) as listener:
        call = Caller(tools, Http(listener.url))
        tracemalloc.start()
        try:
            result = await call("touch", limit_bytes=10_000_000)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert result.is_error and not result.unknown and "too large" in result.text
    assert peak < 64_000_000 and server.calls == 1


@pytest.mark.parametrize("fault", ["gives secrets back", "gives secrets back in what is no JSON"])
async def test_secrets_are_in_no_log(tools: McpTools, caplog: pytest.LogCaptureFixture, fault: str) -> None:
    """B52: also where the server gives them back, and where they stand in the URL."""
    caplog.set_level(logging.INFO)
    server = OlderServer(fault)
    async with RecordingServer(answer=server.answer) as listener:
        result = await Caller(tools, Http(f"{listener.url}/?key={SECRET}"), headers=HEADERS)("touch")
    assert result.is_error and server.calls == 1 and SECRET not in result.text
    assert fault != "gives secrets back" or "[secret]" in result.text
    assert listener.received[-1].header("Authorization") == HEADERS["Authorization"]
    assert SECRET not in caplog.text


class OlderServer:
    """A server that speaks the protocol of 2025, with sessions, and has a fault in its calls."""

    def __init__(self, fault: str, media_type: str = "application/json") -> None:
        self.calls = 0
        self.requests = 0
        self.description = "reads"
        self._fault = fault
        self._media_type = media_type

    async def answer(self, received: Received, writer: asyncio.StreamWriter) -> None:
        self.requests += 1
        message = json.loads(received.body) if received.body else {}
        if message.get("method", "").startswith("tools/") and received.header("Mcp-Session-Id") is None:
            writer.write(reply(b"", status=400))
            return
        match message.get("method"):
            case "initialize":
                info = {"name": "older", "version": "1"}
                result: dict[str, Any] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
                writer.write(self._said(message, result, "Mcp-Session-Id: one"))
            case "tools/list":
                tool = {"name": "touch", "description": self.description, "inputSchema": {"type": "object"}}
                writer.write(self._said(message, {"tools": [tool]}))
            case "tools/call":
                self.calls += 1
                await self._called(received, message, writer)
            case None | "notifications/initialized" | "notifications/cancelled":
                writer.write(reply(b"", status=202))
            case _:
                writer.write(reply(b"", status=400))
        await writer.drain()

    async def _called(self, received: Received, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        fault = self._fault if self.calls == 1 or not self._fault.endswith(" once") else ""
        match fault:
            case "drops" | "drops once":
                writer.transport.abort()
            case "loses the session once":
                writer.write(reply(b"", status=404))
            case "fails":
                writer.write(reply(b"", status=502))
            case "rejects":
                error = {"code": -32602, "message": "no such thing"}
                body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                writer.write(reply(json.dumps(body).encode(), status=400))
            case "hangs":
                await asyncio.sleep(3600)
            case "is huge":
                await _huge(writer, message["id"], self._media_type)
            case "gives secrets back":
                text = f"you sent {received.header('Authorization')}"
                writer.write(self._said(message, {"content": [{"type": "text", "text": text}], "isError": True}))
            case "gives secrets back in what is no JSON":
                writer.write(reply(f"you sent {received.header('Authorization')}".encode()))
            case _:
                writer.write(self._said(message, {"content": [{"type": "text", "text": "done"}]}))

    def _said(self, message: dict[str, Any], result: dict[str, Any], *headers: str) -> bytes:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        return reply(body, headers=headers)


async def _huge(writer: asyncio.StreamWriter, request_id: int, media_type: str) -> None:
    """50 MB piece by piece, without a length."""
    writer.write(f"HTTP/1.1 200 Fine\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    start = f'{{"jsonrpc":"2.0","id":{request_id},"result":{{"content":[{{"type":"text","text":"'
    pieces = [("data: " if media_type == "text/event-stream" else "") + start, *["x" * 1_000_000] * 50, '"}]}}\n\n']
    for piece in pieces:
        writer.write(f"{len(piece):x}\r\n{piece}\r\n".encode())
        await writer.drain()
    writer.write(b"0\r\n\r\n")


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)
