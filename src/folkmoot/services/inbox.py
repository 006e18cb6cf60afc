"""What waits for the people of a tenant: listed, counted, read, and followed as it changes.

A feed gives all that waits, then looks again whenever there is news, a few times a second at most, and gives what differs: what waits
now, and what does no more. After each look comes its moment. Sent again with that moment a feed gives what has changed since; near it
a thing may come twice. What waits at a look is never missed; what opens and closes between two looks is not told. No connection is
held while waiting. Deliberately absent: answers (`answers`), any memory of who follows, and a journal of all that was ever asked:
lists and webhooks have that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from folkmoot.domain.inbox import InboxCursor, InboxEntry, InboxFilter
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import NotFound
from folkmoot.services import trees as tree_services
from folkmoot.services.events import LONGEST_POLL_SECONDS, POLL_SECONDS, WATCH_AGAIN_SECONDS, Heartbeat, Hub, inbox_of
from folkmoot.store import pending, trees
from folkmoot.store.database import Database
from folkmoot.store.pending import Key

SHOWN = 10_000  # a feed shows the longest waiting so many, and the others as these are answered
PAGE = 100
# What was written at a moment is seen by then: no statement of ours takes longer.
_LATEST_COMMIT = timedelta(seconds=60)
_REST_SECONDS = 0.25  # between two looks
_RESTS_PER_LOOK = 5.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits: news, or part of what waits at the beginning."""

    entry: InboxEntry


@dataclass(frozen=True, slots=True)
class Closed:
    """It was answered, has expired, or its run was stopped."""

    entry: InboxEntry


@dataclass(frozen=True, slots=True)
class Synced:
    """What waited at this moment was given. `waiting`: how many wait that the feed shows."""

    moment: datetime
    waiting: int


FeedEvent = Waiting | Closed | Synced | Heartbeat
Feed = AsyncGenerator[FeedEvent, None]


async def page(
    database: Database, caller: Caller, *, wanted: InboxFilter, after: InboxCursor | None, limit: int
) -> list[InboxEntry]:
    """What waits from the longest waiting on; anything else, or both, from the newest on. Raises NotFound for a root that is no run."""
    async with database.reader() as reader:
        within = await tree_services.within(reader, caller, wanted)
        return await pending.page(reader, caller.tenant_id, wanted=within, after=after, limit=limit)


async def get(database: Database, caller: Caller, *, run_id: UUID, pending_id: UUID) -> InboxEntry:
    """What waits or waited under this id, of any kind, at the run or at one below it. Raises NotFound."""
    async with database.reader() as reader:
        holder = await trees.holder(reader, caller.tenant_id, run_id=run_id, pending_id=pending_id)
        found = None
        if holder is not None:
            found = await pending.entry(reader, caller.tenant_id, run_id=holder, pending_id=pending_id)
    if found is None:
        raise NotFound(
            f"The run {run_id} asks nobody about {pending_id}. `folkmoot inbox`, or GET /approvals?root={run_id}, lists what waits."
        )
    return found


async def of_run(database: Database, caller: Caller, *, run_id: UUID) -> list[InboxEntry]:
    """All that a run and those below it wait for now, in the order it was asked."""
    async with database.reader() as reader:
        waiting = await pending.open_ones(reader, caller.tenant_id, run_id=run_id)
        keys = [(run_id, found.entry.pending.pending_id) for found in waiting if found.is_open]
        keys += await trees.waiting_below(reader, caller.tenant_id, run_id=run_id, limit=PAGE)
        return await pending.entries(reader, caller.tenant_id, keys=keys) if keys else []


async def counts(database: Database, caller: Caller) -> dict[PendingKind, int]:
    """How many wait, of each kind."""
    async with database.reader() as reader:
        found = await pending.counts(reader, caller.tenant_id)
    return {kind: found.get(kind, 0) for kind in PendingKind}


async def follow(
    database: Database, hub: Hub, *, tenant_id: UUID, since: datetime | None = None, poll_seconds: float = POLL_SECONDS
) -> Feed:
    """Without an end. `since`: a moment of `Synced`; null: all that waits. Raises Unreachable where the database is."""
    subject = inbox_of(tenant_id)
    subscription = hub.subscribe(subject)
    look = _Look(database, tenant_id, since)
    loop = asyncio.get_running_loop()
    try:
        told_at, wait_seconds = loop.time(), poll_seconds
        while True:
            began_at = loop.time()
            has_news = False
            async for event in look.news():
                has_news = True
                yield event
            took = loop.time() - began_at
            # a burst of answers is one look, and looking is never what a server is busy with
            await asyncio.sleep(max(_REST_SECONDS, took * _RESTS_PER_LOOK))
            wait_seconds = poll_seconds if has_news else min(wait_seconds * 1.5, LONGEST_POLL_SECONDS)
            await subscription.get(seconds=wait_seconds)
            if loop.time() - told_at > WATCH_AGAIN_SECONDS:
                told_at = loop.time()
                yield Heartbeat()
    finally:
        hub.unsubscribe(subject, subscription)


class _Look:
    """What the reader of a feed knows to wait, and what has changed in the database."""

    def __init__(self, database: Database, tenant_id: UUID, since: datetime | None) -> None:
        self._database = database
        self._tenant_id = tenant_id
        self._since = since - _LATEST_COMMIT if since is not None else None
        self._known: set[Key] | None = None

    async def news(self) -> AsyncIterator[FeedEvent]:
        async with self._database.reader() as reader:
            moment, waiting = await pending.open_keys(reader, self._tenant_id, limit=SHOWN)
        keys = [key for key, _ in waiting]
        before, self._known = self._known, set(keys)
        if before is not None and before == self._known:
            return
        if before is None:
            async for entry in self._closed_since():
                yield Closed(entry)
            new = [key for key, asked_at in waiting if self._since is None or asked_at > self._since]
        else:
            async for entry in self._entries(sorted(before - self._known)):
                if entry.entry.settled is not None:
                    yield Closed(entry)
            new = [key for key in keys if key not in before]
        async for entry in self._entries(new):
            yield Waiting(entry)
        yield Synced(moment, len(keys))

    async def _closed_since(self) -> AsyncIterator[InboxEntry]:
        since, after = self._since, UUID(int=0)
        while since is not None:
            async with self._database.reader() as reader:
                found = await pending.settled_since(reader, self._tenant_id, since=since, after=after, limit=PAGE)
            for entry in found:
                yield entry
            if len(found) < PAGE:
                return
            last = found[-1].entry
            assert last.settled is not None
            since, after = last.settled.at, last.pending.pending_id

    async def _entries(self, keys: Sequence[Key]) -> AsyncIterator[InboxEntry]:
        for first in range(0, len(keys), PAGE):
            async with self._database.reader() as reader:
                found = await pending.entries(reader, self._tenant_id, keys=keys[first : first + PAGE])
            for entry in found:
                yield entry
