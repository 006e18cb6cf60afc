"""The inbox for programs: everything of the tenant that waits or waited for a person, listed, counted, followed."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import FEED_EVENTS
from folkmoot.api.doors import Doorway, Reader, still_may
from folkmoot.api.mapping import pending as mapping
from folkmoot.api.mapping.cursors import inbox_cursor, read_feed_cursor, read_inbox_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.stream import EventStream
from folkmoot.domain import pending
from folkmoot.domain.inbox import InboxCursor, InboxFilter, InboxStatus
from folkmoot.domain.rights import Right
from folkmoot.services import inbox
from folkmoot.wire.pending import PendingCount, PendingKind, PendingStatus, PendingWorkPage

router = APIRouter(tags=["people"], route_class=KeyedRoute)
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `waiting`, `closed`, and `synced` (with an id to go on from).",
        "content": {EventStream.media_type: FEED_EVENTS},
    }
}


@router.get("/approvals", responses=responses(401, 404, 422, 503))
async def list_approvals(
    doors: Doorway,
    caller: Reader,
    status: Annotated[PendingStatus | None, Query()] = None,
    kind: Annotated[PendingKind | None, Query()] = None,
    run: Annotated[UUID | None, Query(description="Only what this run asks.")] = None,
    root: Annotated[UUID | None, Query(description="Only what this run and all runs below it ask.")] = None,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> PendingWorkPage:
    """What waits or waited for a person, of every kind. `?status=Pending`: the longest waiting first; else the newest first."""
    wanted = InboxFilter(
        InboxStatus(status.value) if status else None, pending.PendingKind(kind.value) if kind else None, run, root
    )
    rows = await inbox.page(doors.of(caller), caller, wanted=wanted, after=read_inbox_cursor(after), limit=limit + 1)
    found, following = cut(
        rows, limit, lambda row: inbox_cursor(InboxCursor(row.entry.asked_at, row.entry.pending.pending_id))
    )
    items = tuple(mapping.pending_work(row, limit=mapping.LISTED_CHARACTERS) for row in found)
    return PendingWorkPage(items=items, next=following)


@router.get("/approvals/count", responses=responses(401, 503))
async def count_approvals(doors: Doorway, caller: Reader) -> PendingCount:
    """How many things wait for a person now."""
    counts = await inbox.counts(doors.of(caller), caller)
    return PendingCount(
        total=sum(counts.values()),
        approvals=counts[pending.PendingKind.APPROVAL],
        votes=counts[pending.PendingKind.VOTE],
        questions=counts[pending.PendingKind.QUESTION],
        turns=counts[pending.PendingKind.TURN],
    )


async def _readable(doors: Doorway, caller: Reader) -> None:
    """A stream that has begun can give no 503 any more."""
    await inbox.counts(doors.of(caller), caller)


@router.get(
    "/approvals/events",
    response_class=EventStream,
    responses=_EVENTS | responses(401, 422, 503),
    dependencies=[Depends(_readable)],
)
async def watch_approvals(
    doors: Doorway,
    caller: Reader,
    last_event_id: Annotated[
        str | None, Header(alias="Last-Event-ID", max_length=200, description="The id of the last `synced` event.")
    ] = None,
) -> EventStream:
    """Follow what waits as SSE: all of it, then each change. From a `synced` event's id on, what changed since."""
    since = read_feed_cursor(last_event_id or None)
    following = inbox.follow(doors.of(caller), doors.hub, tenant_id=caller.tenant_id, since=since)
    return EventStream(following, is_welcome=still_may(doors, caller, Right.READ))
