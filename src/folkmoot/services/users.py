"""Users of a tenant: added, listed, given another role, removed.

Nobody gives a role that holds more than they themselves may, nobody acts on somebody above them, and the last owner stays.
Deliberately absent: signing in; a user acts by a key.
"""

from __future__ import annotations

import unicodedata
from uuid import UUID

from folkmoot.domain.rights import RIGHTS, Right, Role, is_above
from folkmoot.domain.shown_text import HIDDEN_CATEGORIES
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput, Conflict, Fault, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.store import audit, users
from folkmoot.store.database import Database, Writer

_MAX_NAME_CHARACTERS = 200


async def add(database: Database, caller: Caller, *, name: str, role: Role, new_id: NewId) -> User:
    """A new user. Raises BadInput, Conflict where there is one of this name, NotPermitted for a role above the caller's."""
    fault = _fault_of_name(name)
    if fault is not None:
        raise BadInput(f"The user was not added. {fault.message}", (fault,))
    _check_grant(caller, role)
    async with database.writer() as writer:
        made = await users.insert(
            writer, caller.tenant_id, user_id=new_id(), name=name, role=role, created_by=caller.user_id
        )
        if made is None:
            raise Conflict(f"There is already a user '{name}'. Choose another name, or change that user's role.")
        await _note(writer, caller, "user.added", made, role=role.value)
        return made


async def get(database: Database, caller: Caller, *, user_id: UUID) -> User:
    """Removed ones too. Raises NotFound."""
    async with database.reader() as reader:
        found = await users.get(reader, caller.tenant_id, user_id=user_id)
    if found is None:
        raise missing(user_id)
    return found


async def named(database: Database, caller: Caller, *, name: str) -> User:
    """Of those who are there. Raises NotFound."""
    async with database.reader() as reader:
        found = await users.get_by_name(reader, caller.tenant_id, name=name)
    if found is None:
        raise NotFound(f"There is no user '{name}'. `folkmoot users list` shows those there are.")
    return found


async def page(database: Database, caller: Caller, *, after: UUID | None, limit: int) -> list[User]:
    """Those who are there, from the oldest on, after the user `after`."""
    async with database.reader() as reader:
        return await users.page(reader, caller.tenant_id, after=after, limit=limit)


async def set_role(database: Database, caller: Caller, *, user_id: UUID, role: Role) -> User:
    """Another role, which holds from the user's next request on. Raises NotFound, NotPermitted, Conflict for the last owner."""
    async with database.writer() as writer:
        owners = await users.lock_owners(writer, caller.tenant_id)
        before = await changeable(writer, caller, user_id)
        if before.role is role:
            return before
        _check_grant(caller, role)
        _keep_an_owner(before, owners)
        changed = await users.set_role(writer, caller.tenant_id, user_id=user_id, role=role)
        await _note(writer, caller, "user.role_changed", changed, before=before.role.value, role=role.value)
        return changed


async def remove(database: Database, caller: Caller, *, user_id: UUID) -> User:
    """Remove a user with their addresses, and revoke their keys and those that rest on them, for good. Raises NotFound, NotPermitted, Conflict for the last owner."""
    async with database.writer() as writer:
        owners = await users.lock_owners(writer, caller.tenant_id)
        before = await changeable(writer, caller, user_id)
        _keep_an_owner(before, owners)
        removed = await users.remove(writer, caller.tenant_id, user_id=user_id)
        await _note(writer, caller, "user.removed", removed, role=before.role.value)
        return removed


async def changeable(writer: Writer, caller: Caller, user_id: UUID) -> User:
    """The user, locked, whom the caller may act on. Raises NotFound, NotPermitted for somebody above the caller."""
    found = await users.lock(writer, caller.tenant_id, user_id=user_id)
    if found is None:
        raise missing(user_id)
    if found.role is Role.OWNER:
        caller.require(Right.MANAGE_OWNERS)
    if is_above(found.role, caller.role):
        raise NotPermitted(
            f"'{found.name}' is {found.role}, which is above your role {caller.role}. Ask somebody of that role."
        )
    return found


def _check_grant(caller: Caller, role: Role) -> None:
    """Nobody gives what they have not, and a narrowed key no more than it holds."""
    missing = sorted(RIGHTS[role] - caller.rights)
    if missing:
        raise NotPermitted(
            f"The role {role} holds more than you may give: {', '.join(missing)}. Ask somebody who may do all of that."
        )


def _keep_an_owner(before: User, owners: set[UUID]) -> None:
    if before.role is Role.OWNER and owners <= {before.user_id}:
        raise Conflict(f"'{before.name}' is the tenant's last owner. Make somebody else an owner first.")


def _fault_of_name(name: str) -> Fault | None:
    if not 1 <= len(name.strip()) <= len(name) <= _MAX_NAME_CHARACTERS or name != name.strip():
        message = f"A user's name has 1 to {_MAX_NAME_CHARACTERS} characters and no blank at its ends; give it one."
        return Fault("/name", message)
    if any(unicodedata.category(character) in HIDDEN_CATEGORIES for character in name):
        return Fault("/name", "A user's name holds no invisible or control characters; leave them out.")
    return None


def missing(user_id: UUID) -> NotFound:
    return NotFound(f"There is no user {user_id}. `folkmoot users list` shows those there are.")


async def _note(writer: Writer, caller: Caller, action: str, about: User, **detail: str) -> None:
    await audit.note(
        writer, caller, action=action, subject_kind="user", subject_id=about.user_id, detail={"name": about.name, **detail}
    )  # fmt: skip
