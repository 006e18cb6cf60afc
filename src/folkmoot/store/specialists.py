"""Which agents are whose specialists, of a whole tenant: what is looked at before an agent that has some is saved.

Whoever saves one holds the tenant's lock from looking to the end of the transaction. Deliberately absent: agents themselves, which
are definitions, and what a circle is (`services.specialist_links`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.references import VersionLink
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("specialists")


async def lock(writer: Writer, tenant_id: UUID) -> None:
    """Until the transaction ends."""
    await _sql.lock(writer.connection, tenant_id=str(tenant_id))


async def links(reader: Reader, tenant_id: UUID) -> list[VersionLink]:
    """Of enabled versions; those of one agent by number."""
    return [
        VersionLink(
            row["definition_id"], f"{row['namespace']}/{row['name']}", row["number"], row["linked_id"], row["linked_version"]
        )
        async for row in _sql.links(reader.connection, tenant_id=tenant_id)
    ]  # fmt: skip
