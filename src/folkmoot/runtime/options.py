"""How a worker behaves: every number of its timing, in seconds."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_WAIT_SECONDS = 86_400.0  # whatever a provider asks for


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """`own_deadline_seconds`: without a ping acknowledged for so long, the worker begins no side effect any more."""

    lease_seconds: float = 60.0
    ping_seconds: float = 10.0
    own_deadline_seconds: float = 55.0
    sweep_seconds: float = 10.0
    poll_seconds: float = 5.0
    drain_seconds: float = 120.0
    slots: int = 200
    poison_limit: int = 3
    driver_errors_limit: int = 5
    backoff_first_seconds: float = 1.0
    backoff_longest_seconds: float = 100.0


def backoff_seconds(options: WorkerOptions, attempt: int, chance: float) -> float:
    """Doubling from the first to the longest, with full jitter. `chance`: from 0 to 1."""
    return chance * min(options.backoff_longest_seconds, options.backoff_first_seconds * 2.0 ** min(attempt - 1, 30))
