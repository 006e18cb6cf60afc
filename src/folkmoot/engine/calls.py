"""Tool calls that leave the process: which may start now, which wait for a person or for sub-runs, and the results that close the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from folkmoot.agentloop.consent import needs_consent
from folkmoot.domain import items
from folkmoot.domain.approvals import FinalCall, final_call, server_of
from folkmoot.domain.calls import CallFact, CallState, Tool
from folkmoot.domain.definitions import Participant
from folkmoot.domain.items import MAIN_THREAD, ORCHESTRATOR, Item
from folkmoot.domain.operations import OperationTarget
from folkmoot.domain.pending import Decision, Pending, PendingKind
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Facts
from folkmoot.engine import awaits, looped
from folkmoot.engine.open_parts import OpenCall, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import Record, RunCall, Step, Wait
from folkmoot.kernel.ids import NewId

UNKNOWN = (
    "The outcome of this call is unknown: it may or may not have happened. Do not repeat it blindly; look, or ask."
)


def open_steps(seating: Seating, turn: Turn, facts: Facts, new_id: NewId) -> tuple[Step, ...]:
    """What goes on with a reply's calls: read-only ones at once and side by side; of those that keep the reply's order, the
    first, once a person has approved it if it is gated, and starts of sub-runs with the starts right behind them. The run waits only
    when nothing else can go on (B07)."""
    tools = seating.tools[turn.seat]
    steps: list[Step] = []
    gate: Wait | None = None
    first: Tool | None = None  # of those that keep the reply's order
    stands_behind = False
    for open_call in turn.open_calls:
        if open_call.dispatch is not None:  # that one is `managed`'s
            continue
        tool = tools[open_call.call.name]
        if tool.is_read_only and not tool.may_be_gated:
            steps.append(_run(open_call, tool, turn))
        elif first is None or (not stands_behind and awaits.is_start(first) and awaits.is_start(tool)):
            first = first or tool
            step = _in_order(seating, turn, open_call, tool=tool, facts=facts, new_id=new_id)
            if isinstance(step, Record):
                return (step,)
            if isinstance(step, Wait):
                gate = step
            else:
                steps.append(step)
        else:
            stands_behind = True
    return tuple(steps) if steps or gate is None else (gate,)


def _in_order(
    seating: Seating, turn: Turn, open_call: OpenCall, *, tool: Tool, facts: Facts, new_id: NewId
) -> RunCall | Record | Wait:
    """The call whose turn it is in the reply's order: made, refused, or asked a person about."""
    fact = facts.calls.get(open_call.call.call_id)
    has_begun = fact is not None and fact.state is CallState.BEGUN
    waits = looped.waits_for_delegated(seating, turn, open_call, tool, facts)
    if waits is not None:
        return waits
    if awaits.is_await(tool):
        return _awaiting(seating, turn, open_call, tool=tool, facts=facts, new_id=new_id)
    # One that had begun was approved then; it is made again only if it may be repeated.
    if has_begun or not needs_consent(tool, open_call.call):
        return _run(open_call, tool, turn)
    decision = facts.decisions.get(open_call.call.call_id)
    if decision is None:
        return _gate(seating, turn, open_call, tool)
    refusal = _refusal(decision, final_call(tool, open_call.call.arguments_json))
    if refusal is None:
        return _run(open_call, tool, turn)
    return Record((_refused(open_call, turn, refusal, decision=decision, new_id=new_id),))


def _awaiting(
    seating: Seating, turn: Turn, open_call: OpenCall, *, tool: Tool, facts: Facts, new_id: NewId
) -> RunCall | Record | Wait:
    """An await: a wait until its runs have ended, then a call that reads what came of them."""
    fault = awaits.fault_of_await(open_call, facts.sub_runs)
    if fault is not None:
        made = result_item(open_call, turn.turn_id, fault, is_error=True, new_id=new_id, thread_id=turn.thread_id)
        return Record((made,))
    return awaits.wait_of(seating, turn, open_call, facts.sub_runs) or _run(open_call, tool, turn)


def _run(open_call: OpenCall, tool: Tool, turn: Turn) -> RunCall:
    key = f"call:{open_call.call.call_id}"
    return RunCall(key, open_call.call, tool, turn.turn_id, open_call.model_call_id, turn.thread_id)


def _refusal(decision: Decision, call: FinalCall) -> str | None:
    """Why a decided call does not run; null where it does."""
    if not decision.is_approved:
        return decision.reason or "no reason was given"
    if decision.is_void:
        return f"the approval by {decision.by} is void: {decision.by} may approve no more"
    if decision.binding_hash != call.hash:
        return "what was approved is not what would run"
    return None


