"""The tenant's keys of models: made, replaced, deleted. Every run without a stack may use them, from its next call on.

A key is a secret, by its id: of one that is replaced the new value counts at once. Deliberately absent: values.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.credential_checks import faults_of_key
from folkmoot.domain.credentials import CredentialEntry, ModelKey, StackEntry
from folkmoot.domain.definition_names import faults_of_name
from folkmoot.domain.tenancy import DEFAULT_NAMESPACE, Caller
from folkmoot.kernel.errors import BadInput, Conflict, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import secret_links
from folkmoot.store import audit, model_keys, tenancy
from folkmoot.store.database import Database, Reader, Writer


async def create(database: Database, caller: Caller, *, key: StackEntry, new_id: NewId) -> ModelKey:
    """Raises BadInput with every fault, Conflict where there is one of this name."""
    async with database.writer() as writer:
        entry = await _settled(writer, caller, key, new_id())
        if not await model_keys.insert(writer, caller.tenant_id, entry=entry, created_by=caller.user_id):
            raise _taken(entry.name)
        made = await _found(writer, caller, model_key_id=entry.entry_id)
        await _note(writer, caller, "model_key.created", made)
        return made


async def change(database: Database, caller: Caller, *, model_key_id: UUID, key: StackEntry) -> ModelKey:
    """Everything of it is replaced; calls that begin from now on take it as it is then. Raises NotFound, BadInput, Conflict."""
    async with database.writer() as writer:
        await _found(writer, caller, model_key_id=model_key_id)
        entry = await _settled(writer, caller, key, model_key_id)
        if not await model_keys.replace(writer, caller.tenant_id, entry=entry):
            raise _taken(entry.name)
        changed = await _found(writer, caller, model_key_id=model_key_id)
        await _note(writer, caller, "model_key.replaced", changed)
        return changed


async def page(database: Database, caller: Caller, *, after: str, limit: int) -> list[ModelKey]:
    """By name; those after the name `after`."""
    async with database.reader() as reader:
        return await model_keys.page(reader, caller.tenant_id, after=after, limit=limit)


async def get(database: Database, caller: Caller, *, model_key_id: UUID) -> ModelKey:
    """Raises NotFound."""
    async with database.reader() as reader:
        return await _found(reader, caller, model_key_id=model_key_id)


async def delete(
    database: Database, caller: Caller, *, model_key_id: UUID | None = None, name: str | None = None
) -> None:
    """By id or by name; no call takes it any more. The secret stays. Raises NotFound."""
    async with database.writer() as writer:
        found = await _found(writer, caller, model_key_id=model_key_id, name=name)
        if await model_keys.delete(writer, caller.tenant_id, model_key_id=found.entry.entry_id):
            await _note(writer, caller, "model_key.deleted", found)


async def set_platform_fallback(database: Database, caller: Caller, *, is_allowed: bool) -> None:
    """Whether the tenant's runs may use the operator's keys, where they ask for it: for the operator to say, who pays for them."""
    async with database.writer() as writer:
        await tenancy.set_platform_fallback(writer, caller.tenant_id, is_allowed=is_allowed)
        detail = {"isAllowed": is_allowed}
        await audit.note(
            writer, caller, action="tenant.platform_fallback_set", subject_kind="tenant", subject_id=caller.tenant_id, detail=detail
        )  # fmt: skip


async def platform_fallback(database: Database, caller: Caller) -> bool:
    async with database.reader() as reader:
        return await tenancy.allows_platform_fallback(reader, caller.tenant_id)


async def _settled(reader: Reader, caller: Caller, key: StackEntry, id_: UUID) -> CredentialEntry:
    """Raises BadInput with everything that is wrong."""
    faults = [
        *faults_of_name("/name", key.name, what="model key"),
        *faults_of_key("", key, secret_at="credential"),
    ]
    secret_id = None
    if key.credential is not None:
        found = await secret_links.find(reader, caller.tenant_id, secret=key.credential, namespace=DEFAULT_NAMESPACE)
        if isinstance(found, str):
            faults.append(Fault("/credential", found))
        else:
            secret_id = found.definition_id
    if faults:
        raise BadInput(f"The model key was not saved. {faults[0].message}", tuple(faults))
    return key.settled(id_, secret_id=secret_id)


async def _found(
    reader: Reader, caller: Caller, *, model_key_id: UUID | None = None, name: str | None = None
) -> ModelKey:
    found = await model_keys.find(reader, caller.tenant_id, model_key_id=model_key_id, name=name or "")
    if found is None:
        which = f"with the id {model_key_id}" if model_key_id is not None else f"'{name}'"
        raise NotFound(f"There is no model key {which}. `folkmoot model-keys list` shows those there are.")
    return found


def _taken(name: str) -> Conflict:
    return Conflict(f"There is already a model key '{name}'. Replace it, or choose another name.")


async def _note(writer: Writer, caller: Caller, action: str, key: ModelKey) -> None:
    detail = {
        "name": key.name,
        "provider": key.entry.provider,
        "baseUrl": key.entry.base_url,
        "secret": key.secret_name,
    }
    await audit.note(
        writer, caller, action=action, subject_kind="model key", subject_id=key.entry.entry_id, detail=detail
    )
