"""Roles, the rights they have, and how a key's scopes narrow them: the one table of who may do what.

Every role has the rights of the one below it. Deliberately absent: routes, each of which names its right itself (`api/doors.py`),
and rights on single things: a right holds in the whole tenant.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum


class Right(StrEnum):
    """What a caller may do. As a scope of a key each goes by the same word."""

    READ = "read"
    MANAGE_OWN_KEYS = "manage_own_keys"
    TAKE_PART = "take_part"
    APPROVE = "approve"
    START = "start"
    STOP = "stop"
    OPERATE = "operate"
    PUBLISH = "publish"
    MANAGE_CONNECTORS = "manage_connectors"
    MANAGE_SECRETS = "manage_secrets"
    MANAGE_KEYS = "manage_keys"
    MANAGE_USERS = "manage_users"
    MANAGE_WEBHOOKS = "manage_webhooks"
    MANAGE_BUDGETS = "manage_budgets"
    READ_AUDIT = "read_audit"
    MANAGE_OWNERS = "manage_owners"


class Role(StrEnum):
    """What a user is in a tenant, from the least to the most."""

    VIEWER = "viewer"
    APPROVER = "approver"
    OPERATOR = "operator"
    DEVELOPER = "developer"
    ADMIN = "admin"
    OWNER = "owner"


MEANINGS: dict[Right, str] = {
    Right.READ: "read definitions, runs, usage and users",
    Right.MANAGE_OWN_KEYS: "make and revoke keys of one's own",
    Right.TAKE_PART: "speak, vote, answer and pass in runs",
    Right.APPROVE: "decide approvals",
    Right.START: "start runs",
    Right.STOP: "stop runs",
    Right.OPERATE: "look after lanes and workers",
    Right.PUBLISH: "publish, disable and delete definitions",
    Right.MANAGE_CONNECTORS: "manage connectors",
    Right.MANAGE_SECRETS: "manage secrets, keys of models and credential stacks",
    Right.MANAGE_KEYS: "manage other people's keys",
    Right.MANAGE_USERS: "add and remove users, change their roles, set their addresses, and manage channels",
    Right.MANAGE_WEBHOOKS: "manage webhooks",
    Right.MANAGE_BUDGETS: "set how much may be used in a day",
    Right.READ_AUDIT: "read the audit log",
    Right.MANAGE_OWNERS: "add and remove owners",
}

_ADDED: dict[Role, tuple[Right, ...]] = {
    Role.VIEWER: (Right.READ, Right.MANAGE_OWN_KEYS),
    Role.APPROVER: (Right.TAKE_PART, Right.APPROVE),
    Role.OPERATOR: (Right.START, Right.STOP, Right.OPERATE),
    Role.DEVELOPER: (Right.PUBLISH, Right.MANAGE_CONNECTORS, Right.MANAGE_SECRETS),
    Role.ADMIN: (Right.MANAGE_KEYS, Right.MANAGE_USERS, Right.MANAGE_WEBHOOKS, Right.MANAGE_BUDGETS, Right.READ_AUDIT),
    Role.OWNER: (Right.MANAGE_OWNERS,),
}


def _table() -> dict[Role, frozenset[Right]]:
    table: dict[Role, frozenset[Right]] = {}
    have: frozenset[Right] = frozenset()
    for role in Role:
        have |= frozenset(_ADDED[role])
        table[role] = have
    return table


RIGHTS: dict[Role, frozenset[Right]] = _table()
ALL_RIGHTS = RIGHTS[Role.OWNER]


def rights_of(role: Role, scopes: Collection[str] | None) -> frozenset[Right]:
    """What a key may: what its user's role has, narrowed to its scopes. Null scopes narrow nothing."""
    rights = RIGHTS[role]
    return rights if scopes is None else frozenset(right for right in rights if right.value in scopes)


def is_above(role: Role, other: Role) -> bool:
    """Whether `role` has more than `other`."""
    return RIGHTS[role] > RIGHTS[other]


def least_role(right: Right) -> Role:
    """The first role that has the right."""
    return next(role for role in Role if right in RIGHTS[role])


def refusal(role: Role, right: Right, own_role: Role | None = None) -> str:
    """Which right is missing and who can give it, to a caller of this role. `own_role`: the user's, where the key has less."""
    if own_role is not None and right in RIGHTS[own_role] - RIGHTS[role]:
        return (
            f"This key was made by somebody who is {role} now and may no more than they: it lacks the right '{right}' "
            f"({MEANINGS[right]}), which your role {own_role} has. Let somebody who has the right make you a key."
        )
    if right in RIGHTS[role]:
        return (
            f"This key is narrowed and lacks the scope '{right}' ({MEANINGS[right]}), which your role {role} has. "
            "Use a key that has it; whoever has an unnarrowed key of yours, or may manage keys, can make one."
        )
    wanted = least_role(right)
    giver = "An owner" if wanted is Role.OWNER else "An owner or admin"
    return f"Your role {role} lacks the right '{right}' ({MEANINGS[right]}). {giver} of the tenant can give you the role {wanted}."
