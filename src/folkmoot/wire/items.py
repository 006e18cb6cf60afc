"""The 15 kinds of conversation items, in a run's `context` (15 arrays) and in a page (merged, with `kind`).

`kind` is the name of the array in `context` that holds the same item. Deliberately absent: details, turns and model
calls. They are the engine's, not the reader's.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from folkmoot.wire.formats import Datetime, Page, ResponseShape, Uuid


class AuthorKind(StrEnum):
    """Who speaks."""

    AGENT = "Agent"
    HUMAN = "Human"
    ORCHESTRATOR = "Orchestrator"


class InteractionProcessContextAuthor(ResponseShape):
    """Who wrote an item. `id` is the agent's or the user's; null for the orchestrator."""

    kind: AuthorKind
    name: str
    id: Uuid | None


class AuthoredItem(ResponseShape):
    """What every item has. `sequence` starts at 1 and has no gaps; the main conversation's thread is `main`."""

    sequence: int
    author: InteractionProcessContextAuthor
    date: Datetime
    thread_id: str


class InteractionProcessContextAgentMessage(AuthoredItem):
    """What a participant said."""

    message: str


class InteractionProcessContextAgree(AuthoredItem):
    """A vote for; `associatedId` is the vote's or the solution's id."""

    associated_id: Uuid


class InteractionProcessContextDirectQuestionAnswer(AuthoredItem):
    """The answer to a direct question."""

    question_id: Uuid
    answer: str


class InteractionProcessContextDirectQuestionAsk(AuthoredItem):
    """A question to one participant, or to the person."""

    question_id: Uuid
    other_agent_name: str
    question: str


class InteractionProcessContextDisagree(AuthoredItem):
    """A vote against, with its reason; `associatedId` is the vote's or the solution's id."""

    associated_id: Uuid
    reason: str


class InteractionProcessContextHumanMessage(AuthoredItem):
    """What a person said."""

    message: str


class InteractionProcessContextInjectedSystemMessage(AuthoredItem):
    """What the system tells the participants, such as the time that is left."""

    message: str


class InteractionProcessContextNoAction(AuthoredItem):
    """A pass."""


class InteractionProcessContextOrchestratorMessage(AuthoredItem):
    """What the orchestrator says: the task, who has the floor, tallies, reminders."""

    message: str


class InteractionProcessContextSolutionProposal(AuthoredItem):
    """A proposed answer; under a schema, `solution` is JSON as text."""

    solution_id: Uuid
    solution: str


class InteractionProcessContextSystemPrompt(AuthoredItem):
    """What a participant was given, secrets absent."""

    prompt: str


class InteractionProcessContextToolCall(AuthoredItem):
    """A call of a tool; `argumentsJson` is JSON as text."""

    tool_call_id: str
    function_name: str
    arguments_json: str


class InteractionProcessContextToolResult(AuthoredItem):
    """A call's one result. `resultSize` is in bytes of UTF-8; `rejectionReason` is the person's who refused it."""

    tool_call_id: str
    result: str
    is_error: bool
    tool_result_id: Uuid | None
    result_size: int
    rejection_reason: str | None


class InteractionProcessContextVoteProposal(AuthoredItem):
    """A topic that is put to the vote."""

    vote_id: Uuid
    topic: str


class InteractionProcessContextSummary(AuthoredItem):
    """Stands, in its author's view, for the items up to `coveredUpToSequence`; sizes are in tokens."""

    summary: str
    covered_up_to_sequence: int
    tokens_before: int
    tokens_after: int
    model: str


class InteractionProcessContext(ResponseShape):
    """The conversation by kind; `sequence` gives the order over all of them."""

    agent_message: tuple[InteractionProcessContextAgentMessage, ...]
    agree: tuple[InteractionProcessContextAgree, ...]
    direct_question_answer: tuple[InteractionProcessContextDirectQuestionAnswer, ...]
    direct_question_ask: tuple[InteractionProcessContextDirectQuestionAsk, ...]
    disagree: tuple[InteractionProcessContextDisagree, ...]
    human_message: tuple[InteractionProcessContextHumanMessage, ...]
    injected_system_message: tuple[InteractionProcessContextInjectedSystemMessage, ...]
    no_action: tuple[InteractionProcessContextNoAction, ...]
    orchestrator_message: tuple[InteractionProcessContextOrchestratorMessage, ...]
    solution_proposal: tuple[InteractionProcessContextSolutionProposal, ...]
    system_prompt: tuple[InteractionProcessContextSystemPrompt, ...]
    tool_call: tuple[InteractionProcessContextToolCall, ...]
    tool_result: tuple[InteractionProcessContextToolResult, ...]
    vote_proposal: tuple[InteractionProcessContextVoteProposal, ...]
    summary: tuple[InteractionProcessContextSummary, ...]


class ConversationAgentMessage(InteractionProcessContextAgentMessage):
    kind: Literal["agentMessage"] = "agentMessage"


class ConversationAgree(InteractionProcessContextAgree):
    kind: Literal["agree"] = "agree"


class ConversationDirectQuestionAnswer(InteractionProcessContextDirectQuestionAnswer):
    kind: Literal["directQuestionAnswer"] = "directQuestionAnswer"


class ConversationDirectQuestionAsk(InteractionProcessContextDirectQuestionAsk):
    kind: Literal["directQuestionAsk"] = "directQuestionAsk"


class ConversationDisagree(InteractionProcessContextDisagree):
    kind: Literal["disagree"] = "disagree"


class ConversationHumanMessage(InteractionProcessContextHumanMessage):
    kind: Literal["humanMessage"] = "humanMessage"


class ConversationInjectedSystemMessage(InteractionProcessContextInjectedSystemMessage):
    kind: Literal["injectedSystemMessage"] = "injectedSystemMessage"


class ConversationNoAction(InteractionProcessContextNoAction):
    kind: Literal["noAction"] = "noAction"


class ConversationOrchestratorMessage(InteractionProcessContextOrchestratorMessage):
    kind: Literal["orchestratorMessage"] = "orchestratorMessage"


class ConversationSolutionProposal(InteractionProcessContextSolutionProposal):
    kind: Literal["solutionProposal"] = "solutionProposal"


class ConversationSystemPrompt(InteractionProcessContextSystemPrompt):
    kind: Literal["systemPrompt"] = "systemPrompt"


class ConversationToolCall(InteractionProcessContextToolCall):
    kind: Literal["toolCall"] = "toolCall"


class ConversationToolResult(InteractionProcessContextToolResult):
    kind: Literal["toolResult"] = "toolResult"


class ConversationVoteProposal(InteractionProcessContextVoteProposal):
    kind: Literal["voteProposal"] = "voteProposal"


class ConversationSummary(InteractionProcessContextSummary):
    kind: Literal["summary"] = "summary"


# An alias type, so that the union has a component of its own in the OpenAPI document.
ConversationItem = TypeAliasType(
    "ConversationItem",
    Annotated[
        ConversationAgentMessage
        | ConversationAgree
        | ConversationDirectQuestionAnswer
        | ConversationDirectQuestionAsk
        | ConversationDisagree
        | ConversationHumanMessage
        | ConversationInjectedSystemMessage
        | ConversationNoAction
        | ConversationOrchestratorMessage
        | ConversationSolutionProposal
        | ConversationSystemPrompt
        | ConversationToolCall
        | ConversationToolResult
        | ConversationVoteProposal
        | ConversationSummary,
        Field(discriminator="kind"),
    ],
)


class ConversationItemPage(Page[ConversationItem]):
    """A page of a conversation, by sequence."""
