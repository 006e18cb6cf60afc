"""A channel's definition made ready for its app: the newest enabled version, its secrets opened for this one use.

Deliberately absent: the apps (`channels`), and messages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.channels import ChannelSetup, ChannelVersion
from folkmoot.domain.definitions import DefinitionKind, Reference, StoredVersion
from folkmoot.kernel.errors import NotFound
from folkmoot.services import references
from folkmoot.services.secrets import open_secret
from folkmoot.store import channels
from folkmoot.store.database import Database
from folkmoot.vault.sealing import Vault


@dataclass(frozen=True, slots=True)
class ReadyChannel:
    """`app`: by whose app it goes."""

    tenant_id: UUID
    channel_id: UUID
    app: str
    setup: ChannelSetup


async def tenant_of(database: Database, channel_id: UUID) -> UUID | None:
    """Whose channel it is, for what comes in from outside and proves itself by the channel's secrets alone; null: nobody's."""
    async with database.reader() as reader:
        return await channels.tenant_of(reader, channel_id=channel_id)


async def ready(
    database: Database, vault: Vault, tenant_id: UUID, *, channel_id: UUID, now: datetime | None = None
) -> ReadyChannel:
    """Raises NotFound where it is deleted or disabled, or a secret is gone, and SecretFault."""
    async with database.reader() as reader:
        stored = await references.enabled(
            reader, tenant_id, kind=DefinitionKind.CHANNEL, reference=Reference(definition_id=channel_id)
        )
        moment = now or await channels.moment(reader)
    if not isinstance(stored, StoredVersion):
        raise NotFound(stored)
    assert isinstance(stored.body, ChannelVersion)
    opened: dict[str, str] = {}
    for name, link in stored.body.secrets.items():
        assert link.definition_id is not None
        opened[name] = (await open_secret(database, vault, tenant_id, secret_id=link.definition_id)).reveal()
    return ReadyChannel(tenant_id, channel_id, stored.body.app, ChannelSetup(stored.body.settings, opened, moment))
