"""Webhooks of the tenant: signed messages to programs. A secret is shown once, by the request that makes it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, may
from folkmoot.api.mapping import webhooks as mapping
from folkmoot.api.mapping.cursors import message_cursor, read_message_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.rights import Right
from folkmoot.domain.webhooks import MessageCursor, WebhookKind
from folkmoot.services import webhooks
from folkmoot.wire.webhooks import Webhook, WebhookMessagePage, WebhookPage, WebhookRequest, WebhookWithSecret

router = APIRouter(tags=["webhooks"], route_class=KeyedRoute)
Manager = Annotated[Caller, may(Right.MANAGE_WEBHOOKS)]
_ONE = responses(401, 404, 422, 503)
_EXAMPLE = {"url": "https://example.com/approvals", "kinds": ["approval.requested"]}


@router.post("/webhooks", status_code=201, responses=responses(400, 401, 413, 415, 422, 503))
async def create_webhook(
    doors: Doorway, caller: Manager, body: Annotated[WebhookRequest, shown_as(_EXAMPLE)]
) -> WebhookWithSecret:
    """Make a webhook. The secret that signs its messages is in this answer alone."""
    kinds = tuple(WebhookKind(kind.value) for kind in body.kinds)
    made, secret = await webhooks.create(
        doors.of(caller),
        doors.vault,
        caller,
        url=body.url,
        kinds=kinds,
        new_id=doors.new_id,
        random_bytes=doors.random_bytes,
    )
    return mapping.webhook_with_secret(made, secret)


@router.get("/webhooks", responses=responses(401, 422, 503))
async def list_webhooks(
    doors: Doorway, caller: Manager, limit: Limit = DEFAULT_LIMIT, after: Annotated[UUID | None, Query()] = None
) -> WebhookPage:
    """The tenant's webhooks, from the oldest on."""
    rows = await webhooks.page(doors.of(caller), caller, after=after, limit=limit + 1)
    found, following = cut(rows, limit, lambda row: str(row.webhook_id))
    return WebhookPage(items=tuple(mapping.webhook(row) for row in found), next=following)


@router.get("/webhooks/by-id/{webhook_id}", responses=_ONE)
async def get_webhook(doors: Doorway, caller: Manager, webhook_id: UUID) -> Webhook:
    """The webhook, without its secret."""
    return mapping.webhook(await webhooks.get(doors.of(caller), caller, webhook_id=webhook_id))


@router.delete("/webhooks/by-id/{webhook_id}", status_code=204, responses=_ONE)
async def delete_webhook(doors: Doorway, caller: Manager, webhook_id: UUID) -> None:
    """Delete a webhook with its messages, those that wait for it too."""
    await webhooks.delete(doors.of(caller), caller, webhook_id=webhook_id)


@router.post("/webhooks/by-id/{webhook_id}/rotate", responses=_ONE)
async def rotate_webhook(doors: Doorway, caller: Manager, webhook_id: UUID) -> WebhookWithSecret:
    """Make a new secret. For a day messages are signed with both, so that the receiver can change over."""
    changed, secret = await webhooks.rotate(
        doors.of(caller), doors.vault, caller, webhook_id=webhook_id, random_bytes=doors.random_bytes
    )
    return mapping.webhook_with_secret(changed, secret)


@router.get("/webhooks/by-id/{webhook_id}/messages", responses=_ONE)
async def list_webhook_messages(
    doors: Doorway, caller: Manager, webhook_id: UUID, limit: Limit = DEFAULT_LIMIT,
    after: Annotated[str | None, Query(max_length=200)] = None,
) -> WebhookMessagePage:  # fmt: skip
    """What the webhook was told or is to be told, the newest first, with attempts and errors."""
    rows = await webhooks.messages(
        doors.of(caller), caller, webhook_id=webhook_id, after=read_message_cursor(after), limit=limit + 1
    )
    found, following = cut(rows, limit, lambda row: message_cursor(MessageCursor(row.created_at, row.message_id)))
    return WebhookMessagePage(items=tuple(mapping.message(row) for row in found), next=following)
