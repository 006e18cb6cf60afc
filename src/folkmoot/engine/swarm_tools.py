"""The tools of sub-runs, as a participant meets them, and what it is told of the interactions that it can start.

They are platform tools: the interaction's `swarm` gives them, and `disabledTools` may take them away. Deliberately absent: when an
await is over (`awaits`), limits, which are counted in the database, and making the calls.
"""

from __future__ import annotations

from typing import Any

from folkmoot.domain.calls import SwarmAction, SwarmTarget, Tool
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.swarms import PinnedSwarm
from folkmoot.domain.tool_names import AWAIT_TOOL, LIST_TOOL, START_TOOL, STOP_TOOL

ALL, ANY = "all", "any"

_ID = {"type": "string", "minLength": 1}


def tools(definition: ResolvedInteraction, participant: str) -> tuple[Tool, ...]:
    """What the participant is given for sub-runs, but for what the run has disabled."""
    swarm = definition.swarm
    if swarm is None or participant not in swarm.participants:
        return ()
    made = (_start(swarm), _AWAIT, _LIST, _STOP)
    return tuple(tool for tool in made if tool.name not in definition.disabled_tools)


def _start(swarm: PinnedSwarm) -> Tool:
    return Tool(
        START_TOOL,
        "Start a run of another interaction. Gives its id at once; await_interactions gives what came of it.",
        _object(
            {
                "name": {"type": "string", "enum": [each.name for each in swarm.interactions]},
                "inputs": {"type": "object", "description": "The interaction's inputs, by name."},
                "durationAutoTermination": {
                    "type": "string",
                    "description": "The longest it may work, as an ISO 8601 duration such as PT10M; never more than this run has left.",
                },
            },
            required=("name",),
        ),
        # Its id is the call's: made again it is the same run.
        is_idempotent=True,
        target=SwarmTarget(SwarmAction.START),
    )


def _object(properties: dict[str, Any], *, required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


_AWAIT = Tool(
    AWAIT_TOOL,
    "Wait until runs that you started have ended, all of them or the first, and get what came of them.",
    _object(
        {
            "ids": {
                "type": "array",
                "items": _ID,
                "minItems": 1,
                "description": "Without them: all that were started here.",
            },
            "mode": {"type": "string", "enum": [ALL, ANY], "description": "Default: all."},
        },
    ),
    # It keeps its place among a reply's calls: what it waits for may be started, or stopped, by those before it.
    is_idempotent=True,
    target=SwarmTarget(SwarmAction.AWAIT),
)
_LIST = Tool(
    LIST_TOOL,
    "List the runs that were started here, with their status. To wait for them call await_interactions instead.",
    _object({}),
    is_idempotent=True,
    is_read_only=True,
    target=SwarmTarget(SwarmAction.LIST),
)
_STOP = Tool(
    STOP_TOOL,
    "Ask a run that was started here to stop.",
    _object({"id": _ID}, required=("id",)),
    is_idempotent=True,
    target=SwarmTarget(SwarmAction.STOP),
)


def instructions(definition: ResolvedInteraction, participant: str) -> list[str]:
    """What the default instructions say of what can be started; nothing to whoever cannot start any."""
    swarm = definition.swarm
    if swarm is None or START_TOOL not in {tool.name for tool in tools(definition, participant)}:
        return []
    lines = [
        "You can start runs of other interactions with start_interaction, and get their results with await_interactions:"
    ]
    for each in swarm.interactions:
        about = f": {each.description}" if each.description else ""
        lines.append(f"- {each.name}{about} Inputs: {each.inputs_schema}")
    return lines
