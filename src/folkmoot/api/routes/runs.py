"""Runs of interactions: started, listed, read, watched, spoken to, stopped."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Depends, Header, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import EVENTS, shown_as
from folkmoot.api.doors import Caller, Doors, Doorway, Reader, may, still_may
from folkmoot.api.mapping import items as item_mapping
from folkmoot.api.mapping import runs as mapping
from folkmoot.api.mapping.cursors import read_run_cursor, run_cursor
from folkmoot.api.mapping.starts import start_fields
from folkmoot.api.paging import DEFAULT_LIMIT, CreatedBefore, CreatedFrom, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.stream import EventStream
from folkmoot.domain.definitions import Reference
from folkmoot.domain.rights import Right
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tenancy import Caller as DomainCaller
from folkmoot.services import events, runs, starting
from folkmoot.services.runs import RunCursor
from folkmoot.store.idempotency import Scope
from folkmoot.wire.items import ConversationItem, ConversationItemPage
from folkmoot.wire.runs import (
    InteractionProcess,
    InteractionProcessPage,
    InteractionProcessStatus,
    InteractionProcessWithDetails,
    MessageRequest,
    StartRequest,
)

router = APIRouter(tags=["runs"], route_class=KeyedRoute)
_START = responses(400, 401, 404, 409, 413, 415, 422, 429, 503)
Start = Annotated[
    StartRequest,
    shown_as({"inputs": [{"name": "question", "value": "Should we write tests first?"}], "tags": ["demo"]}),
]
Message = Annotated[MessageRequest, shown_as({"message": "Think of the costs, too."})]
Starter = Annotated[Caller, may(Right.START)]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key and body give the first response again, for 24 hours.",
    ),
]


@router.put("/interactions/processes/by-id/{interaction_id}/start", status_code=201, responses=_START)
async def start_by_id(
    doors: Doorway, caller: Starter, interaction_id: UUID, body: Start, idempotency_key: IdempotencyKey = None
) -> InteractionProcess:
    """Start a run of the interaction with this id. Everything is checked before the run exists."""
    reference = Reference(definition_id=interaction_id, version=body.version or None)
    return await _start(doors, caller, reference, body, route=f"start/{interaction_id}", key=idempotency_key)


@router.put("/namespaces/{namespace_name}/interactions/by-name/{name}/start", status_code=201, responses=_START)
async def start_by_name(
    doors: Doorway,
    caller: Starter,
    namespace_name: str,
    name: str,
    body: Start,
    idempotency_key: IdempotencyKey = None,
) -> InteractionProcess:
    """Start a run of the interaction of this name."""
    reference = Reference(name, namespace_name, version=body.version or None)
    # Quoted: a slash parts the two, and no text of a route may hold what the database cannot.
    route = f"start/{quote(namespace_name, safe='')}/{quote(name, safe='')}"
    return await _start(doors, caller, reference, body, route=route, key=idempotency_key)


async def _start(
    doors: Doors, caller: DomainCaller, interaction: Reference, body: StartRequest, *, route: str, key: str | None
) -> InteractionProcess:
    scope = None
    if key is not None:
        scope = Scope(
            caller.tenant_id, caller.user_id, route, key, hashlib.sha256(body.model_dump_json().encode()).digest()
        )
    run_id = await starting.start(
        doors.of(caller), caller, interaction=interaction, request=start_fields(body),
        bench=doors.bench, new_id=doors.new_id, tell=doors.tell, scope=scope,
    )  # fmt: skip
    return mapping.process(await runs.get(doors.of(caller), caller, run_id=run_id))


@router.get("/interactions/processes", responses=responses(401, 404, 422, 503))
async def list_runs(
    doors: Doorway,
    caller: Reader,
    status: Annotated[InteractionProcessStatus | None, Query()] = None,
    interaction: Annotated[UUID | None, Query(description="The interaction's id.")] = None,
    namespace: Annotated[str | None, Query(max_length=200)] = None,
    root: Annotated[UUID | None, Query(description="This run and all runs below it.")] = None,
    parent: Annotated[UUID | None, Query()] = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    text: Annotated[str | None, Query(max_length=1000, description="Words in the name, inputs and tags.")] = None,
    created_from: CreatedFrom = None,
    created_before: CreatedBefore = None,
    limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> InteractionProcessPage:
    """Runs, the newest first. Conversations and usage are left empty; read a run by its id for them."""
    wanted = runs.RunFilter(
        status=RunStatus(status.value) if status else None, interaction_id=interaction, root=root, parent=parent, tag=tag, text=text,
        created_from=created_from, created_before=created_before,
    )  # fmt: skip
    cursor = read_run_cursor(after)
    rows = await runs.page(doors.of(caller), caller, wanted=wanted, namespace=namespace, after=cursor, limit=limit + 1)
    found, following = cut(rows, limit, lambda view: run_cursor(RunCursor(view.run.created_at, view.run.run_id)))
    return InteractionProcessPage(items=tuple(mapping.row(view) for view in found), next=following)


@router.get("/interactions/processes/by-id/{run_id}", responses=responses(401, 404, 422, 503))
async def get_run(doors: Doorway, caller: Reader, run_id: UUID) -> InteractionProcess:
    """The whole run, its conversation included."""
    return mapping.process(await runs.get(doors.of(caller), caller, run_id=run_id))


@router.get("/interactions/processes/by-id/{run_id}/details", responses=responses(401, 404, 422, 503))
async def get_run_details(doors: Doorway, caller: Reader, run_id: UUID) -> InteractionProcessWithDetails:
    """The whole run with names and counts beside."""
    return mapping.process_with_details(await runs.details(doors.of(caller), caller, run_id=run_id))


@router.get("/interactions/processes/by-id/{run_id}/items", responses=responses(401, 404, 422, 503))
async def get_run_items(
    doors: Doorway, caller: Reader, run_id: UUID, limit: Limit = DEFAULT_LIMIT,
    after: Annotated[int, Query(ge=0, le=2**53, description="The sequence of the last item that is known.")] = 0,
) -> ConversationItemPage:  # fmt: skip
    """A page of the conversation, merged, by sequence."""
    rows = await runs.items(doors.of(caller), caller, run_id=run_id, after=after, limit=limit + 1)
    found, following = cut(rows, limit, lambda stored: str(stored.sequence))
    return ConversationItemPage(items=tuple(item_mapping.conversation_item(stored) for stored in found), next=following)


async def _watchable(doors: Doorway, caller: Reader, run_id: UUID) -> UUID:
    """The run's id, once it is known to be the caller's: a stream that has begun can give no 404 any more."""
    await runs.items(doors.of(caller), caller, run_id=run_id, after=0, limit=1)
    return run_id


_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events `item` (with its sequence as id), `delta`, `status`, `usage`, `end`.",
        "content": {EventStream.media_type: EVENTS},
    }
}


@router.get(
    "/interactions/processes/by-id/{run_id}/events", response_class=EventStream, responses=_EVENTS | responses(401, 404, 422, 503)
)  # fmt: skip
async def watch_run(
    doors: Doorway,
    caller: Reader,
    run_id: Annotated[UUID, Depends(_watchable)],
    last_event_id: Annotated[
        int, Header(alias="Last-Event-ID", ge=0, le=2**53, description="The id of the last event that is known.")
    ] = 0,
) -> EventStream:
    """Watch a run as SSE, from the item after `Last-Event-ID` on, until its end."""
    following = events.follow(
        doors.of(caller), doors.hub, doors.tell, tenant_id=caller.tenant_id, run_id=run_id, after=last_event_id
    )
    return EventStream(following, is_welcome=still_may(doors, caller, Right.READ))


@router.post(
    "/interactions/processes/by-id/{run_id}/messages",
    status_code=201,
    responses=responses(400, 401, 404, 409, 413, 415, 422, 503),
)
async def post_message(
    doors: Doorway, caller: Annotated[Caller, may(Right.TAKE_PART)], run_id: UUID, body: Message
) -> ConversationItem:
    """Say something to a run. It is appended at once, and seen by the participants from their next call on."""
    stored = await runs.post_message(
        doors.of(caller), caller, run_id=run_id, message=body.message, new_id=doors.new_id, tell=doors.tell
    )
    shown: ConversationItem = item_mapping.conversation_item(stored)
    return shown


@router.post("/interactions/processes/by-id/{run_id}/stop", responses=responses(401, 404, 409, 422, 503))
async def stop_run(doors: Doorway, caller: Annotated[Caller, may(Right.STOP)], run_id: UUID) -> InteractionProcess:
    """Ask a run to stop. One that nobody has begun is Stopped at once; any other as soon as its worker hears of it."""
    await runs.request_stop(doors.of(caller), caller, run_id=run_id, tell=doors.tell)
    return mapping.process(await runs.get(doors.of(caller), caller, run_id=run_id))
