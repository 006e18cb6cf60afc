"""A server on loopback that speaks OpenAI's chat protocol and keeps books: what it told of each reply that it sent to its end.

Its counts are drawn by chance, seeded; every third call of a model is refused first with an error that is waited out. Deliberately
absent: anything of ours.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any
KINDS = ("Input", "CachedInput", "CacheWrite", "Output", "Reasoning")
REFUSALS = (429, 500, 503)


@dataclass
class Books:
    """`tokens`: by model and kind, as the provider would bill them. `arrived`, `refused`: how many calls, by model.

    `by_key`: tokens in all by the key that was sent. `most`: bounds of a prompt's and a reply's tokens; a reply keeps to the request's
    own bound. `refuses`: whether errors come in between. `hold`: set before replies are sent.
    """

    tokens: Counter[tuple[str, str]] = field(default_factory=Counter)
    arrived: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    by_key: Counter[str] = field(default_factory=Counter)
    streamed: int = 0
    most: tuple[int, int] = (9_000, 900)
    refuses: bool = True
    chance: random.Random = field(default_factory=lambda: random.Random(20261130))
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: Counter[str] = field(default_factory=Counter)
    seen: list[Json] = field(default_factory=list)

    def of_model(self, model: str) -> dict[str, int]:
        return {kind: self.tokens[model, kind] for kind in KINDS}

    def draw(self, body: Json) -> dict[str, int]:
        """What a reply uses, each token in one kind."""
        prompt, reply = self.most
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or reply
        used, written = self.chance.randint(3, prompt), self.chance.randint(2, min(reply, limit))
        cached, reasoning = self.chance.randint(0, used - 1), self.chance.randint(0, written - 1)
        return {"Input": used - cached, "CachedInput": cached, "Output": written - reasoning, "Reasoning": reasoning}

    def note(self, model: str, key: str, counts: dict[str, int]) -> None:
        self.arrived[model] += 1
        self.by_key[key] += sum(counts.values())
        self.tokens.update({(model, kind): count for kind, count in counts.items()})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away in the middle are part of the tests."""


@contextmanager
def bookkeeper(**settings: Any) -> Iterator[tuple[str, Books]]:
    """The base URL of a running server, and its books."""
    books = Books(**settings)
    server = _Server(("127.0.0.1", 0), _handler(books))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", books
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _usage(counts: dict[str, int]) -> Json:
    used, written = counts["Input"] + counts["CachedInput"], counts["Output"] + counts["Reasoning"]
    return {
        "prompt_tokens": used,
        "completion_tokens": written,
        "total_tokens": used + written,
        "prompt_tokens_details": {"cached_tokens": counts["CachedInput"]},
        "completion_tokens_details": {"reasoning_tokens": counts["Reasoning"]},
    }


def _handler(books: Books) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            model, key = body["model"], (self.headers["authorization"] or "").removeprefix("Bearer ")
            with books.lock:
                books.seen.append(body)
                books.asked[model] += 1
                if books.refuses and books.asked[model] % 3 == 0:
                    books.refused[model] += 1
                    return self._refuse(REFUSALS[books.refused[model] % len(REFUSALS)])
                counts = books.draw(body)
                number = books.asked[model]
            text = f"Point {number}." if model != "filtered" else ""
            finish = "content_filter" if model == "filtered" else "stop"
            self._stream(text, finish, counts) if body.get("stream") else self._whole(text, finish, counts)
            with books.lock:
                books.note(model, key, counts)

        def _refuse(self, status: int) -> None:
            error = {"message": "Not now.", "type": "x", "param": None, "code": None}
            self._answer(status, {"error": error}, **{"retry-after": "0"})

        def _whole(self, text: str, finish: str, counts: dict[str, int]) -> None:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": finish}
            self._answer(200, _body("chat.completion", [choice], _usage(counts)))

        def _answer(self, status: int, body: Json, **headers: str) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, text: str, finish: str, counts: dict[str, int]) -> None:
            books.streamed += 1
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            parts: list[tuple[list[Json], Json]] = [
                ([{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}], None),
                ([{"index": 0, "delta": {}, "finish_reason": finish}], None),
                ([], _usage(counts)),
            ]
            lines = [json.dumps(_body("chat.completion.chunk", choices, usage)) for choices, usage in parts]
            for line in (*lines, "[DONE]"):
                chunk = f"data: {line}\n\n".encode()
                self.wfile.write(f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")

    return Handler


def _body(kind: str, choices: list[Json], usage: Json) -> Json:
    return {"id": "c1", "object": kind, "created": 1, "model": "fake", "choices": choices, "usage": usage}
