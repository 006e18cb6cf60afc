"""API keys: one's own, and the tenant's for who may manage keys. A key's text is shown once, by the request that makes it."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, may
from folkmoot.api.mapping import keys as mapping
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.rights import Right
from folkmoot.services import keys
from folkmoot.wire.keys import ApiKey, ApiKeyPage, ApiKeyRequest, CreatedApiKey

router = APIRouter(tags=["keys"], route_class=KeyedRoute)
Holder = Annotated[Caller, may(Right.MANAGE_OWN_KEYS)]


@router.post("/keys", status_code=201, responses=responses(400, 401, 404, 413, 415, 422, 503))
async def create_key(
    doors: Doorway,
    caller: Holder,
    body: Annotated[ApiKeyRequest, shown_as({"name": "ci", "scopes": ["read", "start"]})],
) -> CreatedApiKey:
    """Make a key, of one's own or of another user's. Its text is in this answer alone; it may no more than the key that makes it."""
    key, text = await keys.create(
        doors.of(caller), caller, name=body.name, expires_at=body.date_expires, new_id=doors.new_id, random_bytes=doors.random_bytes,
        user_id=body.user_id, scopes=body.scopes,
    )  # fmt: skip
    return mapping.created_key(key, text)


@router.get("/keys", responses=responses(401, 422, 503))
async def list_keys(
    doors: Doorway, caller: Holder, limit: Limit = DEFAULT_LIMIT, after: Annotated[UUID | None, Query()] = None
) -> ApiKeyPage:
    """Keys without their texts, from the oldest on: the tenant's for who may manage keys, else one's own."""
    found, following = cut(
        await keys.page(doors.of(caller), caller, after=after, limit=limit + 1), limit, lambda key: str(key.key_id)
    )
    return ApiKeyPage(items=tuple(mapping.key(key) for key in found), next=following)


@router.post("/keys/by-id/{key_id}/revoke", responses=responses(401, 404, 422, 503))
async def revoke_key(doors: Doorway, caller: Holder, key_id: UUID) -> ApiKey:
    """Revoke a key for good."""
    return mapping.key(await keys.revoke(doors.of(caller), caller, key_id=key_id))
