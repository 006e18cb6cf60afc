"""What an item says: the 15 kinds, by their names on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID


@dataclass(frozen=True, slots=True)
class AgentMessage:
    kind: ClassVar[str] = "agentMessage"
    message: str


@dataclass(frozen=True, slots=True)
class Agree:
    kind: ClassVar[str] = "agree"
    associated_id: UUID


@dataclass(frozen=True, slots=True)
class Disagree:
    kind: ClassVar[str] = "disagree"
    associated_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class DirectQuestionAsk:
    kind: ClassVar[str] = "directQuestionAsk"
    question_id: UUID
    other_agent_name: str
    question: str


@dataclass(frozen=True, slots=True)
class DirectQuestionAnswer:
    kind: ClassVar[str] = "directQuestionAnswer"
    question_id: UUID
    answer: str


@dataclass(frozen=True, slots=True)
class HumanMessage:
    kind: ClassVar[str] = "humanMessage"
    message: str


@dataclass(frozen=True, slots=True)
class InjectedSystemMessage:
    kind: ClassVar[str] = "injectedSystemMessage"
    message: str


@dataclass(frozen=True, slots=True)
class NoAction:
    kind: ClassVar[str] = "noAction"


@dataclass(frozen=True, slots=True)
class OrchestratorMessage:
    kind: ClassVar[str] = "orchestratorMessage"
    message: str


@dataclass(frozen=True, slots=True)
class SolutionProposal:
    kind: ClassVar[str] = "solutionProposal"
    solution_id: UUID
    solution: str


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    kind: ClassVar[str] = "systemPrompt"
    prompt: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    kind: ClassVar[str] = "toolCall"
    tool_call_id: str
    function_name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """`result_size` is in bytes of UTF-8."""

    kind: ClassVar[str] = "toolResult"
    tool_call_id: str
    result: str
    is_error: bool
    result_size: int
    tool_result_id: UUID | None = None
    rejection_reason: str | None = None


@dataclass(frozen=True, slots=True)
class VoteProposal:
    kind: ClassVar[str] = "voteProposal"
    vote_id: UUID
    topic: str


@dataclass(frozen=True, slots=True)
class Summary:
    kind: ClassVar[str] = "summary"
    summary: str
    covered_up_to_sequence: int
    tokens_before: int
    tokens_after: int
    model: str


Body = (
    AgentMessage
    | Agree
    | Disagree
    | DirectQuestionAsk
    | DirectQuestionAnswer
    | HumanMessage
    | InjectedSystemMessage
    | NoAction
    | OrchestratorMessage
    | SolutionProposal
    | SystemPrompt
    | ToolCall
    | ToolResult
    | VoteProposal
    | Summary
)
