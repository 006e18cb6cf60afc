"""A run on the store and the worker of `run_model`, one claim after another: what models, tools and people do, in a line each."""

from __future__ import annotations

from contextlib import suppress

from engine_harness import DANA, counted_ids, reply
from run_model import Crash, Worker
from run_store import Store, answer_detail

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import Author, Item
from folkmoot.domain.model_calls import ModelReply
from folkmoot.domain.pending import Decision, Pending, PendingKind, PendingOutcome
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, RunCall


class StagedRun:
    """`worker`: the newest claim's, also when it is gone or has paused. Items are numbered from 1, as their sequence is."""

    def __init__(self, definition: ResolvedInteraction) -> None:
        self.seating, self.store, self.new_id = Seating(definition), Store(), counted_ids()
        self.claim()

    def claim(self, *, crash_after: int | None = None) -> None:
        """Another worker takes it over; `crash_after`: the write by which it is gone."""
        self.worker = Worker(self.store, self.seating, self.new_id)
        self.worker.crash_after = crash_after
        with suppress(Crash):
            self.worker.begin()

    # what models and tools do

    @property
    def asked(self) -> list[str]:
        """Whose models are being asked."""
        return sorted(step.participant for step, _ in self.worker.under_way.values() if isinstance(step, AskModel))

    @property
    def called(self) -> list[str]:
        """Which tools are being called."""
        return sorted(step.call.name for step, _ in self.worker.under_way.values() if isinstance(step, RunCall))

    def step_of(self, participant: str) -> AskModel:
        steps = (step for step, _ in self.worker.under_way.values())
        return next(step for step in steps if isinstance(step, AskModel) and step.participant == participant)

    def say(self, participant: str, said: ModelReply | str) -> None:
        self.worker.take(self.step_of(participant).key, reply(said) if isinstance(said, str) else said)

    def give(self, of: str, text: str) -> None:
        steps = (step for step, _ in self.worker.under_way.values())
        step = next(step for step in steps if isinstance(step, RunCall) and step.call.name == of)
        self.worker.take(step.key, CallResult(text, is_error=False))

    # what people do

    @property
    def pending(self) -> Pending:
        """What waits for a person and has no answer yet."""
        row = self.store.open_row
        assert row is not None
        return row.pending

    def hear(self, text: str, author: Author = DANA) -> None:
        self.store.by_a_person(Item(self.new_id(), author, items.HumanMessage(text)))

    def answer(self, body: items.Body, author: Author = DANA) -> None:
        pending = self.pending
        turn_id = pending.pending_id if pending.kind is PendingKind.TURN else None
        item = Item(self.new_id(), author, body, answer_detail(pending.kind, pending.pending_id), turn_id)
        assert self.store.settle(pending.pending_id, PendingOutcome.ANSWERED, item)

    def decide(self, *, approve: bool, reason: str | None = None, author: Author = DANA) -> None:
        pending = self.pending
        assert pending.binding_hash is not None
        outcome = PendingOutcome.APPROVED if approve else PendingOutcome.REJECTED
        assert self.store.settle(
            pending.pending_id, outcome, Decision(approve, author.name, pending.binding_hash, reason)
        )

    # looking at it

    def kinds(self, first: int, last: int | None = None) -> list[str]:
        """Author and kind of the items from `first` to `last`, the newest one if that is null."""
        last = last if last is not None else self.store.last_sequence
        found = (self.store.items[n] for n in range(first, last + 1))
        return [f"{item.author.name} {item.body.kind}" for item in found]

    def result(self, sequence: int) -> items.ToolResult:
        body = self.store.items[sequence].body
        assert isinstance(body, items.ToolResult)
        return body
