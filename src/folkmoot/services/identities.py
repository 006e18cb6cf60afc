"""Addresses of users in the apps of channels: set, listed, deleted.

An address decides who may approve: so nobody claims one, and it takes the right to manage users even to set one's own. Deliberately
absent: what a channel makes of an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from folkmoot.domain.channel_checks import problem_of_app
from folkmoot.domain.channels import NO_APPS, AppShape
from folkmoot.domain.identities import Identity, normal_address, problem_of_address
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput, Conflict, Fault, NotFound
from folkmoot.services.users import changeable, missing
from folkmoot.store import audit, identities, users
from folkmoot.store.database import Database, Writer


async def put(
    database: Database, caller: Caller, *, user_id: UUID, app: str, address: str, channel_apps: Mapping[str, AppShape] = NO_APPS
) -> Identity:  # fmt: skip
    """The user's address in an app from now on. Raises BadInput, NotFound, NotPermitted, Conflict where it is somebody else's."""
    caller.require(Right.MANAGE_USERS)
    normal = normal_address(app, address)
    problems = (("/app", problem_of_app(app, channel_apps)), ("/address", problem_of_address(app, normal)))
    faults = tuple(Fault(pointer, problem) for pointer, problem in problems if problem is not None)
    if faults:
        raise BadInput(f"The address was not set. {faults[0].message}", faults)
    async with database.writer() as writer:
        await identities.lock(writer, caller.tenant_id)
        user = await changeable(writer, caller, user_id)
        made = await identities.put(
            writer, caller.tenant_id, user_id=user_id, app=app, address=normal, created_by=caller.user_id
        )
        if made is None:
            return await _kept(writer, caller, user, app=app, address=normal)
        await _note(writer, caller, "identity.set", user, made)
        return made


async def _kept(writer: Writer, caller: Caller, user: User, *, app: str, address: str) -> Identity:
    """What is there already, if it is this user's."""
    found = await identities.get(writer, caller.tenant_id, app=app, address=address)
    if found is not None and found.user_id == user.user_id:
        return found
    other = await identities.user_of(writer, caller.tenant_id, app=app, address=address)
    whose = f"the address of '{other.name}'" if other is not None else "the address of somebody who is being removed"
    raise Conflict(
        f"'{address}' is {whose} in the app '{app}', and an address is one user's. Take it from them first, or correct it."
    )


async def delete(database: Database, caller: Caller, *, user_id: UUID, app: str) -> None:
    """Messages from the address are nobody's from now on. Raises NotFound, NotPermitted."""
    caller.require(Right.MANAGE_USERS)
    async with database.writer() as writer:
        user = await changeable(writer, caller, user_id)
        deleted = await identities.delete(writer, caller.tenant_id, user_id=user_id, app=app)
        if deleted is None:
            raise NotFound(
                f"'{user.name}' has no address in an app '{app[:80]}'. `folkmoot users identity` shows those there are."
            )
        await _note(writer, caller, "identity.deleted", user, deleted)


async def of_user(database: Database, caller: Caller, *, user_id: UUID) -> list[Identity]:
    """A user's addresses by app. One's own are for everybody to see, others' for who may manage users. Raises NotFound, NotPermitted."""
    async with database.reader() as reader:
        if await users.get(reader, caller.tenant_id, user_id=user_id) is None:
            raise missing(user_id)
        if user_id != caller.user_id:
            caller.require(Right.MANAGE_USERS)
        return await identities.of_user(reader, caller.tenant_id, user_id=user_id)


async def _note(writer: Writer, caller: Caller, action: str, user: User, about: Identity) -> None:
    detail = {"name": user.name, "app": about.app, "address": about.address}
    await audit.note(writer, caller, action=action, subject_kind="user", subject_id=user.user_id, detail=detail)
