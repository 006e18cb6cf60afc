"""Which tenants have a budget of the day: asked once every few seconds for all of them, so that calls of others cost no statement."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from folkmoot.store import budgets
from folkmoot.store.database import Database

SECONDS = 5.0  # how long a new budget may go unheard


class TenantBudgets:
    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._known: frozenset[UUID] = frozenset()
        self._due_at = 0.0
        self._lock = asyncio.Lock()

    async def has_any(self, database: Database, tenant_id: UUID) -> bool:
        """Whether the tenant had a budget when it was last looked. Raises Unreachable."""
        if time.monotonic() >= self._due_at:
            async with self._lock:
                if time.monotonic() >= self._due_at:
                    async with database.reader() as reader:
                        self._known = await budgets.tenants(reader)
                    self._due_at = time.monotonic() + self._seconds
        return tenant_id in self._known
