"""The conversation of the crash tests: three kinds of calls, a vote, a solution; and its transcript in comparable form."""

from __future__ import annotations

from typing import Any

import panels
from processes import SHOP

from folkmoot.bootstrap.installation import find_functions
from folkmoot.domain import items
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import StoredItem
from folkmoot.engine.calls import UNKNOWN
from folkmoot.kernel.ids import NewId

CALLS = [
    {"name": "look", "arguments": {"text": "prices"}},
    {"name": "note", "arguments": {"text": "cheap"}},
    {"name": "pay", "arguments": {"amount": 5}},
]
RULES: list[dict[str, Any]] = [
    {"when": {"offered": "agree", "participant": "Cid"}, "reply": {"calls": [{"name": "disagree", "arguments": {"reason": "No."}}]}},
    {"when": {"offered": "agree"}, "reply": {"calls": [{"name": "agree"}]}},
    {"when": {"participant": "Ben", "turn": 1}, "reply": {"text": "Let us vote.", "calls": [{"name": "call_vote", "arguments": {"topic": "Keep it?"}}]}},
    {"when": {"participant": "Cid", "turn": 1}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": "keep"}}]}},
    {"reply": {"text": "I have nothing to add."}},
]  # fmt: skip


def panel(new_id: NewId, calls: list[dict[str, Any]] | None = None, **settings: Any) -> ResolvedInteraction:
    """Ann calls tools, Ben calls a vote, Cid proposes what is accepted."""
    tools = find_functions((SHOP,))
    first = {"when": {"participant": "Ann", "call": 1}, "reply": {"text": "I look.", "calls": calls or CALLS}}
    given = {"is_voting_allowed": True, "is_solution_proposal_allowed": True, "maximum_rounds": 3, **settings}
    offered = {"Ann": tuple(tools.offered(name) for name in tools.names)}
    return panels.interaction(new_id, {"rules": [first, *RULES]}, tools=offered, **given)


def transcript(conversation: list[StoredItem]) -> list[str]:
    """The items without ids and dates. What goes side by side (votes of a ballot, results of calls) is sorted.

    The result of `pay` may be that its outcome is unknown; whether it should be is not a transcript's matter.
    """
    lines: list[str] = []
    beside: list[str] = []
    for stored in conversation:
        item = stored.item
        line = f"{item.author.name}: {item.body.kind} {_words(item)}".rstrip()
        if isinstance(item.body, items.Agree | items.Disagree | items.ToolResult):
            beside.append(line)
            continue
        lines += [*sorted(beside), line]
        beside = []
    return lines + sorted(beside)


def _words(item: items.Item) -> str:
    body = item.body
    match body:
        case items.ToolCall():
            return f"{body.function_name} {body.arguments_json}"
        case items.ToolResult():
            return "paid 5" if body.result == UNKNOWN else body.result
        case items.AgentMessage() | items.OrchestratorMessage() | items.HumanMessage():
            return _sorted_names(body.message) if isinstance(item.detail, items.Tally) else body.message
        case items.VoteProposal():
            return body.topic
        case items.SolutionProposal():
            return body.solution
        case items.SystemPrompt():
            return body.prompt
        case items.Disagree():
            return body.reason
        case _:
            return ""


def _sorted_names(tally: str) -> str:
    """A tally names voters in the order of their votes."""
    return " ".join(sorted(tally.replace(",", " ").replace("(", " ").replace(")", " ").split()))
