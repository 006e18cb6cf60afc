"""Round-robin: participants take turns in order, a person last; a full pass is a round. Decides who has the floor and a round's end."""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.definitions import Participant
from folkmoot.domain.items import ORCHESTRATOR, EndReason, Item
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions, routing, turns
from folkmoot.engine.calls import open_steps
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, Step
from folkmoot.kernel.ids import NewId

UNSETTLED_ROUNDS = 3


def opening(seating: Seating, new_id: NewId) -> tuple[Item, ...]:
    """What each participant was given, and each agent that may take its turns; then the task."""
    definition = seating.definition
    given: list[tuple[Participant, UUID | None]] = []
    for p in definition.participants:
        # whoever has the seat before the first choice comes first
        chosen = sorted(p.candidates, key=lambda candidate: candidate.agent_id != p.agent_id)
        given += [(seat, seat.agent_id) for seat in chosen] or [(p, None)]
    prompts = tuple(
        Item(
            new_id(),
            ORCHESTRATOR,
            items.SystemPrompt(instructions.system_prompt(definition, seat)),
            items.Prompted(seat.name, agent),
        )
        for seat, agent in given
    )
    return (
        *prompts,
        Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(instructions.task(definition)), items.Task()),
    )


def next_in_turn(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """The steps of the open turn; where none is open, the next floor or the end."""
    turn = protocol.turn
    if turn is None:
        return (between_turns(seating, protocol, facts, new_id),)
    if turn.open_calls:
        return open_steps(seating, turn, facts, new_id)
    return (turns.next_without_calls(seating, protocol, turn, facts, new_id),)


def between_turns(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> Record | AskModel:
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
    words, floor = instructions.floor(name, round_number), items.Floor(name, round_number)
    return routing.give_floor(seating, protocol, facts, floor, words=words, new_id=new_id)


def _out_of_words(seating: Seating, reason: EndReason, words: str, new_id: NewId) -> Record:
    """Completed without an answer; where a schema asks for one, Failed."""
    item = Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(words), items.Ended(reason))
    if seating.definition.solution_schema is None:
        return Record((item,), End(RunStatus.COMPLETED))
    failure = f"{words} No answer was agreed, and the interaction's schema asks for one. Allow more rounds, or a majority instead of all."
    return Record((item,), End(RunStatus.FAILED, failure=failure))
