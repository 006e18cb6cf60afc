"""The other side of a `webhook` channel: an HTTP endpoint on loopback that takes every message, and notes which it was.

Deliberately absent: a look at signatures, and answers, which are given at a time of the bench's choice (`consent_answers`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

_TAKEN = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(slots=True)
class Endpoint:
    """`received`: of each delivery its message's id, its kind, and the number of the agent run. `asked`: of each run that asks, its token and
    the request's secret, with which the answer is to come."""

    port: int = 0
    received: list[tuple[str, str, int]] = field(default_factory=list)
    asked: dict[int, tuple[str, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/told"

    def runs(self, kind: str) -> list[int]:
        """Of each message of a kind its run; one that was delivered again counts once, as its id says."""
        return list({message_id: run for message_id, its_kind, run in self.received if its_kind == kind}.values())

    def _note(self, message_id: str, kind: str, data: dict[str, Any]) -> None:
        self.received.append((message_id, kind, data["runId"]))
        if kind == "consent.requested":
            self.asked[data["runId"]] = (data["token"], data["secret"])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
                headers = dict(line.split(": ", 1) for line in head[1:] if line)
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                self._note(headers["webhook-id"], body["type"], body["data"])
                writer.write(_TAKEN)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # whoever asked is gone
        finally:
            writer.close()


@asynccontextmanager
async def open_endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    endpoint.port = server.sockets[0].getsockname()[1]
    try:
        yield endpoint
    finally:
        server.close()
