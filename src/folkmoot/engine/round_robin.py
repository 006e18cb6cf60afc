"""Round-robin: participants take turns in order, a person last; a full pass is a round. Decides a turn's next step and a
round's end.
"""

from __future__ import annotations

from folkmoot.domain import items
from folkmoot.domain.items import ORCHESTRATOR, EndReason, Item
from folkmoot.domain.model_calls import Purpose
from folkmoot.domain.pending import PERSON, Pending, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions
from folkmoot.engine.calls import open_steps
from folkmoot.engine.open_parts import Question, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.record import protocol_items
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, Step, Wait
from folkmoot.kernel.ids import NewId

UNSETTLED_ROUNDS = 3


def opening(seating: Seating, new_id: NewId) -> tuple[Item, ...]:
    """What each participant was given, then the task."""
    definition = seating.definition
    prompts = tuple(
        Item(
            new_id(),
            ORCHESTRATOR,
            items.SystemPrompt(instructions.system_prompt(definition, p)),
            items.Prompted(p.name),
        )
        for p in definition.participants
    )
    return (
        *prompts,
        Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(instructions.task(definition)), items.Task()),
    )


def next_in_turn(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> Step | tuple[Step, ...]:
    """The step of the open turn; where none is open, the next floor or the end."""
    turn = protocol.turn
    if turn is None:
        return between_turns(seating, protocol, new_id)
    if turn.open_calls:
        return open_steps(seating, turn, facts, new_id)
    if turn.kept is not None:
        kept = turn.kept
        made = protocol_items(seating, protocol, kept.call, model_call_id=kept.model_call_id, new_id=new_id)
        return Record(tuple(made))
    if protocol.question is not None:
        if protocol.question.asked == PERSON:
            return _wait_for_answer(protocol.question)
        if turn.question is None:
            return Record((_asked_floor(protocol.question, turn, new_id),))
        return _answer_step(seating, protocol, protocol.question, turn)
    if turn.participant == PERSON:
        pending = Pending(turn.turn_id, PendingKind.TURN, {"round": turn.round})
        return Wait(f"turn:{turn.turn_id}", RunStatus.PENDING_HUMAN, pending)
    return _turn_step(seating, protocol, turn)


def _wait_for_answer(question: Question) -> Wait:
    card = {"asker": question.asker, "question": question.text}
    pending = Pending(question.question_id, PendingKind.QUESTION, card)
    return Wait(f"question:{question.question_id}", RunStatus.PENDING_HUMAN, pending)


def _turn_step(seating: Seating, protocol: Protocol, turn: Turn) -> AskModel:
    withheld = turn.loops >= seating.definition.context.max_tool_call_loops
    offered = seating.offered(turn.participant, reads_on=turn.participant in protocol.readers)
    if turn.is_last:
        offered = seating.answering(turn.participant)
    return AskModel(
        key=f"turn:{turn.turn_id}:{turn.replies}",
        participant=turn.participant,
        purpose=Purpose.TURN,
        turn_id=turn.turn_id,
        offered=() if withheld else offered,
        required=turn.is_last and bool(offered) and not withheld,
        instruction=instructions.TOOLS_WITHHELD if withheld else None,
        turn=protocol.turns.get(turn.participant, 1),
        call=protocol.calls.get(turn.participant, 0) + 1,
    )


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
        call=protocol.calls.get(turn.participant, 0) + 1,
        subject=question.question_id,
        try_number=question.tries + 1,
    )


def _asked_floor(question: Question, turn: Turn, new_id: NewId) -> Item:
    message = items.OrchestratorMessage(instructions.asked_floor(question.asked, question.asker))
    return Item(
        new_id(),
        ORCHESTRATOR,
        message,
        items.Floor(question.asked, turn.round, question=question.question_id),
        new_id(),
    )


def between_turns(seating: Seating, protocol: Protocol, new_id: NewId) -> Record:
    """Hands the floor to the next participant; at the end of a round, first whether the run ends or wants a reminder."""
    seats, definition = len(seating.seats), seating.definition
    is_round_over = protocol.round > 0 and protocol.next_seat >= seats
    if is_round_over:
        silent = protocol.silent_rounds + 1 if protocol.is_round_silent(seating) else 0
        limit = definition.maximum_no_action_loops
        if limit is not None and silent >= limit:
            return _out_of_words(seating, EndReason.NO_ACTION, instructions.everybody_passed(limit), new_id)
        if definition.maximum_rounds is not None and protocol.round >= definition.maximum_rounds:
            words = instructions.out_of_rounds(definition.maximum_rounds)
            return _out_of_words(seating, EndReason.ROUNDS, words, new_id)
        unsettled = 0 if protocol.settling else protocol.unsettled_rounds + 1
        if definition.is_solution_proposal_allowed and unsettled >= UNSETTLED_ROUNDS and not protocol.is_reminded:
            message = items.OrchestratorMessage(instructions.REMINDER)
            return Record((Item(new_id(), ORCHESTRATOR, message, items.Reminder(protocol.round)),))
    round_number = protocol.round + 1 if is_round_over or protocol.round == 0 else protocol.round
    name = seating.seats[0 if is_round_over else protocol.next_seat]
    floor = items.OrchestratorMessage(instructions.floor(name, round_number))
    return Record((Item(new_id(), ORCHESTRATOR, floor, items.Floor(name, round_number), new_id()),))


def _out_of_words(seating: Seating, reason: EndReason, words: str, new_id: NewId) -> Record:
    """Completed without an answer; where a schema asks for one, Failed."""
    item = Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(words), items.Ended(reason))
    if seating.definition.solution_schema is None:
        return Record((item,), End(RunStatus.COMPLETED))
    failure = f"{words} No answer was agreed, and the interaction's schema asks for one. Allow more rounds, or a majority instead of all."
    return Record((item,), End(RunStatus.FAILED, failure=failure))
