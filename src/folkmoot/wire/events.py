"""The data of the event stream's events, beside items. Each is a snapshot, but for `delta`, which is a piece of text."""

from folkmoot.wire.formats import Datetime, ResponseShape
from folkmoot.wire.pending import PendingWork
from folkmoot.wire.runs.accounts import InteractionProcessTokenUsage
from folkmoot.wire.runs.progress import InteractionProcessStatus


class DeltaEvent(ResponseShape):
    """Text of a reply under way. A higher `attempt` of the same `step` voids what was shown of it; `offset` counts characters."""

    step: str
    model_call_id: str
    participant: str
    attempt: int
    offset: int
    text: str


class StatusEvent(ResponseShape):
    """Where the run stands."""

    status: InteractionProcessStatus
    hostname: str | None
    date_runner_claimed: Datetime | None


class ApprovalEvent(ResponseShape):
    """What the run waits for a person about, of any kind; null: nothing any more. `below`: what the runs below it wait for, the
    longest first, 20 at most, with texts as in a list."""

    waits_for: PendingWork | None
    below: tuple[PendingWork, ...]


class UsageEvent(ResponseShape):
    """All that was used so far."""

    token_usage: tuple[InteractionProcessTokenUsage, ...]


class EndEvent(ResponseShape):
    """Follows the last item: how the run ended."""

    status: InteractionProcessStatus
    output: str | None
    failure_details: str | None
