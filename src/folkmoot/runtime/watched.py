"""Which runs somebody watches, and what watchers are told: that items were added, and the text of a reply as it comes.

A lossy side channel: items are the record. Only watched runs are told of, so that unwatched ones cost nothing. Texts are
gathered for a moment and sent in pieces; a new attempt of a call voids the former one's text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

Tell = Callable[[dict[str, Any]], None]
WATCH_SECONDS = 30.0
_PIECE = 500  # characters: under the limit of a notification, at twelve bytes for the longest in JSON


class Watched:
    """`tell` sends to all processes, whoever watches; `expect` notes that a run is watched for the next WATCH_SECONDS."""

    def __init__(self, tell: Tell, *, gather_seconds: float = 0.1) -> None:
        self.tell = tell
        self._gather_seconds = gather_seconds
        self._until: dict[UUID, float] = {}

    def expect(self, run_id: UUID) -> None:
        self._until[run_id] = time.monotonic() + WATCH_SECONDS
        if len(self._until) > 10_000:
            now = time.monotonic()
            self._until = {run: until for run, until in self._until.items() if until > now}

    def is_watched(self, run_id: UUID) -> bool:
        return bool(self._until) and self._until.get(run_id, 0.0) > time.monotonic()

    def appended(self, run_id: UUID, sequence: int) -> None:
        if self.is_watched(run_id):
            self.tell({"to": "watchers", "run": str(run_id), "sequence": sequence})

    def paused(self, tenant_id: UUID, run_id: UUID, *, sequence: int) -> None:
        """A run waits for a person now: told whether it is watched or not, since it is news to whoever reads the inbox."""
        self.tell({"to": "inbox", "tenant": str(tenant_id)})
        self.appended(run_id, sequence)

    def reply(self, run_id: UUID, *, model_call_id: UUID, step_key: str, participant: str, attempt: int) -> Reply:
        """A reply under way; its first piece voids what a former attempt of the same step had shown."""
        head = {
            "to": "watchers",
            "run": str(run_id),
            "call": str(model_call_id),
            "step": step_key,
            "participant": participant,
            "attempt": attempt,
        }
        return Reply(self, run_id, head)


class Reply:
    """Gathers the pieces of one reply's text. `is_read`: whether somebody watched when it began."""

    def __init__(self, watched: Watched, run_id: UUID, head: dict[str, Any]) -> None:
        self._watched = watched
        self._run_id = run_id
        self._head = head
        self._pieces: list[str] = []
        self._offset = 0
        self._timer: asyncio.TimerHandle | None = None
        self.is_read = watched.is_watched(run_id)
        if self.is_read:
            watched.tell({**head, "offset": 0, "text": ""})

    def add(self, text: str) -> None:
        self._pieces.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._watched._gather_seconds, self.flush)

    def flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        text = "".join(self._pieces)
        self._pieces = []
        if self._watched.is_watched(self._run_id):
            for start in range(0, len(text), _PIECE):
                piece = text[start : start + _PIECE]
                self._watched.tell({**self._head, "offset": self._offset + start, "text": piece})
        self._offset += len(text)
