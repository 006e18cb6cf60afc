"""API keys as lists show them, and a new one with its text."""

from __future__ import annotations

from typing import Any

from folkmoot.domain.tenancy import ApiKey
from folkmoot.wire import keys as wire
from folkmoot.wire.rights import Right


def key(made: ApiKey) -> wire.ApiKey:
    return wire.ApiKey(**_fields(made))


def created_key(made: ApiKey, text: str) -> wire.CreatedApiKey:
    """With the key's text, which is shown this once."""
    return wire.CreatedApiKey(**_fields(made), key=text)


def _fields(made: ApiKey) -> dict[str, Any]:
    return {
        "id": made.key_id,
        "tenant_id": made.tenant_id,
        "user_created_by_id": made.created_by,
        "date_created": made.created_at,
        "date_updated": made.revoked_at or made.created_at,
        "user_id": made.user_id,
        "name": made.name,
        "prefix": made.prefix,
        # what an older or newer version took for a scope gives no right here
        "scopes": tuple(right for right in Right if right.value in made.scopes) if made.scopes is not None else None,
        "date_expires": made.expires_at,
        "date_last_used": made.last_used_at,
        "date_revoked": made.revoked_at,
    }
