"""What must hold of a run's time: a warning to the participants comes before the limit that it warns of.

Deliberately absent: when what is told to whom (`engine.time_limits`).
"""

from __future__ import annotations

from datetime import timedelta

from folkmoot.kernel.errors import Fault

WARNING, LIMIT = "/durationWarningToAi", "/durationAutoTermination"


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
