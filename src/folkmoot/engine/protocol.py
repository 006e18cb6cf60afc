"""Where a conversation stands: a small state folded from its items, copied when a worker folds ahead of a commit.

Invariant: `advance` is the only writer, and it reads items alone. Deliberately absent: what to do next (`decide`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import assert_never
from uuid import UUID

from folkmoot.agentloop.state import BEGINNING, LoopState
from folkmoot.domain import items
from folkmoot.domain.calls import AskedCall
from folkmoot.domain.items import MAIN_THREAD, AuthorKind, Item
from folkmoot.domain.pending import PERSON
from folkmoot.domain.tool_names import READ_RESULT_TOOL
from folkmoot.engine.large_results import is_large
from folkmoot.engine.open_parts import Ballot, Choosing, Dispatch, Kept, OpenCall, Question, Rejected, Turn
from folkmoot.engine.repetition import NOTHING_NOTED, Repetition
from folkmoot.engine.seating import Seating
from folkmoot.engine.seats import view_key

_A_PERSON = ""  # no participant's name is empty: people are others to every participant


@dataclass(slots=True)
class Protocol:
    """`next_seat`: index of who speaks next in this round; equal to the number of seats when the round is over.

    `readers`: who has a result that was too large to be shown whole, or may be trimmed, and may read on in it.
    `is_warned_of_time`: all were told how much is left; `had_last_turn`: the last turn was given. `sequence`: of the newest item.
    `last_author`: who spoke last in the main conversation. `gave_up`: why a manager's turn came to nothing.
    `loop`: where an agent run stands. `turns`: by participant; `calls` (of models): by view; `agents`: who has the seat of a participant with a router; `choosing`: by
    thread, floors that wait for routers; `threads`: by agent and the manager's name for it, those that can go on.
    """

    is_opened: bool = False
    ended: bool = False
    round: int = 0
    next_seat: int = 0
    turn: Turn | None = None
    asking: Turn | None = None
    question: Question | None = None
    ballot: Ballot | None = None
    anybody_spoke: bool = False
    passes: int = 0
    silent_rounds: int = 0
    settling: bool = False
    unsettled_rounds: int = 0
    is_reminded: bool = False
    rejected: tuple[Rejected, ...] = ()
    readers: frozenset[str] = frozenset()
    repetition: Repetition = NOTHING_NOTED
    is_warned_of_time: bool = False
    had_last_turn: bool = False
    sequence: int = 0
    last_author: str | None = None
    gave_up: str | None = None
    loop: LoopState = BEGINNING
    turns: dict[str, int] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    agents: dict[str, UUID] = field(default_factory=dict)
    choosing: dict[str, Choosing] = field(default_factory=dict)
    threads: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def open_turns(self) -> tuple[Turn, ...]:
        """The turn under way, and those of the work that it has sent out."""
        if self.turn is None:
            return ()
        return (self.turn, *(c.dispatch.turn for c in self.turn.open_calls if c.dispatch and c.dispatch.turn))

    def turn_in(self, thread_id: str) -> Turn | None:
        if self.turn is not None and self.turn.thread_id == thread_id:
            return self.turn
        return next((turn for turn in self.open_turns if turn.thread_id == thread_id), None)

    def choosing_at(self, thread_id: str, place: str) -> Choosing:
        """How far routers have come with a floor of a thread."""
        known = self.choosing.get(thread_id)
        return known if known is not None and known.place == place else Choosing(place)

    def copy(self) -> Protocol:
        """A state of its own. Written out, since every commit makes one; all but the mappings are values that never change."""
        return Protocol(
            self.is_opened, self.ended, self.round, self.next_seat, self.turn, self.asking, self.question, self.ballot,
            self.anybody_spoke, self.passes, self.silent_rounds, self.settling, self.unsettled_rounds, self.is_reminded,
            self.rejected, self.readers, self.repetition, self.is_warned_of_time, self.had_last_turn, self.sequence,
            self.last_author, self.gave_up, self.loop, self.turns.copy(), self.calls.copy(), self.agents.copy(), self.choosing.copy(),
            self.threads.copy(),
        )  # fmt: skip

    def advance(self, seating: Seating, item: Item) -> None:
        """Take one more item in."""
        self.sequence += 1
        if seating.definition.loop is not None:
            self._fold_phase(seating, item)
        elif item.thread_id == MAIN_THREAD:
            self._fold(seating, item)
        else:
            self._fold_thread(seating, item)

    def _fold_phase(self, seating: Seating, item: Item) -> None:
        """An item of an agent run: one turn at a time, in whatever thread, and where it ends the loop goes on."""
        turn = self.turn
        self._fold(seating, item)
        self.loop = self.loop.with_item(item)
        if turn is not None and self.turn is None and not isinstance(item.body, items.ToolCall):
            self.loop = self.loop.after_turn(item)

    def _fold_thread(self, seating: Seating, item: Item) -> None:
        """An item of dispatched work: its turn goes on by the same rules, inside the call that sent it."""
        manager = self.turn
        opened = (
            next((c for c in manager.open_calls if _is_in(c, item.thread_id)), None) if manager is not None else None
        )
        if manager is None or opened is None or opened.dispatch is None:
            return
        before = opened.dispatch
        self.turn = before.turn
        self._fold(seating, item)
        after = replace(opened, dispatch=_worked_on(before, self.turn, item))
        self.turn = replace(manager, open_calls=tuple(after if c is opened else c for c in manager.open_calls))

    def _fold(self, seating: Seating, item: Item) -> None:
        if item.model_call_id is not None and not isinstance(item.body, items.Summary):
            self._note_reply(item)
        match item.body:
            case items.OrchestratorMessage() | items.InjectedSystemMessage():
                self._note_detail(seating, item)
            case items.AgentMessage() | items.HumanMessage():
                self._note_words(item)
                if isinstance(item.detail, items.TurnEnd):
                    self.turn = None
                elif self.turn is not None and item.thread_id != MAIN_THREAD:
                    self.turn = replace(self.turn, said=item.body.message)
            case items.ToolCall() as call:
                self._note_call(item, call)
            case items.ToolResult() as result:
                self._note_result(seating, item, result)
            case items.Agree() | items.Disagree() as vote:
                self._note_vote(item, vote)
            case items.NoAction():
                self.passes += 1
                self.turn = None
            case items.VoteProposal() as proposal:
                self._open_ballot(item, _ballot(item, proposal.vote_id, text=proposal.topic, is_solution=False))
            case items.SolutionProposal(solution_id, solution):
                self._open_ballot(item, _ballot(item, solution_id, text=solution, is_solution=True))
            case items.DirectQuestionAsk() as asked:
                self._open_question(item, asked)
            case items.DirectQuestionAnswer():
                self._note_words(item)
                self._close_question()
            case items.SystemPrompt() | items.Summary():
                pass
            case _:
                assert_never(item.body)

    def _note_reply(self, item: Item) -> None:
        """Counts a reply once, by its first item; a ballot's by its vote, or by the item that says there was none."""
        turn = self.turn
        if isinstance(item.detail, items.Routed | items.NoChoice):  # of a router, which has no turns
            return
        if turn is not None:
            if turn.last_reply != item.model_call_id:
                self.calls[turn.view] = self.calls.get(turn.view, 0) + 1
                if not isinstance(item.detail, items.TurnEnd):  # else the turn is over anyway
                    self.turn = replace(turn, replies=turn.replies + 1, last_reply=item.model_call_id)
            return
        if isinstance(item.body, items.Agree | items.Disagree):
            name = item.author.name
        elif isinstance(item.detail, items.NoVote | items.Abstained):
            name = item.detail.participant
        else:
            return
        self.calls[name] = self.calls.get(name, 0) + 1

    def _note_words(self, item: Item) -> None:
        if item.thread_id != MAIN_THREAD:
            return
        self.anybody_spoke = True
        self.last_author = item.author.name if item.author.kind is AuthorKind.AGENT else PERSON
        if self.rejected:
            speaker = item.author.name if item.author.kind is AuthorKind.AGENT else _A_PERSON
            since = (Rejected(r.answer_key, r.spoke_since | {speaker}) for r in self.rejected)
            # two speakers: whoever proposes it again, somebody else has spoken
            self.rejected = tuple(r for r in since if len(r.spoke_since) < 2 and _A_PERSON not in r.spoke_since)

    def _note_vote(self, item: Item, vote: items.Agree | items.Disagree) -> None:
        """The first vote of each voter counts."""
        ballot, name = self.ballot, item.author.name
        if isinstance(vote, items.Disagree) and vote.reason:
            self._note_words(item)
        if ballot is None or vote.associated_id != ballot.ballot_id or any(voter == name for voter, _ in ballot.votes):
            return
        is_person = item.author.kind is AuthorKind.HUMAN
        if is_person and ballot.have_people_voted:
            return
        votes = (*ballot.votes, (name, isinstance(vote, items.Agree)))
        self.ballot = replace(ballot, votes=votes, have_people_voted=ballot.have_people_voted or is_person)

    def _open_ballot(self, item: Item, ballot: Ballot) -> None:
        self._note_words(item)
        self.ballot = ballot
        self.turn = None
        self.settling = True
        self.is_reminded = False

    def _close_ballot(self, seating: Seating, tally: items.Tally) -> None:
        ballot, self.ballot = self.ballot, None
        if ballot is None or not ballot.is_solution:
            return
        if tally.outcome is items.Outcome.ACCEPTED:
            self.ended = True
        else:
            self.rejected = (*self.rejected, Rejected(seating.answer_key(ballot.text)))

    def is_rejected(self, answer_key: str, proposer: str) -> bool:
        """Whether this very answer was voted down, and nobody but `proposer` has said anything since."""
        return any(r.answer_key == answer_key and r.spoke_since <= {proposer} for r in self.rejected)

    def _open_question(self, item: Item, asked: items.DirectQuestionAsk) -> None:
        self._note_words(item)
        self.question = Question(asked.question_id, item.author.name, asked.other_agent_name, asked.question)
        if self.turn is not None:
            self.turn = replace(_looped(self.turn, item), kept=None, invalid_solutions=0)

    def _close_question(self) -> None:
        self.question = None
        if self.asking is not None:  # a person answers without a turn of their own
            self.turn, self.asking = self.asking, None
        self._close_if_done()

    def _note_call(self, item: Item, call: items.ToolCall) -> None:
        if self.turn is None:
            return
        turn, detail = _looped(self.turn, item), item.detail
        if isinstance(detail, items.Planned | items.Replanned | items.Verified):
            self.turn = None
            return
        asked = AskedCall(call.tool_call_id, call.function_name, call.arguments_json, item.author.name)
        if isinstance(detail, items.Dispatched):
            opened = (*turn.open_calls, OpenCall(asked, item.model_call_id, Dispatch(detail)))
            kept = Kept(detail.then, item.model_call_id) if detail.then else turn.kept
            self.turn = replace(turn, open_calls=opened, kept=kept, invalid_solutions=0)
            if detail.mode is items.DispatchMode.CONTINUE:
                self.threads[detail.agent, detail.label] = detail.thread_id
        elif isinstance(detail, items.Called) and detail.leaves:
            kept = Kept(detail.then, item.model_call_id) if detail.then else turn.kept
            opened = (*turn.open_calls, OpenCall(asked, item.model_call_id))
            self.turn = replace(turn, open_calls=opened, kept=kept, invalid_solutions=0)
        else:
            # refused calls precede those that leave: one that comes later is the kept call itself
            self.turn = replace(turn, kept=None)

    def _note_result(self, seating: Seating, item: Item, result: items.ToolResult) -> None:
        turn = self.turn
        if turn is None:
            return
        closed = next((c for c in turn.open_calls if c.call.call_id == result.tool_call_id), None)
        if closed is not None:
            # A manager may ask the same of many; how often it may is bounded by its calls.
            if closed.dispatch is None and not seating.is_polling(turn.seat, closed.call):
                self.repetition = self.repetition.noting(closed.call, result, who=turn.view)
            if seating.definition.loop is not None and closed.call.name != READ_RESULT_TOOL:
                self.loop = self.loop.with_result(closed.call, result, item.detail)
            is_cut = result.tool_result_id is not None or (closed.dispatch is not None and is_large(result))
            if is_cut or seating.definition.context.trims:
                self.readers |= {turn.participant}
            turn = replace(turn, open_calls=tuple(c for c in turn.open_calls if c is not closed))
        if isinstance(item.detail, items.InvalidSolution):
            turn = replace(turn, invalid_solutions=turn.invalid_solutions + 1)
        elif isinstance(item.detail, items.Terminal):
            # A manager's turn ends with its answer alone.
            turn = replace(turn, is_terminal=turn.participant != seating.manager, terminal=result.result)
        self.turn = turn
        self._close_if_done()

    def _close_if_done(self) -> None:
        """A turn with a terminal tool's success is over when nothing of its reply is left."""
        turn = self.turn
        if turn is not None and turn.is_terminal and not turn.open_calls and turn.kept is None:
            self.turn = None

    def _note_detail(self, seating: Seating, item: Item) -> None:
        match item.detail:
            case items.Floor() as floor:
                self._give_floor(seating, floor, item)
            case items.Routed(routing=routing, place=place):
                self.choosing[item.thread_id] = Choosing(
                    place, (*self.choosing_at(item.thread_id, place).chain, routing)
                )
            case items.NoChoice(place=place):
                known = self.choosing_at(item.thread_id, place)
                self.choosing[item.thread_id] = replace(known, no_choices=known.no_choices + 1)
            case items.ManagerReminder() | items.PhaseReminder() if self.turn is not None:
                self.turn = replace(self.turn, reminders=self.turn.reminders + 1)
            case items.Task():
                self.is_opened = True
            case items.Tally() as tally:
                self._close_ballot(seating, tally)
            case items.NoVote(participant=name) if self.ballot is not None:
                self.ballot = replace(self.ballot, no_votes=(*self.ballot.no_votes, name))
            case items.Abstained(participant=name) if self.ballot is not None:
                self.ballot = replace(self.ballot, abstained=(*self.ballot.abstained, name))
            case items.NoAnswer(closed=closed) if self.question is not None:
                self.question = replace(self.question, tries=self.question.tries + 1)
                if closed:
                    self._close_question()
            case items.EmptyReply(ends_turn=False) if self.turn is not None:
                self.turn = replace(self.turn, empty_replies=self.turn.empty_replies + 1)
            case items.EmptyReply(ends_turn=True) | items.GivenUp():
                self.turn = None
                if seating.manager is not None and item.thread_id == MAIN_THREAD:
                    assert isinstance(item.body, items.OrchestratorMessage)
                    self.gave_up = item.body.message
            case items.Reminder():
                self.is_reminded = True
            case items.StuckWarning(participant=name):
                self.repetition = self.repetition.warning(view_key(name, item.thread_id))
            case items.TimeWarning():
                self.is_warned_of_time = True
            case items.LastTurn():
                self.had_last_turn = True
                if self.turn is not None:  # whatever it has used up before, it may still bring its answer
                    self.turn = replace(self.turn, is_last=True, loops=0, invalid_solutions=0, empty_replies=0)
            case items.Ended():
                self.ended = True

    def _give_floor(self, seating: Seating, floor: items.Floor, item: Item) -> None:
        assert item.turn_id is not None
        self.choosing.pop(item.thread_id, None)
        if floor.agent is not None:
            self.agents[floor.participant] = floor.agent
        turn = Turn(
            item.turn_id, floor.participant, floor.round, floor.question, agent=floor.agent, thread_id=item.thread_id,
            opened_at=self.sequence, phase=floor.phase,
        )  # fmt: skip
        if floor.question is not None:
            self.asking, self.turn = self.turn, turn
            return
        self.turns[floor.participant] = self.turns.get(floor.participant, 0) + 1
        if floor.dispatch is not None or floor.phase is not None:
            self.turn = turn
            return
        if floor.round > self.round:
            if self.round:
                self.silent_rounds = self.silent_rounds + 1 if self.is_round_silent(seating) else 0
                self.unsettled_rounds = 0 if self.settling else self.unsettled_rounds + 1
            self.round, self.passes, self.anybody_spoke, self.settling = floor.round, 0, False, False
        self.turn = turn
        self.next_seat = seating.seat_after(floor.participant)

    def is_round_silent(self, seating: Seating) -> bool:
        """Whether everybody passed in the round under way, and nobody, a person included, said anything."""
        return self.passes == len(seating.seats) and not self.anybody_spoke


