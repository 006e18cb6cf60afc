"""A run's row, the claim a worker holds on it, and what the engine may know beside the items.

Deliberately absent: the conversation (`items`) and the pinned definition (`definitions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from folkmoot.domain.calls import CallFact
from folkmoot.domain.contexts import PromptFacts
from folkmoot.domain.model_calls import FailureClass, ModelCallFact
from folkmoot.domain.pending import Decision
from folkmoot.domain.run_status import RunStatus

CUT_WORDS = "This call was cut for the last turn before the time limit; its reply was not read."
STATE_VERSION = (
    5  # the newest that this worker reads; raised when stored state changes so that an older worker must not claim it
)
WRITTEN_STATE = {"Interaction": 4, "App": 4, "AgentRun": 5}  # what runs of each type are written with
NO_INTERACTION = UUID(int=0)  # that of an App run, where one has to be named


class ProcessType(StrEnum):
    INTERACTION = "Interaction"
    AGENT_RUN = "AgentRun"
    APP = "App"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stands in its tree. `swarm_root_id`: the topmost interaction run; `depth`: how many interaction runs are above
    it. `started_by`: the participant of its parent."""

    tree_root_id: UUID
    swarm_root_id: UUID
    parent_id: UUID
    parent_type: ProcessType
    depth: int = 0
    started_by: str | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A row of `process`, with the ping of the worker that holds it. `execution_time` excludes the stretch under way.

    `pending_id`: what it waits for a person about; `before_timeout_status`: the waiting state that a person let run out.
    `awaits_since`: since when it waits for sub-runs, which is time at work too. An App run, which only a listing by its root gives
    in this form, has NO_INTERACTION, version 0.
    """

    tenant_id: UUID
    run_id: UUID
    interaction_id: UUID
    interaction_version: int
    status: RunStatus
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    claimed_at: datetime | None
    ended_at: datetime | None
    pinged_at: datetime | None
    hostname: str | None
    execution_time: timedelta
    output: str | None
    failure_details: str | None
    last_sequence: int
    tree_root_id: UUID
    parent_id: UUID | None = None
    parent_type: ProcessType | None = None
    duration_auto_termination: timedelta | None = None
    response_json_schema: str | None = None
    tags: tuple[str, ...] = ()
    pending_id: UUID | None = None
    before_timeout_status: RunStatus | None = None
    awaits_since: datetime | None = None
    type: ProcessType = ProcessType.INTERACTION


@dataclass(frozen=True, slots=True)
class Claim:
    """Carried by every write of a worker: a write affects no row once another claim exists."""

    tenant_id: UUID
    run_id: UUID
    number: int
    claim_id: UUID


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """What a claim brings: the fence, what the worker knows of the row, and the time limit.

    `work_deadline`: when the working time is used up if the run stays at work (null: no limit). `ran_out`: the waiting
    status that a person let run out, null if none did. `parent_id`: the run that started it and waits for it, null if none did. `worked`: its time at work before this claim.
    """

    claim: Claim
    signal_number: int
    last_sequence: int
    work_deadline: datetime | None
    is_suspect: bool
    now: datetime
    ran_out: RunStatus | None = None
    parent_id: UUID | None = None
    worked: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Facts:
    """All that the engine may know beside the items.

    `stopped_by`: who asked for a stop, null if nobody did. `ran_out`: as a claim brings it. `decisions`: by call id.
    `prompts`: where the next prompt of each participant stands; null: nothing is to be cut of any.
    `under_way`: the model calls that this claim has begun and whose replies are still to come, by step key.
    `sub_runs`: those that this run started, with their status; looked at only where it may start some.
    """

    now: datetime
    work_deadline: datetime | None = None
    stopped_by: str | None = None
    model_calls: Mapping[str, tuple[ModelCallFact, ...]] = field(default_factory=dict)
    calls: Mapping[str, CallFact] = field(default_factory=dict)
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    ran_out: RunStatus | None = None
    prompts: PromptFacts | None = None
    under_way: Mapping[str, UUID] = field(default_factory=dict)
    sub_runs: Mapping[UUID, RunStatus] = field(default_factory=dict)

    def cut(self) -> Facts:
        """The facts once all that is under way was cut: those replies are lost."""
        lost = {
            key: (*self.model_calls.get(key, ()), ModelCallFact(call_id, key, FailureClass.LOST, CUT_WORDS))
            for key, call_id in self.under_way.items()
        }
        return replace(self, model_calls={**self.model_calls, **lost}, under_way={})
