"""Runs of a user's own programs: what opens and ends one, and what is shown of it. Deliberately absent: what the program does."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import (
    Datetime,
    Name,
    NameValuePair,
    NameValuePairRequest,
    Page,
    RequestShape,
    ResponseShape,
    Text,
    Timespan,
    Uuid,
)
from folkmoot.wire.runs.progress import InteractionProcessStatus


class AppRunRequest(RequestShape):
    """Opens a run. `pingLimit`: without a ping for so long it counts as lost; 00:00:10 to 1.00:00:00, null: 00:05:00."""

    description: Annotated[Text, Field(max_length=10_000)] | None = None
    inputs: tuple[NameValuePairRequest, ...] = ()
    tags: tuple[Name, ...] = ()
    ping_limit: Timespan | None = None


class AppRunOutcome(StrEnum):
    """How a program may end its run."""

    COMPLETED = "Completed"
    FAILED = "Failed"


class AppRunEndRequest(RequestShape):
    """Ends a run: Completed, with an `output` if there is one, or Failed, with `failureDetails`."""

    outcome: AppRunOutcome
    output: Text | None = None
    failure_details: Annotated[Text, Field(max_length=100_000)] | None = None


class AppRun(ResponseShape):
    """A run of an app. `dateLost`: when it counts as lost unless it is pinged before; null once it has ended."""

    name: str
    description: str | None
    inputs: tuple[NameValuePair, ...]
    tags: tuple[str, ...]
    status: InteractionProcessStatus
    output: str | None
    failure_details: str | None
    ping_limit: Timespan
    date_ping: Datetime
    date_lost: Datetime | None
    date_ended: Datetime | None
    execution_time: Timespan
    user_created_by_id: Uuid
    tenant_id: Uuid
    id: Uuid
    date_created: Datetime
    date_updated: Datetime


class AppRunPage(Page[AppRun]):
    """A page of an app's runs."""