def _is_in(opened: OpenCall, thread_id: str) -> bool:
    return opened.dispatch is not None and opened.dispatch.sent.thread_id == thread_id


def _worked_on(before: Dispatch, turn: Turn | None, item: Item) -> Dispatch:
    """A dispatch after an item of its thread: where that ended the turn, the last words are what came of it, or why there are none."""
    if turn is not None or before.turn is None:
        return replace(before, turn=turn)
    match item.body:
        case items.AgentMessage(message):
            return replace(before, turn=None, outcome=message)
        case items.ToolResult(result=result):  # of a terminal tool
            return replace(before, turn=None, outcome=before.turn.said or before.turn.terminal or result)
        case items.OrchestratorMessage(message):
            return replace(before, turn=None, outcome=message, is_error=True)
        case _:
            raise AssertionError(f"{item.body.kind} ends no turn of dispatched work")


def _looped(turn: Turn, item: Item) -> Turn:
    """The turn with a reply that called tools counted once; it was not empty, so that a next empty one is the first."""
    if turn.last_loop == item.model_call_id:
        return turn
    return replace(turn, loops=turn.loops + 1, last_loop=item.model_call_id, empty_replies=0, reminders=0)


def _ballot(item: Item, ballot_id: UUID, *, text: str, is_solution: bool) -> Ballot:
    return Ballot(ballot_id, item.turn_id, item.author.name, text, is_solution)


def folded(seating: Seating, conversation: list[Item]) -> Protocol:
    """The state after all of `conversation`."""
    protocol = Protocol()
    for item in conversation:
        protocol.advance(seating, item)
    return protocol
