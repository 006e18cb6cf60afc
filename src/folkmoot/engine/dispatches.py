"""What a manager's dispatch says: to whom, in which thread, and why one cannot be carried out.

Deliberately absent: the work itself (`managed`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from folkmoot.domain import items
from folkmoot.domain.items import DispatchMode
from folkmoot.domain.model_calls import ReplyCall
from folkmoot.domain.schemas import parse_arguments
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.tools_offered import DISPATCH
from folkmoot.kernel.ids import NewId


def fault_of(call: ReplyCall, before: Iterable[ReplyCall]) -> str | None:
    """Why a dispatch whose arguments fit cannot be carried out, as a sentence. `before`: the calls before it in its reply; a manager
    is asked again only when all that it has sent out is done, so that no thread of an earlier reply is at work."""
    arguments = _arguments(call)
    if arguments["mode"] != DispatchMode.CONTINUE:
        return (
            "OneTime work has no thread; leave 'thread' out, or take the mode Continue."
            if arguments.get("thread")
            else None
        )
    at_work = [_arguments(other) for other in before if other.name == DISPATCH]
    if any(_thread(other) == _thread(arguments) for other in at_work if other["mode"] == DispatchMode.CONTINUE):
        return f"{arguments['agent']} is at work in this thread already; wait for its result, or name another thread."
    return None


def sent(
    protocol: Protocol, arguments: dict[str, Any], *, then: items.ProtocolCall | None, new_id: NewId
) -> items.Dispatched:
    """The dispatch with its thread: one of its own, or the one that it continues."""
    mode = DispatchMode(arguments["mode"])
    known = protocol.threads.get(_thread(arguments)) if mode is DispatchMode.CONTINUE else None
    agent, label = _thread(arguments)
    return items.Dispatched(agent, arguments["message"], mode, known or str(new_id()), label, then)


def _thread(arguments: dict[str, Any]) -> tuple[str, str]:
    return arguments["agent"], arguments.get("thread", "")


def _arguments(call: ReplyCall) -> dict[str, Any]:
    arguments = parse_arguments(call.arguments_json)
    assert isinstance(arguments, dict)
    return arguments
