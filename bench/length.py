"""Part b: what a turn costs as one conversation gets long, alone and with a person's message per turn from another process; and bytes.

The times are the database's, of each turn's commit. Content is the replies' text alone, and the messages' where there are any.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from bench.course import Course
from bench.figures import OURS
from bench.peer_runs import peer
from bench.roundtable import NAMES, REPLY_BYTES, Driver, driver, new_id, reply_text, roundtable, scripted
from bench.workers import worker
from folkmoot.domain.items import Author, AuthorKind
from folkmoot.store import conversations
from folkmoot.store.database import Listener

MARKS = (10, 100, 1000, 3000)
OBSERVED = f"{OURS}, a message a turn"
_BEFORE, _AFTER = 5, 15  # turns around a mark whose median is the figure
_PEERS_TURNS = 1000


async def long_conversation(course: Course) -> None:
    turns, observed_turns = (30, 30) if course.is_quick else (3000, 1020)
    fields = (*(f"ms_at_{mark}" for mark in MARKS), "done", "wall_s", "stored_per_content")
    for repeat in range(1, course.repeats + 1):
        await _alone(course, repeat, turns=turns)
        await _observed(course, repeat, turns=observed_turns)
        peers_turns = 30 if course.is_quick else _PEERS_TURNS
        for which in course.peers:
            await peer(course, "b", which, repeat, "--turns", str(peers_turns), "--max-s", "90", fields=fields)


async def _alone(course: Course, repeat: int, *, turns: int) -> None:
    async with course.ground.database() as dsn, driver(dsn) as drive, worker(course.ground, dsn, drive):
        stored, wal = await drive.stored_bytes(), await drive.wal_bytes()
        (run_id,) = await drive.start(roundtable(scripted(), rounds=turns // len(NAMES)))
        await drive.ended([run_id], turns=turns)
        content = turns * REPLY_BYTES
        times = await drive.turn_times(run_id)
        course.record(
            "b", OURS, repeat, done=turns, wall_s=(times[-1] - times[0]).total_seconds(), **at_marks(times),
            stored_per_content=(await drive.stored_bytes() - stored) / content,
            wal_per_content=(await drive.wal_bytes() - wal) / content,
        )  # fmt: skip


async def _observed(course: Course, repeat: int, *, turns: int) -> None:
    async with course.ground.database() as dsn, driver(dsn) as drive, worker(course.ground, dsn, drive):
        person = _Person(drive, new_id())
        await person.begin()
        resolved = roundtable(scripted(), rounds=turns // len(NAMES), is_observed=True)
        await drive.start(resolved, run_ids=[person.run_id])
        await drive.ended([person.run_id], turns=turns)
        await person.end()
        times = await drive.turn_times(person.run_id)
        course.record(
            "b", OBSERVED, repeat, done=turns, wall_s=(times[-1] - times[0]).total_seconds(), **at_marks(times),
            messages_per_turn=person.written / turns,
        )  # fmt: skip


class _Person:
    """Watches a run as a client does, and answers each turn it hears of with a message."""

    def __init__(self, drive: Driver, run_id: UUID) -> None:
        self.run_id = run_id
        self.written = 0
        self._turns = 0
        self._upto = 0
        self._drive = drive
        self._author = Author(AuthorKind.HUMAN, "Dana", drive.user_id)
        self._heard = asyncio.Event()
        self._listener = Listener(drive.database, self._hear)
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self._listener.start()
        self._task = asyncio.create_task(self._write())

    async def end(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._listener.close()

    def _hear(self, message: dict[str, Any]) -> None:
        if message.get("to") == "watchers" and message.get("run") == str(self.run_id):
            self._heard.set()

    async def _count_turns(self) -> None:
        """Reads on from where it was, so that this costs the same however long the conversation is."""
        async with self._drive.database.reader() as reader:
            rows = await reader.connection.fetch(
                "select sequence, kind = 'agentMessage' as is_turn from item"
                " where tenant_id = $1 and run_id = $2 and sequence > $3 order by sequence",
                self._drive.tenant_id, self.run_id, self._upto,
            )  # fmt: skip
        self._turns += sum(row["is_turn"] for row in rows)
        self._upto = rows[-1]["sequence"] if rows else self._upto

    async def _write(self) -> None:
        """As many messages as there are turns: where two turns were heard of at once, two."""
        text, drive = reply_text(), self._drive
        while True:
            drive.notifier.tell({"to": "watch", "run": str(self.run_id)})
            try:
                await asyncio.wait_for(self._heard.wait(), 0.2)
            except TimeoutError:
                continue
            self._heard.clear()
            await self._count_turns()
            while self.written < self._turns:
                async with drive.database.writer() as writer:
                    made = await conversations.append_message(
                        writer, drive.tenant_id, run_id=self.run_id, item_id=new_id(), author=self._author, message=text,
                        thread_id="main",
                    )  # fmt: skip
                if made is None:
                    return
                self.written += 1
                drive.notifier.tell({"to": "run", "run": str(self.run_id)})


def at_marks(times: Sequence[datetime]) -> dict[str, float]:
    """Milliseconds a turn around each mark that the conversation reached."""
    steps = [(after - before).total_seconds() * 1000 for before, after in itertools.pairwise(times)]
    found = {}
    for mark in MARKS:
        around = steps[max(0, mark - 1 - _BEFORE) : mark - 1 + _AFTER]
        if len(times) >= mark and around:
            found[f"ms_at_{mark}"] = statistics.median(around)
    return found
