"""Tool calls that leave the process: which may start now, and the results that close those that will never run."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.calls import CallFact, CallState
from folkmoot.domain.items import ORCHESTRATOR, Item
from folkmoot.engine.open_parts import OpenCall, Turn
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import RunCall
from folkmoot.kernel.ids import NewId

UNKNOWN = (
    "The outcome of this call is unknown: it may or may not have happened. Do not repeat it blindly; look, or ask."
)


def runnable(seating: Seating, turn: Turn) -> tuple[RunCall, ...]:
    """Read-only calls at once and side by side; of the others, the first in the reply's order."""
    functions = seating.functions[turn.participant]
    steps: list[RunCall] = []
    is_first = True
    for open_call in turn.open_calls:
        tool = functions[open_call.call.name]
        if tool.is_read_only or is_first:
            steps.append(
                RunCall(f"call:{open_call.call.call_id}", open_call.call, tool, turn.turn_id, open_call.model_call_id)
            )
        if not tool.is_read_only:
            is_first = False
    return tuple(steps)


def result_item(
    open_call: OpenCall | RunCall,
    turn_id: UUID,
    text: str,
    *,
    is_error: bool,
    new_id: NewId,
    detail: items.Detail | None = None,
) -> Item:
    body = items.ToolResult(open_call.call.call_id, text, is_error, len(text.encode("utf-8", "surrogatepass")))
    return Item(new_id(), ORCHESTRATOR, body, detail, turn_id, open_call.model_call_id)


def unknown_result(open_call: OpenCall, turn_id: UUID, new_id: NewId) -> Item:
    return result_item(open_call, turn_id, UNKNOWN, is_error=True, new_id=new_id, detail=items.UnknownOutcome())


def closing_results(protocol: Protocol, why: str, *, calls: Mapping[str, CallFact], new_id: NewId) -> tuple[Item, ...]:
    """An error result for each call that is open when the run ends (B20). One that had begun may have happened."""
    turn = protocol.turn  # calls are open in the turn that goes on alone: a question waits for those before it
    made: list[Item] = []
    for open_call in turn.open_calls if turn is not None else ():
        fact = calls.get(open_call.call.call_id)
        has_begun = fact is not None and fact.state is CallState.BEGUN
        text = f"This call has no result: {why}."
        if has_begun:
            text = f"This call had begun when {why}: it may or may not have happened."
        detail = items.UnknownOutcome() if has_begun else None
        assert turn is not None
        made.append(result_item(open_call, turn.turn_id, text, is_error=True, new_id=new_id, detail=detail))
    return tuple(made)
