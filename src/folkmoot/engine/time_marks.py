"""When, before a run's time limit, something is due: the warning, the last turn, the cut for it. Deliberately absent: what is done then
(`time_limits`), and a clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from folkmoot.domain.definitions import ResolvedInteraction

LAST_TURN_PART = 2  # of the reserve: the last turn begins when a half is left
CUT_PART = 4  # and nothing else goes on when a quarter is


@dataclass(frozen=True, slots=True)
class Marks:
    """Until when the run may work, and what is due before: the warning, the last turn, the cut for it."""

    warning: datetime
    last_turn: datetime
    cut: datetime
    limit: datetime


def marks(definition: ResolvedInteraction, work_deadline: datetime | None) -> Marks | None:
    """Null where nobody is told of the time."""
    warning, limit = definition.duration_warning_to_ai, definition.duration_auto_termination
    if warning is None or limit is None or work_deadline is None:
        return None
    reserve: timedelta = limit - warning
    return Marks(
        work_deadline - reserve,
        work_deadline - reserve / LAST_TURN_PART,
        work_deadline - reserve / CUT_PART,
        work_deadline,
    )
