"""The 15 kinds of items that a conversation is made of, and the details that let nothing be read out of prose.

An item never changes. `Item` is what a writer makes; sequence and date are given by the append (`StoredItem`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.items.authors import ORCHESTRATOR, Author, AuthorKind
from folkmoot.domain.items.bodies import (
    AgentMessage,
    Agree,
    Body,
    DirectQuestionAnswer,
    DirectQuestionAsk,
    Disagree,
    HumanMessage,
    InjectedSystemMessage,
    NoAction,
    OrchestratorMessage,
    SolutionProposal,
    Summary,
    SystemPrompt,
    ToolCall,
    ToolResult,
    VoteProposal,
)
from folkmoot.domain.items.details import (
    Abstained,
    Balloted,
    Called,
    Delegated,
    Detail,
    Dispatched,
    DispatchMode,
    EmptyReply,
    Ended,
    EndReason,
    Floor,
    GivenUp,
    InvalidSolution,
    LastTurn,
    ManagerReminder,
    NoAnswer,
    NoChoice,
    NotMade,
    NoVote,
    Outcome,
    PhaseReminder,
    Planned,
    Prompted,
    ProtocolCall,
    Reminder,
    Replanned,
    Routed,
    Routing,
    StuckWarning,
    Tally,
    Task,
    Terminal,
    TimeWarning,
    TurnEnd,
    UnknownOutcome,
    Verified,
)

__all__ = [
    "MAIN_THREAD",
    "ORCHESTRATOR",
    "Abstained",
    "AgentMessage",
    "Agree",
    "Author",
    "AuthorKind",
    "Balloted",
    "Body",
    "Called",
    "Delegated",
    "Detail",
    "DirectQuestionAnswer",
    "DirectQuestionAsk",
    "Disagree",
    "DispatchMode",
    "Dispatched",
    "EmptyReply",
    "EndReason",
    "Ended",
    "Floor",
    "GivenUp",
    "HumanMessage",
    "InjectedSystemMessage",
    "InvalidSolution",
    "Item",
    "LastTurn",
    "ManagerReminder",
    "NoAction",
    "NoAnswer",
    "NoChoice",
    "NoVote",
    "NotMade",
    "OrchestratorMessage",
    "Outcome",
    "PhaseReminder",
    "Planned",
    "Prompted",
    "ProtocolCall",
    "Reminder",
    "Replanned",
    "Routed",
    "Routing",
    "SolutionProposal",
    "StoredItem",
    "StuckWarning",
    "Summary",
    "SystemPrompt",
    "Tally",
    "Task",
    "Terminal",
    "TimeWarning",
    "ToolCall",
    "ToolResult",
    "TurnEnd",
    "UnknownOutcome",
    "Verified",
    "VoteProposal",
]

MAIN_THREAD = "main"


@dataclass(frozen=True, slots=True)
class Item:
    """One entry of a conversation, before or after it was appended."""

    item_id: UUID
    author: Author
    body: Body
    detail: Detail | None = None
    turn_id: UUID | None = None
    model_call_id: UUID | None = None
    thread_id: str = MAIN_THREAD


@dataclass(frozen=True, slots=True)
class StoredItem:
    sequence: int
    date: datetime
    item: Item
