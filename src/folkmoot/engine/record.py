"""What a step's outcome adds to the conversation: pure functions from replies and results to items.

Only typed calls act (B31): text decides nothing. Everything that a reply holds is recorded, refused calls with the reason.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.bindings import without_bound
from folkmoot.domain.calls import CallResult
from folkmoot.domain.items import ORCHESTRATOR, Item
from folkmoot.domain.model_calls import ModelReply, OfferedTool, Purpose, ReplyCall
from folkmoot.domain.operations import OperationTarget
from folkmoot.domain.schemas import canonical, parse_arguments, visible
from folkmoot.engine import compaction, dispatches, instructions, looped, routing, solutions, voting
from folkmoot.engine.open_parts import Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.solutions import joined
from folkmoot.engine.step import AskModel, RunCall
from folkmoot.engine.tools_offered import (
    AGREE,
    ANSWER_NAME,
    ASK,
    CALL_VOTE,
    DISAGREE,
    FINISH,
    PASS,
    PROPOSE,
)
from folkmoot.kernel.ids import NewId

INVALID_SOLUTIONS = 3
ANSWER_TRIES = 2


def items_of_reply(
    seating: Seating, protocol: Protocol, step: AskModel, *, reply: ModelReply, model_call_id: UUID, new_id: NewId
) -> list[Item]:
    """What a model's reply adds to the conversation. Text that storage cannot hold is made visible here already, so that
    what is folded now is what is read again later."""
    text = _visible(reply.text)
    if step.purpose is Purpose.COMPACTION:
        return [compaction.summary_item(seating, step, text=text, item_id=new_id(), model_call_id=model_call_id)]
    if step.purpose is Purpose.BALLOT:
        vote, raw = _vote(step, reply), _raw(reply)
        return voting.vote_items(
            seating, step, vote=vote, text=text, raw=raw, new_id=new_id, model_call_id=model_call_id
        )
    if step.purpose is Purpose.ROUTE:
        return routing.items_of_choice(
            seating, protocol, step, reply=reply, raw=_raw(reply), model_call_id=model_call_id, new_id=new_id
        )
    if step.purpose is Purpose.ANSWER:
        return _answer(seating, step, reply, text=text, model_call_id=model_call_id, new_id=new_id)
    return _turn(seating, protocol, step, calls=reply.calls, text=text, model_call_id=model_call_id, new_id=new_id)


def fault_of_reply(step: AskModel, reply: ModelReply) -> str | None:
    """Why a reply is of no use for what was asked, as a sentence; null where its items may be taken."""
    return compaction.fault_of(step, reply.text) if step.purpose is Purpose.COMPACTION else None


def items_of_result(
    seating: Seating, protocol: Protocol, step: RunCall, *, result: CallResult, new_id: NewId
) -> list[Item]:
    """What a tool call's result adds. A terminal tool's success ends the turn."""
    text = _visible(result.text)
    size = result.size if result.size is not None else len(text.encode())
    detail: items.Detail | None = items.UnknownOutcome() if result.unknown else None
    if result.delegated_calls is not None:
        detail = items.Delegated(result.delegated_calls)
    if step.tool.is_terminal and not result.is_error:
        detail = items.Terminal()
    body = items.ToolResult(step.call.call_id, text, result.is_error, size, tool_result_id=result.content_id)
    return [Item(new_id(), ORCHESTRATOR, body, detail, step.turn_id, step.model_call_id, step.thread_id)]


def _visible(text: str) -> str:
    return text if text.isascii() and "\x00" not in text else visible(text)


def _raw(reply: ModelReply) -> str:
    """A reply without a vote or an answer, as it came."""
    calls = "".join(f"\n{call.name}({call.arguments_json})" for call in reply.calls)
    return _visible(f"{reply.text}{calls}")


def _vote(step: AskModel, reply: ModelReply) -> items.Agree | items.Disagree | None:
    """The vote that a reply holds: none if it holds both, or if its arguments do not parse (B43)."""
    assert step.subject is not None
    votes = [call for call in reply.calls if call.name in (AGREE, DISAGREE)]
    if not votes or len({call.name for call in votes}) > 1:
        return None
    arguments = parse_arguments(votes[0].arguments_json)
    if isinstance(arguments, str):
        return None
    if votes[0].name == AGREE:
        return items.Agree(step.subject)
    reason = arguments.get("reason", "")
    return items.Disagree(step.subject, reason if isinstance(reason, str) else canonical(reason))


def _answer(
    seating: Seating, step: AskModel, reply: ModelReply, *, text: str, model_call_id: UUID, new_id: NewId
) -> list[Item]:
    assert step.subject is not None
    for call in reply.calls:
        arguments = parse_arguments(call.arguments_json)
        if (
            call.name == ANSWER_NAME
            and isinstance(arguments, dict)
            and isinstance(arguments.get("text"), str)
            and arguments["text"].strip()
        ):
            author = seating.authors[step.seat]
            answer = items.DirectQuestionAnswer(step.subject, arguments["text"])
            made = [Item(new_id(), author, answer, items.TurnEnd(), step.turn_id, model_call_id)]
            if text.strip():
                made.insert(0, Item(new_id(), author, items.AgentMessage(text), None, step.turn_id, model_call_id))
            return made
    closed = step.try_number >= ANSWER_TRIES
    detail = items.NoAnswer(step.subject, step.participant, _raw(reply), closed)
    message = items.OrchestratorMessage(instructions.no_answer(step.participant, closed=closed))
    return [Item(new_id(), ORCHESTRATOR, message, detail, step.turn_id, model_call_id)]


def _turn(
    seating: Seating, protocol: Protocol, step: AskModel, *, calls: tuple[ReplyCall, ...], text: str, model_call_id: UUID, new_id: NewId
) -> list[Item]:  # fmt: skip
    turn = protocol.turn_in(step.thread_id)
    assert turn is not None
    made = _of_turn(seating, protocol, turn, step, calls=calls, text=text, model_call_id=model_call_id, new_id=new_id)
    if turn.thread_id == items.MAIN_THREAD:
        return made
    return [replace(item, thread_id=turn.thread_id) for item in made]


def _of_turn(
    seating: Seating, protocol: Protocol, turn: Turn, step: AskModel, *, calls: tuple[ReplyCall, ...], text: str, model_call_id: UUID,
    new_id: NewId,
) -> list[Item]:  # fmt: skip
    author, has_text = seating.authors[turn.seat], bool(text.strip())
    if not calls:
        if not has_text:
            return _empty(seating, turn, model_call_id=model_call_id, new_id=new_id)
        if seating.loop is not None and not looped.ends_in_words(turn):
            return _words_in_phase(seating, turn, text, model_call_id=model_call_id, new_id=new_id)
        if turn.participant == seating.manager:
            return _words_of_manager(seating, protocol, turn, text, model_call_id=model_call_id, new_id=new_id)
        return [Item(new_id(), author, items.AgentMessage(text), items.TurnEnd(), turn.turn_id, model_call_id)]
    made: list[Item] = []
    if has_text:
        made.append(Item(new_id(), author, items.AgentMessage(text), None, turn.turn_id, model_call_id))
    sorted_calls = _sort(seating, step, calls)
    for call, fault in sorted_calls.refused:
        made += refused(seating, turn, call, fault, model_call_id=model_call_id, new_id=new_id)
    if sorted_calls.leaving:
        made += _leaving(seating, protocol, turn, sorted_calls, model_call_id=model_call_id, new_id=new_id)
    elif sorted_calls.protocol is not None:
        made += protocol_items(seating, protocol, sorted_calls.protocol, model_call_id=model_call_id, new_id=new_id)
    if turn.loops >= seating.definition.context.max_tool_call_loops and sorted_calls.protocol is None:
        reason = "it called tools where none were offered any more"
        made.append(given_up(turn, reason, new_id=new_id))
    return made


def _empty(seating: Seating, turn: Turn, *, model_call_id: UUID, new_id: NewId) -> list[Item]:
    """A reply with neither text nor call: asked once more; then a pass where passing is allowed, else an empty turn."""
    if turn.empty_replies == 0:
        message, ends = instructions.EMPTY_REPLY, False
    elif seating.definition.is_no_action_allowed and seating.manager is None:
        return [
            Item(
                new_id(),
                seating.authors[turn.seat],
                items.NoAction(),
                items.TurnEnd(),
                turn.turn_id,
                model_call_id,
            )
        ]
    else:
        message, ends = instructions.EMPTY_TURN.format(name=turn.participant), True
    detail = items.EmptyReply(turn.participant, ends)
    return [Item(new_id(), ORCHESTRATOR, items.OrchestratorMessage(message), detail, turn.turn_id, model_call_id)]


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A reply's calls: those that take their time (they leave the process, or send work to an agent), the first protocol call, and the
    refused with the reason."""

    leaving: list[ReplyCall]
    protocol: items.ProtocolCall | None
    refused: list[tuple[ReplyCall, str]]


