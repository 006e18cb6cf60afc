"""What pages show of calls and of what a run recorded, as plain values for the templates.

Arguments are laid out without reading them: every token stays as the model wrote it, so that what is shown is what runs. Deliberately absent:
markup, which the templates have, and escaping for it, which they do by themselves.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from folkmoot.domain import items
from folkmoot.domain.agent_runs import Consent
from folkmoot.domain.items import Body, StoredItem
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_cards import shown_card
from folkmoot.domain.shown_text import shown, shown_json

_CARD_CHARACTERS = 200_000
_TEXT_CHARACTERS = 50_000
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_DEEPEST = 40


def text(value: Any) -> str:
    """Of a model, a tool or a person, with what hides in it written out."""
    return shown(str(value), limit=_TEXT_CHARACTERS).text


def moment(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def laid_out(arguments_json: str) -> str:
    """JSON over several lines, each token as it is; what is no JSON, or not all of it, stays as it is."""
    try:
        json.loads(arguments_json)
    except (ValueError, RecursionError):
        return arguments_json
    made: list[str] = []
    depth = 0
    tokens = _TOKEN.findall(arguments_json)
    for index, token in enumerate(tokens):
        follows = tokens[index + 1] if index + 1 < len(tokens) else ""
        if token in ("{", "["):
            depth += 1
            made.append(token if follows in ("}", "]") else token + _line(depth))
        elif token in ("}", "]"):
            depth -= 1
            before = tokens[index - 1] if index else ""
            made.append(token if before in ("{", "[") else _line(depth) + token)
        elif token == ",":
            made.append(token + _line(depth))
        else:
            made.append(": " if token == ":" else token)
    return "".join(made)


def _line(depth: int) -> str:
    return "\n" + "  " * max(0, min(depth, _DEEPEST))


@dataclass(frozen=True, slots=True)
class Call:
    """A call as a person is shown it before deciding. `facts`: what else is known of it, by name. `later`: calls that wait behind it."""

    name: str
    arguments: str
    facts: tuple[tuple[str, str], ...]
    later: tuple[tuple[str, str], ...]
    is_cut: bool


def call(consent: Consent) -> Call:
    made = shown_card(PendingKind.APPROVAL, consent.card, limit=_CARD_CHARACTERS)
    fields = made.fields["approval"]
    facts = [
        ("What the tool says of itself", fields["description"]),
        ("Connector", fields["connector"]),
        ("Operation", fields["operation"]),
        ("Version of the operation", fields["operationVersion"]),
        ("Server", fields["server"]),
    ]
    later = [(each["functionName"], _arguments(each["argumentsJson"])) for each in fields["deferredToolCalls"]]
    return Call(
        fields["functionName"], _arguments(fields["argumentsJson"]), tuple((name, str(value)) for name, value in facts if value),
        tuple(later), made.is_cut,
    )  # fmt: skip


def _arguments(shown_arguments: str) -> str:
    """Of arguments whose hidden characters are written out already: only lines are added, and they hide nothing."""
    return laid_out(shown_arguments) or "(none)"


def pretty(value: Any) -> str:
    """A value of ours, such as a part of a payload."""
    return shown_json(json.dumps(value, indent=2, ensure_ascii=False), limit=_TEXT_CHARACTERS).text


@dataclass(frozen=True, slots=True)
class Line:
    """An item of a run's own conversation."""

    sequence: int
    author: str
    what: str
    said: str


def line(stored: StoredItem) -> Line:
    what, said = _words(stored.item.body)
    return Line(stored.sequence, text(stored.item.author.name), what, text(said))


def _words(body: Body) -> tuple[str, str]:
    match body:
        case items.AgentMessage() | items.HumanMessage():
            return "says", body.message
        case items.OrchestratorMessage() | items.InjectedSystemMessage():
            return "notes", body.message
        case items.SystemPrompt():
            return "instructs", body.prompt
        case items.ToolCall():
            return f"calls {text(body.function_name)}", body.arguments_json
        case items.ToolResult():
            return ("was told of a failure" if body.is_error else "was told"), body.result
        case items.Summary():
            return "sums up", body.summary
        case items.VoteProposal():
            return "puts to the vote", body.topic
        case items.SolutionProposal():
            return "proposes", body.solution
        case items.Agree():
            return "agrees", ""
        case items.Disagree():
            return "disagrees", body.reason
        case items.DirectQuestionAsk():
            return f"asks {text(body.other_agent_name)}", body.question
        case items.DirectQuestionAnswer():
            return "answers", body.answer
        case items.NoAction():
            return "passes", ""
        case _:
            assert_never(body)
