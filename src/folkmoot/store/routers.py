"""Which routers may choose which, of a whole tenant: what is looked at before one is saved.

Whoever saves one holds the tenant's lock from looking to the end of the transaction. Deliberately absent: routers themselves, which
are definitions, and what a circle is (`domain.router_chains`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.references import VersionLink
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("routers")


async def lock(writer: Writer, tenant_id: UUID) -> None:
    """Until the transaction ends."""
    await _sql.lock(writer.connection, tenant_id=str(tenant_id))


async def links(reader: Reader, tenant_id: UUID) -> list[VersionLink]:
    """Of enabled versions; those of one router by number."""
    return [
        VersionLink(
            row["definition_id"], f"{row['namespace']}/{row['name']}", row["number"], row["chosen_id"], row["chosen_version"]
        )
        async for row in _sql.links(reader.connection, tenant_id=tenant_id)
    ]  # fmt: skip
