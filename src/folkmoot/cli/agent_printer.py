"""An agent run on a terminal: its phases, its plan with each step, calls and results, what is asked of its owner, and the end.

Deliberately absent: what is typed (`agent_watching`), and how a conversation's items look (`conversation`), which they keep here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from folkmoot.cli import cards, screen
from folkmoot.cli.conversation import Printer
from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, ChatItem, Phase, Plan, PlanStep
from folkmoot.domain.items import StoredItem
from folkmoot.domain.shown_text import shown
from folkmoot.services.agent_run_reading import RunMessage
from folkmoot.services.events import Event

TYPED = "Type approve, or decline and why."
_TEXT_CHARACTERS = 4_000
_GOAL_CHARACTERS = 400
_EXPIRED = "its owner did not answer in time, and the call was not made."


def card(item: ChatItem, run: AgentRun) -> Iterator[str]:
    """What is asked: the call as it would be made, with what hides in it written out, who asks, and until when."""
    consent = item.consent
    assert consent is not None
    yield from cards.call({"agentName": consent.asked_by, **consent.card}, needs=cards.CONSENT)
    if consent.asked_by != run.agent_name:
        yield f"   {_text(consent.asked_by)} works for {_text(run.agent_name)}, which delegated to it"
    if consent.expires_at is not None:
        yield f"   until {consent.expires_at.isoformat(timespec='seconds')}, then the run expires"


def decided(item: ChatItem) -> str | None:
    """What became of a request, by whom and which way; null while it is open."""
    consent = item.consent
    if consent is None or consent.decided_at is None:
        return None
    by = f", by {_text(consent.decided_by_name)}" if consent.decided_by_name else ""
    over = f" over {_text(consent.decided_over)}" if consent.decided_over else ""
    return f"{consent.status}{by} at {consent.decided_at.isoformat(timespec='seconds')}{over}."


class AgentPrinter:
    """Prints events to stderr. `is_typed_to`: somebody at a terminal can answer by typing; else it is said which command answers."""

    def __init__(self, run: AgentRun, *, shows_prompts: bool = False, is_typed_to: bool = False) -> None:
        self._run = run
        self._is_typed_to = is_typed_to
        self._printer = Printer(shows_prompts=shows_prompts)
        self._plan: Plan | None = None
        self._own_calls: set[str] = (
            set()
        )  # calls of the loop's own tools: what they say is shown, and their results say nothing

    def show(self, event: Event) -> None:
        match event:
            case StoredItem():
                self._item(event)
            case AgentRun():
                self._run = event
                if event.claimed_at is None and event.completed_at is None:
                    self._printer.status("the run waits for a worker")
            case _:
                self._printer.show(event)

    def end(self, run: AgentRun) -> None:
        """The last line: how the run stands, and its last error."""
        why = _EXPIRED if run.status is AgentRunStatus.EXPIRED else run.last_error
        words = f"{run.status}: {why}" if why else f"{run.status}."
        self.line(screen.paint(screen.printable(words), screen.BOLD))

    def line(self, text: str) -> None:
        self._printer.line(text)

    def clear(self) -> None:
        self._printer.clear()

    def decided(self, item: ChatItem) -> None:
        if (words := decided(item)) is not None:
            self.line(screen.paint(f"   {screen.printable(words)}", screen.DIM))

    def ask(self, item: ChatItem) -> None:
        for line in card(item, self._run):
            self.line(screen.paint(screen.printable(line), screen.BOLD))
        how = TYPED if self._is_typed_to else f"To answer: {cards.consent_command(self._run.id)}"
        self.line(screen.paint(f"   {how}", screen.DIM))
        self._printer.status("the run waits for its owner's consent")

    def _item(self, stored: StoredItem) -> None:
        item = stored.item
        body, detail = item.body, item.detail
        self._printer.recorded(stored)
        if isinstance(body, items.ToolCall) and isinstance(detail, items.Planned | items.Replanned | items.Verified):
            self._own_calls.add(body.tool_call_id)
            for line in self._said(detail):
                self.line(screen.printable(line))
        elif isinstance(body, items.ToolResult) and body.tool_call_id in self._own_calls:
            return
        else:
            if isinstance(detail, items.Floor) and detail.phase is not None:
                self._phase(detail)
            self._printer.show(stored)

    def _phase(self, floor: items.Floor) -> None:
        words = floor.phase.value if floor.phase is not None else ""
        if floor.phase is Phase.PLAN and floor.round > 1:
            words += f" again ({floor.round})"
        if floor.step is not None and self._plan is not None and floor.step < len(self._plan.steps):
            words += f", step {floor.step + 1} of {len(self._plan.steps)}: {_step(self._plan.steps[floor.step])}"
        self.line(screen.paint(f"-- {screen.printable(words)}", screen.DIM))

    def _said(self, detail: items.Planned | items.Replanned | items.Verified) -> Iterator[str]:
        match detail:
            case items.Planned(plan=plan):
                self._plan = plan
                yield from plan_lines(plan)
            case items.Replanned(reason=reason):
                yield f"The plan is to be changed: {reason}"
            case items.Verified():
                yield "The goal is met:" if detail.is_met else "The goal is not met yet:"
                for finding in detail.findings:
                    yield f"   {'+' if finding.is_met else '-'} {finding.number}. {finding.evidence}"
                if detail.missing:
                    yield f"   missing: {detail.missing}"


def plan_lines(plan: Plan) -> Iterator[str]:
    yield "The plan:"
    for number, step in enumerate(plan.steps, 1):
        yield f"   {number}. {_step(step)}"
    yield f"   It is met if: {' '.join(f'{number}. {text}' for number, text in enumerate(plan.criteria, 1))}"


def state_lines(run: AgentRun) -> Iterator[str]:
    """How a run stands, in a few lines."""
    phase = (
        f" in {run.current_phase}" if run.status in (AgentRunStatus.RUNNING, AgentRunStatus.AWAITING_CONSENT) else ""
    )
    below = f", delegated by agent run {run.parent_run}" if run.parent_run is not None else ""
    yield f"Agent run {run.id} of {_text(run.agent_name)}, version {run.agent_version}{below}: {run.status}{phase}"
    ended = f", ended {run.completed_at.isoformat(timespec='seconds')}" if run.completed_at is not None else ""
    yield f"   started {run.created_at.isoformat(timespec='seconds')}{ended}, over {_text(run.channel or 'web')}"
    if run.conversation_id is not None:
        yield f"   conversation {run.conversation_id}"


def history_lines(goal: str | None, settled: Sequence[ChatItem], lost: Sequence[RunMessage]) -> Iterator[str]:
    """What a run is to do, what was decided of what it asked (the newest first), and which messages its owner did not get."""
    if goal is not None:
        yield f"   {_text(screen.shortened(goal, _GOAL_CHARACTERS))}"
    for item in reversed(settled):
        assert item.consent is not None
        why = f" {_text(item.consent.reason)}" if item.consent.reason else ""
        yield f"   its call of {_text(str(item.consent.card['functionName']))} was {decided(item)}{why}"
    for each in lost:
        message = each.message
        state = "was not delivered and is given up" if message.given_up_at is not None else "was not delivered yet"
        yield f"   the message {message.kind} {state}: {_text(message.last_error or '')}"


def _step(step: PlanStep) -> str:
    by = step.tool or step.specialist
    return f"{step.what} ({by})" if by else step.what


def _text(text: str) -> str:
    return shown(text, limit=_TEXT_CHARACTERS).text
