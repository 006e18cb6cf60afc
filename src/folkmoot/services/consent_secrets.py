"""The secret of a request for consent, on its way to the owner: sealed for its message from the pause until it is delivered.

Deliberately absent: whether a secret that comes back counts (`consents`); of those there is only a hash.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.store import channel_messages
from folkmoot.store.database import Database
from folkmoot.vault.sealing import Place, Vault
from folkmoot.vault.texts import SecretText

_BATCH = 100


def seal(vault: Vault, tenant_id: UUID, message_id: UUID, secret: str) -> bytes | None:
    """A request's secret for its message; null where there is no key to seal it with: then it can be answered where the channel proves who
    speaks, and on the server's pages."""
    return _sealed(vault, SecretText(secret), tenant_id, message_id) if vault.has_keys else None


def opened(vault: Vault, tenant_id: UUID, message_id: UUID, sealed: bytes) -> str:
    """Raises SecretFault."""
    return _opened(vault, sealed, tenant_id, message_id).reveal()


async def reseal(database: Database, vault: Vault) -> int:
    """Seal the secrets of all messages on their way, of all tenants, under the key that seals now; how many there were under others."""
    count, key_id = 0, bytes.fromhex(vault.sealing_key_id)
    while True:
        async with database.reader() as reader:
            batch = await channel_messages.sealed_by_others(reader, key_id=key_id, limit=_BATCH)
        if not batch:
            return count
        for found in batch:
            secret = _opened(vault, found.sealed_secret, found.tenant_id, found.message_id)
            async with database.writer() as writer:
                sealed = _sealed(vault, secret, found.tenant_id, found.message_id)
                await channel_messages.reseal(writer, found, sealed_secret=sealed)
            count += 1


def _sealed(vault: Vault, secret: SecretText, tenant_id: UUID, message_id: UUID) -> bytes:
    return vault.seal(secret, _place(tenant_id, message_id), is_of_one_use=True)


def _opened(vault: Vault, sealed: bytes, tenant_id: UUID, message_id: UUID) -> SecretText:
    return vault.open(sealed, _place(tenant_id, message_id), is_of_one_use=True)


def _place(tenant_id: UUID, message_id: UUID) -> Place:
    return Place(tenant_id, "channel_message", message_id)
