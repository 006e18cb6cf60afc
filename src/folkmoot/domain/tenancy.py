"""Who calls, with which key and which rights, the users of a tenant, and where definitions live.

Deliberately absent: a key's text (only its maker sees it), and which role has which rights (`rights`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.rights import ALL_RIGHTS, Right, Role, refusal
from folkmoot.domain.runs import Claim
from folkmoot.kernel.errors import NotPermitted

DEFAULT_TENANT = "default"
DEFAULT_NAMESPACE = "default"
OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf something is done. `key_id` null: within the process, without a key. `rights`: the role's, narrowed to the key's.

    `role`: the least of the user's own (`own_role`; null: the same) and of those whom the key rests on. `acts_by`: the claim of the
    run that does it for them; null: they do it themselves. `over`: the channel by which it came; null: by a key or a command.
    """

    tenant_id: UUID
    user_id: UUID
    user_name: str
    key_id: UUID | None = None
    role: Role = Role.OWNER
    rights: frozenset[Right] = ALL_RIGHTS
    own_role: Role | None = None
    acts_by: Claim | None = None
    over: str | None = None

    def require(self, right: Right) -> None:
        """Raises NotPermitted, which says which right is missing and who can give it."""
        if right not in self.rights:
            raise NotPermitted(refusal(self.role, right, self.own_role))


@dataclass(frozen=True, slots=True)
class User:
    """Somebody, or some program, of a tenant. A removed one stays for what they did."""

    tenant_id: UUID
    user_id: UUID
    name: str
    role: Role
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    removed_at: datetime | None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as lists show it. `prefix`: its first characters, to tell keys apart. `scopes` null: all that its user may.
    Where `created_by` is another than its user, it may no more than they."""

    tenant_id: UUID
    key_id: UUID
    user_id: UUID
    name: str
    prefix: str
    created_by: UUID
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    scopes: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A folder of definitions, for a team or a product."""

    tenant_id: UUID
    namespace_id: UUID
    name: str
    created_at: datetime
