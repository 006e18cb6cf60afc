"""The named points at which a test can break a process: raise, exit, freeze, or cut a connection.

Every point is in POINTS, and a test shows that the crash matrix uses each. Unarmed, `reach` is one dictionary look-up
that finds nothing. Deliberately absent: what an action does; it is handed in when a point is armed.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS = (
    "after_claim",  # claimed; nothing done yet
    "before_model_call",  # the model call is recorded; nothing was sent
    "after_model_call",  # the reply is here; nothing was saved
    "after_key_rests",  # a key failed and rests; the failure of its call was not saved
    "before_commit",  # an outcome is about to be committed
    "after_commit",  # an outcome is committed; the worker does not know yet
    "after_pause",  # the run waits for a person or for sub-runs; nobody has been told
    "before_call",  # a tool call is recorded as begun; nothing was sent
    "after_call",  # the tool has done its work; nothing was saved
    "after_content",  # a large result is kept; the item that refers to it is not saved
    "before_sub_run",  # a sub-run is about to be committed
    "after_sub_run",  # a sub-run is committed; no worker was told, and the call that started it has no result
    "before_delegation",  # a delegated run is about to be committed
    "after_delegation",  # a delegated run is committed; no worker was told, and its parent does not wait yet
    "before_channel_send",  # a message to a run's owner is claimed; nothing was sent
    "after_channel_send",  # it was sent; nobody has noted that
    "before_release",  # an ended or handed-back run is about to be let go in memory
)

_armed: dict[str, Callable[[], None]] = {}


def arm(point: str, action: Callable[[], None]) -> None:
    """Have `action` called each time the process reaches `point`."""
    if point not in POINTS:
        raise ValueError(f"There is no fault point '{point}'; there are: {', '.join(POINTS)}.")
    _armed[point] = action


def disarm_all() -> None:
    _armed.clear()


def reach(point: str) -> None:
    """Called by the code that the point is named after."""
    action = _armed.get(point)
    if action is not None:
        action()