def _sort(seating: Seating, step: AskModel, calls: tuple[ReplyCall, ...]) -> _Sorted:
    offered = {tool.name: tool for tool in step.offered}
    leaving: list[ReplyCall] = []
    protocol: items.ProtocolCall | None = None
    refused_calls: list[tuple[ReplyCall, str]] = []
    for call in calls:
        tool = offered.get(call.name)
        if tool is None:
            names = ", ".join(offered) or "none"
            refused_calls.append((call, f"There is no tool '{call.name[:100]}' here. Offered: {names}."))
        elif call.name in seating.protocol_names and not seating.is_dispatch(call.name):
            if protocol is None:
                protocol = items.ProtocolCall(call.name, _visible(call.arguments_json))
            else:
                refused_calls.append((call, instructions.FIRST_CALL_COUNTS))
        elif (fault := _leaving_fault(seating, step.seat, tool, call, before=leaving)) is not None:
            refused_calls.append((call, fault))
        else:
            leaving.append(call)
    return _Sorted(leaving, protocol, refused_calls)


def _leaving_fault(
    seating: Seating, seat: str, tool: OfferedTool, call: ReplyCall, *, before: list[ReplyCall]
) -> str | None:
    """Why a call that takes its time is not made; null where it is. `before`: those of the reply that are."""
    fault = _argument_fault(seating, seat, tool, call.arguments_json)
    if fault is None and seating.is_dispatch(call.name):
        return dispatches.fault_of(call, before)
    return fault


