"""The prompt that goes with the shim: who one is, an example or two, the conversation as far as it fits, what to reply with.

A local model reads slowly, so the prompt has a budget in characters: the end of the instructions (the participant's own),
the task and the newest entries stay, the oldest in between go. Deliberately absent: the reply's shape (`shim` forces it).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from folkmoot.domain.model_calls import (
    Entry,
    ModelRequest,
    OfferedTool,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    SystemText,
)
from folkmoot.llm.headings import headed
from folkmoot.llm.shim import SAY, Options

Json = Any

OMITTED = "[...]"


@dataclass(frozen=True, slots=True)
class Budget:
    """Characters that each part of the prompt may take. `ballot_conversation`: in place of `conversation` in a ballot."""

    system: int
    conversation: int
    entry: int
    explains_tools: bool
    ballot_conversation: int | None = None


# A voter reads the task and what is put to the vote, not the talk before it: that takes most of the time and does not help.
SMALL_BUDGET = Budget(system=400, conversation=1000, entry=400, explains_tools=False, ballot_conversation=0)


def budget_for(window_tokens: int) -> Budget:
    """The budget for a model with this window: half of it for the conversation, at three characters a token."""
    characters = max(window_tokens, 1024) * 3
    return Budget(system=characters // 4, conversation=characters // 2, entry=characters // 8, explains_tools=True)


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """`role`: system, user or assistant."""

    role: str
    content: str


def chat_messages(request: ModelRequest, options: Options, budget: Budget) -> list[ChatMessage]:
    """The whole prompt, ending with a user message."""
    messages = [ChatMessage("system", _system(request, options, budget))]
    for question, answer in _examples(options):
        messages += [ChatMessage("user", question), ChatMessage("assistant", answer)]
    parts = _conversation(request, budget)
    if request.instruction is not None:
        parts.append(_shortened(request.instruction, budget.entry))
    parts.append(_cue(request.participant, options))
    return [*messages, ChatMessage("user", "\n".join(parts))]


def _system(request: ModelRequest, options: Options, budget: Budget) -> str:
    view = request.view
    texts = [
        entry.text for entry in (view[index] for index in range(request.view_length)) if isinstance(entry, SystemText)
    ]
    paragraphs = "\n\n".join(texts).split("\n\n")
    kept: list[str] = []
    left = budget.system
    for paragraph in reversed(paragraphs):
        if len(paragraph) > left:
            break
        kept.insert(0, paragraph)
        left -= len(paragraph)
    if not kept:
        kept = [_shortened(paragraphs[-1], budget.system)]
    lines = [f"You are {request.participant}.", *kept]
    if budget.explains_tools:
        lines.append(_explained(options))
    return "\n\n".join(line for line in lines if line)


def _explained(options: Options) -> str:
    lines = ["Reply with one JSON object, one of:"]
    if options.may_say:
        lines.append(f'{{"{SAY}": "what you say to all"}}')
    lines += [f'{{"{tool.name}": {_outline(tool)}}}: {tool.description}' for tool in options.tools]
    return "\n".join(lines)


def _outline(tool: OfferedTool) -> str:
    return json.dumps(tool.parameters.get("properties", {}), ensure_ascii=False)


def _conversation(request: ModelRequest, budget: Budget) -> list[str]:
    """The task and the newest entries that fit."""
    heard = [
        entry
        for entry in (request.view[index] for index in range(request.view_length))
        if not isinstance(entry, SystemText)
    ]
    if not heard:
        return []
    task = _line(heard[0], request.participant, budget.entry)
    newest: list[str] = []
    is_short = request.purpose is Purpose.BALLOT and budget.ballot_conversation is not None
    left = (budget.ballot_conversation or 0 if is_short else budget.conversation) - len(task)
    for entry in reversed(heard[1:]):
        line = _line(entry, request.participant, budget.entry)
        if len(line) > left:
            newest.insert(0, OMITTED)
            break
        newest.insert(0, line)
        left -= len(line)
    return [task, *newest]


def _line(entry: Entry, participant: str, longest: int) -> str:
    match entry:
        case OtherText(speaker, text):
            return _shortened(headed(speaker, text) if speaker is not None else text, longest)
        case OwnText(text):
            return _shortened(headed(participant, text), longest)
        case OwnCall(_, name, arguments_json, result):
            return _shortened(headed(participant, f"{name} {arguments_json}: {result}"), longest)
        case SystemText(text):
            return _shortened(text, longest)


def _shortened(text: str, longest: int) -> str:
    """Head and tail of a text that is too long."""
    if len(text) <= longest:
        return text
    half = max((longest - len(OMITTED)) // 2, 1)
    return f"{text[:half]}{OMITTED}{text[-half:]}"


def _cue(participant: str, options: Options) -> str:
    names = [tool.name for tool in options.tools]
    if options.may_say and not names:
        return f"What does {participant} say?"
    if names == ["call_vote"]:
        return f"Which question does {participant} put to the vote?"
    if names == ["propose_solution"]:
        return f"Which final answer does {participant} propose?"
    if names == ["agree", "disagree"]:
        return f"Does {participant} agree?"
    choices = [SAY, *names] if options.may_say else names
    return f"What does {participant} do: {', '.join(choices)}?"


# About other things, so that an example shows the form and no opinion.
_QUESTION = (
    "The task: Should the office get a plant or a painting?\n[Bob]:\nA plant is better, because it cleans the air.\n"
)
_VOTING: tuple[tuple[str, Json], ...] = (
    (
        "The task: Should the office get a plant or a painting?\nBob proposes this answer: a plant.\nDoes Eva agree?",
        {"agree": {}},
    ),
    ("Bob proposes this answer: sell the office.\nDoes Eva agree?", {"disagree": {"reason": "That is no answer."}}),
)
_PHRASES = (
    "The office should get a green plant.",
    "Plants clean the air and cost little.",
    "There is enough light for one.",
)


def _examples(options: Options) -> list[tuple[str, str]]:
    """One or two examples of what is asked for; none where the choice is wide."""
    names = [tool.name for tool in options.tools]
    shown: list[tuple[str, Json]] = []
    if options.may_say:
        shown = [
            (_QUESTION + _cue("Eva", options), {SAY: "I would also take a plant, because a painting costs too much."})
        ]
    elif names == ["agree", "disagree"]:
        shown = list(_VOTING)
    elif names == ["call_vote"]:
        shown = [(_QUESTION + _cue("Eva", options), {"call_vote": {"topic": "Should the office get a plant?"}})]
    elif names == ["propose_solution"]:
        phrases = list(_PHRASES)
        shown = [(_QUESTION + _cue("Eva", options), {names[0]: _instance(options.tools[0].parameters, phrases)})]
    return [(question, json.dumps(answer, separators=(",", ":"))) for question, answer in shown]


def _instance(schema: Json, phrases: list[str]) -> Json:
    """Something of the schema's form, its strings taken from `phrases` in turn. It need not be valid: it is only shown."""
    if not isinstance(schema, dict):
        return phrases[0]
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: _instance(part, phrases) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [_instance(schema.get("items"), phrases)]
        case "integer" | "number":
            return 1
        case "boolean":
            return True
        case "null":
            return None
    phrase = phrases.pop(0) if len(phrases) > 1 else phrases[0]
    longest = schema.get("maxLength")
    return phrase[:longest] if isinstance(longest, int) else phrase
