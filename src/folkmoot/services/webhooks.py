"""Webhooks: made, listed, deleted, given a new secret, and looked after by the messages they got.

A secret leaves `create` and `rotate` once and is kept sealed. Deliberately absent: sending (`runtime.outbox`).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from uuid import UUID

from folkmoot.domain.tenancy import Caller
from folkmoot.domain.webhooks import MessageCursor, Webhook, WebhookKind, WebhookMessage, faults_of_webhook
from folkmoot.kernel.errors import BadInput, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.store import audit, webhooks
from folkmoot.store.database import Database, Writer
from folkmoot.vault.sealing import Place, Vault
from folkmoot.vault.texts import SecretText

RandomBytes = Callable[[int], bytes]

OVERLAP_SECONDS = 86_400.0
_SECRET_BYTES = 32
_MARK = "whsec_"
_BATCH = 100


def place_of(tenant_id: UUID, webhook_id: UUID) -> Place:
    """What an endpoint's secrets are sealed for."""
    return Place(tenant_id, "webhook", webhook_id)


async def create(
    database: Database, vault: Vault, caller: Caller, *, url: str, kinds: tuple[WebhookKind, ...], new_id: NewId, random_bytes: RandomBytes
) -> tuple[Webhook, SecretText]:  # fmt: skip
    """A new endpoint and its secret, which can never be had again. Raises BadInput, SecretFault without a key."""
    faults = faults_of_webhook(url, kinds)
    if faults:
        raise BadInput(f"The webhook was not made. {faults[0].message}", faults)
    webhook_id, secret = new_id(), _new_secret(random_bytes)
    sealed = vault.seal(secret, place_of(caller.tenant_id, webhook_id))
    async with database.writer() as writer:
        made = await webhooks.insert(
            writer, caller.tenant_id, webhook_id=webhook_id, url=url, kinds=tuple(dict.fromkeys(kinds)), sealed_secret=sealed,
            created_by=caller.user_id,
        )  # fmt: skip
        await _note(writer, caller, "webhook.created", made)
    return made, secret


async def page(database: Database, caller: Caller, *, after: UUID | None, limit: int) -> list[Webhook]:
    async with database.reader() as reader:
        return await webhooks.page(reader, caller.tenant_id, after=after, limit=limit)


async def get(database: Database, caller: Caller, *, webhook_id: UUID) -> Webhook:
    """Raises NotFound."""
    async with database.reader() as reader:
        return _there(await webhooks.find(reader, caller.tenant_id, webhook_id=webhook_id), webhook_id)


async def delete(database: Database, caller: Caller, *, webhook_id: UUID) -> None:
    """It is told nothing any more, not even what waits for it. Raises NotFound."""
    async with database.writer() as writer:
        deleted = _there(await webhooks.delete(writer, caller.tenant_id, webhook_id=webhook_id), webhook_id)
        await _note(writer, caller, "webhook.deleted", deleted)


async def rotate(
    database: Database, vault: Vault, caller: Caller, *, webhook_id: UUID, random_bytes: RandomBytes
) -> tuple[Webhook, SecretText]:
    """A new secret; for a day the one until now signs beside it. Raises NotFound."""
    secret = _new_secret(random_bytes)
    sealed = vault.seal(secret, place_of(caller.tenant_id, webhook_id))
    async with database.writer() as writer:
        changed = _there(
            await webhooks.rotate(
                writer, caller.tenant_id, webhook_id=webhook_id, sealed_secret=sealed, overlap_seconds=OVERLAP_SECONDS
            ),
            webhook_id,
        )
        await _note(writer, caller, "webhook.rotated", changed)
    return changed, secret


async def messages(
    database: Database, caller: Caller, *, webhook_id: UUID, after: MessageCursor | None, limit: int
) -> list[WebhookMessage]:
    """What the endpoint was told or is to be told, the newest first. Raises NotFound."""
    async with database.reader() as reader:
        _there(await webhooks.find(reader, caller.tenant_id, webhook_id=webhook_id), webhook_id)
        return await webhooks.messages(reader, caller.tenant_id, webhook_id=webhook_id, after=after, limit=limit)


async def reseal(database: Database, vault: Vault) -> int:
    """Seal every endpoint's secrets, of all tenants, under the key that seals now; how many there were under others."""
    count = 0
    key_id = bytes.fromhex(vault.sealing_key_id)
    while True:
        async with database.reader() as reader:
            batch = await webhooks.sealed_by_others(reader, key_id=key_id, limit=_BATCH)
        if not batch:
            return count
        for found in batch:
            place = place_of(found.tenant_id, found.webhook_id)
            before = found.previous_secret
            sealed = vault.seal(vault.open(found.sealed_secret, place), place)
            previous = vault.seal(vault.open(before, place), place) if before is not None else None
            async with database.writer() as writer:
                await webhooks.reseal(writer, found, sealed_secret=sealed, previous_secret=previous)
            count += 1


def _new_secret(random_bytes: RandomBytes) -> SecretText:
    """In the form that Standard Webhooks gives secrets."""
    return SecretText(_MARK + base64.b64encode(random_bytes(_SECRET_BYTES)).decode("ascii"))


async def _note(writer: Writer, caller: Caller, action: str, webhook: Webhook) -> None:
    # a query is where a receiver's own key may be
    detail = {"url": webhook.url.partition("#")[0].partition("?")[0], "kinds": [kind.value for kind in webhook.kinds]}
    await audit.note(
        writer, caller, action=action, subject_kind="webhook", subject_id=webhook.webhook_id, detail=detail
    )


def _there(found: Webhook | None, webhook_id: UUID) -> Webhook:
    if found is None:
        raise NotFound(f"There is no webhook {webhook_id}. GET /webhooks lists those there are.")
    return found
