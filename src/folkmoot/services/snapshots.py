"""What a watcher is shown of a run beside its items: where it stands, and what it waits for a person about; of each type in its own form.

A sight knows one type of run. Deliberately absent: when it is looked at, and whether what it shows is news (`events`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, ChatItem
from folkmoot.domain.inbox import InboxEntry
from folkmoot.domain.run_status import FINAL
from folkmoot.domain.runs import Run
from folkmoot.store import agent_runs, chats, pending, runs, trees
from folkmoot.store.database import Reader

SHOWN_BELOW = 20


@dataclass(frozen=True, slots=True)
class ApprovalSnapshot:
    """What the run waits for a person about, of any kind, with what was answered as long as nobody has gone on; null: nothing.

    `below`: what the runs below it wait for, the longest first, at most SHOWN_BELOW (B10).
    """

    waits_for: InboxEntry | None = None
    below: tuple[InboxEntry, ...] = ()

    @property
    def open_ones(self) -> tuple[InboxEntry, ...]:
        """All of it that can be answered, the run's own first."""
        own = (self.waits_for,) if self.waits_for is not None else ()
        return tuple(each for each in (*own, *self.below) if each.entry.settled is None)


@dataclass(frozen=True, slots=True)
class ConsentSnapshot:
    """What an agent run, or a specialist's below it, asks its owner, with the answer as long as nobody has gone on; null: nothing."""

    asked: ChatItem | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """Follows the last item."""

    run: Run


@dataclass(frozen=True, slots=True)
class AgentRunEnded:
    """The same of an agent run. `output`: its answer; null where it came to none."""

    run: AgentRun
    output: str | None


@dataclass(frozen=True, slots=True)
class Standing:
    """`shown`: as watchers are told it, again whenever `mark` is another. `is_waiting`: for a person, the run itself. `end`: once it has
    ended."""

    shown: Run | AgentRun
    mark: tuple[object, ...]
    last_sequence: int
    is_waiting: bool
    end: Ended | AgentRunEnded | None


class Sight(Protocol):
    """How one type of run is looked at."""

    @property
    def nothing(self) -> ApprovalSnapshot | ConsentSnapshot:
        """What is shown while nothing waits, and taken for known before."""
        ...

    async def standing(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> Standing | None:
        """Null: there is no such run of this type."""
        ...

    async def has_runs_below(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> bool:
        """Whether the run may start others: only then is there anything to be looked for below it."""
        ...

    async def waiting(
        self, reader: Reader, tenant_id: UUID, standing: Standing, *, has_below: bool
    ) -> ApprovalSnapshot | ConsentSnapshot: ...


class InteractionSight:
    nothing = ApprovalSnapshot()

    async def standing(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> Standing | None:
        run = await runs.get(reader, tenant_id, run_id=run_id)
        if run is None:
            return None
        end = Ended(run) if run.status in FINAL else None
        mark = (run.status, run.claimed_at, run.hostname)
        return Standing(run, mark, run.last_sequence, run.pending_id is not None, end)

    async def has_runs_below(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> bool:
        return await trees.has_swarm(reader, tenant_id, run_id=run_id)

    async def waiting(
        self, reader: Reader, tenant_id: UUID, standing: Standing, *, has_below: bool
    ) -> ApprovalSnapshot | ConsentSnapshot:
        run = standing.shown
        assert isinstance(run, Run)
        own, below = None, []
        if run.pending_id is not None:
            own = await pending.entry(reader, tenant_id, run_id=run.run_id, pending_id=run.pending_id)
        if has_below:
            keys = await trees.waiting_below(reader, tenant_id, run_id=run.run_id, limit=SHOWN_BELOW)
            below = await pending.entries(reader, tenant_id, keys=keys) if keys else []
        return ApprovalSnapshot(own, tuple(below))


class AgentRunSight:
    """What a specialist asks stands on the rows of all runs above it, so that nothing is looked for below."""

    nothing = ConsentSnapshot()

    async def standing(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> Standing | None:
        run = await agent_runs.by_run(reader, tenant_id, run_id=run_id)
        if run is None:
            return None
        end = None
        if run.completed_at is not None:
            end = AgentRunEnded(run, await agent_runs.output(reader, tenant_id, run_id=run_id))
        mark = (run.status, run.current_phase, run.chat_item_id, run.awaiting_since, run.claimed_at, run.completed_at)
        return Standing(run, mark, run.last_sequence, run.status is AgentRunStatus.AWAITING_CONSENT, end)

    async def has_runs_below(self, reader: Reader, tenant_id: UUID, run_id: UUID) -> bool:
        return await agent_runs.may_delegate(reader, tenant_id, run_id=run_id)

    async def waiting(
        self, reader: Reader, tenant_id: UUID, standing: Standing, *, has_below: bool
    ) -> ApprovalSnapshot | ConsentSnapshot:
        run = standing.shown
        assert isinstance(run, AgentRun)
        if not standing.is_waiting or run.chat_item_id is None:
            return ConsentSnapshot()
        return ConsentSnapshot(await chats.get(reader, tenant_id, chat_item_id=run.chat_item_id))


OF_INTERACTION: Sight = InteractionSight()
OF_AGENT_RUN: Sight = AgentRunSight()
