"""API keys: who a bearer is and what they may, and making, listing and revoking keys.

A key may what its user's role has, narrowed to its scopes, and makes none that may more or lasts longer than itself. One that
somebody made for another rests on its maker: it may no more than they may now, and ends with them; so do those made with it.
Deliberately absent: the table of rights (`domain.rights`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.rights import Right, is_above, rights_of
from folkmoot.domain.tenancy import ApiKey, Caller, User
from folkmoot.kernel.errors import BadInput, Fault, NotAllowed, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.store import audit, tenancy, users
from folkmoot.store.database import Database, Writer
from folkmoot.store.tenancy import FoundKey

_MAX_NAME_CHARACTERS = 200
_HOW = "Send 'Authorization: Bearer KEY' with a key that `folkmoot keys create` makes."


async def authenticate(database: Database, *, key: str | None) -> Caller:
    """Who the bearer of `key` is; raises NotAllowed that says what is wrong with it."""
    if not key:
        raise NotAllowed(f"A key is needed. {_HOW}")
    async with database.reader() as reader:
        found = await tenancy.find_key(reader, text=key)
    return await admitted(database, found)


async def admitted(database: Database, found: FoundKey | None) -> Caller:
    """Whoever bears the key that was found, if it still counts; its use is noted. Raises NotAllowed."""
    if found is None:
        raise NotAllowed(f"This key is not known. {_HOW}")
    if found.is_removed:
        raise NotAllowed(f"The user of this key was removed. {_HOW}")
    if found.is_maker_removed:
        raise NotAllowed(
            f"This key was revoked: somebody who made it, or the key it was made with, was removed. Have another one made. {_HOW}"
        )
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


async def rights_now(database: Database, caller: Caller) -> frozenset[Right]:
    """What the caller may at this moment: nothing once the key is of no use any more."""
    if caller.key_id is None:
        return caller.rights
    async with database.reader() as reader:
        return await tenancy.rights_now(reader, caller.tenant_id, key_id=caller.key_id)


@dataclass(frozen=True, slots=True)
class _Wish:
    name: str
    expires_at: datetime | None
    user_id: UUID | None
    scopes: tuple[str, ...] | None


async def create(
    database: Database, caller: Caller, *, name: str, expires_at: datetime | None, new_id: NewId, random_bytes: tenancy.RandomBytes,
    user_id: UUID | None = None, scopes: tuple[str, ...] | None = None,
) -> tuple[ApiKey, str]:  # fmt: skip
    """A new key and its text, to be shown this once. `user_id` null: the caller's own; `scopes` null: all that its user may.

    Raises BadInput, NotFound (the user), and NotPermitted where it would be wider than the caller (F42).
    """
    wish = _Wish(name, expires_at, user_id, tuple(dict.fromkeys(scopes)) if scopes is not None else None)
    async with database.writer() as writer:
        faults = await _faults_of(writer, wish)
        if faults:
            raise BadInput(f"The key was not made. {faults[0].message}", tuple(faults))
        user = await _bearer(writer, caller, wish.user_id)
        await _check_width(writer, caller, wish, user)
        key, text = await tenancy.create_key(
            writer, caller, name=wish.name, expires_at=wish.expires_at, key_id=new_id(), random_bytes=random_bytes,
            user_id=user.user_id, scopes=wish.scopes,
        )  # fmt: skip
        detail = {"name": key.name, "user": user.name, "scopes": key.scopes}
        await audit.note(writer, caller, action="key.made", subject_kind="key", subject_id=key.key_id, detail=detail)
        return key, text


async def _faults_of(writer: Writer, wish: _Wish) -> list[Fault]:
    faults = []
    if not 1 <= len(wish.name.strip()) <= len(wish.name) <= _MAX_NAME_CHARACTERS:
        faults.append(Fault("/name", f"A key's name has 1 to {_MAX_NAME_CHARACTERS} characters; give it one."))
    if wish.expires_at is not None and wish.expires_at <= await tenancy.now(writer):
        message = "This time has passed; name a later one, or null for a key that does not expire."
        faults.append(Fault("/dateExpires", message))
    if wish.scopes is not None:
        faults += _faults_of_scopes(wish.scopes)
    return faults


def _faults_of_scopes(scopes: tuple[str, ...]) -> list[Fault]:
    if not scopes:
        return [
            Fault("/scopes", "A key without scopes could do nothing; name some, or null for all that its user may.")
        ]
    known = {right.value for right in Right}
    there_are = ", ".join(Right)
    return [
        Fault(f"/scopes/{index}", f"There is no scope '{scope[:80]}'; there are {there_are}.")
        for index, scope in enumerate(scopes)
        if scope not in known
    ]


async def _bearer(writer: Writer, caller: Caller, user_id: UUID | None) -> User:
    """Whose key it is to be. Locked, so that a key is not made for a user who is being removed."""
    if user_id is not None and user_id != caller.user_id:
        caller.require(Right.MANAGE_KEYS)
    user = await users.lock(writer, caller.tenant_id, user_id=user_id or caller.user_id)
    if user is None:
        raise NotFound(f"There is no user {user_id or caller.user_id}. `folkmoot users list` shows those there are.")
    if is_above(user.role, caller.role):
        # With a key of theirs, however narrow, one would act under their name and role.
        raise NotPermitted(
            f"'{user.name}' is {user.role}, above your role {caller.role}: a key of theirs is not yours to make. Ask somebody of that role."
        )
    return user


async def _check_width(writer: Writer, caller: Caller, wish: _Wish, user: User) -> None:
    """F42: a key makes none that may more, now or after a change of roles, or that lasts longer."""
    extra = rights_of(user.role, wish.scopes) - caller.rights
    if extra:
        raise NotPermitted(
            f"This key would hold more than you may give: {', '.join(sorted(extra))}. Name scopes that you have yourself."
        )
    if caller.key_id is None:
        return
    own = await tenancy.key(writer, caller.tenant_id, key_id=caller.key_id)
    assert own is not None
    if own.scopes is not None and (wish.scopes is None or not set(wish.scopes) <= set(own.scopes)):
        raise NotPermitted(
            f"A narrowed key makes only keys that are as narrow. Name scopes among {', '.join(own.scopes)}."
        )
    if own.expires_at is not None and (wish.expires_at is None or wish.expires_at > own.expires_at):
        raise NotPermitted(
            f"A key that expires makes none that lasts longer. Name a time up to {own.expires_at.isoformat()}."
        )


async def page(database: Database, caller: Caller, *, after: UUID | None, limit: int) -> list[ApiKey]:
    """Keys from the oldest on, after the key `after`: the tenant's for who may manage keys, else the caller's own."""
    user_id = None if Right.MANAGE_KEYS in caller.rights else caller.user_id
    async with database.reader() as reader:
        return await tenancy.keys(reader, caller.tenant_id, after=after, limit=limit, user_id=user_id)


async def revoke(database: Database, caller: Caller, *, key_id: UUID) -> ApiKey:
    """Revoke a key for good; again is the same. Raises NotFound, NotPermitted for another's."""
    async with database.writer() as writer:
        found = await tenancy.key(writer, caller.tenant_id, key_id=key_id)
        if found is None:
            raise NotFound(f"There is no key {key_id}. `folkmoot keys list` shows those there are.")
        if found.user_id != caller.user_id:
            await _check_others(writer, caller, found)
        key = await tenancy.revoke_key(writer, caller.tenant_id, key_id=key_id)
        assert key is not None
        if found.revoked_at is None:
            await audit.note(
                writer, caller, action="key.revoked", subject_kind="key", subject_id=key_id, detail={"name": key.name}
            )
        return key


async def _check_others(writer: Writer, caller: Caller, key: ApiKey) -> None:
    caller.require(Right.MANAGE_KEYS)
    user = await users.get(writer, caller.tenant_id, user_id=key.user_id)
    if user is not None and is_above(user.role, caller.role):
        raise NotPermitted(
            f"This key is of '{user.name}', who is {user.role}, above your role {caller.role}. Ask somebody of that role."
        )
