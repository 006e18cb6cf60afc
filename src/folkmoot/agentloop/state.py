"""Where an agent run stands: its phase, its plan, what was recorded of its calls. Folded from items alone.

A value: each item gives a new one. Deliberately absent: what comes next (`decide`), and the turn under way (`engine.protocol`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from folkmoot.domain import items
from folkmoot.domain.agent_runs import Phase, Plan, PlanStep
from folkmoot.domain.calls import AskedCall
from folkmoot.domain.items import Item

_KEPT_CHARACTERS = 4_000  # of arguments and of a result, as evidence
_KEPT_RESULTS = 40


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came of a call, as it was recorded; of what is long its beginning."""

    name: str
    arguments_json: str
    result: str
    is_error: bool
    is_cut: bool


@dataclass(frozen=True, slots=True)
class LoopState:
    """`iteration`: how often it went back to planning. `step`: the index of the plan's step that is next or under way. `missing`: why it
    plans again. `notes`: what the model said at the end of gathering and of each step. `tool_calls`: made so far, with those of
    delegated runs. `gave_up`: why a phase came to nothing, which ends the run."""

    phase: Phase = Phase.GATHER
    iteration: int = 0
    plan: Plan | None = None
    step: int = 0
    missing: str | None = None
    notes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    tool_calls: int = 0
    verdict: items.Verified | None = None
    gave_up: str | None = None

    @property
    def current_step(self) -> PlanStep | None:
        if self.plan is None or self.step >= len(self.plan.steps):
            return None
        return self.plan.steps[self.step]

    def with_item(self, item: Item) -> LoopState:
        """After the beginning of a phase, or a call that the loop itself reads: a plan, a wish to plan again, a verdict."""
        match item.detail:
            case items.Floor(phase=Phase() as phase):  # gathering is left out where there is nothing to gather with
                return replace(self, phase=phase)
            case items.Planned(plan=plan):
                return replace(self, phase=Phase.ACT, plan=plan, step=0, missing=None)
            case items.Replanned(reason=reason):
                return self._back_to_plan(reason)
            case items.Verified() as verdict:
                found = replace(self, verdict=verdict)
                return found if verdict.is_met else found._back_to_plan(verdict.missing or "")
            case _:
                return self

    def _back_to_plan(self, missing: str) -> LoopState:
        return replace(self, phase=Phase.PLAN, iteration=self.iteration + 1, missing=missing, step=0)

    def with_result(self, call: AskedCall, result: items.ToolResult, detail: items.Detail | None) -> LoopState:
        """After the result of a call that leaves the process. One that a person declined was not made, and so it is with one that its run's end
        closed before it had begun."""
        text, arguments = result.result, call.arguments_json
        is_cut = max(len(text), len(arguments)) > _KEPT_CHARACTERS
        found = Evidence(call.name, arguments[:_KEPT_CHARACTERS], text[:_KEPT_CHARACTERS], result.is_error, is_cut)
        made = 0 if result.rejection_reason is not None or isinstance(detail, items.NotMade) else 1
        if isinstance(detail, items.Delegated):
            made += detail.tool_calls
        kept = (*self.evidence[1 - _KEPT_RESULTS :], found)
        return replace(self, evidence=kept, tool_calls=self.tool_calls + made)

    def after_turn(self, item: Item) -> LoopState:
        """After an item that ended a turn in words, or gave it up. Plan and verdict end theirs by a call."""
        body = item.body
        words = body.message if isinstance(body, items.AgentMessage | items.OrchestratorMessage) else ""
        if self.phase is Phase.GATHER:
            return replace(self, phase=Phase.PLAN, notes=(*self.notes, words))
        if self.phase is Phase.ACT and self.plan is not None:
            step = self.step + 1
            is_done = step >= len(self.plan.steps)
            return replace(self, step=step, phase=Phase.VERIFY if is_done else Phase.ACT, notes=(*self.notes, words))
        return replace(self, gave_up=words)


BEGINNING = LoopState()
