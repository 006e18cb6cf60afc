"""A conversation on a terminal: a line or more for each item, names in colour, and who is thinking."""

from __future__ import annotations

import shutil
import sys
from collections import deque
from uuid import UUID

from folkmoot.cli import cards, screen
from folkmoot.domain import items
from folkmoot.domain.credentials import CredentialFailure
from folkmoot.domain.inbox import InboxEntry
from folkmoot.domain.items import AuthorKind, Item, StoredItem
from folkmoot.domain.pending import PERSON
from folkmoot.domain.runs import Run
from folkmoot.services.events import ApprovalSnapshot, Delta, Ended, Event

_NEWEST_CALLS = 50


class Printer:
    """Prints events to stderr. On a terminal the last line says who is thinking, with the newest of its words.

    `is_typed_to`: somebody at a terminal can answer by typing; else it is said which command answers.
    """

    def __init__(self, *, shows_prompts: bool = False, is_typed_to: bool = False) -> None:
        self._shows_prompts = shows_prompts
        self._is_typed_to = is_typed_to
        self._carded: list[UUID] = []
        self._colours: dict[str, str] = {}
        self._has_status_line = screen.is_capable(sys.stderr)
        self._status_columns = 0
        self._texts: dict[str, tuple[int, str]] = {}
        self._recorded: deque[str] = deque(maxlen=_NEWEST_CALLS)  # calls of models whose reply is there
        self._at_work: dict[str, str] = {}  # who spoke last in each thread of sent work

    def show(self, event: Event) -> None:
        if isinstance(event, StoredItem):
            self.recorded(event)
            self._item(event.item)
        elif isinstance(event, Delta):
            if event.model_call_id not in self._recorded:
                self._delta(event)
        elif isinstance(event, Run):
            if event.claimed_at is None and event.ended_at is None:
                self.status(f"the run is {event.status} and waits for a worker")
        elif isinstance(event, ApprovalSnapshot):
            self._card(event)
        elif isinstance(event, Ended):
            self.clear()

    def end(self, run: Run) -> None:
        """The last line: how the run stands, and why it failed."""
        words = f"{run.status}: {run.failure_details}" if run.failure_details else f"{run.status}."
        self.line(screen.paint(screen.printable(words), screen.BOLD))

    def clear(self) -> None:
        """Takes the status line away, so that something else can be printed."""
        if self._status_columns:
            # blanks in place of an escape code: NO_COLOR wants none
            screen.write("\r" + " " * self._status_columns + "\r")
            self._status_columns = 0

    def key_failed(self, failure: CredentialFailure) -> None:
        """A key that a call of the run failed with, and for how long it then rested for all."""
        rested = f"The key {failure.key} failed ({failure.reason}) and rested for {failure.retry_after_seconds} s: {failure.detail}"
        self.line(screen.paint(f"-- {screen.printable(rested)}", screen.DIM))

    def line(self, text: str) -> None:
        self.clear()
        screen.say(text)

    def recorded(self, stored: StoredItem) -> None:
        """A piece of the reply that led to this item is late: it says nothing of what is thought now."""
        if stored.item.model_call_id is not None:
            self._recorded.append(str(stored.item.model_call_id))

    def _card(self, snapshot: ApprovalSnapshot) -> None:
        """What the run waits for a person about, or one below it, once each; and how to answer it.

        Where somebody may type, one thing at a time, which the next line answers; again, if another came between.
        """
        shown = snapshot.open_ones[:1] if self._is_typed_to else snapshot.open_ones
        for entry in shown:
            known = self._carded[-1:] if self._is_typed_to else self._carded
            if entry.entry.pending.pending_id not in known:
                self._carded.append(entry.entry.pending.pending_id)
                self._ask(entry, is_below=entry is not snapshot.waits_for)

    def _ask(self, entry: InboxEntry, *, is_below: bool) -> None:
        for line in cards.lines(entry, is_below=is_below):
            self.line(screen.paint(screen.printable(line), screen.BOLD))
        how = cards.TYPED[entry.entry.pending.kind] if self._is_typed_to else f"To answer: {cards.command(entry)}"
        self.line(screen.paint(f"   {how}", screen.DIM))
        self.status("the run waits for a person")

    def _item(self, item: Item) -> None:
        if isinstance(item.detail, items.Floor):
            for routing in item.detail.router:
                why = f" ({screen.printable(routing.reason)})" if routing.reason else ""
                words = f"{routing.router_name} chose {routing.chosen_name or 'nobody'}"
                self.line(screen.paint(f"-- {screen.printable(words)}{why}", screen.DIM))
        if item.thread_id != items.MAIN_THREAD and item.author.kind is AuthorKind.AGENT:
            self._at_work[item.thread_id] = item.author.name
        text = self._words(item)
        if text is not None:
            self.line(text if item.thread_id == items.MAIN_THREAD else f"    {text}")
        if isinstance(item.detail, items.Floor) and item.detail.participant != PERSON:
            self.status(f"{item.detail.participant} is thinking")
        elif isinstance(item.body, items.VoteProposal | items.SolutionProposal):
            self.status("the others are voting")

    def _words(self, item: Item) -> str | None:
        body = item.body
        if isinstance(body, items.SystemPrompt):
            return screen.paint(screen.printable(body.prompt), screen.DIM) if self._shows_prompts else None
        if isinstance(body, items.OrchestratorMessage | items.InjectedSystemMessage):
            hidden = isinstance(item.detail, items.Floor | items.NoVote | items.Routed)
            return None if hidden else screen.paint(f"-- {screen.printable(body.message)}", screen.DIM)
        if isinstance(body, items.ToolResult):
            mark = "failed: " if body.is_error else ""
            name = self._at_work.get(item.thread_id)
            whose = f"to {screen.printable(name)}: " if name is not None else ""
            return screen.paint(f"   => {whose}{mark}{_short(body.result)}", screen.DIM)
        if isinstance(item.detail, items.Dispatched):
            sent = item.detail
            return f"{self._name(item)} sends work to {screen.printable(sent.agent)}: {screen.printable(sent.message)}"
        return f"{self._name(item)} {_said(body)}"

    def _name(self, item: Item) -> str:
        name = item.author.name
        colour = self._colours.setdefault(name, screen.COLOURS[len(self._colours) % len(screen.COLOURS)])
        mark = " (person)" if item.author.kind is AuthorKind.HUMAN else ""
        return screen.paint(f"{screen.printable(name)}{mark}:", colour + screen.BOLD)

    def _delta(self, delta: Delta) -> None:
        attempt, text = self._texts.get(delta.step, (0, ""))
        if delta.attempt >= attempt:
            text = text[: delta.offset] if delta.attempt == attempt else ""
            self._texts = {delta.step: (delta.attempt, text + delta.text)}
            self.status(f"{delta.participant} is thinking: {(text + delta.text)[-200:]}")

    def status(self, text: str) -> None:
        """The last line of a terminal, until something else is printed; nothing elsewhere."""
        if not self._has_status_line:
            return
        columns = max(10, shutil.get_terminal_size().columns - 2)
        shown = screen.shortened(screen.printable(text), columns)
        self.clear()
        screen.write(screen.paint(shown, screen.DIM))
        self._status_columns = screen.width(shown)


