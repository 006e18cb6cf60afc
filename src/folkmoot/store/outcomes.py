"""What a worker writes at once: the outcome of a run's step, firm, and what the engine decided from it, soft.

Deliberately absent: how it is written (`appends`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import Phase
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import Usage
from folkmoot.domain.pending import Pending
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Claim
from folkmoot.domain.swarms import Await


@dataclass(frozen=True, slots=True)
class ModelCallBegun:
    """`guessed_tokens`: what the prompt was guessed to hold, before it was sent; `estimated_tokens`: that, corrected by what the
    provider counted before. `trimmed_upto`: the sequence up to which old tool results were trimmed; 0: none was.
    """

    model_call_id: UUID
    turn_id: UUID | None
    step_key: str
    participant: str
    provider: str
    model: str
    purpose: str = "turn"
    guessed_tokens: int | None = None
    estimated_tokens: int | None = None
    trimmed_upto: int = 0


@dataclass(frozen=True, slots=True)
class ModelCallEnded:
    """`wait_seconds`: until a next attempt may begin. `cost`: US dollars; null where no price is known. `is_firm`: it belongs to the firm part."""

    model_call_id: UUID
    usage: Usage | None = None
    replay: Any = None
    service_tier: str | None = None
    error_class: str | None = None
    error_message: str | None = None
    wait_seconds: float | None = None
    cost: Decimal | None = None
    is_firm: bool = True


@dataclass(frozen=True, slots=True)
class CallAsked:
    call_id: UUID
    model_call_id: UUID | None
    operation: str
    operation_version: int
    arguments_hash: bytes
    closed_as: str | None = None  # the outcome, where the soft part of the same append closes it


@dataclass(frozen=True, slots=True)
class CallEnded:
    """`outcome`: done, error or unknown. `is_firm`: it belongs to the firm part."""

    call_id: UUID
    outcome: str
    is_firm: bool


@dataclass(frozen=True, slots=True)
class End:
    status: RunStatus
    output: str | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """The run waits for a person or for sub-runs, and holds no worker. `status`: the waiting one. `pending`: what a person is asked;
    `awaits`: all that the run awaits, beside a person too, each of which wakes it.

    `ready_by`: when a wait for sub-runs ends though it is not over, since the time limit counts it; null: never.
    """

    status: RunStatus
    pending: Pending | None = None
    awaits: tuple[Await, ...] = ()
    ready_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class HandBack:
    """Gives the run back to be claimed again after `ready_in_seconds`."""

    ready_in_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ConsentAsked:
    """A pause's request for the owner's consent; ids are used only where it is asked for the first time. `secret_hash`: SHA-256 of the
    request's secret, `sealed_secret`: itself, for the message over the channel; null where none can be sealed. `asked_by`: the agent."""

    chat_item_id: UUID
    conversation_id: UUID
    message_id: UUID
    asked_by: str
    secret_hash: bytes | None = None
    sealed_secret: bytes | None = None


@dataclass(frozen=True, slots=True)
class AgentChange:
    """What an append moves of an agent run beside items and facts. `payload`: as it stands after it, under a new `payload_id`."""

    phase: Phase
    payload_id: UUID
    payload: dict[str, Any]
    consent: ConsentAsked | None = None


@dataclass(slots=True)
class Append:
    """One outcome of one run. The first `firm` of `items` are firm. `ends_under`: the run above, where this is a sub-run's end: such
    are gathered by that run alone. `agent`: of an agent run, written only with all of the append."""

    claim: Claim
    signal_number: int
    items: Sequence[Item] = ()
    firm: int = 0
    end: End | None = None
    pause: Pause | None = None
    hand_back: HandBack | None = None
    driver_errors: int | None = None
    model_calls_begun: Sequence[ModelCallBegun] = ()
    model_calls_ended: Sequence[ModelCallEnded] = ()
    model_calls_voided: Sequence[UUID] = ()
    calls_asked: Sequence[CallAsked] = ()
    calls_begun: Sequence[UUID] = ()
    calls_ended: Sequence[CallEnded] = ()
    ends_under: UUID | None = None
    agent: AgentChange | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """`before`: the run's last sequence before this append. `is_whole` false: the soft part was not written."""

    before: int
    signal_number: int
    is_whole: bool
    stopped_by: str | None
    now: datetime
