"""What must hold of a run's time: it is longer than none and within what a deadline can be told in; a warning to the participants
comes before the limit that it warns of.

Deliberately absent: when what is told to whom (`engine.time_limits`).
"""

from __future__ import annotations

from datetime import timedelta

from folkmoot.kernel.errors import Fault

LONGEST = timedelta(
    days=999_999, hours=23, minutes=59, seconds=59, microseconds=999_999
)  # as wire writes it: any deadline is a time
WARNING, LIMIT = "/durationWarningToAi", "/durationAutoTermination"


def is_usable(duration: timedelta) -> bool:
    """Whether a run can be given this time."""
    return timedelta(0) < duration <= LONGEST


def faults_of_warning(
    warning: timedelta | None, limit: timedelta | None, *, pointer: str = WARNING
) -> tuple[Fault, ...]:
    """`warning`: the working time after which the participants are warned; `limit`: that after which the run is over."""
    if warning is None or warning <= timedelta(0):  # no time at all is told elsewhere
        return ()
    if limit is None:
        message = "The participants can be warned of a time limit only; set durationAutoTermination, too, or leave the warning out."
        return (Fault(pointer, message),)
    if timedelta(0) < limit <= warning:
        message = (
            f"The participants would be warned after {warning} of work, but the run ends after {limit}; set durationWarningToAi "
            "to less than durationAutoTermination."
        )
        return (Fault(pointer, message),)
    return ()
