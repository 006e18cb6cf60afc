"""Who calls, with which key, and where definitions live.

Deliberately absent: a key's text (only its maker sees it), and rights: until roles come, a key has every right in its tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

DEFAULT_TENANT = "default"
DEFAULT_NAMESPACE = "default"
OWNER = "owner"


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf something is done. `key_id` null: within the process, without a key."""

    tenant_id: UUID
    user_id: UUID
    user_name: str
    key_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key as lists show it. `prefix`: its first characters, to tell keys apart."""

    tenant_id: UUID
    key_id: UUID
    user_id: UUID
    name: str
    prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class Namespace:
    """A folder of definitions, for a team or a product."""

    tenant_id: UUID
    namespace_id: UUID
    name: str
    created_at: datetime
