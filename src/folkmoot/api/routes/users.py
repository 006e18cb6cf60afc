"""Users of the caller's tenant. To act, a user needs a key: `POST /keys` with `userId`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import users as mapping
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.rights import Right, Role
from folkmoot.services import identities, users
from folkmoot.wire.users import (
    User,
    UserIdentities,
    UserIdentity,
    UserIdentityRequest,
    UserPage,
    UserRequest,
    UserRoleRequest,
)

router = APIRouter(tags=["users"], route_class=KeyedRoute)
Manager = Annotated[Caller, may(Right.MANAGE_USERS)]
App = Annotated[str, Path(max_length=200)]


@router.post("/users", status_code=201, responses=responses(400, 401, 409, 413, 415, 422, 503))
async def add_user(
    doors: Doorway, caller: Manager, body: Annotated[UserRequest, shown_as({"name": "Ann", "role": "operator"})]
) -> User:
    """Add a user. Nobody gives a role that holds more than they may themselves."""
    return mapping.user(
        await users.add(doors.of(caller), caller, name=body.name, role=Role(body.role), new_id=doors.new_id)
    )


@router.get("/users", responses=responses(401, 422, 503))
async def list_users(
    doors: Doorway, caller: Reader, limit: Limit = DEFAULT_LIMIT, after: Annotated[UUID | None, Query()] = None
) -> UserPage:
    """The tenant's users from the oldest on, without removed ones."""
    rows = await users.page(doors.of(caller), caller, after=after, limit=limit + 1)
    found, following = cut(rows, limit, lambda user: str(user.user_id))
    return UserPage(items=tuple(mapping.user(user) for user in found), next=following)


@router.get("/users/by-id/{user_id}", responses=responses(401, 404, 422, 503))
async def get_user(doors: Doorway, caller: Reader, user_id: UUID) -> User:
    """A user; a removed one too."""
    return mapping.user(await users.get(doors.of(caller), caller, user_id=user_id))


@router.put("/users/by-id/{user_id}/role", responses=responses(400, 401, 404, 409, 413, 415, 422, 503))
async def set_user_role(
    doors: Doorway, caller: Manager, user_id: UUID, body: Annotated[UserRoleRequest, shown_as({"role": "viewer"})]
) -> User:
    """Give a user another role. It holds from their next request on; the last owner stays one."""
    return mapping.user(await users.set_role(doors.of(caller), caller, user_id=user_id, role=Role(body.role)))


@router.delete("/users/by-id/{user_id}", status_code=204, responses=responses(401, 404, 409, 422, 503))
async def remove_user(doors: Doorway, caller: Manager, user_id: UUID) -> None:
    """Remove a user with their addresses and revoke their keys, for good. What they did stays; the last owner does, too."""
    await users.remove(doors.of(caller), caller, user_id=user_id)


@router.get("/users/by-id/{user_id}/identities", responses=responses(401, 404, 422, 503))
async def list_user_identities(doors: Doorway, caller: Reader, user_id: UUID) -> UserIdentities:
    """A user's addresses in the apps of channels: one's own, or anybody's for who may manage users."""
    found = await identities.of_user(doors.of(caller), caller, user_id=user_id)
    return UserIdentities(items=tuple(mapping.identity(each) for each in found))


@router.put("/users/by-id/{user_id}/identities/{app}", responses=responses(400, 401, 404, 409, 413, 415, 422, 503))
async def set_user_identity(
    doors: Doorway, caller: Manager, user_id: UUID, app: App,
    body: Annotated[UserIdentityRequest, shown_as({"address": "ann@example.com"})],
) -> UserIdentity:  # fmt: skip
    """Set a user's address in an app, in place of another one: who answers from there is that user, and approves what they may."""
    made = await identities.put(
        doors.of(caller), caller, user_id=user_id, app=app, address=body.address, channel_apps=doors.channel_apps
    )
    return mapping.identity(made)


@router.delete("/users/by-id/{user_id}/identities/{app}", status_code=204, responses=responses(401, 404, 422, 503))
async def delete_user_identity(doors: Doorway, caller: Manager, user_id: UUID, app: App) -> None:
    """Take a user's address in an app away: what comes from there is nobody's from now on."""
    await identities.delete(doors.of(caller), caller, user_id=user_id, app=app)