def _said(body: items.Body) -> str:
    if isinstance(body, items.AgentMessage | items.HumanMessage):
        return screen.printable(body.message)
    if isinstance(body, items.VoteProposal):
        return f"puts to the vote: {screen.printable(body.topic)}"
    if isinstance(body, items.SolutionProposal):
        return f"proposes: {screen.printable(body.solution)}"
    if isinstance(body, items.Agree):
        return "agrees"
    if isinstance(body, items.Disagree):
        return f"disagrees: {screen.printable(body.reason)}"
    if isinstance(body, items.DirectQuestionAsk):
        return f"asks {screen.printable(body.other_agent_name)}: {screen.printable(body.question)}"
    if isinstance(body, items.DirectQuestionAnswer):
        return f"answers: {screen.printable(body.answer)}"
    if isinstance(body, items.NoAction):
        return "passes"
    if isinstance(body, items.ToolCall):
        return f"calls {screen.printable(body.function_name)}({_short(body.arguments_json)})"
    if isinstance(body, items.Summary):
        return (
            f"has what was said up to item {body.covered_up_to_sequence} in short from now on: {_short(body.summary)}"
        )
    return ""


def _short(text: str, limit: int = 300) -> str:
    """On one line: results are mostly data, and what follows stays apart from them."""
    shown = " ".join(screen.printable(text).split())
    return shown if len(shown) <= limit else f"{shown[:limit]} … ({len(shown)} characters)"
