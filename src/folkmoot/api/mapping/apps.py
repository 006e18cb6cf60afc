"""App runs as the API shows them, and what their requests say."""

from __future__ import annotations

from folkmoot.domain.apps import PING_LIMIT, AppRun, Ending, Opening
from folkmoot.domain.run_status import RunStatus
from folkmoot.wire import apps as wire
from folkmoot.wire.formats import NameValuePair
from folkmoot.wire.runs import InteractionProcessStatus


def opening_of(name: str, request: wire.AppRunRequest) -> Opening:
    inputs = tuple((pair.name, pair.value) for pair in request.inputs)
    tags = tuple(dict.fromkeys(request.tags))
    limit = request.ping_limit if request.ping_limit is not None else PING_LIMIT
    return Opening(name, request.description, inputs, tags, limit)


def ending_of(request: wire.AppRunEndRequest) -> Ending:
    return Ending(RunStatus(request.outcome.value), request.output, request.failure_details)


def app_run(run: AppRun) -> wire.AppRun:
    opening = run.opening
    return wire.AppRun(
        id=run.run_id, tenant_id=run.tenant_id, user_created_by_id=run.created_by, date_created=run.created_at,
        date_updated=run.updated_at, name=opening.name, description=opening.description,
        inputs=tuple(NameValuePair(name=name, value=value) for name, value in opening.inputs), tags=opening.tags,
        status=InteractionProcessStatus(run.status), output=run.output, failure_details=run.failure_details,
        ping_limit=opening.ping_limit, date_ping=run.pinged_at, date_lost=run.lost_at, date_ended=run.ended_at,
        execution_time=(run.ended_at or run.now) - run.created_at,
    )  # fmt: skip
