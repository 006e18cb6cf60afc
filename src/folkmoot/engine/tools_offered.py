"""The tools that a participant is offered: protocol tools where the definition allows, then its own, then those of sub-runs.

Protocol tools touch nothing outside; the engine reads their calls itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from folkmoot.agentloop import offers
from folkmoot.domain.calls import ResultTarget, Tool
from folkmoot.domain.definitions import ChatMode, Participant, ResolvedInteraction
from folkmoot.domain.items import DispatchMode
from folkmoot.domain.model_calls import OfferedTool
from folkmoot.domain.pending import PERSON
from folkmoot.domain.schema_documents import REFERENCES, SchemaDocument
from folkmoot.domain.tool_names import (
    MANAGER_TOOLS,
    PLAN_TOOL,
    PROTOCOL_TOOLS,
    READ_RESULT_TOOL,
    REPLAN_TOOL,
    VERDICT_TOOL,
)
from folkmoot.engine import swarm_tools

PASS = "pass"
CALL_VOTE = "call_vote"
ASK = "ask"
PROPOSE = "propose_solution"
ANSWER_NAME = "answer"
AGREE = "agree"
DISAGREE = "disagree"
DISPATCH = "dispatch"
FINISH = "finish"
CHOOSE = "choose"
ARGUMENT_OF_ANSWER = {PROPOSE: "solution", FINISH: "answer"}


def protocol_names(definition: ResolvedInteraction) -> frozenset[str]:
    """The names of the conversation's own tools, which no other tool of it may have."""
    if definition.loop is not None:
        return frozenset((*PROTOCOL_TOOLS, PLAN_TOOL, REPLAN_TOOL, VERDICT_TOOL))
    return frozenset(PROTOCOL_TOOLS if definition.manager is None else (*PROTOCOL_TOOLS, *MANAGER_TOOLS))


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


_PASS = OfferedTool(PASS, "Say nothing in this turn.", {"type": "object", "properties": {}})
_CALL_VOTE = OfferedTool(
    CALL_VOTE,
    "Put a topic to the vote of all participants. Ends your turn.",
    _object({"topic": {"type": "string", "minLength": 1}}),
)
BALLOT = (
    OfferedTool(AGREE, "Vote for it.", {"type": "object", "properties": {}}),
    OfferedTool(DISAGREE, "Vote against it, and say why.", _object({"reason": {"type": "string"}})),
)
ANSWER = (
    OfferedTool(
        ANSWER_NAME, "Answer the question you were asked.", _object({"text": {"type": "string", "minLength": 1}})
    ),
)


_COUNT = {"type": "integer", "minimum": 0}
READ_RESULT = Tool(
    name=READ_RESULT_TOOL,
    description="Read on in a tool's result that was too large to be shown whole. `id` stands where it was cut; offset and length count characters.",
    parameters={
        "type": "object",
        "additionalProperties": False,
        "required": ["id"],
        "properties": {
            "id": {"type": "string"},
            "offset": _COUNT,
            "length": {"type": "integer", "minimum": 1, "maximum": 30_000},
        },
    },
    is_idempotent=True,
    is_read_only=True,
    target=ResultTarget(),
)


def own_tools(definition: ResolvedInteraction, participant: Participant) -> list[Tool]:
    """What of a participant's tools this run leaves it."""
    return [tool for tool in participant.tools if tool.name not in definition.disabled_tools]


def usable(definition: ResolvedInteraction, participant: Participant) -> dict[str, Tool]:
    """What a participant may call beyond the protocol in this run; whoever has tools may read on in their results."""
    tools = {tool.name: tool for tool in own_tools(definition, participant)}
    tools |= {tool.name: tool for tool in swarm_tools.tools(definition, participant.name)}
    delegate = offers.delegate_tool(definition.loop) if definition.loop is not None else None
    if delegate is not None:
        tools[delegate.name] = delegate
    has_results = bool(participant.tools or tools) or participant.name == definition.manager
    if has_results and READ_RESULT.name not in definition.disabled_tools:
        tools[READ_RESULT.name] = READ_RESULT
    return tools


