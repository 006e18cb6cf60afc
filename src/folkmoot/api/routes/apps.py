"""Runs of a user's own programs: opened, pinged, ended, read."""

from __future__ import annotations

import hashlib
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Path, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import apps as mapping
from folkmoot.api.mapping.cursors import app_cursor, read_app_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.runs import IdempotencyKey
from folkmoot.domain.rights import Right
from folkmoot.domain.run_status import RunStatus
from folkmoot.services import apps
from folkmoot.services.apps import AppCursor
from folkmoot.store.idempotency import Scope
from folkmoot.wire.apps import AppRun, AppRunEndRequest, AppRunPage, AppRunRequest
from folkmoot.wire.runs import InteractionProcessStatus

router = APIRouter(tags=["apps"], route_class=KeyedRoute)
AppName = Annotated[
    str, Path(alias="app_name", min_length=1, max_length=200, description="The app's name, its own to choose.")
]
Starter = Annotated[Caller, may(Right.START)]
Opened = Annotated[AppRunRequest, shown_as({"description": "The nightly import.", "pingLimit": "00:02:00"})]
Ended = Annotated[AppRunEndRequest, shown_as({"outcome": "Completed", "output": "120 rows."})]
_RUN = "/apps/{app_name}/runs/{app_run_id}"


@router.post("/apps/{app_name}/runs", status_code=201, responses=responses(400, 401, 409, 413, 415, 422, 503))
async def open_app_run(
    doors: Doorway, caller: Starter, app_name: AppName, body: Opened, idempotency_key: IdempotencyKey = None
) -> AppRun:
    """Open a run, to start others under it by their `parentProcessId`. It is Failed if it is not pinged within its limit."""
    scope = None
    if idempotency_key is not None:
        digest = hashlib.sha256(body.model_dump_json().encode()).digest()
        scope = Scope(caller.tenant_id, caller.user_id, f"apps/{quote(app_name, safe='')}", idempotency_key, digest)
    run = await apps.open_run(
        doors.of(caller), caller, opening=mapping.opening_of(app_name, body), new_id=doors.new_id, scope=scope
    )
    return mapping.app_run(run)


@router.get("/apps/{app_name}/runs", responses=responses(401, 422, 503))
async def list_app_runs(
    doors: Doorway, caller: Reader, app_name: AppName, status: Annotated[InteractionProcessStatus | None, Query()] = None,
    limit: Limit = DEFAULT_LIMIT, after: Annotated[str | None, Query(max_length=200)] = None,
) -> AppRunPage:  # fmt: skip
    """An app's runs, the newest first."""
    wanted = RunStatus(status.value) if status else None
    rows = await apps.page(
        doors.of(caller), caller, name=app_name, status=wanted, after=read_app_cursor(after), limit=limit + 1
    )
    found, following = cut(rows, limit, lambda run: app_cursor(AppCursor(run.created_at, run.run_id)))
    return AppRunPage(items=tuple(mapping.app_run(run) for run in found), next=following)


@router.get(_RUN, responses=responses(401, 404, 422, 503))
async def get_app_run(doors: Doorway, caller: Reader, app_name: AppName, app_run_id: UUID) -> AppRun:
    """A run of an app."""
    return mapping.app_run(await apps.get(doors.of(caller), caller, name=app_name, run_id=app_run_id))


@router.post(f"{_RUN}/ping", responses=responses(401, 404, 409, 422, 503))
async def ping_app_run(doors: Doorway, caller: Starter, app_name: AppName, app_run_id: UUID) -> AppRun:
    """Say that the program lives. Once the run has ended, or was lost, it is a 409 that says what happened."""
    run = await apps.ping(doors.of(caller), caller, name=app_name, run_id=app_run_id, tell=doors.tell)
    return mapping.app_run(run)


@router.post(f"{_RUN}/end", responses=responses(400, 401, 404, 409, 413, 415, 422, 503))
async def end_app_run(doors: Doorway, caller: Starter, app_name: AppName, app_run_id: UUID, body: Ended) -> AppRun:
    """End a run, once. If it is Failed, the runs that were started under it are asked to stop."""
    run = await apps.end(
        doors.of(caller), caller, name=app_name, run_id=app_run_id, ending=mapping.ending_of(body), tell=doors.tell
    )
    return mapping.app_run(run)
