"""The sweep: lost leases, poisonous runs, time limits, people who did not answer, apps that do not ping, children of ended parents.

Any worker can run it; an advisory lock lets one do so at a time.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallState
from folkmoot.domain.items import ORCHESTRATOR, Item
from folkmoot.engine.calls import closing_results
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.kernel.errors import FolkmootError
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.options import WorkerOptions
from folkmoot.runtime.rounds import Rounds
from folkmoot.services import trees
from folkmoot.store import (
    agent_runs,
    apps,
    channel_messages,
    contents,
    conversations,
    idempotency,
    runs,
    web_sessions,
    webhooks,
    workers,
)
from folkmoot.store.database import FAILURES, Database, Writer, try_lock

_log = logging.getLogger("folkmoot.timekeeper")
_SWEEP_LOCK = 0x666F6C6C
_PAGE = 500
_POISONOUS = (
    "The run took its worker down {limit} times while it ran apart from others, and is not tried again. Its last items show what "
    "it was about to do; look at the tool or model it was calling."
)


class Timekeeper:
    """`hear` is told here what the sweep found, in the form of a notification; `tell` tells all processes of it."""

    def __init__(
        self,
        database: Database,
        options: WorkerOptions,
        chance: Callable[[], float],
        new_id: NewId,
        *,
        hear: Callable[[dict[str, Any]], None],
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        self._database = database
        self._options = options
        self._new_id = new_id
        self._hear = hear
        self._tell = tell
        self._rounds = Rounds(self.sweep, seconds=options.sweep_seconds, chance=chance, log=_log, what="The sweep")

    def start(self) -> None:
        self._rounds.start()

    async def close(self) -> None:
        await self._rounds.close()

    async def sweep(self) -> None:
        """One sweep, unless another process is at it."""
        async with self._database.writer() as writer:
            if not await try_lock(writer, _SWEEP_LOCK):
                return
            taken = await workers.take_from_lost(writer)
            overdue = await runs.overdue(writer)
            due = await runs.tenants_due(writer)
            await apps.lose(writer)
        expired = [tenant_id for tenant_id in due if await self._expire(tenant_id)]
        if taken or expired:
            self._hear({"to": "workers"})
        for run_id in overdue:
            self._hear({"to": "run", "run": str(run_id)})
        for tenant_id in expired:
            self._tell({"to": "inbox", "tenant": str(tenant_id)})
        await self._fail_poisonous_ones()
        await trees.stop_orphans(self._database, tell=self._tell)
        await self._tidy()

    async def _expire(self, tenant_id: UUID) -> bool:
        """What has run out in a tenant, in a transaction of its own: no other tenant's answers wait for it. Whether there was any."""
        try:
            async with self._database.writer() as writer:
                return bool(await runs.expire(writer, tenant_id))
        except (FolkmootError, *FAILURES) as error:
            _log.warning("What has run out in tenant %s is looked at again in the next sweep: %s", tenant_id, error)
            return False

    async def _tidy(self) -> None:
        """Apart from the above: it may look through many items, and who answers or appends is not to wait for that."""
        async with self._database.writer() as writer:
            if await try_lock(writer, _SWEEP_LOCK):
                await contents.sweep(writer)
                await idempotency.forget_old(writer)
                await webhooks.forget_old(writer)
                await web_sessions.forget_old(writer)
                await channel_messages.forget_old(writer)
                await agent_runs.tidy(writer)

    async def _fail_poisonous_ones(self) -> None:
        """Each in a transaction of its own: the end of a sub-run locks its parent, and may hold no other run meanwhile."""
        while True:
            async with self._database.writer() as writer:
                found = await workers.poisonous(writer, limit=self._options.poison_limit)
                for tenant_id, run_id in found:
                    await self._fail_poisonous(writer, tenant_id, run_id)
            if not found:
                return
            self._tell({"to": "workers"})  # it may have been awaited

    async def _fail_poisonous(self, writer: Writer, tenant_id: UUID, run_id: UUID) -> None:
        """Nobody drives such a run any more: its open calls are closed here, and it is told why it ends."""
        reason = _POISONOUS.format(limit=self._options.poison_limit)
        closing = list(await self._closed(writer, tenant_id, run_id))
        end = items.Ended(items.EndReason.FAILURE)
        closing.append(Item(self._new_id(), ORCHESTRATOR, items.OrchestratorMessage(reason), end))
        await workers.fail_poisonous(writer, tenant_id, run_id=run_id, closing=closing, reason=reason)

    async def _closed(self, writer: Writer, tenant_id: UUID, run_id: UUID) -> tuple[Item, ...]:
        """A result for each call that is open, in its own thread: what the conversation folds to is looked at, and nothing is decided."""
        seating, protocol, after = Seating(await runs.resolved(writer, tenant_id, run_id=run_id)), Protocol(), 0
        while page := await conversations.items_after(writer, tenant_id, run_id=run_id, after=after, limit=_PAGE):
            for stored in page:
                protocol.advance(seating, stored.item)
            after = page[-1].sequence
        found = await conversations.open_calls(writer, tenant_id, run_id=run_id)
        calls = {
            call_id: CallFact(call_id, CallState.BEGUN if call.has_begun else CallState.ASKED)
            for call_id, call in found.items()
        }
        return closing_results(protocol, "the run has ended", calls=calls, new_id=self._new_id)
