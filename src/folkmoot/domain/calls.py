"""Tool calls that leave the process: what is asked, how far it got, what came of it.

A call is recorded as begun before it is sent. Deliberately absent: how a call is made (`tools`), and protocol tools, which touch
nothing outside.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from folkmoot.domain.agent_settings import ConsentRule
from folkmoot.domain.operations import OperationTarget


class CallState(StrEnum):
    ASKED = "asked"
    BEGUN = "begun"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A Python function of the operator's, found by the tool's name when it is called."""

    type: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class ResultTarget:
    """Reads on in a result that was too large for the conversation."""

    type: Literal["result"] = "result"


class SwarmAction(StrEnum):
    START = "start"
    AWAIT = "await"
    LIST = "list"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class SwarmTarget:
    """A run of another interaction below this one: started, awaited, listed or stopped."""

    action: SwarmAction
    type: Literal["swarm"] = "swarm"


@dataclass(frozen=True, slots=True)
class DelegateTarget:
    """A specialist's run below this one: started, waited for, and its answer read."""

    type: Literal["delegate"] = "delegate"


Target = FunctionTarget | OperationTarget | ResultTarget | SwarmTarget | DelegateTarget


@dataclass(frozen=True, slots=True)
class Tool:
    """What a participant may call beyond the protocol, as it was when the run started. Limits: seconds, bytes of UTF-8.

    `parameters`: what the model sees, without what is bound. `is_gated`: a call waits for a person's approval.
    `consent_rules`: arguments with which a call waits, too. `is_polling`: the same call may be made again and again, until something has changed.
    `guidance` is added to the participant's instructions.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    is_idempotent: bool = False
    is_read_only: bool = False
    is_terminal: bool = False
    is_gated: bool = False
    is_polling: bool = False
    limit_seconds: float = 60.0
    limit_bytes: int = 262_144
    guidance: str | None = None
    target: Target = FunctionTarget()
    consent_rules: tuple[ConsentRule, ...] = ()

    @property
    def may_be_gated(self) -> bool:
        """Whether some of its calls wait for a person."""
        return self.is_gated or bool(self.consent_rules)


@dataclass(frozen=True, slots=True)
class CallBounds:
    """Within what one external call is made. Limits: seconds, bytes of the result's text in UTF-8.

    `is_repeatable`: it may be sent a second time without a second effect, since it only reads or is idempotent.
    """

    limit_seconds: float
    limit_bytes: int
    idempotency_key: str
    is_repeatable: bool = False


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A call as the items hold it. `call_id` is ours (a UUID in text); providers' ids repeat."""

    call_id: str
    name: str
    arguments_json: str
    participant: str


@dataclass(frozen=True, slots=True)
class CallFact:
    """How far a call got. `lost`: it began under a claim that is no more."""

    call_id: str
    state: CallState
    lost: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a call. `unknown`: it may or may not have happened. `content_id`, `size` (bytes): where a result that is
    too large for the conversation is kept whole; `text` then holds its head and tail. `is_under_way`: what it began goes on, and there is no
    result yet. `delegated_calls`: how many tool calls a delegated run made."""

    text: str
    is_error: bool
    unknown: bool = False
    content_id: UUID | None = None
    size: int | None = None
    is_under_way: bool = False
    delegated_calls: int | None = None
