"""Secrets: set, listed, deleted, opened where they are sent, and sealed again under another key.

A value goes in and never comes out but by `open_secret`, which is for the code that sends it. It is read anew at each call, so that
a changed or deleted one counts at once. Deliberately absent: a value in any answer, error or entry of the audit log.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.definition_names import faults_of_name
from folkmoot.domain.secrets import SealedSecret, Secret
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import consent_secrets, namespaces, webhooks
from folkmoot.store import audit, secrets, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.vault.sealing import Place, Vault
from folkmoot.vault.texts import SecretText

MOST_BYTES = 65_536
_BATCH = 100
_KIND = "secret"


async def open_secret(database: Database, vault: Vault, tenant_id: UUID, *, secret_id: UUID) -> SecretText:
    """The value as it is now. Raises NotFound once the secret is gone, SecretFault where the key is missing or another one."""
    async with database.reader() as reader:
        found = await secrets.find(reader, tenant_id, secret_id=secret_id)
    if found is None:
        raise _missing(f"with the id {secret_id}")
    return vault.open(found.sealed, _place(found.about))


def open_sealed(vault: Vault, tenant_id: UUID, secret_id: UUID, sealed: bytes) -> SecretText:
    """The value of a secret that was just read. Raises SecretFault."""
    return vault.open(sealed, Place(tenant_id, _KIND, secret_id))


async def put(
    database: Database, vault: Vault, caller: Caller, *, namespace: str, name: str, value: SecretText, new_id: NewId
) -> tuple[Secret, bool]:
    """Create the secret, or replace its value; whether it is new. Raises BadInput that shows nothing of the value."""
    faults = (
        *faults_of_name("/namespace", namespace, what="namespace"),
        *faults_of_name("/name", name, what="secret"),
        *_faults_of_value(value),
    )
    if faults:
        raise BadInput(f"The secret was not saved. {faults[0].message}", faults)
    async with database.writer() as writer:
        place = await tenancy.get_or_create_namespace(writer, caller.tenant_id, name=namespace, new_id=new_id)
        found = await secrets.find(writer, caller.tenant_id, namespace=namespace, name=name)
        is_new = found is None and await _insert(
            writer, vault, caller, secret_id=new_id(), namespace_id=place.namespace_id, name=name, value=value
        )
        if not is_new:
            await _replace(writer, vault, caller, namespace=namespace, name=name, value=value)
        found = await secrets.find(writer, caller.tenant_id, namespace=namespace, name=name)
        assert found is not None
        await _note(writer, caller, "secret.created" if is_new else "secret.replaced", found.about)
        return found.about, is_new


async def _insert(
    writer: Writer, vault: Vault, caller: Caller, *, secret_id: UUID, namespace_id: UUID, name: str, value: SecretText
) -> bool:
    sealed = vault.seal(value, Place(caller.tenant_id, _KIND, secret_id))
    return await secrets.insert(
        writer, caller.tenant_id, secret_id=secret_id, namespace_id=namespace_id, name=name, sealed=sealed,
        sealed_by=vault.sealing_key_id, created_by=caller.user_id,
    )  # fmt: skip


async def _replace(
    writer: Writer, vault: Vault, caller: Caller, *, namespace: str, name: str, value: SecretText
) -> None:
    found = await secrets.find(writer, caller.tenant_id, namespace=namespace, name=name)
    sealed = vault.seal(value, _place(found.about)) if found is not None else b""
    if found is None or not await secrets.replace(
        writer, caller.tenant_id, secret_id=found.about.secret_id, sealed=sealed, sealed_by=vault.sealing_key_id
    ):
        raise _missing(f"'{namespace}/{name}' any more: it was deleted in this very moment")


async def page(database: Database, caller: Caller, *, namespace: str, after: str, limit: int) -> list[Secret]:
    """A namespace's secrets by name, without values; after the name `after`. Raises NotFound."""
    async with database.reader() as reader:
        place = await namespaces.get(reader, caller, name=namespace)
        return await secrets.page(reader, caller.tenant_id, namespace_id=place.namespace_id, after=after, limit=limit)


