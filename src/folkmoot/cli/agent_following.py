"""What a watcher of an agent run sees, as it happens: its items, texts under way, what it asks its owner, and how it stands.

Items are read by position, so that each comes once. Deliberately absent: a terminal, and what delegated runs say to themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from folkmoot.bootstrap.installation import Installation
from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun, ChatItem
from folkmoot.domain.items import StoredItem
from folkmoot.domain.tenancy import Caller
from folkmoot.services import agent_runs
from folkmoot.services.events import PAGE, WATCH_AGAIN_SECONDS, Delta, Hub, Subscription, inbox_of

_LOOK_SECONDS = 0.2
_NEWEST_ITEMS = 50  # of the conversation behind a run, among which is what was asked just now
_LONGEST_LOOK_SECONDS = 2.0  # with no news, so that a watcher who waits for days costs little


@dataclass(frozen=True, slots=True)
class Asked:
    """What the run waits for its owner's consent about; null: nothing any more. `settled`: what it asked before, as it stands now."""

    item: ChatItem | None
    settled: ChatItem | None = None


AgentEvent = StoredItem | Delta | Asked | AgentRun


async def follow(
    installation: Installation, hub: Hub, caller: Caller, *, id_: int, after: int = 0
) -> AsyncGenerator[AgentEvent, None]:
    """Events of a run from the item after `after` on. The last one is the run that has ended; without it the reader was too slow.

    Raises NotFound, and Unreachable where the database is.
    """
    look = Look(installation, caller, id_, after)
    run_id = (await agent_runs.get(installation.database, caller, id_=id_)).run_id
    subscription = hub.subscribe(run_id)
    hub.subscribe(inbox_of(caller.tenant_id), subscription)  # what a delegated run asks, and how it is answered
    loop = asyncio.get_running_loop()
    told_at, wait_seconds = -WATCH_AGAIN_SECONDS, _LOOK_SECONDS
    try:
        while not subscription.is_overrun:
            if loop.time() - told_at > WATCH_AGAIN_SECONDS:
                told_at = loop.time()
                installation.notifier.tell({"to": "watch", "run": str(run_id)})
            has_news = False
            async for event in look.news():
                has_news = True
                yield event
            if look.is_over:
                return
            async for delta in _deltas(subscription, wait_seconds):
                has_news = True
                yield delta
            wait_seconds = _LOOK_SECONDS if has_news else min(wait_seconds * 1.5, _LONGEST_LOOK_SECONDS)
    finally:
        hub.unsubscribe(run_id, subscription)
        hub.unsubscribe(inbox_of(caller.tenant_id), subscription)


class Look:
    """What a watcher has seen of a run, and what is new in the database. `is_over`: the end was given."""

    def __init__(self, installation: Installation, caller: Caller, id_: int, after: int = 0) -> None:
        self._installation = installation
        self._caller = caller
        self._id = id_
        self._after = after
        self._seen: AgentRun | None = None
        self._asked: ChatItem | None = None
        self.is_over = False

    async def news(self) -> AsyncIterator[AgentEvent]:
        database = self._installation.database
        # before the run, so that all items that led to what is asked are seen before it
        asked = await agent_runs.asked(database, self._caller, id_=self._id)
        run = await agent_runs.get(database, self._caller, id_=self._id)
        while self._after < run.last_sequence:
            page = await agent_runs.items(database, self._caller, id_=self._id, after=self._after, limit=PAGE)
            for stored in page:
                self._after = stored.sequence
                yield stored
            if not page:
                break
        if asked != self._asked:
            settled = await self._settled()
            self._asked = asked
            yield Asked(asked, settled)
        if self._seen is None or _mark(run) != _mark(self._seen):
            self._seen = run
            yield run
        self.is_over = run.completed_at is not None

    async def _settled(self) -> ChatItem | None:
        """What was asked before; null: nothing was."""
        if self._asked is None:
            return None
        newest = await agent_runs.chat(
            self._installation.database, self._caller, id_=self._id, before=None, limit=_NEWEST_ITEMS
        )
        return next((item for item in newest if item.chat_item_id == self._asked.chat_item_id), None)


def _mark(run: AgentRun) -> tuple[object, ...]:
    return run.status, run.current_phase, run.claimed_at, run.completed_at


async def _deltas(subscription: Subscription, seconds: float) -> AsyncIterator[Delta]:
    """Texts under way until there is other news, or the time is over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while (left := until - loop.time()) > 0 and (heard := await subscription.get(seconds=left)) is not None:
        if not isinstance(heard, Delta):
            return
        yield heard


def answer_in(stored: StoredItem) -> str | None:
    """The run's answer, where this is the item that holds it."""
    detail = stored.item.detail
    return detail.answer if isinstance(detail, items.Verified) and detail.is_met else None
