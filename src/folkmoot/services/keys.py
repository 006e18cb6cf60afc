"""API keys: who a bearer is, and making, listing and revoking them.

Deliberately absent: roles. A key has every right in its tenant.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from folkmoot.domain.tenancy import ApiKey, Caller
from folkmoot.kernel.errors import BadInput, Fault, NotAllowed, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.store import tenancy
from folkmoot.store.database import Database

_MAX_NAME_CHARACTERS = 200
_HOW = "Send 'Authorization: Bearer KEY' with a key that `folkmoot keys create` makes."


async def authenticate(database: Database, *, key: str | None) -> Caller:
    """Who the bearer of `key` is; raises NotAllowed that says what is wrong with it."""
    if not key:
        raise NotAllowed(f"A key is needed. {_HOW}")
    async with database.reader() as reader:
        found = await tenancy.find_key(reader, text=key)
    if found is None:
        raise NotAllowed(f"This key is not known. {_HOW}")
    if found.is_revoked or found.is_expired:
        raise NotAllowed(f"This key {'was revoked' if found.is_revoked else 'has expired'}. {_HOW}")
    if found.is_use_unnoted and found.caller.key_id is not None:
        async with database.writer() as writer:
            await tenancy.note_use(writer, found.caller.tenant_id, key_id=found.caller.key_id)
    return found.caller


async def owner(database: Database) -> Caller:
    """As whom a command acts within the process: the owner of the tenant `default`."""
    async with database.reader() as reader:
        found = await tenancy.owner(reader)
    if found is None:
        raise NotFound("The database has no tenant yet. Run `folkmoot db upgrade`.")
    return found


async def create(
    database: Database, caller: Caller, *, name: str, expires_at: datetime | None, new_id: NewId,
    random_bytes: tenancy.RandomBytes,
) -> tuple[ApiKey, str]:  # fmt: skip
    """A new key of the caller's and its text, to be shown this once."""
    async with database.writer() as writer:
        faults = []
        if not 1 <= len(name.strip()) <= len(name) <= _MAX_NAME_CHARACTERS:
            faults.append(Fault("/name", f"A key's name has 1 to {_MAX_NAME_CHARACTERS} characters; give it one."))
        if expires_at is not None and expires_at <= await tenancy.now(writer):
            message = "This time has passed; name a later one, or null for a key that does not expire."
            faults.append(Fault("/dateExpires", message))
        if faults:
            raise BadInput(f"The key was not made. {faults[0].message}", tuple(faults))
        return await tenancy.create_key(
            writer, caller, name=name, expires_at=expires_at, key_id=new_id(), random_bytes=random_bytes
        )


async def page(database: Database, caller: Caller, *, after: UUID | None, limit: int) -> list[ApiKey]:
    """The tenant's keys from the oldest on, after the key `after`; at most `limit`."""
    async with database.reader() as reader:
        return await tenancy.keys(reader, caller.tenant_id, after=after, limit=limit)


async def revoke(database: Database, caller: Caller, *, key_id: UUID) -> ApiKey:
    """Revoke a key for good; again is the same. Raises NotFound."""
    async with database.writer() as writer:
        key = await tenancy.revoke_key(writer, caller.tenant_id, key_id=key_id)
    if key is None:
        raise NotFound(f"There is no key {key_id}. `folkmoot keys list` shows those there are.")
    return key
