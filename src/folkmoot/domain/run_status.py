"""The states of a run and every move between them: the one table that code, SQL and docs follow."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    NEW = "New"
    RUNNING = "Running"
    PENDING_HUMAN = "PendingHuman"
    PENDING_APPROVAL = "PendingApproval"
    PENDING_SUB_INTERACTIONS = "PendingSubInteractions"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    TIMED_OUT = "TimedOut"


class Move(StrEnum):
    """The kernel's transitions. Nothing else changes a status."""

    CLAIM = "claim"  # a worker takes it
    HAND_BACK = "hand_back"  # a worker gives it back; it stays Running and can be claimed again
    PAUSE_HUMAN = "pause_human"
    PAUSE_APPROVAL = "pause_approval"
    PAUSE_SUB_INTERACTIONS = "pause_sub_interactions"
    COMPLETE = "complete"
    FAIL = "fail"
    STOP = "stop"
    EXPIRE = "expire"  # a person's time ran out: the sweep wakes the run, and its worker ends it


_S = RunStatus
WAITING = frozenset({_S.PENDING_HUMAN, _S.PENDING_APPROVAL, _S.PENDING_SUB_INTERACTIONS})
FINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED, _S.TIMED_OUT})

# How a run begins, by its type: one that a worker is to take is New, and an App run is at work from its opening on.
FIRST = {"Interaction": _S.NEW, "App": _S.RUNNING}

TRANSITIONS: dict[Move, tuple[frozenset[RunStatus], RunStatus]] = {
    Move.CLAIM: (frozenset({_S.NEW, _S.RUNNING}) | WAITING, _S.RUNNING),
    Move.HAND_BACK: (frozenset({_S.RUNNING}), _S.RUNNING),
    Move.PAUSE_HUMAN: (frozenset({_S.RUNNING}), _S.PENDING_HUMAN),
    Move.PAUSE_APPROVAL: (frozenset({_S.RUNNING}), _S.PENDING_APPROVAL),
    Move.PAUSE_SUB_INTERACTIONS: (frozenset({_S.RUNNING}), _S.PENDING_SUB_INTERACTIONS),
    Move.COMPLETE: (frozenset({_S.RUNNING}), _S.COMPLETED),
    Move.FAIL: (frozenset({_S.RUNNING}), _S.FAILED),
    Move.STOP: (frozenset({_S.NEW, _S.RUNNING}) | WAITING, _S.STOPPED),
    Move.EXPIRE: (frozenset({_S.RUNNING}), _S.TIMED_OUT),
}


class IllegalMove(Exception):
    """A status was asked to move where the table has no way; nothing was changed."""


def after(move: Move, status: RunStatus) -> RunStatus:
    """The status that `move` leads to from `status`; raises IllegalMove where the table has none."""
    sources, target = TRANSITIONS[move]
    if status not in sources:
        raise IllegalMove(f"A run that is {status} admits no {move}.")
    return target
