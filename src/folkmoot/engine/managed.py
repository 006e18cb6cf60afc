"""Managed interactions: a manager has the floor and sends work to agents, each in a thread of its own; it ends with its answer.

Dispatches of one reply go side by side up to a limit; their results are recorded in the order of the calls. Of several gated calls one
is shown at a time, the first in call order, once nothing else can go on; whatever sub-runs are awaited then goes on beside it. Deliberately absent: what a reply adds (`record`), and the manager's own calls (`calls`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from folkmoot.domain import items
from folkmoot.domain.items import MAIN_THREAD
from folkmoot.domain.runs import Facts
from folkmoot.engine import instructions, routing, turns
from folkmoot.engine.calls import open_steps, result_item
from folkmoot.engine.open_parts import Dispatch, OpenCall, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, Record, RunCall, Step, Wait
from folkmoot.kernel.ids import NewId


def next_in_turn(seating: Seating, protocol: Protocol, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """The steps of the manager's turn and of the work that it has sent out; where it has none, the floor."""
    turn = protocol.turn
    if turn is None:
        assert seating.manager is not None
        round_number = protocol.round + 1
        words = instructions.manager_floor(seating.manager, round_number)
        floor = items.Floor(seating.manager, round_number)
        return (routing.give_floor(seating, protocol, facts, floor, words=words, new_id=new_id),)
    if turn.open_calls:
        return steps_of_calls(seating, protocol, turn, facts, new_id)
    return (turns.next_without_calls(seating, protocol, turn, facts, new_id),)


def steps_of_calls(seating: Seating, protocol: Protocol, turn: Turn, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """What goes on with the calls of a manager's reply, those that sent work out among them."""
    dispatches = [(call, call.dispatch) for call in turn.open_calls if call.dispatch is not None]
    if dispatches and dispatches[0][1].outcome is not None:
        return (_result(dispatches[0][0], dispatches[0][1], turn, new_id),)
    free = seating.definition.maximum_concurrent_dispatches - sum(d.turn is not None for _, d in dispatches)
    steps: list[AskModel | RunCall] = []
    gates: list[tuple[OpenCall, Wait]] = []
    for call, dispatch in dispatches:
        found: tuple[Step, ...] = ()
        if dispatch.turn is not None:
            found = _work(seating, protocol, dispatch.turn, facts, new_id)
        elif dispatch.outcome is None and free > 0:
            free -= 1
            found = (_begin(seating, protocol, turn, call, dispatch, facts, new_id),)
        for step in found:
            if isinstance(step, Record):
                return (step,)
            if isinstance(step, Wait):
                gates.append((call, _of_dispatch(step, call, dispatch)))
            else:
                steps.append(step)
    for step in open_steps(seating, turn, facts, new_id):
        if isinstance(step, Record):
            return (step,)
        if isinstance(step, Wait):
            gates.append((_gated(turn, step), step))
        else:
            steps.append(step)
    if steps or not gates:
        return tuple(steps)
    return (_first_of(turn, gates),)


def _first_of(turn: Turn, gates: Sequence[tuple[OpenCall, Wait]]) -> Wait:
    """People first, in call order. Sub-runs go on meanwhile, so the wait has all awaits: the end of any wakes the run."""
    in_order = [wait for _, wait in sorted(gates, key=lambda gate: turn.open_calls.index(gate[0]))]
    first = next((wait for wait in in_order if wait.pending is not None), in_order[0])
    return replace(first, awaits=tuple(each for wait in in_order for each in wait.awaits))


def _work(seating: Seating, protocol: Protocol, turn: Turn, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """The steps of dispatched work."""
    return open_steps(seating, turn, facts, new_id) if turn.open_calls else (turns.turn_step(seating, protocol, turn),)


def _begin(
    seating: Seating, protocol: Protocol, turn: Turn, call: OpenCall, dispatch: Dispatch, facts: Facts, new_id: NewId
) -> Record | AskModel:
    sent = dispatch.sent
    floor = items.Floor(sent.agent, turn.round, dispatch=call.call.call_id)
    return routing.give_floor(
        seating, protocol, facts, floor, words=instructions.dispatched_floor(sent.agent), new_id=new_id,
        thread_id=sent.thread_id, message=sent.message,
    )  # fmt: skip


def _result(call: OpenCall, dispatch: Dispatch, turn: Turn, new_id: NewId) -> Record:
    assert dispatch.outcome is not None
    return Record((result_item(call, turn.turn_id, dispatch.outcome, is_error=dispatch.is_error, new_id=new_id),))


def _gated(turn: Turn, wait: Wait) -> OpenCall:
    """The manager's own call that a gate is about; it may come after calls that keep its order behind them."""
    subject = wait.pending.pending_id if wait.pending is not None else wait.awaits[0].await_id
    return next(call for call in turn.open_calls if call.call.call_id == str(subject))


def _of_dispatch(wait: Wait, call: OpenCall, dispatch: Dispatch) -> Wait:
    """The wait of dispatched work, with whose work it is. `floorSequence`: of the item that began it."""
    if wait.pending is None:
        return wait
    sent, turn = dispatch.sent, dispatch.turn
    assert turn is not None
    told: dict[str, Any] = {
        "id": call.call.call_id,
        "agentName": sent.agent,
        "message": sent.message,
        "threadId": sent.thread_id,
        "recordThreadId": MAIN_THREAD,
        "mode": sent.mode.value,
        "floorSequence": turn.opened_at,
    }
    return replace(wait, pending=replace(wait.pending, card={**wait.pending.card, "managedDispatch": told}))
