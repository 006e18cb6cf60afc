"""App runs: opened by a program of a user's, pinged while it lives, ended with an outcome; they group the runs it starts.

An App run is at work from its opening on, and is the root of its tree. Deliberately absent: a conversation, a definition, a worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from folkmoot.domain.definition_names import faults_of_name
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tags import faults_of_tags
from folkmoot.kernel.errors import Fault

PING_LIMIT = timedelta(minutes=5)
SHORTEST_PING_LIMIT = timedelta(seconds=10)
LONGEST_PING_LIMIT = timedelta(days=1)
_MAX_INPUTS = 200


@dataclass(frozen=True, slots=True)
class Opening:
    """What a program says when it opens a run. `inputs`: names and values as text. `ping_limit`: without a ping for so long the
    run counts as lost."""

    name: str
    description: str | None = None
    inputs: tuple[tuple[str, str], ...] = ()
    tags: tuple[str, ...] = ()
    ping_limit: timedelta = PING_LIMIT


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ends its run: Completed with an output (null: it has none), or Failed with what went wrong."""

    status: RunStatus
    output: str | None = None
    failure_details: str | None = None


@dataclass(frozen=True, slots=True)
class AppRun:
    """`lost_at`: when it counts as lost unless it is pinged before; null once it has ended. `now`: when all this held."""

    tenant_id: UUID
    run_id: UUID
    opening: Opening
    status: RunStatus
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    pinged_at: datetime
    lost_at: datetime | None
    ended_at: datetime | None
    output: str | None
    failure_details: str | None
    now: datetime


@dataclass(frozen=True, slots=True)
class AppCursor:
    """The last run of a page; the next page begins after it."""

    created_at: datetime
    run_id: UUID


def faults_of_opening(opening: Opening) -> tuple[Fault, ...]:
    """What keeps the run from being opened, with pointers into the request; () if nothing does. A name is in the path: ''."""
    return (*faults_of_name("", opening.name, what="app"), *_faults_of_body(opening))


def _faults_of_body(opening: Opening) -> Iterator[Fault]:
    if not SHORTEST_PING_LIMIT <= opening.ping_limit <= LONGEST_PING_LIMIT:
        yield Fault(
            "/pingLimit", "The longest time between two pings is 00:00:10 to 1.00:00:00; correct it, or leave it out for 00:05:00."
        )  # fmt: skip
    if len(opening.inputs) > _MAX_INPUTS:
        yield Fault(
            "/inputs", f"A run has at most {_MAX_INPUTS} inputs; these are {len(opening.inputs)}. Leave some out."
        )
    seen: set[str] = set()
    for index, (name, _) in enumerate(opening.inputs):
        if name in seen:
            yield Fault(f"/inputs/{index}/name", f"The input '{name}' is given twice; give it once.")
        seen.add(name)
    yield from faults_of_tags(opening.tags)


def faults_of_ending(ending: Ending) -> tuple[Fault, ...]:
    """What keeps a run from being ended so."""
    if ending.status is RunStatus.COMPLETED and ending.failure_details is not None:
        return (
            Fault(
                "/failureDetails", "A run that is Completed has no failureDetails; leave it out, or end it as Failed."
            ),
        )
    if ending.status is RunStatus.FAILED:
        if ending.output is not None:
            return (Fault("/output", "A run that is Failed has no output; leave it out, or end it as Completed."),)
        if not (ending.failure_details or "").strip():
            return (Fault("/failureDetails", "Say what went wrong: a run that is Failed has failureDetails."),)
    return ()
