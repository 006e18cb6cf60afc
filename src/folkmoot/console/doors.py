"""What every page may use: the installation's parts, as the composition root hands them in.

Deliberately absent: settings, and the API's own doors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services.closure import Workbench
from folkmoot.store.database import Database
from folkmoot.store.walls import walled


@dataclass(frozen=True, slots=True)
class ConsoleDoors:
    """`database` is of no tenant: for sessions and correlation tokens, which are looked for before the tenant is known; all else takes `of`.

    `public_url`: the address under which people reach these pages; null: the one that they ask for.
    """

    database: Database
    tell: Callable[[dict[str, Any]], None]
    new_id: NewId
    new_token: Callable[[], str]
    random_bytes: Callable[[int], bytes]
    bench: Workbench
    public_url: str | None = None

    def of(self, who: Caller) -> Database:
        """The database behind the wall of the caller's tenant."""
        return walled(self.database, who.tenant_id)
