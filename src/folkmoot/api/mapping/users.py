"""Users as the wire shows them."""

from __future__ import annotations

from folkmoot.domain import rights as domain
from folkmoot.domain.identities import Identity
from folkmoot.domain.tenancy import User
from folkmoot.wire import users as wire
from folkmoot.wire.rights import Right, Role


def user(found: User) -> wire.User:
    """With the rights of the role, in the order of the table; a removed one has none."""
    rights = domain.RIGHTS[found.role] if found.removed_at is None else frozenset()
    return wire.User(
        id=found.user_id,
        tenant_id=found.tenant_id,
        user_created_by_id=found.created_by,
        date_created=found.created_at,
        date_updated=found.updated_at,
        name=found.name,
        role=Role(found.role),
        rights=tuple(Right(right) for right in domain.Right if right in rights),
        date_removed=found.removed_at,
    )


def identity(found: Identity) -> wire.UserIdentity:
    return wire.UserIdentity(
        user_id=found.user_id,
        app=found.app,
        address=found.address,
        user_created_by_id=found.created_by,
        date_created=found.created_at,
    )
