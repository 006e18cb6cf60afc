"""What the loop's own calls say: a plan, a reason to plan again, a verdict; or why one cannot be taken, as a sentence.

Their arguments fit their schemas already. Deliberately absent: what follows from them (`state`).
"""

from __future__ import annotations

from typing import Any

from folkmoot.agentloop.state import LoopState
from folkmoot.domain import items
from folkmoot.domain.agent_runs import Finding, Plan, PlanStep
from folkmoot.domain.tool_names import PLAN_TOOL, REPLAN_TOOL, VERDICT_TOOL

Json = Any
Said = items.Planned | items.Replanned | items.Verified

RESULTS = {
    PLAN_TOOL: "The plan is taken.",
    REPLAN_TOOL: "The plan is made anew.",
    VERDICT_TOOL: "The verdict is taken.",
}


def said_by(name: str, arguments: dict[str, Json], state: LoopState) -> Said | str:
    """What a call of one of the loop's tools says, or what is wrong with it and what to do."""
    if name == PLAN_TOOL:
        return _plan(arguments)
    if name == REPLAN_TOOL:
        return items.Replanned(arguments["reason"])
    assert name == VERDICT_TOOL
    return _verdict(arguments, state)


def _plan(arguments: dict[str, Json]) -> items.Planned | str:
    steps = tuple(PlanStep(s["what"], s.get("tool"), s.get("specialist")) for s in arguments["steps"])
    for number, step in enumerate(steps, 1):
        if step.tool is not None and step.specialist is not None:
            return f"Step {number} names a tool and a specialist; a step uses one of them. Make two steps of it, or leave one out."
    return items.Planned(Plan(steps, tuple(arguments["criteria"])))


def _verdict(arguments: dict[str, Json], state: LoopState) -> items.Verified | str:
    assert state.plan is not None
    findings = tuple(Finding(c["number"], c["isMet"], c["evidence"]) for c in arguments["criteria"])
    wanted, given = set(range(1, len(state.plan.criteria) + 1)), sorted(f.number for f in findings)
    if given != sorted(wanted):
        return f"There are {len(wanted)} criteria; say of each, by its number from 1, once whether it is met. You gave {given}."
    unmet = [f.number for f in findings if not f.is_met]
    is_met, answer, missing = arguments["isMet"], arguments.get("answer"), arguments.get("missing")
    if is_met and unmet:
        return f"The goal is not met while a criterion is not: {unmet}. Say isMet false and what is missing, or look again at the results."
    if is_met and not (answer or "").strip():
        return "Give the answer for the person, since the goal is met."
    if not is_met and not (missing or "").strip():
        return "Say what is missing, since the goal is not met."
    return items.Verified(is_met, findings, answer if is_met else None, None if is_met else missing)
