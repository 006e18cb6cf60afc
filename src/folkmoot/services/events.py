"""What a watcher of a run sees, as it happens: items by sequence without loss or repeat, texts under way, snapshots, the end.

Items are read from the database by position, so a stream resumed from any sequence, on any server, gives exactly the rest.
No connection is held while waiting. Deliberately absent: SSE, terminals, and any memory of who watches.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun
from folkmoot.domain.items import StoredItem
from folkmoot.domain.runs import Run
from folkmoot.kernel.errors import NotFound
from folkmoot.services.snapshots import (
    OF_INTERACTION,
    AgentRunEnded,
    ApprovalSnapshot,
    ConsentSnapshot,
    Ended,
    Sight,
    Standing,
)
from folkmoot.store import conversations
from folkmoot.store.conversations import ModelCallRecord
from folkmoot.store.database import Database, Listener

__all__ = ["AgentRunEnded", "ApprovalSnapshot", "ConsentSnapshot", "Ended"]

PAGE = 200
BUFFERED_PIECES = 500
BUFFERED_CHARACTERS = 250_000
POLL_SECONDS = 2.0
LONGEST_POLL_SECONDS = 8.0  # with no news, so that many idle watchers cost little
WATCH_AGAIN_SECONDS = 10.0
USAGE_SECONDS = 2.0
USAGE_SECONDS_PER_CALL = 0.01  # a snapshot names every call: the more there are, the rarer it is
_ANY = 2**63  # more than any sequence
_INBOX = -1  # something came to wait somewhere in the tenant, or does no more
INBOX_REST_SECONDS = 0.5  # in a tenant where much is asked a run is not looked at for each
_SURROGATES = re.compile("[\ud800-\udfff]")
Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a reply under way. A higher `attempt` of the same `step` voids what was shown of it before."""

    step: str
    model_call_id: str
    participant: str
    attempt: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    calls: tuple[ModelCallRecord, ...]


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing happened for a while; keeps proxies from closing."""


Snapshot = ApprovalSnapshot | ConsentSnapshot | UsageSnapshot
Event = StoredItem | Run | AgentRun | Delta | Snapshot | Heartbeat | Ended | AgentRunEnded


class Subscription:
    """What was heard of one run and not read yet: pieces of text, and up to which sequence there are items.

    The buffer is bounded. `is_overrun` once a reader was too slow for it: then it is empty and stays so.
    """

    def __init__(self) -> None:
        self._heard: deque[Delta | int] = deque()
        self._pieces = 0
        self._characters = 0
        self._news = asyncio.Event()
        self.is_overrun = False

    def put(self, heard: Delta | int) -> None:
        if self.is_overrun:
            return
        if isinstance(heard, Delta):
            self._count(heard, 1)
        elif self._heard and isinstance(last := self._heard[-1], int):
            self._heard.pop()
            heard = max(heard, last)
        self._heard.append(heard)
        if self._pieces > BUFFERED_PIECES or self._characters > BUFFERED_CHARACTERS:
            self.is_overrun = True
            self._heard.clear()
        self._news.set()

    async def get(self, *, seconds: float) -> Delta | int | None:
        """The next that was heard; null if there is nothing for so long, or once the reader was too slow."""
        if not self._heard and not self.is_overrun:
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), seconds)
            except TimeoutError:
                return None
        if not self._heard:
            return None
        heard = self._heard.popleft()
        if isinstance(heard, Delta):
            self._count(heard, -1)
        return heard

    def _count(self, delta: Delta, sign: int) -> None:
        self._pieces += sign
        self._characters += sign * len(delta.text)


class Hub:
    """Hears for all watchers of this process, on one connection."""

    def __init__(self, database: Database) -> None:
        self._listener = Listener(database, self._hear)
        self._subscriptions: dict[str, set[Subscription]] = {}

    async def start(self) -> None:
        await self._listener.start()

    async def close(self) -> None:
        await self._listener.close()

    def subscribe(self, subject: UUID | str, subscription: Subscription | None = None) -> Subscription:
        """To a run by its id, or to a tenant's inbox by `inbox_of`; with `subscription` one that hears of other subjects, too."""
        subscription = subscription or Subscription()
        self._subscriptions.setdefault(str(subject), set()).add(subscription)
        return subscription

    def unsubscribe(self, subject: UUID | str, subscription: Subscription) -> None:
        subscriptions = self._subscriptions.get(str(subject), set())
        subscriptions.discard(subscription)
        if not subscriptions:
            self._subscriptions.pop(str(subject), None)

    def _hear(self, message: dict[str, Any]) -> None:
        match message:
            case {"to": "watchers" | "run", "run": str(subject)}:
                pass
            case {"to": "inbox", "tenant": str(tenant)}:
                subject = inbox_of(tenant)
            case _:
                return
        subscriptions = self._subscriptions.get(subject)
        if subscriptions:
            heard = _heard(message)  # one for all, so that many readers of a run hold its text once
            for subscription in subscriptions:
                subscription.put(heard)


def inbox_of(tenant_id: UUID | str) -> str:
    """What to subscribe to for news of what waits for the people of a tenant."""
    return f"inbox:{tenant_id}"