def _refused(open_call: OpenCall, turn: Turn, reason: str, *, decision: Decision, new_id: NewId) -> Item:
    """The result of a call that is not made: the model is told by whom, and why (B12)."""
    text = f"This call was not made: {reason}."
    if not decision.is_approved:
        text = f"{decision.by} rejected this call, and it was not made. Reason: {reason}"
    return result_item(
        open_call, turn.turn_id, text, is_error=True, new_id=new_id, rejection_reason=reason, thread_id=turn.thread_id
    )


def _gate(seating: Seating, turn: Turn, open_call: OpenCall, tool: Tool) -> Wait:
    """The wait for a person's word on one call, with what stands behind it."""
    participant = seating.participants[turn.seat]
    call = final_call(tool, open_call.call.arguments_json)
    behind = [c for c in turn.open_calls if c is not open_call and c.dispatch is None]
    card = {
        **_shown(open_call.call.call_id, tool.name, call.arguments_json, participant),
        **_operation(tool),
        "argumentsHash": call.hash.hex(),
        "deferred": [
            _shown(c.call.call_id, c.call.name, _final(seating, turn, c).arguments_json, participant) for c in behind
        ],
    }
    pending = Pending(UUID(open_call.call.call_id), PendingKind.APPROVAL, card, call.hash)
    return Wait(f"approval:{open_call.call.call_id}", RunStatus.PENDING_APPROVAL, pending)


def _final(seating: Seating, turn: Turn, open_call: OpenCall) -> FinalCall:
    return final_call(seating.tools[turn.seat][open_call.call.name], open_call.call.arguments_json)


def _shown(call_id: str, name: str, arguments_json: str, participant: Participant) -> dict[str, Any]:
    return {
        "toolCallId": call_id,
        "functionName": name,
        "argumentsJson": arguments_json,
        "agentId": str(participant.agent_id),
        "agentName": participant.name,
    }


def _operation(tool: Tool) -> dict[str, Any]:
    target = tool.target
    if not isinstance(target, OperationTarget):
        return {
            "description": tool.description, "connector": None, "operation": None, "operationVersion": None, "server": None
        }  # fmt: skip
    return {
        "description": tool.description,
        "connector": target.connector_name,
        "operation": str(target.operation_id),
        "operationVersion": target.operation_version,
        "server": server_of(target),
    }


def result_item(
    open_call: OpenCall | RunCall,
    turn_id: UUID,
    text: str,
    *,
    is_error: bool,
    new_id: NewId,
    detail: items.Detail | None = None,
    rejection_reason: str | None = None,
    thread_id: str = MAIN_THREAD,
) -> Item:
    size = len(text.encode("utf-8", "surrogatepass"))
    body = items.ToolResult(open_call.call.call_id, text, is_error, size, rejection_reason=rejection_reason)
    return Item(new_id(), ORCHESTRATOR, body, detail, turn_id, open_call.model_call_id, thread_id)


def unknown_result(open_call: OpenCall, turn: Turn, new_id: NewId) -> Item:
    return result_item(
        open_call, turn.turn_id, UNKNOWN, is_error=True, new_id=new_id, detail=items.UnknownOutcome(), thread_id=turn.thread_id
    )  # fmt: skip


def closing_results(protocol: Protocol, why: str, *, calls: Mapping[str, CallFact], new_id: NewId) -> tuple[Item, ...]:
    """An error result for each call that is open when the run ends (B20). One that had begun may have happened."""
    # calls are open in the turn that goes on alone: a question waits for those before it
    return tuple(_closed(protocol.turn, why, calls, new_id)) if protocol.turn is not None else ()


def _closed(turn: Turn, why: str, calls: Mapping[str, CallFact], new_id: NewId) -> Iterator[Item]:
    """Those of dispatched work before the call that sent it."""
    for open_call in turn.open_calls:
        dispatch = open_call.dispatch
        if dispatch is not None and dispatch.turn is not None:
            yield from _closed(dispatch.turn, why, calls, new_id)
        if dispatch is not None and dispatch.outcome is not None:  # it was done, and waited for those before it
            yield result_item(open_call, turn.turn_id, dispatch.outcome, is_error=dispatch.is_error, new_id=new_id)
            continue
        fact = calls.get(open_call.call.call_id)
        has_begun = fact is not None and fact.state is CallState.BEGUN
        text = f"This call has no result: {why}."
        if has_begun:
            text = f"This call had begun when {why}: it may or may not have happened."
        detail: items.Detail | None = items.UnknownOutcome() if has_begun else items.NotMade()
        if dispatch is not None and not has_begun:  # the work that was sent had begun
            detail = None
        yield result_item(
            open_call, turn.turn_id, text, is_error=True, new_id=new_id, detail=detail, thread_id=turn.thread_id
        )
