"""The next step of an open turn, whoever gave it: the same in a round, for a manager, and in dispatched work.

Deliberately absent: who has the floor next (`round_robin`, `managed`), and calls under way (`calls`).
"""

from __future__ import annotations

from folkmoot.domain import items
from folkmoot.domain.model_calls import OfferedTool, Purpose
from folkmoot.domain.pending import PERSON, Pending, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions, routing
from folkmoot.engine.open_parts import Question, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.record import protocol_items
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record, Step, Wait
from folkmoot.kernel.ids import NewId


def next_without_calls(seating: Seating, protocol: Protocol, turn: Turn, facts: Facts, new_id: NewId) -> Step:
    """The step of a turn of the main conversation whose calls all have their results."""
    if turn.kept is not None:
        kept = turn.kept
        made = protocol_items(seating, protocol, kept.call, model_call_id=kept.model_call_id, new_id=new_id)
        return Record(tuple(made))
    question = protocol.question
    if question is not None:
        if question.asked == PERSON:
            return _wait_for_answer(question)
        if turn.question is None:
            floor = items.Floor(question.asked, turn.round, question=question.question_id)
            words = instructions.asked_floor(question.asked, question.asker)
            return routing.give_floor(seating, protocol, facts, floor, words=words, new_id=new_id)
        return _answer_step(seating, protocol, question, turn)
    if turn.participant == PERSON:
        pending = Pending(turn.turn_id, PendingKind.TURN, {"round": turn.round})
        return Wait(f"turn:{turn.turn_id}", RunStatus.PENDING_HUMAN, pending)
    return turn_step(seating, protocol, turn)


def turn_step(seating: Seating, protocol: Protocol, turn: Turn) -> AskModel:
    withheld = turn.loops >= seating.definition.context.max_tool_call_loops
    manages, must_answer = turn.participant == seating.manager, False
    if withheld and not manages:
        offered: tuple[OfferedTool, ...] = ()
    elif turn.is_last or withheld:  # a manager can still give its answer
        offered = seating.answering(turn.seat)
        must_answer = bool(offered)
    else:
        offered = seating.offered(turn.seat, reads_on=turn.participant in protocol.readers)
    words = instructions.FINISH_NOW if manages else instructions.TOOLS_WITHHELD
    return AskModel(
        key=f"turn:{turn.turn_id}:{turn.replies}",
        participant=turn.participant,
        purpose=Purpose.TURN,
        turn_id=turn.turn_id,
        offered=offered,
        required=must_answer,
        instruction=words if withheld else None,
        turn=protocol.turns.get(turn.participant, 1),
        call=protocol.calls.get(turn.view, 0) + 1,
        agent=turn.agent,
        thread_id=turn.thread_id,
    )


def _wait_for_answer(question: Question) -> Wait:
    card = {"asker": question.asker, "question": question.text}
    pending = Pending(question.question_id, PendingKind.QUESTION, card)
    return Wait(f"question:{question.question_id}", RunStatus.PENDING_HUMAN, pending)


def _answer_step(seating: Seating, protocol: Protocol, question: Question, turn: Turn) -> AskModel:
    return AskModel(
        key=f"turn:{turn.turn_id}:{turn.replies}",
        participant=turn.participant,
        purpose=Purpose.ANSWER,
        turn_id=turn.turn_id,
        offered=seating.answer_tools,
        required=True,
        instruction=instructions.question(question.asker, question.text, try_number=question.tries + 1),
        turn=max(1, protocol.turns.get(turn.participant, 0)),
        call=protocol.calls.get(turn.view, 0) + 1,
        subject=question.question_id,
        try_number=question.tries + 1,
        agent=turn.agent,
    )
