"""An agent run: one agent gathers, plans, acts and verifies for its owner. Its states as they are told, its plan, and what it is pinned to.

Deliberately absent: what happens next (`agentloop`), and the kernel's own states (`run_status`), which these are told from.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

Json = Any


class Phase(StrEnum):
    GATHER = "gather"
    PLAN = "plan"
    ACT = "act"
    VERIFY = "verify"


class AgentRunStatus(StrEnum):
    RUNNING = "running"
    AWAITING_CONSENT = "awaiting_consent"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A part of the work. At most one of `tool` and `specialist` is set; neither: it is done in words."""

    what: str
    tool: str | None = None
    specialist: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """`criteria`: what would show that the goal is met."""

    steps: tuple[PlanStep, ...]
    criteria: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the recorded results say of one of the plan's criteria; `number` from 1."""

    number: int
    is_met: bool
    evidence: str


# What a run is pinned to.


@dataclass(frozen=True, slots=True)
class PinnedSpecialist:
    name: str
    agent_id: UUID
    version: int
    description: str | None = None


@dataclass(frozen=True, slots=True)
class PinnedLoop:
    """`lineage`: the agents from the root's down to this run's own, which no delegation comes back to. `owner_id`: whose rights every
    phase has; `owners_above`: of the agents that delegated this, whose rights each call needs beside.
    `tool_calls`: the most that the run and all that it delegates may make; null: no limit.
    """

    owner_id: UUID
    lineage: tuple[UUID, ...]
    specialists: tuple[PinnedSpecialist, ...] = ()
    owners_above: tuple[UUID, ...] = ()
    maximum_iterations: int = 3
    tool_calls: int | None = None

    @property
    def depth(self) -> int:
        """How many runs are above this one."""
        return len(self.lineage) - 1


@dataclass(frozen=True, slots=True)
class AgentRun:
    """The row: pointers, and nothing that they point to. `id` is the run's number, `run_id` the kernel's id of the same run.

    `reply_params`: the channel's own, never read here. `correlation_token`: finds the run, and proves nothing. `chat_item_id`: where the call that
    awaits consent stands; `pending_tool_id`: its id; `pending_specialist`: the agent whose delegated run asked.
    """

    tenant_id: UUID
    tenant_name: str
    id: int
    run_id: UUID
    agent_id: UUID
    agent_name: str
    agent_version: int
    owner_id: UUID
    status: AgentRunStatus
    current_phase: Phase
    channel: str | None
    channel_id: UUID | None
    reply_params: str | None
    correlation_token: str
    conversation_id: UUID | None
    chat_item_id: UUID | None
    pending_tool_id: str | None
    pending_specialist: str | None
    parent_run: int | None
    awaiting_since: datetime | None
    expires_at: datetime | None
    claimed_at: datetime | None
    completed_at: datetime | None
    last_error: str | None
    created_at: datetime
    modified_at: datetime
    created_by: UUID
    last_sequence: int


class ChatItemKind(StrEnum):
    MESSAGE = "message"
    CONSENT = "consent"


class ConsentStatus(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Consent:
    """The consent block of a chat item: what is asked for, and what became of it. `card`: tool, arguments and what else a person is
    shown. `asked_by`: the agent whose run asks, a specialist's in a delegation."""

    call_id: str
    card: dict[str, Json]
    arguments_hash: bytes
    asked_by: str
    status: ConsentStatus
    expires_at: datetime | None
    decided_at: datetime | None = None
    decided_by_name: str | None = None
    decided_over: str | None = None
    reason: str | None = None
    executed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChatItem:
    """What a person reads in a conversation with agents: a message (`text`), or a request for consent. Unlike conversation items it may change."""

    chat_item_id: UUID
    conversation_id: UUID
    number: int
    kind: ChatItemKind
    author_name: str
    created_at: datetime
    run_id: UUID | None = None
    agent_run: int | None = None
    text: str | None = None
    consent: Consent | None = None