def _argument_fault(seating: Seating, seat: str, tool: OfferedTool, arguments_json: str) -> str | None:
    """Why these arguments do not run, as a sentence; null where they do (B43)."""
    arguments = parse_arguments(arguments_json)
    if not isinstance(arguments, dict):
        return f"The arguments of {tool.name} do not parse: {arguments}"
    known = seating.tools[seat].get(tool.name)
    if known is not None and isinstance(known.target, OperationTarget):
        # What a model sends for a bound one is dropped, not held against it.
        arguments = without_bound(known.target, arguments)
    faults = seating.validator(seat, tool).faults(arguments)
    return (
        f"The arguments of {tool.name} do not fit its schema: {joined(faults)} Call it again with arguments that do."
        if faults
        else None
    )


def _leaving(
    seating: Seating, protocol: Protocol, turn: Turn, calls: _Sorted, *, model_call_id: UUID, new_id: NewId
) -> list[Item]:
    made: list[Item] = []
    for n, call in enumerate(calls.leaving):
        arguments = parse_arguments(call.arguments_json)
        assert isinstance(arguments, dict)
        body = items.ToolCall(str(new_id()), call.name, json.dumps(arguments, ensure_ascii=False))
        then = calls.protocol if n == len(calls.leaving) - 1 else None
        detail: items.Detail = items.Called(leaves=True, then=then)
        if seating.is_dispatch(call.name):
            detail = dispatches.sent(protocol, arguments, then=then, new_id=new_id)
        made.append(Item(new_id(), seating.authors[turn.seat], body, detail, turn.turn_id, model_call_id))
    return made


def _words_of_manager(
    seating: Seating, protocol: Protocol, turn: Turn, text: str, *, model_call_id: UUID, new_id: NewId
) -> list[Item]:
    """A manager that answers with plain words is told once how an answer is given; then they are its answer, if they can be one."""
    author = seating.authors[turn.seat]
    said = Item(new_id(), author, items.AgentMessage(text), None, turn.turn_id, model_call_id)
    fault: str | None = None
    if turn.reminders:
        solution, fault = solutions.in_words(seating, text)
        if fault is None and not protocol.is_rejected(seating.answer_key(solution), turn.participant):
            body = items.SolutionProposal(new_id(), solution)
            return [Item(new_id(), author, body, items.TurnEnd(), turn.turn_id, model_call_id)]
        if turn.reminders >= INVALID_SOLUTIONS:
            return [said, given_up(turn, f"{INVALID_SOLUTIONS} answers in words did not stand", new_id=new_id)]
        fault = fault or instructions.SAME_ANSWER
    reminder = items.OrchestratorMessage(instructions.manager_reminder(fault))
    return [said, Item(new_id(), ORCHESTRATOR, reminder, items.ManagerReminder(), turn.turn_id)]


def _words_in_phase(
    seating: Seating, turn: Turn, text: str, *, model_call_id: UUID, new_id: NewId
) -> list[Item]:  # fmt: skip
    """Words where an agent's phase asks for a call: it is told so, and in the end the phase is given up."""
    said = Item(new_id(), seating.authors[turn.seat], items.AgentMessage(text), None, turn.turn_id, model_call_id)
    told = looped.reminder(turn, new_id)
    return [
        said,
        told or given_up(turn, f"{looped.WORDS_TRIES} replies in words, where a call was needed", new_id=new_id),
    ]


