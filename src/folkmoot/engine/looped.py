"""Agent runs: each phase is a turn of the one agent, and what comes after a turn is the loop's to say (`agentloop`).

A delegation is a call under way: the specialist's run is started, waited for like any sub-run, and its answer is the call's result.
Deliberately absent: which phase comes next, and what a plan or a verdict says.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never
from uuid import UUID

from folkmoot.agentloop import decide, offers, readings, words
from folkmoot.agentloop.decide import Fail, Finish, OpenPhase
from folkmoot.domain import items
from folkmoot.domain.agent_runs import Phase, PinnedLoop
from folkmoot.domain.calls import CallState, DelegateTarget, ResultTarget, Tool
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, EndReason, Item
from folkmoot.domain.model_calls import OfferedTool, Purpose
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.domain.schemas import parse_arguments
from folkmoot.domain.swarms import Await
from folkmoot.engine import instructions
from folkmoot.engine.open_parts import OpenCall, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, End, Record, RunCall, Step, Wait
from folkmoot.kernel.ids import NewId

_NEEDED = {Phase.PLAN: words.PLAN_NEEDED, Phase.VERIFY: words.VERDICT_NEEDED}
WORDS_TRIES = 3  # replies in words, where a call is needed


def between_turns(seating: Seating, protocol: Protocol, new_id: NewId) -> Record:
    """The next phase's turn, or the end."""
    loop, state, seat = _loop(seating), protocol.loop, seating.names[0]
    can_read = any(offers.is_reading(tool) for tool in seating.tools[seat].values())
    move = decide.next_move(loop, state, goal=seating.definition.task, can_read=can_read)
    match move:
        case OpenPhase():
            floor = items.Floor(seat, state.iteration + 1, phase=move.phase, step=move.step)
            message = items.OrchestratorMessage(move.words)
            thread_id = move.thread_id or MAIN_THREAD
            return Record((Item(new_id(), ORCHESTRATOR, message, floor, new_id(), None, thread_id),))
        case Finish():
            answer = Item(new_id(), seating.authors[seat], items.AgentMessage(move.answer))
            return Record(
                (answer, _ended(words.MET, EndReason.SOLUTION, new_id)), End(RunStatus.COMPLETED, move.answer)
            )
        case Fail():
            return _failing(move, new_id)
        case _:
            assert_never(move)


def over_budget(seating: Seating, protocol: Protocol, turn: Turn, facts: Facts) -> Fail | None:
    """The failure that a reply's calls run into, if they are more than the budget of tool calls has left. Those that have begun were
    allowed then."""
    tools, begun = seating.tools[turn.seat], facts.calls
    wanted = [
        c for c in turn.open_calls
        if not isinstance(tools[c.call.name].target, ResultTarget)
        and not (c.call.call_id in begun and begun[c.call.call_id].state is CallState.BEGUN)
    ]  # fmt: skip
    return decide.over_budget(_loop(seating), protocol.loop, wanted=len(wanted)) if wanted else None


def with_budget(seating: Seating, protocol: Protocol, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps, delegations with what is left for them: all that was not used, but for the delegation itself."""
    most = _loop(seating).tool_calls
    if most is None:
        return steps
    left = most - protocol.loop.tool_calls - 1
    return tuple(
        replace(step, tool_calls_left=left) if isinstance(step, RunCall) and isinstance(step.tool.target, DelegateTarget) else step
        for step in steps
    )  # fmt: skip


def ask(seating: Seating, protocol: Protocol, turn: Turn) -> AskModel:
    """The agent's model, with what the phase offers."""
    phase = turn.phase
    assert phase is not None
    withheld = phase in (Phase.GATHER, Phase.ACT) and turn.loops >= seating.definition.context.max_tool_call_loops
    offered = () if withheld else _offered(seating, protocol, turn, phase)
    return AskModel(
        key=f"turn:{turn.turn_id}:{turn.replies}",
        participant=turn.participant,
        purpose=Purpose.TURN,
        turn_id=turn.turn_id,
        offered=offered,
        required=phase in _NEEDED,
        instruction=instructions.TOOLS_WITHHELD if withheld else None,
        turn=protocol.turns.get(turn.participant, 1),
        call=protocol.calls.get(turn.view, 0) + 1,
        thread_id=turn.thread_id,
    )


def _offered(seating: Seating, protocol: Protocol, turn: Turn, phase: Phase) -> tuple[OfferedTool, ...]:
    reads_on = turn.participant in protocol.readers
    tools = seating.tools[turn.seat].values()
    names = offers.names_for(phase, protocol.loop, tools, reads_on=reads_on)
    return tuple(offers.narrowed(tool, protocol.loop) for tool in seating.turn_tools[turn.seat] if tool.name in names)


def waits_for_delegated(seating: Seating, turn: Turn, open_call: OpenCall, tool: Tool, facts: Facts) -> Wait | None:
    """The wait for a specialist's run that goes on; null: the call is to be made, which starts the run, or reads what came of it."""
    if not isinstance(tool.target, DelegateTarget):
        return None
    run_id = UUID(open_call.call.call_id)
    status = facts.sub_runs.get(run_id)
    if status is None or status in FINAL:
        return None
    author = seating.authors[turn.seat]
    awaits = Await(run_id, (run_id,), True, open_call.call.participant, turn.thread_id, author.id)
    return Wait(f"await:{run_id}", RunStatus.PENDING_SUB_INTERACTIONS, awaits=(awaits,))


def items_of_call(
    seating: Seating,
    protocol: Protocol,
    turn: Turn,
    call: items.ProtocolCall,
    *,
    model_call_id: UUID | None,
    new_id: NewId,
) -> list[Item] | str:
    """What a call of the loop's own tools adds: call and result; or what is wrong with it."""
    arguments = parse_arguments(call.arguments_json)
    assert isinstance(arguments, dict)
    said = readings.said_by(call.name, arguments, protocol.loop)
    if isinstance(said, str):
        return said
    call_id, text = str(new_id()), readings.RESULTS[call.name]
    made = items.ToolCall(call_id, call.name, call.arguments_json)
    result = items.ToolResult(call_id, text, False, len(text.encode()))
    return [
        Item(new_id(), seating.authors[turn.seat], made, said, turn.turn_id, model_call_id, turn.thread_id),
        Item(new_id(), ORCHESTRATOR, result, None, turn.turn_id, model_call_id, turn.thread_id),
    ]


def reminder(turn: Turn, new_id: NewId) -> Item | None:
    """What is said to words where a call is needed; null where words are what the phase ends with, or were said too often."""
    needed = _NEEDED.get(turn.phase) if turn.phase is not None else None
    if needed is None or turn.reminders + 1 >= WORDS_TRIES:
        return None
    return Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(needed), items.PhaseReminder(), turn.turn_id)


def ends_in_words(turn: Turn) -> bool:
    return turn.phase not in _NEEDED


def _failing(move: Fail, new_id: NewId) -> Record:
    return Record((_ended(move.words, EndReason.FAILURE, new_id),), End(RunStatus.FAILED, failure=move.words))


def _ended(text: str, reason: EndReason, new_id: NewId) -> Item:
    return Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(text), items.Ended(reason))


def _loop(seating: Seating) -> PinnedLoop:
    assert seating.definition.loop is not None
    return seating.definition.loop
