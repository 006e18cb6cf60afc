"""Users of the caller's tenant. To act, a user needs a key: `POST /keys` with `userId`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import users as mapping
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.domain.rights import Right, Role
from folkmoot.services import users
from folkmoot.wire.users import User, UserPage, UserRequest, UserRoleRequest

router = APIRouter(tags=["users"], route_class=KeyedRoute)
Manager = Annotated[Caller, may(Right.MANAGE_USERS)]


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
    """Remove a user and revoke their keys, for good. What they did stays; the last owner does, too."""
    await users.remove(doors.of(caller), caller, user_id=user_id)
