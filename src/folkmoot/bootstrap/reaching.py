"""How this process reaches connectors' servers: behind the guard, with secrets that are opened for the look alone."""

from __future__ import annotations

from uuid import UUID

from folkmoot.bootstrap.installation import Installation
from folkmoot.bootstrap.outside import Outside
from folkmoot.services.reach import Reach
from folkmoot.services.secrets import open_secret
from folkmoot.store.walls import walled
from folkmoot.vault.texts import SecretText


def reach_of(installation: Installation, outside: Outside) -> Reach:
    """The reach of an installation; good as long as `outside` is open."""

    async def opened(tenant_id: UUID, secret_id: UUID) -> SecretText:
        return await open_secret(
            walled(installation.database, tenant_id), installation.vault, tenant_id, secret_id=secret_id
        )

    return Reach(outside, outside.fetch, outside.read, opened, installation.settings.allow_stdio)
