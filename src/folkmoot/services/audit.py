"""The audit log for those who ask.

Deliberately absent: writing to it, which every use case does in its own transaction (`store.audit.note`).
"""

from __future__ import annotations

from folkmoot.domain.audit import AuditCursor, AuditEntry, AuditFilter
from folkmoot.domain.tenancy import Caller
from folkmoot.store import audit
from folkmoot.store.database import Database


async def page(
    database: Database, caller: Caller, *, wanted: AuditFilter, after: AuditCursor | None, limit: int
) -> list[AuditEntry]:
    """Entries of the caller's tenant under a filter, the newest first, after the cursor."""
    async with database.reader() as reader:
        return await audit.page(reader, caller.tenant_id, wanted=wanted, after=after, limit=limit)
