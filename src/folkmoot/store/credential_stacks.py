"""Which stack runs take that name none: of a namespace, and of the tenant. The stacks themselves are definitions.

Deliberately absent: whether the stack can be used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from folkmoot.store.codecs import safe
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("credential_stacks")
_NO_NAMESPACE = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Defaults:
    """Ids of definitions; null: none was set."""

    of_namespace: UUID | None
    of_tenant: UUID | None


async def defaults(reader: Reader, tenant_id: UUID, *, namespace: str) -> Defaults:
    row = await _sql.defaults(reader.connection, tenant_id=tenant_id, namespace=safe(namespace))
    return Defaults(row["of_namespace"], row["of_tenant"])


async def set_default(
    writer: Writer, tenant_id: UUID, *, namespace_id: UUID | None, definition_id: UUID | None
) -> None:
    """`namespace_id` null: the tenant's. `definition_id` null: none from now on."""
    place = {"tenant_id": tenant_id, "namespace_id": namespace_id or _NO_NAMESPACE}
    if definition_id is None:
        await _sql.clear_default(writer.connection, **place)
    else:
        await _sql.set_default(writer.connection, **place, definition_id=definition_id)