def for_turn(
    definition: ResolvedInteraction, participant: str, *, tools: dict[str, Tool], solution_schema: Any
) -> tuple[OfferedTool, ...]:
    """What `participant` may call in a turn of its own."""
    own = tuple(OfferedTool(tool.name, tool.description, tool.parameters) for tool in tools.values())
    if definition.loop is not None:
        return (offers.plan_tool(definition.loop, tools.values()), offers.REPLAN, offers.VERDICT, *own)
    if definition.manager is not None:
        return (*_managing(definition, solution_schema), *own) if participant == definition.manager else own
    offered: list[OfferedTool] = []
    others = [p.name for p in definition.participants if p.name != participant]
    if is_person_asked(definition):
        others.append(PERSON)
    if definition.is_no_action_allowed:
        offered.append(_PASS)
    if definition.is_voting_allowed:
        offered.append(_CALL_VOTE)
    if definition.is_direct_questioning_allowed and others:
        properties = {"participant": {"type": "string", "enum": others}, "question": {"type": "string", "minLength": 1}}
        offered.append(
            OfferedTool(ASK, "Ask one participant a question and get the answer at once.", _object(properties))
        )
    if definition.is_solution_proposal_allowed:
        description = "Propose the final answer; all participants vote on it. Ends your turn."
        offered.append(OfferedTool(PROPOSE, description, _answering(solution_schema, "solution")))
    return (*offered, *own)


def _managing(definition: ResolvedInteraction, solution_schema: Any) -> tuple[OfferedTool, ...]:
    """A manager's tools: it sends work to agents, several at once if it likes, asks the person, and gives the answer."""
    agents = [p.name for p in definition.participants if p.name != definition.manager]
    properties = {
        "agent": {"type": "string", "enum": agents},
        "message": {"type": "string", "minLength": 1},
        "mode": {
            "type": "string",
            "enum": [mode.value for mode in DispatchMode],
            "description": "OneTime: it sees this message alone. Continue: it goes on from what was said before in the thread.",
        },
        "thread": {
            "type": "string",
            "minLength": 1,
            "maxLength": 100,
            "description": "With Continue, a name of your own for one of several threads with the same agent.",
        },
    }
    parameters = {**_object(properties), "required": ["agent", "message", "mode"]}
    words = "Send work to an agent; its last words come back as the result. Several in one reply go side by side."
    offered = [OfferedTool(DISPATCH, words, parameters)]
    if is_person_asked(definition):
        asked = {"participant": {"type": "string", "enum": [PERSON]}, "question": {"type": "string", "minLength": 1}}
        offered.append(OfferedTool(ASK, "Ask the person a question and get the answer.", _object(asked)))
    finish = OfferedTool(FINISH, "Give the final answer. Ends the conversation.", _answering(solution_schema, "answer"))
    return (*offered, finish)


def choosing(candidates: Sequence[str]) -> tuple[OfferedTool, ...]:
    """What a router's model is offered, and must call."""
    properties = {"candidate": {"type": "string", "enum": list(candidates)}, "reason": {"type": "string"}}
    return (OfferedTool(CHOOSE, "Choose who takes this turn, and say why in a few words.", _object(properties)),)


def is_person_asked(definition: ResolvedInteraction) -> bool:
    """Whether a participant may ask the person directly: where people are waited for to speak."""
    people = definition.human_settings
    return people is not None and people.chat_mode in (ChatMode.EVERY_ROUND, ChatMode.ON_QUESTION)


def _answering(schema: Any, name: str) -> dict[str, Any]:
    """The arguments of a call that gives an answer as `name`, for the model to read: the answer's schema moved to where it stands.

    What is held against an answer is its own schema, in `solutions`.
    """
    if schema is None:
        return _object({name: {"type": "string", "minLength": 1}})
    if not isinstance(schema, dict):
        return _object({name: schema})
    moved = json.loads(json.dumps(schema))
    for place in SchemaDocument.of(moved).places.values():
        for keyword in REFERENCES:
            if isinstance(place, dict) and isinstance(place.get(keyword), str):
                place[keyword] = _moved(place[keyword], name)
    definitions = {"$defs": moved["$defs"]} if "$defs" in moved else {}
    inner = {key: value for key, value in moved.items() if key not in ("$schema", "$id", "$defs")}
    return _object({name: inner}) | definitions


def _moved(reference: str, name: str) -> str:
    """Definitions go to the root, where readers look for them; the rest of a schema moves down. Anchors are found anywhere."""
    pointer = unquote(reference)
    is_pointer = pointer == "#" or pointer.startswith("#/")
    return f"#/properties/{name}{reference[1:]}" if is_pointer and not pointer.startswith("#/$defs/") else reference
