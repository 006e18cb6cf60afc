"""The audit log of the caller's tenant: read, and written by nobody here."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.doors import Caller, Doorway, may
from folkmoot.api.mapping import audit as mapping
from folkmoot.api.mapping.cursors import audit_cursor, read_audit_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, CreatedBefore, CreatedFrom, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.audit import AuditCursor, AuditFilter
from folkmoot.domain.rights import Right
from folkmoot.services import audit
from folkmoot.wire.audit import AuditPage

router = APIRouter(tags=["audit"], route_class=KeyedRoute)


@router.get("/audit", responses=responses(401, 422, 503))
async def list_audit(
    doors: Doorway,
    caller: Annotated[Caller, may(Right.READ_AUDIT)],
    user: Annotated[UUID | None, Query(description="Who did it.")] = None,
    action: Annotated[str | None, Query(max_length=80, description="Such as `run.started`.")] = None,
    subject_kind: Annotated[str | None, Query(alias="subjectKind", max_length=80, description="Such as `run`.")] = None,
    subject: Annotated[UUID | None, Query(description="The id of what it was done to.")] = None,
    created_from: CreatedFrom = None,
    created_before: CreatedBefore = None,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> AuditPage:
    """Who did what, the newest first."""
    wanted = AuditFilter(user, action, subject_kind, subject, created_from, created_before)
    cursor = read_audit_cursor(after)
    rows = await audit.page(doors.of(caller), caller, wanted=wanted, after=cursor, limit=limit + 1)
    found, following = cut(rows, limit, lambda entry: audit_cursor(AuditCursor(entry.at, entry.audit_id)))
    return AuditPage(items=tuple(mapping.entry(entry) for entry in found), next=following)
