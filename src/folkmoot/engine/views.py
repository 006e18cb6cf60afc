"""What each participant sees: its own words and calls as its own, everybody else's words under their names. Dispatched work has a
view for its thread, which shows what was sent and what its agent did, and nothing else.

Views only grow. Sealed ballots are a matter of view: an open ballot's votes, and what was said beside them, are in nobody's
until the tally. A call and its result enter together; what fell between them comes after. Other participants' tool calls are
never shown (B35), nor are floors, questions and warnings that are meant for somebody else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never
from uuid import UUID

from folkmoot.agentloop import words
from folkmoot.domain import items
from folkmoot.domain.items import MAIN_THREAD, Author, AuthorKind, Item
from folkmoot.domain.model_calls import Entry, OtherText, OwnText
from folkmoot.domain.participant_names import name_key
from folkmoot.engine.estimates import entry_tokens
from folkmoot.engine.large_results import large_result
from folkmoot.engine.tools_offered import (
    AGREE,
    ANSWER_NAME,
    ARGUMENT_OF_ANSWER,
    CALL_VOTE,
    DISAGREE,
    PASS,
    PROPOSE,
)
from folkmoot.engine.view import PINNED, Note, Position, Trimmable, View, own_call


class Views:
    """The views of the main conversation's participants and of threads at work, fed item by item in the order of their sequence,
    which counts from 1. `of`: by participant, or by thread.

    `gated`: by participant, the tools whose calls a person approves or refuses: those stay in view as they were. `finishing_tool`:
    with which an answer is given.
    """

    def __init__(
        self, names: Iterable[str], *, gated: Mapping[str, frozenset[str]] | None = None, finishing_tool: str = PROPOSE
    ) -> None:
        self._position = Position()
        self._main: dict[str, View] = {name: View(self._position) for name in names}
        self.of: dict[str, View] = dict(self._main)
        self._gated = gated or {}
        self._finishing_tool = finishing_tool
        self._keys = {name_key(name) for name in self.of}
        self._sealed: list[Item] = []
        self._prompts: dict[tuple[str, UUID | None], str] = {}
        self._sent: dict[str, tuple[str, items.Dispatched]] = {}  # by call, whose and what

    @contextmanager
    def looking_ahead(self) -> Iterator[None]:
        """Within the block items may be added that are only about to be written; afterwards all is as before. Nothing may be cut in it."""
        sequence, sealed = self._position.sequence, list(self._sealed)
        of, sent = dict(self.of), dict(self._sent)
        standing = [(view, view.standing()) for view in self.of.values()]
        try:
            yield
        finally:
            self._position.sequence, self._sealed = sequence, sealed
            self.of, self._sent = of, sent
            for view, before in standing:
                view.back(before)

    def add(self, item: Item) -> None:
        self._position.sequence += 1
        if item.thread_id != MAIN_THREAD:
            self._in_thread(item)
            return
        match item.body:
            case items.OrchestratorMessage(message) | items.InjectedSystemMessage(message):
                self._orchestrator(message, item.detail)
            case items.AgentMessage(message):
                if isinstance(item.detail, items.Balloted):
                    self._sealed.append(item)
                else:
                    self._words(item, message)
            case items.HumanMessage(message):
                self._all(OtherText(self._person(item.author.name), message))
            case items.ToolCall() as made:
                self.of[item.author.name].call(item, self._note(item, made))
                if isinstance(item.detail, items.Dispatched):
                    self._sent[made.tool_call_id] = (item.author.name, item.detail)
            case items.ToolResult() as result:
                shown = large_result(result) if result.tool_call_id in self._sent else result
                for view in self._main.values():
                    if view.is_waiting_for(shown):
                        view.result(shown, is_unknown=isinstance(item.detail, items.UnknownOutcome))
                self._forget(result.tool_call_id)
            case items.Agree() | items.Disagree():
                self._sealed.append(item)
            case items.SystemPrompt(prompt):
                assert isinstance(item.detail, items.Prompted)
                name, agent = item.detail.participant, item.detail.agent
                self._prompts[name, agent] = prompt
                if name in self.of and (agent is None or not self.of[name].entries):
                    self.of[name].instruct(prompt)
            case items.NoAction():
                name = self._name(item.author)
                self._say(name, own=own_call(item, PASS, {}, "You passed."), others=OtherText(None, f"{name} passes."))
            case items.VoteProposal() | items.SolutionProposal() as proposal:
                self._proposal(item, proposal)
            case items.DirectQuestionAsk() as asked:
                self._ask(item, asked)
            case items.DirectQuestionAnswer(_, answer):
                self._answer(item, answer)
            case items.Summary() as summary:
                self.of[item.author.name].cover(summary)
            case _:
                assert_never(item.body)

    def _in_thread(self, item: Item) -> None:
        """What dispatched work adds to its own view; nobody else sees it."""
        detail, view = item.detail, self.of.get(item.thread_id)
        if isinstance(detail, items.Floor) and detail.phase is not None:
            self._begin_phase(item)
            return
        if isinstance(detail, items.Floor) and detail.dispatch is not None:
            self._begin(item.thread_id, detail, detail.dispatch)
            return
        if view is None:
            return
        match item.body:
            case items.AgentMessage(message):
                view.show(OwnText(message, item.model_call_id))
            case items.ToolCall() as made:
                view.call(item, self._note(item, made))
            case items.ToolResult() as result if view.is_waiting_for(result):
                view.result(result, is_unknown=isinstance(detail, items.UnknownOutcome))
            case items.Summary() as summary:
                view.cover(summary)
            case items.OrchestratorMessage(message) | items.InjectedSystemMessage(message):
                is_told = isinstance(detail, items.StuckWarning | items.TimeWarning | items.PhaseReminder)
                if is_told or (isinstance(detail, items.EmptyReply) and not detail.ends_turn):
                    view.show(OtherText(None, message))
            case _:
                pass

    def _begin_phase(self, item: Item) -> None:
        """A phase with a thread of its own sees what it is handed, and nothing of what was said (verifying)."""
        assert isinstance(item.body, items.OrchestratorMessage)
        view = self.of[item.thread_id] = View(self._position)
        view.instruct(words.VERIFIER)
        view.open(OtherText(None, item.body.message))

    def _begin(self, thread_id: str, floor: items.Floor, call_id: str) -> None:
        manager, sent = self._sent[call_id]
        message, view = OtherText(manager, sent.message), self.of.get(thread_id)
        prompt = self._prompts.get((floor.participant, floor.agent), "")
        if view is None:
            view = self.of[thread_id] = View(self._position)
            view.instruct(prompt)
            view.open(message)
        else:
            view.reinstruct(prompt)
            view.show(message)

    def _forget(self, call_id: str) -> None:
        """A thread that nobody goes on with is over with its result."""
        _, sent = self._sent.pop(call_id, ("", None))
        if sent is not None and sent.mode is items.DispatchMode.ONE_TIME:
            self.of.pop(sent.thread_id, None)

    def _note(self, item: Item, made: items.ToolCall) -> Note:
        """What took its time may be trimmed later on; what a person decided on stays."""
        if isinstance(item.detail, items.Dispatched):
            return Trimmable(made.tool_call_id)
        if not (isinstance(item.detail, items.Called) and item.detail.leaves):
            return None
        name = made.function_name
        return PINNED if name in self._gated.get(item.author.name, ()) else Trimmable(made.tool_call_id)

    def _words(self, item: Item, message: str) -> None:
        name = item.author.name
        self._say(name, own=OwnText(message, item.model_call_id), others=OtherText(name, message))

    def _name(self, author: Author) -> str:
        return self._person(author.name) if author.kind is AuthorKind.HUMAN else author.name

    def _person(self, name: str) -> str:
        """A person's name as the participants read it: one who is called like a participant does not speak as it."""
        return f"{name} (a person)" if name_key(name) in self._keys else name

    def _proposal(self, item: Item, body: items.VoteProposal | items.SolutionProposal) -> None:
        name, result = item.author.name, "It is put to the vote."
        if isinstance(body, items.VoteProposal):
            own = own_call(item, CALL_VOTE, {"topic": body.topic}, result)
            words = f"I put this to the vote: {body.topic}"
        else:
            arguments = {ARGUMENT_OF_ANSWER[self._finishing_tool]: _value(body.solution)}
            own = own_call(item, self._finishing_tool, arguments, result)
            words = f"I propose this answer: {body.solution}"
        self._say(name, own=own, others=OtherText(name, words))

    def _ask(self, item: Item, body: items.DirectQuestionAsk) -> None:
        name = item.author.name
        for other, view in self._main.items():
            if other == name:
                view.ask(item)
            else:
                view.show(OtherText(name, f"I ask {body.other_agent_name}: {body.question}"))

    def _answer(self, item: Item, answer: str) -> None:
        name = self._name(item.author)
        for other, view in self._main.items():
            if other == name:
                view.show(own_call(item, ANSWER_NAME, {"text": answer}, "Your answer was given."))
            elif view.has_asked:
                view.answered(f"{name} answers: {answer}", is_error=False)
            else:
                view.show(OtherText(name, answer))

    def _orchestrator(self, message: str, detail: items.Detail | None) -> None:
        entry = OtherText(None, message)
        match detail:
            case items.Floor(participant=name, question=question, agent=agent):
                if agent is not None:
                    self.of[name].reinstruct(self._prompts.get((name, agent), ""))
                # a person's floor is told to nobody else, nor one for an answer: the question itself is the last word
                if name in self.of and question is None:
                    self.of[name].show(entry)
            case items.StuckWarning(participant=name) | items.EmptyReply(participant=name, ends_turn=False):
                self.of[name].show(entry)
            case items.Task():
                for view in self._main.values():
                    view.open(entry)
            case items.NoAnswer(closed=True):
                for view in self._main.values():
                    if view.has_asked:
                        view.answered(message, is_error=True)
                    else:
                        view.show(entry)
            case items.Tally():
                self._unseal()
                self._all(entry)
            case items.NoAnswer() | items.NoVote() | items.Abstained() | items.Routed() | items.NoChoice():
                pass  # the asked participant's own last word says it; a ballot's come out with its tally
            case _:
                self._all(entry)

    def _unseal(self) -> None:
        for item in self._sealed:
            name = self._name(item.author)
            if isinstance(item.body, items.AgentMessage):
                self._words(item, item.body.message)
            elif isinstance(item.body, items.Disagree):
                reason = item.body.reason
                own = own_call(item, DISAGREE, {"reason": reason}, "Your vote was counted.")
                words = f"I disagree: {reason}" if reason else "I disagree."
                self._say(name, own=own, others=OtherText(name, words))
            else:
                own = own_call(item, AGREE, {}, "Your vote was counted.")
                self._say(name, own=own, others=OtherText(name, "I agree."))
        self._sealed = []

    def _say(self, name: str, *, own: Entry, others: Entry) -> None:
        tokens = entry_tokens(others)
        for other, view in self._main.items():
            if other == name:
                view.show(own)
            else:
                view.show(others, tokens)

    def _all(self, entry: Entry) -> None:
        tokens = entry_tokens(entry)
        for view in self._main.values():
            view.show(entry, tokens)


def _value(text: str) -> object:
    """A solution as it was given to the call: JSON where it is, else the text."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, dict | list) else text
