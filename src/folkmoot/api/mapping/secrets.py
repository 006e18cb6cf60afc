"""Secrets as the wire shows them: without their values."""

from __future__ import annotations

from folkmoot.domain.secrets import Secret
from folkmoot.wire import secrets as wire


def secret(found: Secret) -> wire.Secret:
    return wire.Secret(
        id=found.secret_id,
        tenant_id=found.tenant_id,
        user_created_by_id=found.created_by,
        date_created=found.created_at,
        date_updated=found.updated_at,
        namespace_name=found.namespace,
        name=found.name,
    )
