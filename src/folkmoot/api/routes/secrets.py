"""Secrets of a namespace. A value goes in, and no route gives one back."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Response

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, may
from folkmoot.api.mapping import secrets as mapping
from folkmoot.api.mapping.cursors import name_cursor, read_name_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.addresses import After
from folkmoot.domain.rights import Right
from folkmoot.services import secrets
from folkmoot.vault.texts import SecretText
from folkmoot.wire.secrets import Secret, SecretPage, SecretRequest

router = APIRouter(tags=["secrets"], route_class=KeyedRoute)
Keeper = Annotated[Caller, may(Right.MANAGE_SECRETS)]
_READ = responses(401, 404, 422, 503)
_COLLECTION = "/namespaces/{namespace_name}/secrets"
_BY_NAME = f"{_COLLECTION}/by-name/{{name}}"
_MADE_NEW: dict[int | str, dict[str, Any]] = {201: {"model": Secret, "description": "It is new."}}


@router.put(_BY_NAME, responses=_MADE_NEW | responses(400, 401, 404, 413, 415, 422, 503))
async def put_secret(
    doors: Doorway,
    caller: Keeper,
    namespace_name: str,
    name: str,
    body: Annotated[SecretRequest, shown_as({"value": "the value"})],
    response: Response,
) -> Secret:
    """Create the secret, or replace its value. Runs under way use the new value from their next call on."""
    found, is_new = await secrets.put(
        doors.of(caller), doors.vault, caller, namespace=namespace_name, name=name, value=SecretText(body.value), new_id=doors.new_id
    )  # fmt: skip
    response.status_code = 201 if is_new else 200
    return mapping.secret(found)


@router.get(_COLLECTION, responses=_READ)
async def list_secrets(
    doors: Doorway,
    caller: Keeper,
    namespace_name: str,
    limit: Limit = DEFAULT_LIMIT,
    after: After = None,
) -> SecretPage:
    """The secrets of a namespace by name, without their values."""
    rows = await secrets.page(
        doors.of(caller), caller, namespace=namespace_name, after=read_name_cursor(after), limit=limit + 1
    )
    found, following = cut(rows, limit, lambda secret: name_cursor(secret.name))
    return SecretPage(items=tuple(mapping.secret(secret) for secret in found), next=following)


@router.get(_BY_NAME, responses=_READ)
async def get_secret_by_name(doors: Doorway, caller: Keeper, namespace_name: str, name: str) -> Secret:
    """What is known of a secret: not its value."""
    return mapping.secret(await secrets.get(doors.of(caller), caller, namespace=namespace_name, name=name))


@router.delete(_BY_NAME, status_code=204, responses=_READ)
async def delete_secret_by_name(doors: Doorway, caller: Keeper, namespace_name: str, name: str) -> None:
    """Delete a secret for good. What uses it fails from its next call on."""
    await secrets.delete(doors.of(caller), caller, namespace=namespace_name, name=name)


@router.get("/secrets/by-id/{secret_id}", responses=_READ)
async def get_secret_by_id(doors: Doorway, caller: Keeper, secret_id: UUID) -> Secret:
    """The same by id."""
    return mapping.secret(await secrets.get(doors.of(caller), caller, secret_id=secret_id))


@router.delete("/secrets/by-id/{secret_id}", status_code=204, responses=_READ)
async def delete_secret_by_id(doors: Doorway, caller: Keeper, secret_id: UUID) -> None:
    """The same by id."""
    await secrets.delete(doors.of(caller), caller, secret_id=secret_id)
