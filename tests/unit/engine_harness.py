"""A conversation without a model or a database: steps are answered by a function, and their items folded at once.

It goes through the engine's own doors, as a worker does, and is as deterministic: ids count up from 1. Deliberately absent:
commits, claims and crashes (the property tests have them).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallResult, CallState, Tool
from folkmoot.domain.contexts import ContextSettings
from folkmoot.domain.definitions import Participant, ResolvedInteraction, SystemPromptMode
from folkmoot.domain.items import Author, AuthorKind, Item
from folkmoot.domain.model_calls import (
    Entry,
    FailureClass,
    ModelCallFact,
    ModelChoice,
    ModelFailure,
    ModelReply,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    ReplyCall,
    Sampling,
    Usage,
)
from folkmoot.domain.pending import Decision, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import decide, record
from folkmoot.engine.protocol import Protocol, folded
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, RunCall, Step, Wait
from folkmoot.engine.views import Views
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.prompt_sizes import PromptSizes

B = TypeVar("B")
Outcome = ModelReply | ModelFailure | CallResult
Answer = Callable[[Step], Outcome]

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DANA = Author(AuthorKind.HUMAN, "Dana", UUID(int=7))
OBJECT = {"type": "object", "properties": {}}


def counted_ids(start: int = 1) -> NewId:
    numbers = count(start)
    return lambda: UUID(int=next(numbers))


def seat(name: str, *tools: Tool, prompts: tuple[str, ...] = (), description: str | None = None) -> Participant:
    return Participant(
        name,
        UUID(int=sum(name.encode())),
        name,
        1,
        description,
        prompts,
        ModelChoice("scripted", "s"),
        Sampling(),
        tools,
    )


def panel(*seats: str | Participant, **settings: Any) -> ResolvedInteraction:
    """An interaction with everything allowed that `settings` do not forbid."""
    allowed = {
        "is_no_action_allowed": True,
        "is_voting_allowed": True,
        "is_direct_questioning_allowed": True,
        "is_solution_proposal_allowed": True,
    }
    if "max_tool_call_loops" in settings:
        settings["context"] = ContextSettings(max_tool_call_loops=settings.pop("max_tool_call_loops"))
    return ResolvedInteraction(
        UUID(int=1), "panel", 1, "default", tuple(seat(s) if isinstance(s, str) else s for s in seats),
        settings.pop("task", "Choose."), settings.pop("system_prompts", ()),
        settings.pop("system_prompt_mode", SystemPromptMode.APPEND), **(allowed | settings),
    )  # fmt: skip


def tool(name: str, **settings: Any) -> Tool:
    return Tool(name, f"Does {name}.", settings.pop("parameters", OBJECT), **settings)


def call(name: str, /, **arguments: Any) -> ReplyCall:
    return ReplyCall(name, json.dumps(arguments))


def raw_call(name: str, arguments_json: str) -> ReplyCall:
    return ReplyCall(name, arguments_json)


def reply(text: str = "", *calls: ReplyCall) -> ModelReply:
    return ModelReply(text, calls, Usage())


EMPTY = reply()
PASS = reply("", call("pass"))
AGREE = reply("", call("agree"))


def disagree(reason: str) -> ModelReply:
    return reply("", call("disagree", reason=reason))


def propose(solution: Any) -> ModelReply:
    return reply("", call("propose_solution", solution=solution))


class Conversation:
    """One run. `steps` are those that wait for an outcome; `asked` are the keys of all model calls so far, in order.

    `heard_before`: what a person wrote between the start and the first claim.
    """

    def __init__(self, definition: ResolvedInteraction, *, heard_before: str | None = None) -> None:
        self.seating = Seating(definition)
        self.new_id = counted_ids()
        self.items: list[Item] = []
        self.protocol = Protocol()
        self.views = Views(
            self.seating.main_names, gated=self.seating.gated, finishing_tool=self.seating.finishing_tool
        )
        self.sizes = PromptSizes(self.seating, self.views)
        self.requests: list[tuple[AskModel, tuple[Entry, ...]]] = []
        self.end: End | None = None
        self.asked: list[str] = []
        self.now = NOW
        self.deadline: datetime | None = None
        self.stopped_by: str | None = None
        self.model_calls: dict[str, tuple[ModelCallFact, ...]] = {}
        self.calls: dict[str, CallFact] = {}
        self.decisions: dict[str, Decision] = {}
        self.ran_out: RunStatus | None = None
        self.under_way: dict[str, UUID] = {}
        self.sub_runs: dict[UUID, RunStatus] = {}
        self.steps: tuple[Step, ...] = ()
        if heard_before is not None:
            self.add([Item(self.new_id(), DANA, items.HumanMessage(heard_before))])
        self.settle()

    @property
    def facts(self) -> Facts:
        is_cut = self.protocol.is_opened and self.sizes.are_cut
        prompts = self.sizes.facts() if is_cut else None
        return Facts(
            self.now,
            self.deadline,
            self.stopped_by,
            self.model_calls,
            self.calls,
            self.decisions,
            self.ran_out,
            prompts,
            self.under_way,
            self.sub_runs,
        )

    def request(self, step: AskModel) -> tuple[Entry, ...]:
        """What the model of a step is shown, by the worker's own doors."""
        prompt = self.sizes.of(step)
        self.sizes.note_begun(UUID(int=0), prompt.guessed)
        if step.cover is not None or step.purpose is Purpose.ROUTE:
            return tuple(self.sizes.read(step))
        return tuple(self.sizes.entries(step, trim_upto=prompt.trim_upto))

    def settle(self) -> tuple[Step, ...]:
        """Follow what is decided without I/O, to the steps that need some."""
        for _ in range(100):
            steps = decide.next_steps(self.seating, self.protocol, self.facts, self.new_id)
            if not steps or not isinstance(steps[0], Record):
                self.steps = steps
                return steps
            assert len(steps) == 1
            assert self.end is None, "something was decided after the end"
            assert steps[0].items, "a decision without items never changes what comes next"
            self.add(steps[0].items)
            if steps[0].cuts:
                self.model_calls, self.under_way = dict(self.facts.cut().model_calls), {}
            self.end = steps[0].end
        raise AssertionError("what is decided never comes to a step")

    def add(self, made: Iterable[Item]) -> None:
        for item in made:
            self.items.append(item)
            self.protocol.advance(self.seating, item)
            self.views.add(item)

    def hear(self, text: str, author: Author = DANA) -> None:
        """A person writes, whatever is under way."""
        self.add([Item(self.new_id(), author, items.HumanMessage(text))])
        self.settle()

    @property
    def wait(self) -> Wait:
        """What the run waits for; nothing else goes on then."""
        (step,) = self.steps
        assert isinstance(step, Wait)
        return step

    def answer(self, body: items.Body, author: Author = DANA) -> None:
        """A person answers what the run waits for."""
        pending = self.wait.pending
        assert pending is not None
        details: dict[PendingKind, items.Detail] = {PendingKind.VOTE: items.Balloted(pending.pending_id, 1)}
        turn_id = pending.pending_id if pending.kind is PendingKind.TURN else None
        detail = details.get(pending.kind, items.TurnEnd())
        self.add([Item(self.new_id(), author, body, detail, turn_id)])
        self.settle()

    def decide(
        self, *, approve: bool, reason: str | None = None, hashed: bytes | None = None, void: bool = False
    ) -> None:
        """A person decides the approval that the run waits for."""
        pending = self.wait.pending
        assert pending is not None and pending.binding_hash is not None
        decision = Decision(approve, "Dana", hashed or pending.binding_hash, reason, void)
        self.decisions[pending.card["toolCallId"]] = decision
        self.settle()

    def run_out(self) -> None:
        """Nobody answered in time."""
        self.ran_out = self.wait.status
        self.settle()

    def stop(self, by: str = "Dana") -> None:
        self.stopped_by = by
        self.settle()

    def step_of(self, participant: str) -> AskModel:
        return next(s for s in self.steps if isinstance(s, AskModel) and s.participant == participant)

    def take(self, step: Step, outcome: Outcome) -> list[Item]:
        """Record a step's outcome with what follows; gives the outcome's own items."""
        made: list[Item] = []
        if isinstance(step, AskModel):
            self.under_way.pop(step.key, None)
            self.requests.append((step, self.request(step)))
            if isinstance(outcome, ModelReply) and (fault := record.fault_of_reply(step, outcome)) is not None:
                outcome = ModelFailure(FailureClass.UNUSABLE, fault)
        if isinstance(step, RunCall):
            assert isinstance(outcome, CallResult)
            made = record.items_of_result(self.seating, self.protocol, step, result=outcome, new_id=self.new_id)
            self.calls.pop(step.call.call_id, None)
        elif isinstance(outcome, ModelFailure):
            assert isinstance(step, AskModel)
            guessed = self.sizes.note_failure(step, UUID(int=0), outcome.failure)
            fact = ModelCallFact(self.new_id(), step.key, outcome.failure, outcome.message, guessed_tokens=guessed)
            self.model_calls[step.key] = (*self.model_calls.get(step.key, ()), fact)
        else:
            assert isinstance(step, AskModel)
            assert isinstance(outcome, ModelReply)
            self.asked.append(step.key)
            self.model_calls.pop(step.key, None)
            self.sizes.note_reply(step, UUID(int=0), outcome.usage)
            made = record.items_of_reply(
                self.seating, self.protocol, step, reply=outcome, model_call_id=self.new_id(), new_id=self.new_id
            )
        self.add(made)
        self.settle()
        return made

    def say(self, participant: str, outcome: Outcome | str) -> list[Item]:
        """What `participant` replies to what it is asked now."""
        return self.take(self.step_of(participant), reply(outcome) if isinstance(outcome, str) else outcome)

    def vote(self, **votes: ModelReply) -> None:
        for name, given in votes.items():
            self.say(name, given)

    def give(self, text: str, *, of: str | None = None, is_error: bool = False) -> None:
        """The result of a tool call that can go on: the first one, or the first of function `of`."""
        step = next(s for s in self.steps if isinstance(s, RunCall) and of in (None, s.call.name))
        self.take(step, CallResult(text, is_error))

    def begin(self, of: str, *, lost: bool = False) -> None:
        step = next(s for s in self.steps if isinstance(s, RunCall) and s.call.name == of)
        self.calls[step.call.call_id] = CallFact(step.call.call_id, CallState.BEGUN, lost)

    def run(self, answer: Answer, *, at_most: int = 1000) -> Conversation:
        """Answer each step until the end."""
        for _ in range(at_most):
            if not self.steps:
                return self
            self.take(self.steps[0], answer(self.steps[0]))
        raise AssertionError(f"the conversation has not ended after {at_most} steps")

    # looking at it

    def refolded(self) -> Protocol:
        return folded(self.seating, self.items)

    def bodies(self, kind: type[B]) -> list[B]:
        return [i.body for i in self.items if isinstance(i.body, kind)]

    def details(self, kind: type[B]) -> list[B]:
        return [i.detail for i in self.items if isinstance(i.detail, kind)]

    def floors(self) -> list[str]:
        return [f"{f.participant}{f.round}" for f in self.details(items.Floor) if f.question is None]

    def view(self, name: str) -> list[Entry]:
        return self.views.of[name].entries

    def lines(self, name: str) -> list[str]:
        """A view in short: `me:`, `me name(args) -> result`, `Speaker:`, `-:` for the orchestrator."""
        return [line(entry) for entry in self.view(name)]


def line(entry: Entry) -> str:
    match entry:
        case OwnText(text):
            return f"me: {text}"
        case OwnCall():
            return f"me {entry.name}({entry.arguments_json}) -> {entry.result}"
        case OtherText(speaker, text):
            return f"{speaker or '-'}: {text}"
        case _:
            return f"system: {entry.text}"
