"""Where a run stands and what it waits for: status, approvals, routing, dispatches, sub-runs.

Deliberately absent: its items.
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from folkmoot.wire.formats import Datetime, ResponseShape, Uuid, VersionReference
from folkmoot.wire.items import InteractionProcessContextAuthor


class InteractionProcessStatus(StrEnum):
    """The states of a run; the last four are final."""

    NEW = "New"
    RUNNING = "Running"
    PENDING_HUMAN = "PendingHuman"
    PENDING_APPROVAL = "PendingApproval"
    PENDING_SUB_INTERACTIONS = "PendingSubInteractions"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    TIMED_OUT = "TimedOut"


class PendingToolCallApproval(ResponseShape):
    """A gated call that waits for a person; `argumentsJson` is what runs if it is approved."""

    id: Uuid
    function_name: str
    arguments_json: str
    tool_call_id: str
    date_requested: Datetime
    status: Literal["Pending", "Approved", "Rejected"]
    agent_id: Uuid
    agent_name: str


class DeferredToolCall(ResponseShape):
    """A call of the same reply that goes on after the gated one."""

    tool_call_id: str
    function_name: str
    arguments_json: str
    agent_id: Uuid
    agent_name: str


class InteractionRoutingDecision(ResponseShape):
    """Which agent a router gave a participant's turn to; `depth` counts routers that chose routers."""

    date: Datetime
    participant_name: str
    router: VersionReference
    chosen: VersionReference | None
    reason: str | None
    is_fallback: bool
    depth: int


class InteractionProcessManagedDispatch(ResponseShape):
    """A dispatched agent at work in `threadId`; its result goes to `recordThreadId`."""

    id: Uuid
    agent_name: str
    message: str
    thread_id: str
    record_thread_id: str
    mode: Literal["OneTime", "Continue"]
    date_started: Datetime


class InteractionProcessSwarmLimits(ResponseShape):
    """Limits of the whole tree: depth, runs not ended, runs ever started."""

    max_depth: int
    max_concurrent: int
    max_total: int


class InteractionProcessSwarmChild(ResponseShape):
    """A sub-run; `startedBy` is the participant that started it."""

    process_id: Uuid
    interaction: VersionReference
    name: str
    status: InteractionProcessStatus
    started_by: str
    date_started: Datetime | None
    date_ended: Datetime | None


class InteractionProcessSwarmAwait(ResponseShape):
    """Sub-runs that a participant waits for, all or any; `takenBy` took the awaited results up."""

    id: Uuid
    process_ids: tuple[Uuid, ...]
    all: bool
    participant_name: str
    thread_id: str
    taken_by: InteractionProcessContextAuthor | None
    date_started: Datetime


class InteractionProcessSwarm(ResponseShape):
    """The run's place in its tree; `released`: its place among the running ones was given back."""

    root_id: Uuid
    depth: int
    limits: InteractionProcessSwarmLimits
    started: int
    running: int
    children: tuple[InteractionProcessSwarmChild, ...]
    released: bool
    # `await` is a word of Python's own.
    awaiting: InteractionProcessSwarmAwait | None = Field(alias="await")
