"""What comes next in an agent run once its turn is over: a phase, its end, or its failure.

Back from verifying to planning at most `maximum_iterations` times, however the way back was taken. Deliberately absent: what goes on
inside a turn (`engine`).
"""

from __future__ import annotations

from dataclasses import dataclass

from folkmoot.agentloop import words
from folkmoot.agentloop.state import LoopState
from folkmoot.domain.agent_runs import Phase, PinnedLoop


@dataclass(frozen=True, slots=True)
class OpenPhase:
    """A turn of this phase begins with these words. `step`: of the plan, in act. `thread_id`: null for the main one; verifying has a thread of
    its own each time, so that it sees what was recorded, and nothing that was said."""

    phase: Phase
    words: str
    step: int | None = None
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """The goal is met."""

    answer: str


@dataclass(frozen=True, slots=True)
class Fail:
    words: str


Move = OpenPhase | Finish | Fail


def next_move(loop: PinnedLoop, state: LoopState, *, goal: str, can_read: bool) -> Move:
    """`goal`: the request. `can_read`: whether there is anything to gather with; else the request is all there is to plan from."""
    if state.gave_up is not None:
        return Fail(f"{_FRUITLESS[state.phase]} {state.gave_up}")
    if state.verdict is not None and state.verdict.is_met:
        return Finish(state.verdict.answer or "")
    if state.iteration > loop.maximum_iterations:
        return Fail(words.never_verified(loop.maximum_iterations, state.missing))
    if state.phase is Phase.GATHER and can_read:
        return OpenPhase(Phase.GATHER, words.GATHER)
    if state.phase in (Phase.GATHER, Phase.PLAN):
        return OpenPhase(Phase.PLAN, words.planning(state))
    if state.phase is Phase.ACT and state.current_step is not None:
        return OpenPhase(Phase.ACT, words.acting(state), step=state.step)
    return OpenPhase(Phase.VERIFY, words.evidence(goal, state), thread_id=f"verify/{state.iteration + 1}")


def over_budget(loop: PinnedLoop, state: LoopState, *, wanted: int) -> Fail | None:
    """Why so many more calls are not made; null where they may be."""
    if loop.tool_calls is None or state.tool_calls + wanted <= loop.tool_calls:
        return None
    return Fail(words.tool_calls_used_up(loop.tool_calls, state.tool_calls, wanted))


_FRUITLESS = {
    Phase.PLAN: "No plan could be made.",
    Phase.VERIFY: "The results could not be verified.",
    Phase.GATHER: "Nothing could be gathered.",
    Phase.ACT: "A step could not be done.",
}
