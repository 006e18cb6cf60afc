"""Arms fault points by setting, for tests that break a whole process."""

from __future__ import annotations

import os
import signal
import time

from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import BadInput


def arm_fault(text: str) -> None:
    """Arm a fault point as the setting FAULT says: point:action[:nth], from the nth time it is reached."""
    point, _, rest = text.partition(":")
    action, _, nth = rest.partition(":")
    name, is_timed, seconds = action.partition("=")
    try:
        remaining = int(nth or "1")
        freeze_seconds = float(seconds) if is_timed else 0.0
    except ValueError:
        name = ""
    if (name, bool(is_timed)) not in (("exit", False), ("raise", False), ("freeze", True)):
        raise BadInput(
            f"FOLKMOOT_FAULT is '{text[:80]}'; write it as point:action:nth, the action being exit, raise or freeze=seconds."
        )

    def act() -> None:
        nonlocal remaining
        remaining -= 1
        if remaining > 0:
            return
        if name == "exit":
            os.kill(os.getpid(), signal.SIGKILL)
        fault_points.disarm_all()
        if name == "raise":
            raise RuntimeError(f"the fault point {point} was armed to raise")
        time.sleep(freeze_seconds)

    try:
        fault_points.arm(point, act)
    except ValueError as error:
        raise BadInput(str(error)) from error
