"""Runs that start runs: which may be started by whom, within which limits of the whole tree, and what a run awaits.

Limits hold for the tree below its topmost interaction run, and are kept in the database. Deliberately absent: counting (`store.swarms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.references import Reference
from folkmoot.domain.run_status import RunStatus


@dataclass(frozen=True, slots=True)
class SwarmLimits:
    """Of a whole tree. `max_depth`: of sub-runs, whose depth counts from 1; `max_concurrent`: sub-runs that have not ended;
    `max_total`: sub-runs ever started."""

    max_depth: int = 3
    max_concurrent: int = 20
    max_total: int = 100

    def lowered(self, settings: SwarmSettings, *, depth: int) -> SwarmLimits:
        """What holds for a sub-run at this depth whose own interaction sets some: less, never more. Its own `max_depth` counts from
        there; the others hold for the counts of the whole tree."""
        return SwarmLimits(
            min(self.max_depth, depth + settings.max_depth if settings.max_depth is not None else self.max_depth),
            min(self.max_concurrent, settings.max_concurrent if settings.max_concurrent is not None else self.max_concurrent),
            min(self.max_total, settings.max_total if settings.max_total is not None else self.max_total),
        )  # fmt: skip


DEFAULT_LIMITS = SwarmLimits()


@dataclass(frozen=True, slots=True)
class SwarmSettings:
    """Which interactions which participants may start; a limit that is null is as `DEFAULT_LIMITS` has it."""

    interactions: tuple[Reference, ...] = ()
    participants: tuple[str, ...] = ()
    max_depth: int | None = None
    max_concurrent: int | None = None
    max_total: int | None = None


# What a run is pinned to.


@dataclass(frozen=True, slots=True)
class StartableInteraction:
    """`name`: what participants call it, unique in the swarm. `inputs_schema`: JSON Schema of the inputs that a start takes."""

    name: str
    namespace: str
    interaction_id: UUID
    version: int
    description: str
    inputs_schema: str


@dataclass(frozen=True, slots=True)
class PinnedSwarm:
    """`depth`: of the run itself; 0: nothing that is an interaction run started it. `limits`: those that hold for what
    it starts; `max_depth` counts from the top of the tree."""

    interactions: tuple[StartableInteraction, ...]
    participants: tuple[str, ...]
    limits: SwarmLimits
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Await:
    """A participant waits for sub-runs: for all of them, or for the first. `await_id`: of the call that asked for it; `author_id`:
    of the participant's agent."""

    await_id: UUID
    run_ids: tuple[UUID, ...]
    is_all: bool
    participant: str
    thread_id: str
    author_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class AwaitView:
    """`is_taken`: the participant was given the awaited results."""

    awaits: Await
    is_taken: bool
    started_at: datetime


@dataclass(frozen=True, slots=True)
class SubRun:
    """A run that another one started. `started_by`: the participant."""

    run_id: UUID
    interaction_id: UUID
    interaction_version: int
    name: str
    status: RunStatus
    started_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class SwarmView:
    """A run's place in its tree. `started` and `running` count the sub-runs of the whole tree, `children` are the run's own; in rows
    of lists there are none.

    `is_released`: it has ended, and gave back its place among the running ones.
    """

    root_id: UUID
    depth: int
    limits: SwarmLimits
    started: int
    running: int
    children: tuple[SubRun, ...]
    is_released: bool
    awaiting: AwaitView | None
