"""When participants are told of the time limit, and the last turn that is given before it (B72).

Between the warning and the limit lies a reserve. The first call after the warning time is preceded by a word on how much is
left; the first turn's call after half of the reserve by the word that this is the last turn. Once a quarter is left, what is
under way and knows nothing of that is cut: it would run into the limit. All of it follows from the working time that is left,
so that waiting for people, a restart or another worker changes nothing. Deliberately absent: a clock, and the limit itself
(`decide`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from folkmoot.domain import items
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, Item
from folkmoot.domain.model_calls import Purpose
from folkmoot.domain.pending import PERSON
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions, managed, voting
from folkmoot.engine.calls import closing_results, open_steps
from folkmoot.engine.open_parts import Ballot, Question, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record, Wait
from folkmoot.engine.time_marks import marks
from folkmoot.kernel.ids import NewId

_WHY_CUT = "the time was almost up"


def next_cut(definition: ResolvedInteraction, protocol: Protocol, work_deadline: datetime | None) -> datetime | None:
    """When to decide again though nothing has happened; null where nothing is to be cut."""
    found = marks(definition, work_deadline)
    return found.cut if found is not None and not protocol.had_last_turn else None


def is_last_turn_over(protocol: Protocol) -> bool:
    """Whether the last turn was given, and has come to nothing: the ballot on its proposal, if it made one, is closed."""
    return protocol.had_last_turn and protocol.turn is None and protocol.ballot is None


def before_calls(
    seating: Seating, protocol: Protocol, steps: Sequence[AskModel], *, facts: Facts, new_id: NewId
) -> Record | None:
    """What is to be said before a new one of these calls begins, if time has come for it."""
    found = marks(seating.definition, facts.work_deadline)
    new = [step for step in steps if step.purpose is not Purpose.COMPACTION and step.key not in facts.under_way]
    if found is None or protocol.had_last_turn or not new:
        return None
    is_asked = any(step.purpose is Purpose.TURN and step.thread_id == MAIN_THREAD for step in new)
    if facts.now >= found.last_turn and protocol.turn is not None and is_asked:
        return Record((_last_turn(seating, protocol.turn, found.limit - facts.now, new_id),))
    if facts.now >= found.warning and not protocol.is_warned_of_time:
        return Record(tuple(_warnings(seating, protocol, found.limit - facts.now, new_id)))
    return None


def _warnings(seating: Seating, protocol: Protocol, left: timedelta, new_id: NewId) -> Iterator[Item]:
    """One for the main conversation, and one for each thread of work that is sent out."""
    tool = seating.finishing_tool if seating.can_propose else None
    main = items.InjectedSystemMessage(instructions.time_left(left, tool=tool))
    turn_id = protocol.turn.turn_id if protocol.turn is not None else None
    yield Item(new_id(), ORCHESTRATOR, main, items.TimeWarning(), turn_id)
    for turn in protocol.open_turns:
        if turn.thread_id != MAIN_THREAD:
            told = items.InjectedSystemMessage(instructions.time_left(left, tool=None))
            yield Item(new_id(), ORCHESTRATOR, told, items.TimeWarning(), turn.turn_id, None, turn.thread_id)


def cut(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> Record | None:
    """Closes what keeps the last turn from being given, one thing after the other, and then gives it.

    Null where it is not time, where a person is waited for, since then no time passes, and where an answer is being voted on.
    """
    found = marks(seating.definition, facts.work_deadline)
    if found is None or protocol.had_last_turn or facts.now < found.cut:
        return None
    ballot, turn = protocol.ballot, protocol.turn
    if ballot is not None:
        return _cut_ballot(seating, ballot, new_id)
    if turn is None or turn.participant == PERSON:
        return None
    if turn.open_calls:
        steps = open_steps(seating, turn, facts, new_id)
        if seating.manager is not None:
            steps = managed.steps_of_calls(seating, protocol, turn, facts, new_id)
        is_for_people = isinstance(steps[0], Wait) and steps[0].pending is not None
        if is_for_people or isinstance(steps[0], Record):
            return None
        return Record(closing_results(protocol, _WHY_CUT, calls=facts.calls, new_id=new_id), cuts=True)
    if turn.kept is not None:
        return None
    if protocol.question is not None:
        return _cut_question(protocol.question, turn, new_id)
    # What summarises for this very turn is not cut: the turn's call comes after it, and knows.
    is_asked = any(key.startswith(f"turn:{turn.turn_id}:") for key in facts.under_way)
    return Record((_last_turn(seating, turn, found.limit - facts.now, new_id),), cuts=is_asked)


def _cut_ballot(seating: Seating, ballot: Ballot, new_id: NewId) -> Record | None:
    """Who has not voted on a topic abstains."""
    if ballot.is_solution or voting.people_missing(seating, ballot):
        return None
    made = [
        Item(
            new_id(), ORCHESTRATOR, items.OrchestratorMessage(instructions.abstained(name)),
            items.Abstained(ballot.ballot_id, name), ballot.turn_id,
        )
        for name in voting.missing(seating, ballot)
    ]  # fmt: skip
    return Record(tuple(made), cuts=True)


def _cut_question(question: Question, turn: Turn, new_id: NewId) -> Record | None:
    """The asker goes on without an answer."""
    if question.asked == PERSON:
        return None
    message = items.OrchestratorMessage(instructions.no_answer(question.asked, closed=True))
    detail = items.NoAnswer(question.question_id, question.asked, "", closed=True)
    return Record((Item(new_id(), ORCHESTRATOR, message, detail, turn.turn_id),), cuts=True)


def _last_turn(seating: Seating, turn: Turn, left: timedelta, new_id: NewId) -> Item:
    words = instructions.last_turn(
        turn.participant,
        left,
        tool=seating.finishing_tool if seating.can_propose else None,
        is_alone=len(seating.main_names) == 1,
    )
    return Item(
        new_id(), ORCHESTRATOR, items.InjectedSystemMessage(words), items.LastTurn(turn.participant), turn.turn_id
    )