def _heard(message: dict[str, Any]) -> Delta | int:
    """A piece of text, up to which sequence there may be items, or _INBOX."""
    if message["to"] == "inbox":
        return _INBOX
    if "text" not in message:
        return int(message.get("sequence", _ANY))
    # A lone surrogate cannot be sent on. One character stands for it, so that offsets stay right.
    text = _SURROGATES.sub("\ufffd", message["text"])
    return Delta(message["step"], message["call"], message["participant"], message["attempt"], message["offset"], text)


async def follow(
    database: Database,
    hub: Hub,
    tell: Tell,
    *,
    tenant_id: UUID,
    run_id: UUID,
    after: int = 0,
    sight: Sight = OF_INTERACTION,
    poll_seconds: float = POLL_SECONDS,
) -> AsyncGenerator[Event, None]:
    """Events of a run, which is of the type that `sight` looks at, from the item after `after` on, until it has ended; without `Ended` where the reader was too slow.

    Raises NotFound before the first event, and Unreachable where the database cannot be reached.
    """
    watch = {"to": "watch", "run": str(run_id)}
    loop = asyncio.get_running_loop()
    subscription = hub.subscribe(run_id)
    look = _Look(database, tenant_id, run_id, after, sight)
    try:
        if await look.has_runs_below():
            hub.subscribe(inbox_of(tenant_id), subscription)
        tell(watch)
        told_at = loop.time()
        wait_seconds = poll_seconds
        while not subscription.is_overrun:
            has_news = False
            async for event in look.news():
                has_news = True
                yield event
            if look.is_over:
                return
            async for delta in _deltas(subscription, look.after, wait_seconds):
                has_news = True
                yield delta
            wait_seconds = poll_seconds if has_news else min(wait_seconds * 1.5, LONGEST_POLL_SECONDS)
            if loop.time() - told_at > WATCH_AGAIN_SECONDS:
                told_at = loop.time()
                tell(watch)
                yield Heartbeat()
    finally:
        hub.unsubscribe(run_id, subscription)
        hub.unsubscribe(inbox_of(tenant_id), subscription)


class _Look:
    """What a watcher has seen of a run, and what is new in the database. `is_over`: the end was given."""

    def __init__(self, database: Database, tenant_id: UUID, run_id: UUID, after: int, sight: Sight) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._run_id = run_id
        self._sight = sight
        self._seen: Standing | None = None
        self._usage: UsageSnapshot | None = None
        self._usage_due_at = 0.0
        self._is_usage_old = True
        self._waiting = sight.nothing
        self._has_below = False
        self.after = after
        self.is_over = False

    async def has_runs_below(self) -> bool:
        """Whether there is anything to be looked for below it."""
        async with self._database.reader() as reader:
            self._has_below = await self._sight.has_runs_below(reader, self._tenant_id, self._run_id)
        return self._has_below

    async def news(self) -> AsyncIterator[Event]:
        now = await self._standing()
        if self._seen is None or self._seen.mark != now.mark:
            yield now.shown
        if self._seen is None and (usage := await self._new_usage()):
            yield usage
        self._seen = now
        while self.after < now.last_sequence and (page := await self._items()):
            for stored in page:
                self.after = stored.sequence
                self._is_usage_old = True
                yield stored
        if self._waiting != (waiting := await self._pending(now)):
            self._waiting = waiting
            yield waiting
        is_due = now.end is not None or asyncio.get_running_loop().time() >= self._usage_due_at
        if self._is_usage_old and is_due and (usage := await self._new_usage()):
            yield usage
        if now.end is not None:
            self.is_over = True
            yield now.end

    async def _standing(self) -> Standing:
        async with self._database.reader() as reader:
            found = await self._sight.standing(reader, self._tenant_id, self._run_id)
        if found is None:
            raise NotFound(f"There is no run {self._run_id}.")
        return found

    async def _pending(self, now: Standing) -> ApprovalSnapshot | ConsentSnapshot:
        if now.end is not None or not (now.is_waiting or self._has_below):
            return self._sight.nothing
        async with self._database.reader() as reader:
            return await self._sight.waiting(reader, self._tenant_id, now, has_below=self._has_below)

    async def _items(self) -> list[StoredItem]:
        async with self._database.reader() as reader:
            return await conversations.items_after(
                reader, self._tenant_id, run_id=self._run_id, after=self.after, limit=PAGE
            )

    async def _new_usage(self) -> UsageSnapshot | None:
        """All that was used so far; null if it is what the watcher knows."""
        async with self._database.reader() as reader:
            calls = await conversations.usage_of_run(reader, self._tenant_id, run_id=self._run_id)
        before, self._usage = self._usage, UsageSnapshot(tuple(calls))
        self._is_usage_old = False
        pause = max(USAGE_SECONDS, USAGE_SECONDS_PER_CALL * len(calls))
        self._usage_due_at = asyncio.get_running_loop().time() + pause
        return None if self._usage == before else self._usage


async def _deltas(subscription: Subscription, after: int, seconds: float) -> AsyncIterator[Delta]:
    """Texts under way until there may be new items, a signal came, the reader was too slow, or the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0 and (heard := await subscription.get(seconds=left)) is not None:
        if isinstance(heard, Delta):
            yield heard
        elif heard == _INBOX:
            until = min(until, loop.time() + INBOX_REST_SECONDS)
        elif heard > after:
            return