async def get(
    database: Database, caller: Caller, *, secret_id: UUID | None = None, namespace: str | None = None, name: str | None = None
) -> Secret:  # fmt: skip
    """By id, or by namespace and name. Raises NotFound."""
    async with database.reader() as reader:
        return (await _found(reader, caller, secret_id, namespace, name)).about


async def delete(
    database: Database, caller: Caller, *, secret_id: UUID | None = None, namespace: str | None = None, name: str | None = None
) -> None:  # fmt: skip
    """Gone for good; what used it fails from its next call on. Raises NotFound."""
    async with database.writer() as writer:
        found = await _found(writer, caller, secret_id, namespace, name)
        if await secrets.delete(writer, caller.tenant_id, secret_id=found.about.secret_id):
            await _note(writer, caller, "secret.deleted", found.about)


async def rotate(database: Database, vault: Vault, caller: Caller) -> int:
    """Seal every secret of every tenant, those of webhooks too, and the check value, under the first key: how many were under others.

    Each in a transaction of its own, and only if it is what was read, so that runs and people go on meanwhile. Raises SecretFault
    for one that no key opens; those before it are done, and a second call goes on.
    """
    count, after = 0, (UUID(int=0), UUID(int=0))
    while batch := await _others(database, vault, after):
        for found in batch:
            place = _place(found.about)
            sealed = vault.seal(vault.open(found.sealed, place), place)
            async with database.writer() as writer:
                count += await secrets.reseal(writer, found, sealed=sealed, sealed_by=vault.sealing_key_id)
            after = (found.about.tenant_id, found.about.secret_id)
    count += await webhooks.reseal(database, vault)
    count += await consent_secrets.reseal(database, vault)
    async with database.writer() as writer:
        vault.check(await secrets.ensure_check(writer, make=vault.make_check))
        await secrets.replace_check(writer, sealed=vault.make_check())
        detail = {"count": count, "key": vault.sealing_key_id}
        await audit.note(writer, caller, action="secrets.rotated", subject_kind="vault", detail=detail)
    return count


async def _others(database: Database, vault: Vault, after: tuple[UUID, UUID]) -> list[SealedSecret]:
    async with database.reader() as reader:
        return await secrets.sealed_by_others(reader, key_id=vault.sealing_key_id, after=after, limit=_BATCH)


async def _found(
    reader: Reader, caller: Caller, secret_id: UUID | None, namespace: str | None, name: str | None
) -> SealedSecret:
    found = await secrets.find(reader, caller.tenant_id, secret_id=secret_id, namespace=namespace, name=name)
    if found is None:
        raise _missing(f"with the id {secret_id}" if secret_id is not None else f"'{namespace}/{name}'")
    return found


def _missing(which: str) -> NotFound:
    return NotFound(
        f"There is no secret {which}. `folkmoot secrets list` shows those there are; `folkmoot secrets set` makes one."
    )


def _faults_of_value(value: SecretText) -> tuple[Fault, ...]:
    try:
        size = len(value.reveal().encode())
    except UnicodeEncodeError:
        return (Fault("/value", "The value holds text that is not valid Unicode; remove it."),)
    if not 1 <= size <= MOST_BYTES:
        return (Fault("/value", f"A value has 1 to {MOST_BYTES:,} bytes in UTF-8; this has {size:,}."),)
    return ()


def _place(about: Secret) -> Place:
    return Place(about.tenant_id, _KIND, about.secret_id)


async def _note(writer: Writer, caller: Caller, action: str, about: Secret) -> None:
    detail = {"namespace": about.namespace, "name": about.name}
    await audit.note(writer, caller, action=action, subject_kind=_KIND, subject_id=about.secret_id, detail=detail)
