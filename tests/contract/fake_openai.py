"""A server on loopback that speaks OpenAI's chat protocol as it is on the wire: streams, errors, and connections that break.

What it does is chosen by the model's name in the request: `text`, `calls`, `status-429`, `drop`, and so on (see `_PLAYS`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 7},
}
CUT_ARGUMENTS = '{"city":'


@dataclass
class Seen:
    """What reached the server: bodies and headers (lower case), in order."""

    bodies: list[Json] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    reached: threading.Event = field(default_factory=threading.Event)


@contextmanager
def fake_openai() -> Iterator[tuple[str, Seen]]:
    """The base URL of a running server, and what it sees."""
    seen = Seen()
    server = _Server(("127.0.0.1", 0), _handler(seen))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    finally:
        seen.held.set()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away in the middle are part of the tests."""


def _chunk(delta: Json = None, *, finish: str | None = None, usage: Json = None, **more: Json) -> bytes:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    chunk = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "fake",
        "choices": choices,
        "usage": usage,
    }
    return b"data: " + json.dumps({**chunk, **more}).encode() + b"\n\n"


def _call(index: int, name: str, *pieces: str) -> list[bytes]:
    # Every call has the same id, as some servers do.
    first = {"index": index, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": piece}} for piece in pieces]
    return [_chunk({"tool_calls": [part]}) for part in (first, *rest)]


def _text(text: str) -> list[bytes]:
    return [
        _chunk({"role": "assistant", "content": ""}),
        *(_chunk({"content": piece}) for piece in text.partition(" ")),
    ]


_DONE = b"data: [DONE]\n\n"
_END = [_chunk({}, finish="stop"), _chunk(usage=USAGE), _DONE]
_END_OF_CALLS = [_chunk({}, finish="tool_calls"), _chunk(usage=USAGE), _DONE]


def _problem(status: int, message: str, code: str | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return status, headers, json.dumps({"error": error}).encode()


_STREAMS: dict[str, list[bytes]] = {
    "text": [*_text("Tea is fine."), *_END],
    "quoted": [*_text('I would call {"name": "agree", "arguments": {}} TERMINATE'), *_END],
    "calls": [
        *_text("Let me look."),
        *_call(0, "look", CUT_ARGUMENTS, '"Oslo"}'),
        *_call(1, "look", '{"city":"Rome"}'),
        *_END_OF_CALLS,
    ],
    "broken": [*_call(0, "look", CUT_ARGUMENTS), *_END_OF_CALLS],
    "no-arguments": [*_call(0, "pass"), *_END_OF_CALLS],
    "empty": [_chunk({"role": "assistant", "content": ""}), *_END],
    "uncounted": [*_text("Tea is fine."), _chunk({}, finish="stop"), _DONE],
    "thinking": [_chunk({"role": "assistant", "reasoning_content": "Hmm."}), *_text("Tea is fine."), *_END],
    "only-thinking": [_chunk({"role": "assistant", "reasoning_content": "Hmm."}), *_END],
    "tier": [*_text("Tea is fine."), _chunk({}, finish="stop"), _chunk(usage=USAGE, service_tier="flex"), _DONE],
    "filtered": [*_text("Tea is"), _chunk({}, finish="content_filter"), _chunk(usage=USAGE), _DONE],
    "refusal": [_chunk({"role": "assistant", "refusal": "No."}), *_END],
    "length": [*_call(0, "pass"), _chunk({}, finish="length"), _chunk(usage=USAGE), _DONE],
    "error-in-stream": [
        *_text("Tea is"),
        b'data: {"error": {"message": "The server is overloaded", "type": "overloaded"}}\n\n',
    ],
    "cut": [*_text("Let me look."), *_call(0, "look", CUT_ARGUMENTS)],
    "drop": [*_text("Let me look."), *_call(0, "look", CUT_ARGUMENTS)],
    "no-json": [b"data: {oops\n\n"],
    "odd": [b'data: {"choices": [{"delta": "x", "index": {}}], "usage": []}\n\n'],
    "held": [*_text("Tea is fine.")],
    "say": [*_text('{"say": "Tea is fine."}'), *_END],
    "fenced-call": [*_text('```json\n{"agree": {}}\n```'), *_END],
}
_PROBLEMS: dict[str, tuple[int, dict[str, str], bytes]] = {
    "Authentication": _problem(401, "Incorrect API key provided: sk-right-*****cret.", "invalid_api_key"),
    "forbidden": _problem(403, "Your key may not use this model."),
    "RateLimited": _problem(429, "Rate limit reached.", "rate_limit_exceeded", **{"retry-after": "17"}),
    "QuotaExhausted": _problem(429, "You exceeded your current quota.", "insufficient_quota"),
    "Overloaded": _problem(503, "The engine is currently overloaded.", **{"retry-after": "3"}),
    "ContextTooLong": _problem(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
    "ContextTooLong-llama": _problem(400, "request (9000 tokens) exceeds the available context size (8192 tokens)"),
    "ContentFiltered": _problem(400, "The prompt was filtered.", "content_filter"),
    "InvalidRequest": _problem(400, "Unknown parameter."),
    "missing": _problem(404, "The model does not exist.", "model_not_found"),
    "Unavailable": _problem(500, "Something broke."),
    "html": (502, {"content-type": "text/html"}, b"<html>bad gateway</html>"),
    "echo": _problem(400, "Bad header Bearer sk-right-secret in request."),
}


def _handler(seen: Seen) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.bodies.append(body)
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            play = body["model"]
            if play == "silent":
                seen.reached.set()
                seen.held.wait(10)
            elif play in _PROBLEMS:
                self._answer(*_PROBLEMS[play])
            else:
                self._stream(play)

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {
                "content-type": "application/json",
                "content-length": str(len(body)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, play: str) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            write: Callable[[bytes], Any] = self.wfile.write
            for chunk in _STREAMS[play]:
                write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
                self.wfile.flush()
            if play == "held":
                seen.reached.set()
                seen.held.wait(10)
            self.close_connection = play in ("drop", "held")
            if not self.close_connection:
                write(b"0\r\n\r\n")

    return Handler