def refused(
    seating: Seating, turn: Turn, call: ReplyCall | items.ProtocolCall, fault: str, *, model_call_id: UUID | None, new_id: NewId,
    invalid_solution: bool = False,
) -> list[Item]:  # fmt: skip
    """A call that was not done, with the reason as its result; it costs no call."""
    call_id = str(new_id())
    made = items.ToolCall(call_id, _visible(call.name), _visible(call.arguments_json))
    text = _visible(fault)
    result = items.ToolResult(call_id, text, True, len(text.encode()))
    detail = items.InvalidSolution() if invalid_solution else None
    return [
        Item(new_id(), seating.authors[turn.seat], made, items.Called(leaves=False), turn.turn_id, model_call_id),
        Item(new_id(), ORCHESTRATOR, result, detail, turn.turn_id, model_call_id),
    ]


def given_up(turn: Turn, reason: str, *, new_id: NewId) -> Item:
    message = items.OrchestratorMessage(instructions.given_up(turn.participant, reason))
    return Item(new_id(), ORCHESTRATOR, message, items.GivenUp(turn.participant, reason), turn.turn_id)


def protocol_items(
    seating: Seating, protocol: Protocol, call: items.ProtocolCall, *, model_call_id: UUID | None, new_id: NewId
) -> list[Item]:
    """What a protocol call does: its typed item, or a refusal."""
    turn = protocol.turn
    assert turn is not None
    if call.name in (PROPOSE, FINISH):
        return _proposed(seating, protocol, turn, call, model_call_id=model_call_id, new_id=new_id)
    tool = next(t for t in seating.turn_tools[turn.seat] if t.name == call.name)
    fault = _argument_fault(seating, turn.seat, tool, call.arguments_json)
    if fault is not None and seating.loop is not None:
        return _refused_in_phase(seating, turn, call, fault, model_call_id=model_call_id, new_id=new_id)
    if fault is not None:
        return refused(seating, turn, call, fault, model_call_id=model_call_id, new_id=new_id)
    if seating.loop is not None:
        return _loop_call(seating, protocol, turn, call, model_call_id=model_call_id, new_id=new_id)
    arguments: Any = parse_arguments(call.arguments_json)
    body: items.Body
    detail: items.Detail | None = items.TurnEnd()
    if call.name == PASS:
        body = items.NoAction()
    elif call.name == CALL_VOTE:
        body = items.VoteProposal(new_id(), arguments["topic"])
    else:
        assert call.name == ASK
        body, detail = items.DirectQuestionAsk(new_id(), arguments["participant"], arguments["question"]), None
    return [Item(new_id(), seating.authors[turn.seat], body, detail, turn.turn_id, model_call_id)]


def _loop_call(
    seating: Seating, protocol: Protocol, turn: Turn, call: items.ProtocolCall, *, model_call_id: UUID | None, new_id: NewId
) -> list[Item]:  # fmt: skip
    made = looped.items_of_call(seating, protocol, turn, call, model_call_id=model_call_id, new_id=new_id)
    if isinstance(made, str):
        return _refused_in_phase(seating, turn, call, made, model_call_id=model_call_id, new_id=new_id)
    return made


def _refused_in_phase(
    seating: Seating, turn: Turn, call: items.ProtocolCall, fault: str, *, model_call_id: UUID | None, new_id: NewId
) -> list[Item]:  # fmt: skip
    """A plan or a verdict that cannot be taken goes back to its author; the third in a row ends the phase."""
    made = refused(seating, turn, call, fault, model_call_id=model_call_id, new_id=new_id, invalid_solution=True)
    if turn.invalid_solutions + 1 >= INVALID_SOLUTIONS:
        made.append(
            given_up(
                turn, f"{INVALID_SOLUTIONS} calls of {call.name} in a row could not be taken. {fault}", new_id=new_id
            )
        )
    return made


def _proposed(
    seating: Seating, protocol: Protocol, turn: Turn, call: items.ProtocolCall, *, model_call_id: UUID | None, new_id: NewId
) -> list[Item]:  # fmt: skip
    """A proposal that stands is put to the vote; another goes back to its author, and the third time the turn is over."""
    text, fault = solutions.proposed(seating, protocol, call, proposer=turn.participant)
    if fault is None:
        author, body = seating.authors[turn.seat], items.SolutionProposal(new_id(), text)
        return [Item(new_id(), author, body, items.TurnEnd(), turn.turn_id, model_call_id)]
    made = refused(seating, turn, call, fault, model_call_id=model_call_id, new_id=new_id, invalid_solution=True)
    if turn.invalid_solutions + 1 >= INVALID_SOLUTIONS:
        made.append(given_up(turn, f"{INVALID_SOLUTIONS} proposals in a row did not stand", new_id=new_id))
    return made
