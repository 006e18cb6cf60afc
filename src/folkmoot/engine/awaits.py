"""Awaits: which runs a call waits for, whether it can be answered now, and the wait that it is until then.

Deliberately absent: anything that is known of a sub-run beyond its status; the answer is read when the call is made.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from uuid import UUID

from folkmoot.domain.calls import SwarmAction, SwarmTarget, Tool
from folkmoot.domain.run_status import FINAL, RunStatus
from folkmoot.domain.swarms import Await
from folkmoot.engine.open_parts import OpenCall, Turn
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import Wait
from folkmoot.engine.swarm_tools import ALL, ANY


def is_start(tool: Tool) -> bool:
    return not tool.is_gated and isinstance(tool.target, SwarmTarget) and tool.target.action is SwarmAction.START


def is_await(tool: Tool) -> bool:
    return isinstance(tool.target, SwarmTarget) and tool.target.action is SwarmAction.AWAIT


def fault_of_await(open_call: OpenCall, sub_runs: Mapping[UUID, RunStatus]) -> str | None:
    """Why these runs cannot be awaited, as a sentence; null where they can."""
    _, _, unknown = _asked(open_call, sub_runs)
    if not sub_runs:
        return "No run was started here, so there is nothing to await. start_interaction starts one."
    if not unknown:
        return None
    known = ", ".join(map(str, sub_runs)) or "none"
    return f"These are no runs that were started here: {', '.join(unknown)}. Nothing is awaited. Started here: {known}."


def wait_of(seating: Seating, turn: Turn, open_call: OpenCall, sub_runs: Mapping[UUID, RunStatus]) -> Wait | None:
    """The wait that an await stands for; null where it can be answered now."""
    ids, is_all, _ = _asked(open_call, sub_runs)
    have_ended = [sub_runs[run_id] in FINAL for run_id in ids]
    if all(have_ended) if is_all else any(have_ended):
        return None
    call = open_call.call
    author = seating.authors[turn.seat]
    awaits = Await(UUID(call.call_id), ids, is_all, call.participant, turn.thread_id, author.id)
    return Wait(f"await:{call.call_id}", RunStatus.PENDING_SUB_INTERACTIONS, awaits=(awaits,))


def _asked(open_call: OpenCall, sub_runs: Mapping[UUID, RunStatus]) -> tuple[tuple[UUID, ...], bool, list[str]]:
    """The runs that a call awaits, each once; whether all of them; and what of its ids is no sub-run's."""
    arguments = json.loads(open_call.call.arguments_json)
    by_text = {str(run_id): run_id for run_id in sub_runs}
    asked = dict.fromkeys(text.strip().lower() for text in arguments.get("ids", by_text))
    found = tuple(by_text[text] for text in asked if text in by_text)
    return found, arguments.get("mode", ALL) != ANY, [text[:100] for text in asked if text not in by_text]
