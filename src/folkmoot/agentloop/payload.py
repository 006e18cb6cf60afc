"""The payload of an agent run: what is kept beside the row, as one JSON object, for those who must answer for it.

It is told from the state and the counts, and nothing is read back from it: items and facts are the state. Deliberately absent: messages,
which are in the conversation.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from folkmoot.agentloop.state import LoopState
from folkmoot.domain.agent_runs import Finding, PinnedLoop
from folkmoot.domain.budgets import Amounts, Budget

Json = Any


def payload(
    loop: PinnedLoop, state: LoopState, *, pending_call: str | None, used: Amounts, budget: Budget | None, working_seconds: float
) -> dict[str, Json]:  # fmt: skip
    """`pending_call`: the id of the call that awaits consent. `used`: by this run and all that it delegated."""
    verdict = state.verdict
    return {
        "phase": state.phase.value,
        "iteration": state.iteration,
        "plan": asdict(state.plan) if state.plan is not None else None,
        "step": state.step,
        "missing": state.missing,
        "pendingCall": pending_call,
        "verification": None if verdict is None else {
            "isMet": verdict.is_met, "criteria": [_finding(f) for f in verdict.findings], "missing": verdict.missing
        },
        "answer": verdict.answer if verdict is not None else None,
        "budget": {
            "modelCalls": _count(used.calls, budget.calls if budget else None),
            "toolCalls": _count(state.tool_calls, loop.tool_calls),
            "tokens": _count(used.tokens, budget.tokens if budget else None),
            "money": _count(f"{used.money:f}", f"{budget.money:f}" if budget and budget.money is not None else None),
            "workingSeconds": round(working_seconds, 3),
        },
    }  # fmt: skip


def _finding(found: Finding) -> dict[str, Json]:
    return {"number": found.number, "isMet": found.is_met, "evidence": found.evidence}


def _count(used: Json, limit: Json) -> dict[str, Json]:
    return {"used": used, "limit": limit}
