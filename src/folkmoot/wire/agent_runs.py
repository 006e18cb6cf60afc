"""Agent runs: what starts one and answers what it asks, the row of pointers, and what these point to.

Enumerations are in lower case here (README.md, Wire conventions). Deliberately absent: a way to set any of a run's fields, and the
request's secret, which goes over channels alone.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.formats import (
    Amount,
    Count,
    Datetime,
    Flag,
    Name,
    Page,
    RequestShape,
    ResponseShape,
    Text,
    Tokens,
    Uuid,
    Whole,
)
from folkmoot.wire.items import ConversationItem
from folkmoot.wire.pending import ApprovalCard


class AgentRunStatus(StrEnum):
    """Where an agent run stands; the last three are final."""

    RUNNING = "running"
    AWAITING_CONSENT = "awaiting_consent"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"


class AgentRunPhase(StrEnum):
    """What an agent run is at."""

    GATHER = "gather"
    PLAN = "plan"
    ACT = "act"
    VERIFY = "verify"


class AdminOrg(ResponseShape):
    """The tenant."""

    id: Uuid
    name: str


class AgentRunAgent(ResponseShape):
    """The agent that runs, at the version that the run was started with."""

    id: Uuid
    name: str
    version: int


class AgentRunReference(ResponseShape):
    """Another agent run."""

    id: int


class AgentRun(ResponseShape):
    """A run of one agent towards a goal: pointers, and nothing that they point to.

    `correlationToken` only finds the run. `chatItemId`: of the consent that is awaited, or was awaited last; `pendingToolId`: the call that
    awaits it; `pendingSpecialist`: whose delegated run asks. `expiresAt`: until when it can be answered, null: for ever.
    """

    id: int
    admin_org: AdminOrg
    agent: AgentRunAgent
    status: AgentRunStatus
    current_phase: AgentRunPhase
    channel: str | None
    reply_params: str | None
    correlation_token: str
    conversation_id: str | None
    chat_item_id: str | None
    pending_tool_id: str | None
    pending_specialist: str | None
    parent_run: AgentRunReference | None
    awaiting_since: Datetime | None
    expires_at: Datetime | None
    claimed_at: Datetime | None
    completed_date: Datetime | None
    last_error: str | None
    created_date: Datetime
    modified_date: Datetime


class AgentRunPage(Page[AgentRun]):
    """A page of agent runs, the newest first."""


class AgentRunBudgetRequest(RequestShape):
    """How much a run may use with all that it delegates; null: as its agent says. It can only lower that. `money` is in US dollars."""

    tokens: Tokens | None = None
    money: Amount | None = None
    model_calls: Tokens | None = None


class AgentRunRequest(RequestShape):
    """Starts a run. `version` 0 or null: the latest enabled one. `channel`: `web`, or a channel's `name` or `namespace/name`; null: the agent's.
    `replyParams`: JSON as text, for the channel, which is handed back as it is.

    `conversationId`: the conversation behind the run, which begins with it if there is none of this id. `parentProcessId`: of an App run.
    """

    goal: Annotated[Text, Field(min_length=1)]
    version: Count | None = None
    channel: LinkText | None = None
    reply_params: Text | None = None
    conversation_id: Uuid | None = None
    budget: AgentRunBudgetRequest | None = None
    credential_stack: LinkText | None = None
    allow_platform_fallback: Flag | None = None
    tags: tuple[Name, ...] = ()
    priority: Whole = 0
    parent_process_id: Uuid | None = None


class ChatItemKind(StrEnum):
    """What an item of a conversation between people and agents is."""

    MESSAGE = "message"
    CONSENT = "consent"


class ConsentStatus(StrEnum):
    """`pending` while it can be answered; else what became of it. `cancelled`: with its run."""

    PENDING = "pending"
    APPROVED = "approved"
    DECLINED = "declined"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class ConsentBlock(ResponseShape):
    """A call that needs its owner's consent. `call`: as it runs if it is approved, its texts shown so that they cannot deceive. `askedBy`: the agent
    whose run asks, a specialist's in a delegation. `executed`: the call was made, or is under way.

    `decidedOver`: the way that the answer came, such as `api`.
    """

    call: ApprovalCard
    asked_by: str
    status: ConsentStatus
    expires_at: Datetime | None
    executed: bool
    executed_at: Datetime | None
    decided_at: Datetime | None
    decided_by_name: str | None
    decided_over: str | None
    reason: str | None


class ChatItem(ResponseShape):
    """What a person reads in a conversation with agents: a message (`text`, as it was written), or a request for consent, which changes
    as it is answered and executed. `number`: its place in the conversation. `agentRun`: the run that asks or is spoken of."""

    id: Uuid
    conversation_id: Uuid
    number: int
    kind: ChatItemKind
    author_name: str
    created_date: Datetime
    agent_run: AgentRunReference | None
    text: str | None
    consent: ConsentBlock | None


class AgentRunConversation(Page[ConversationItem]):
    """A page of the run's own conversation, by sequence; and, in each page, what stands beside it.

    `output`: what the run answered, null before it is completed. `chatItems`: the newest 200 of the conversation behind the run, the
    oldest of them first; none while `conversationId` is null.
    """

    output: str | None
    conversation_id: str | None
    chat_items: tuple[ChatItem, ...]


class AgentRunPayload(ResponseShape):
    """What a run carries from step to step: the plan, the call that awaits consent, counters, notes of verifications. Its form is the run's own
    affair; empty before the first step."""

    payload: dict[str, Any]


class ChannelMessageKind(StrEnum):
    """What an owner is told over a channel."""

    CONSENT_REQUESTED = "consent.requested"
    CONSENT_DECIDED = "consent.decided"
    CONSENT_EXPIRED = "consent.expired"
    RUN_ENDED = "run.ended"


class ChannelMessageStatus(StrEnum):
    """How far a message got."""

    WAITING = "waiting"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


class ChannelMessage(ResponseShape):
    """A message to the run's owner. `nextAttemptAt` null: it is not tried any more. `chatItemId`: of the consent that it is about."""

    id: Uuid
    kind: ChannelMessageKind
    status: ChannelMessageStatus
    chat_item_id: Uuid | None
    created_date: Datetime
    attempts: int
    next_attempt_at: Datetime | None
    delivered_at: Datetime | None
    last_error: str | None


class ChannelMessagePage(Page[ChannelMessage]):
    """A page of messages, the oldest first."""


class ConsentDecision(StrEnum):
    """Whether the call is made."""

    APPROVE = "approve"
    DECLINE = "decline"


class ConsentRequest(RequestShape):
    """An answer to the consent that a chat item asks for, named by the item and by the `argumentsHash` of its call. Who declines may say why."""

    chat_item_id: Uuid
    arguments_hash: Annotated[str, Field(min_length=1, max_length=200)]
    decision: ConsentDecision
    reason: Text | None = None


class ConsentEvent(ResponseShape):
    """What the run, or a specialist's below it, asks its owner, with the answer as long as nobody has gone on; null: nothing any more."""

    waits_for: ChatItem | None


class AgentRunEndEvent(ResponseShape):
    """Follows the last item: how the run ended, and its answer if it came to one."""

    status: AgentRunStatus
    output: str | None
    last_error: str | None
