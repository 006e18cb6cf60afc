"""What waits or waited for a person: its card, its receipt, and the bodies that answer it.

Texts of cards are shown: hidden and reordering characters stand as escapes, and a cut says what it leaves out. `argumentsJson` uses
JSON's own escapes, so that uncut it is the very value that would run. Deliberately absent: an answer by name; ids alone answer.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import Datetime, Flag, Page, RequestShape, ResponseShape, Text, Uuid
from folkmoot.wire.runs.progress import DeferredToolCall


class PendingKind(StrEnum):
    """What a run may ask of a person."""

    APPROVAL = "Approval"
    VOTE = "Vote"
    QUESTION = "Question"
    TURN = "Turn"


class PendingStatus(StrEnum):
    """`Pending` while it waits; else what became of it."""

    PENDING = "Pending"
    APPROVED = "Approved"
    REJECTED = "Rejected"
    ANSWERED = "Answered"
    EXPIRED = "Expired"
    STOPPED = "Stopped"


class ApprovalCard(ResponseShape):
    """A gated call, as it would run: bound values are in `argumentsJson`, secrets are masked. `argumentsHash` names it in a decision."""

    function_name: str
    arguments_json: str
    arguments_hash: str
    tool_call_id: str
    agent_id: Uuid
    agent_name: str
    description: str
    connector: str | None
    operation: str | None
    operation_version: int | None
    server: str | None
    deferred_tool_calls: tuple[DeferredToolCall, ...]


class VoteCard(ResponseShape):
    """A topic, or a proposed solution, that is put to the vote."""

    proposer: str
    text: str
    is_solution: bool


class QuestionCard(ResponseShape):
    """A participant's question to the person."""

    asker: str
    question: str


class TurnCard(ResponseShape):
    """The floor is the person's: a message is the turn, or it is passed on."""

    round: int


class AnswerReceipt(ResponseShape):
    """What was decided, by whom, when and by which channel. The fields of an answer that another kind has are null.

    `runId` is the run that asked; `rootProcessId` the root of its tree, null where that is the run itself.
    """

    run_id: Uuid
    root_process_id: Uuid | None
    id: Uuid
    kind: PendingKind
    status: PendingStatus
    agree: bool | None
    text: str | None
    passed: bool | None
    arguments_hash: str | None
    reason: str | None
    date_answered: Datetime
    answered_by_id: Uuid | None
    answered_by_name: str | None
    channel: str | None


class PendingWork(ResponseShape):
    """Something that a run asks a person. `isCut`: a text is shown in part here, and whole where it is read by its id.

    `rootProcessId`: the root of the run's tree, null where that is the run itself. `agentRun`: of a consent that an agent run asks for, the
    run's number, and `chatItemId` the item that shows it: it is answered by them (`POST /agent-runs/{id}/consent`), and `interactionName` is the
    agent's; null of all else.
    """

    id: Uuid
    run_id: Uuid
    agent_run: int | None
    chat_item_id: Uuid | None
    root_process_id: Uuid | None
    kind: PendingKind
    status: PendingStatus
    interaction_name: str
    namespace_name: str
    date_requested: Datetime
    date_expires: Datetime | None
    is_cut: bool
    approval: ApprovalCard | None
    vote: VoteCard | None
    question: QuestionCard | None
    turn: TurnCard | None
    receipt: AnswerReceipt | None


class PendingWorkPage(Page[PendingWork]):
    """A page of what waits or waited."""


class PendingCount(ResponseShape):
    """How many things wait, of each kind and in all."""

    total: int
    approvals: int
    votes: int
    questions: int
    turns: int


class FeedSync(ResponseShape):
    """What waits at this moment was sent; `waiting`: how many things wait that the feed shows."""

    waiting: int


class VoteRequest(RequestShape):
    """A vote. Whoever disagrees says why; a vote for it has no reason."""

    agree: Flag
    reason: Text | None = None


class QuestionAnswerRequest(RequestShape):
    """The answer to a question."""

    answer: Annotated[Text, Field(min_length=1)]


class ApprovalDecision(StrEnum):
    """Whether a gated call is made."""

    APPROVE = "Approve"
    REJECT = "Reject"


class ApprovalDecisionRequest(RequestShape):
    """A decision on the call that a card shows, named by the card's `argumentsHash`. A rejection may say why."""

    decision: ApprovalDecision
    arguments_hash: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Text | None = None
