"""What tells seats and views apart: a seat is a participant's, or that of one of the agents which may take its turns; a view is a
participant's of the main conversation, or one thread's of dispatched work.

Deliberately absent: what a seat holds (`seating`), and what a view shows (`views`).
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.items import MAIN_THREAD


def seat_key(participant: str, agent: UUID | None = None) -> str:
    """`agent`: who has the seat of a participant with a router; null: whoever has it before the first choice."""
    return participant if agent is None else f"{participant}\n{agent}"


def view_key(participant: str, thread_id: str = MAIN_THREAD) -> str:
    return participant if thread_id == MAIN_THREAD else thread_id
