"""The tools that a participant is offered: protocol tools where the definition allows, then its own, then those of sub-runs.

Protocol tools touch nothing outside; the engine reads their calls itself.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

from folkmoot.domain.calls import ResultTarget, Tool
from folkmoot.domain.definitions import ChatMode, Participant, ResolvedInteraction
from folkmoot.domain.model_calls import OfferedTool
from folkmoot.domain.pending import PERSON
from folkmoot.domain.schema_documents import REFERENCES, SchemaDocument
from folkmoot.domain.tool_names import READ_RESULT_TOOL
from folkmoot.engine import swarm_tools

PASS = "pass"
CALL_VOTE = "call_vote"
ASK = "ask"
PROPOSE = "propose_solution"
ANSWER_NAME = "answer"
AGREE = "agree"
DISAGREE = "disagree"
PROTOCOL = frozenset({PASS, CALL_VOTE, ASK, PROPOSE, ANSWER_NAME, AGREE, DISAGREE})


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
    if (participant.tools or tools) and READ_RESULT.name not in definition.disabled_tools:
        tools[READ_RESULT.name] = READ_RESULT
    return tools


def for_turn(
    definition: ResolvedInteraction, participant: str, *, tools: dict[str, Tool], solution_schema: Any
) -> tuple[OfferedTool, ...]:
    """What `participant` may call in a turn of its own."""
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
        offered.append(OfferedTool(PROPOSE, description, _proposal(solution_schema)))
    offered += [OfferedTool(tool.name, tool.description, tool.parameters) for tool in tools.values()]
    return tuple(offered)


def is_person_asked(definition: ResolvedInteraction) -> bool:
    """Whether a participant may ask the person directly: where people are waited for to speak."""
    people = definition.human_settings
    return people is not None and people.chat_mode in (ChatMode.EVERY_ROUND, ChatMode.ON_QUESTION)


def _proposal(schema: Any) -> dict[str, Any]:
    """The arguments of a proposal, for the model to read: the answer's schema moved to where the answer stands in them.

    What is held against a proposal is the answer's own schema, in `solutions`.
    """
    if schema is None:
        return _object({"solution": {"type": "string", "minLength": 1}})
    if not isinstance(schema, dict):
        return _object({"solution": schema})
    moved = json.loads(json.dumps(schema))
    for place in SchemaDocument.of(moved).places.values():
        for keyword in REFERENCES:
            if isinstance(place, dict) and isinstance(place.get(keyword), str):
                place[keyword] = _moved(place[keyword])
    definitions = {"$defs": moved["$defs"]} if "$defs" in moved else {}
    inner = {key: value for key, value in moved.items() if key not in ("$schema", "$id", "$defs")}
    return _object({"solution": inner}) | definitions


def _moved(reference: str) -> str:
    """Definitions go to the root, where readers look for them; the rest of a schema moves down. Anchors are found anywhere."""
    pointer = unquote(reference)
    is_pointer = pointer == "#" or pointer.startswith("#/")
    return f"#/properties/solution{reference[1:]}" if is_pointer and not pointer.startswith("#/$defs/") else reference
