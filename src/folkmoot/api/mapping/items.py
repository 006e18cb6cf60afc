"""Items of a conversation: one by one with their kind, and by kind in 15 lists.

A body's fields have the same names on both sides. Deliberately absent: details, turns and model calls, which are the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from folkmoot.domain.items import Author, StoredItem
from folkmoot.wire import items as wire

_CONVERSATION: dict[str, Any] = {
    "agentMessage": wire.ConversationAgentMessage,
    "agree": wire.ConversationAgree,
    "directQuestionAnswer": wire.ConversationDirectQuestionAnswer,
    "directQuestionAsk": wire.ConversationDirectQuestionAsk,
    "disagree": wire.ConversationDisagree,
    "humanMessage": wire.ConversationHumanMessage,
    "injectedSystemMessage": wire.ConversationInjectedSystemMessage,
    "noAction": wire.ConversationNoAction,
    "orchestratorMessage": wire.ConversationOrchestratorMessage,
    "solutionProposal": wire.ConversationSolutionProposal,
    "systemPrompt": wire.ConversationSystemPrompt,
    "toolCall": wire.ConversationToolCall,
    "toolResult": wire.ConversationToolResult,
    "voteProposal": wire.ConversationVoteProposal,
    "summary": wire.ConversationSummary,
}
_CONTEXT: dict[str, tuple[str, Any]] = {
    "agentMessage": ("agent_message", wire.InteractionProcessContextAgentMessage),
    "agree": ("agree", wire.InteractionProcessContextAgree),
    "directQuestionAnswer": ("direct_question_answer", wire.InteractionProcessContextDirectQuestionAnswer),
    "directQuestionAsk": ("direct_question_ask", wire.InteractionProcessContextDirectQuestionAsk),
    "disagree": ("disagree", wire.InteractionProcessContextDisagree),
    "humanMessage": ("human_message", wire.InteractionProcessContextHumanMessage),
    "injectedSystemMessage": ("injected_system_message", wire.InteractionProcessContextInjectedSystemMessage),
    "noAction": ("no_action", wire.InteractionProcessContextNoAction),
    "orchestratorMessage": ("orchestrator_message", wire.InteractionProcessContextOrchestratorMessage),
    "solutionProposal": ("solution_proposal", wire.InteractionProcessContextSolutionProposal),
    "systemPrompt": ("system_prompt", wire.InteractionProcessContextSystemPrompt),
    "toolCall": ("tool_call", wire.InteractionProcessContextToolCall),
    "toolResult": ("tool_result", wire.InteractionProcessContextToolResult),
    "voteProposal": ("vote_proposal", wire.InteractionProcessContextVoteProposal),
    "summary": ("summary", wire.InteractionProcessContextSummary),
}


def conversation_item(stored: StoredItem) -> Any:
    """One of the types of `ConversationItem`, with its kind."""
    return _CONVERSATION[stored.item.body.kind](**_fields(stored))


def context(stored: Iterable[StoredItem]) -> wire.InteractionProcessContext:
    """The conversation by kind; each list by sequence."""
    lists: dict[str, list[Any]] = {name: [] for name, _ in _CONTEXT.values()}
    for item in stored:
        name, shape = _CONTEXT[item.item.body.kind]
        lists[name].append(shape(**_fields(item)))
    return wire.InteractionProcessContext(**{name: tuple(shapes) for name, shapes in lists.items()})


def author(of: Author) -> wire.InteractionProcessContextAuthor:
    return wire.InteractionProcessContextAuthor(kind=wire.AuthorKind(of.kind), name=of.name, id=of.id)


def _fields(stored: StoredItem) -> dict[str, Any]:
    body = stored.item.body
    return {
        "sequence": stored.sequence,
        "author": author(stored.item.author),
        "date": stored.date,
        "thread_id": stored.item.thread_id,
        **{field.name: getattr(body, field.name) for field in fields(body)},
    }
