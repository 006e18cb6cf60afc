"""What the model of an agent run may call beside its tools: to plan, to plan again, to give a verdict, to delegate.

Deliberately absent: what its calls say (`readings`), and tools of the agent's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from folkmoot.agentloop.state import LoopState
from folkmoot.domain.agent_runs import Phase, PinnedLoop
from folkmoot.domain.calls import DelegateTarget, ResultTarget, Tool
from folkmoot.domain.model_calls import OfferedTool
from folkmoot.domain.tool_names import DELEGATE_TOOL, PLAN_TOOL, READ_RESULT_TOOL, REPLAN_TOOL, VERDICT_TOOL

MOST_STEPS = 20
MOST_CRITERIA = 10
_TEXT = {"type": "string", "minLength": 1, "maxLength": 4_000}
_LONG_TEXT = {"type": "string", "minLength": 1, "maxLength": 100_000}


def _object(properties: dict[str, Any], required: Sequence[str]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


def plan_tool(loop: PinnedLoop, tools: Iterable[Tool]) -> OfferedTool:
    """The plan names tools and specialists that there are, and no others."""
    names = [tool.name for tool in tools if _is_planned(tool)]
    step: dict[str, Any] = {"what": {**_TEXT, "description": "What is done in this step."}}
    if names:
        step["tool"] = {"type": "string", "enum": names, "description": "The tool that it uses, if it uses one."}
    if loop.specialists:
        specialists = [each.name for each in loop.specialists]
        step["specialist"] = {
            "type": "string",
            "enum": specialists,
            "description": "To whom it is delegated, if it is.",
        }
    properties = {
        "steps": {"type": "array", "minItems": 1, "maxItems": MOST_STEPS, "items": _object(step, ["what"])},
        "criteria": {
            "type": "array", "minItems": 1, "maxItems": MOST_CRITERIA, "items": _TEXT,
            "description": "What the recorded results must show for the goal to be met.",
        },
    }  # fmt: skip
    return OfferedTool(PLAN_TOOL, "Give the plan.", _object(properties, ["steps", "criteria"]))


REPLAN = OfferedTool(
    REPLAN_TOOL, "Say that the plan must be changed, and why. Ends this step.", _object({"reason": _TEXT}, ["reason"])
)
VERDICT = OfferedTool(
    VERDICT_TOOL,
    "Say whether the goal is met, going by the recorded results.",
    _object(
        {
            "isMet": {"type": "boolean"},
            "criteria": {
                "type": "array",
                "items": _object(
                    {"number": {"type": "integer", "minimum": 1}, "isMet": {"type": "boolean"}, "evidence": _TEXT},
                    ["number", "isMet", "evidence"],
                ),
            },
            "missing": {**_TEXT, "description": "What is still to be done, if the goal is not met."},
            "answer": {**_LONG_TEXT, "description": "The answer for the person, if the goal is met."},
        },
        ["isMet", "criteria"],
    ),
)


def delegate_tool(loop: PinnedLoop) -> Tool | None:
    """Starts a specialist's run and waits for its answer; null where there is nobody to delegate to."""
    if not loop.specialists:
        return None
    properties = {"specialist": {"type": "string", "enum": [s.name for s in loop.specialists]}, "task": _LONG_TEXT}
    return Tool(
        DELEGATE_TOOL,
        "Let a specialist do a part of the work. Its answer is the result; it sees your task and nothing else.",
        _object(properties, ["specialist", "task"]),
        # Its run has the call's id: made again it is the same run.
        is_idempotent=True,
        target=DelegateTarget(),
    )


def narrowed(tool: OfferedTool, state: LoopState) -> OfferedTool:
    """As a step offers it: what the plan gives to one specialist no other gets (F54)."""
    step = state.current_step
    if tool.name != DELEGATE_TOOL or step is None or step.specialist is None:
        return tool
    properties = {**tool.parameters["properties"], "specialist": {"type": "string", "enum": [step.specialist]}}
    return OfferedTool(tool.name, tool.description, {**tool.parameters, "properties": properties})


def is_reading(tool: Tool) -> bool:
    """Whether a tool may be called to gather: it changes nothing, and asks nobody."""
    return tool.is_read_only and not tool.may_be_gated and not isinstance(tool.target, ResultTarget)


def _is_planned(tool: Tool) -> bool:
    return not isinstance(tool.target, ResultTarget | DelegateTarget)


def names_for(phase: Phase, state: LoopState, tools: Iterable[Tool], *, reads_on: bool) -> frozenset[str]:
    """What is offered in a phase: in act, of the agent's own tools the one that the step names, and no other (F54).

    `reads_on`: a result was not shown whole.
    """
    reader = {READ_RESULT_TOOL} if reads_on else set()
    match phase:
        case Phase.GATHER:
            return frozenset({tool.name for tool in tools if is_reading(tool)} | reader)
        case Phase.PLAN:
            return frozenset({PLAN_TOOL})
        case Phase.VERIFY:
            return frozenset({VERDICT_TOOL})
        case Phase.ACT:
            step = state.current_step
            used = {DELEGATE_TOOL} if step and step.specialist else {step.tool} if step and step.tool else set()
            return frozenset({REPLAN_TOOL} | used | reader)
