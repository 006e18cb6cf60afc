"""Tenants, keys and namespaces (platform.md, Tenancy; README.md, Who calls)."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from datetime import UTC, datetime, timedelta

import pytest
from definitions_at_hand import other_tenant, shift_clock

from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, NotAllowed, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys
from folkmoot.store import tenancy
from folkmoot.store.database import Database


async def make_default(database: Database, new_id: NewId) -> str | None:
    async with database.writer() as writer:
        return await tenancy.ensure_default(writer, new_id=new_id, random_bytes=secrets.token_bytes)


async def test_the_default_tenant_is_made_once_by_however_many_at_once(database: Database, new_id: NewId) -> None:
    """README.md, Who calls: the tenant, its owner and one key, shown once. B67: several starting at once."""
    made = await asyncio.gather(*(make_default(database, new_id) for _ in range(8)))
    (key,) = [text for text in made if text is not None]
    assert await make_default(database, new_id) is None
    caller = await keys.authenticate(database, key=key)
    assert caller.user_name == "owner"
    async with database.reader() as reader:
        counts = [
            await reader.connection.fetchval(f"select count(*) from {t}")
            for t in ("tenant", "app_user", "api_key", "namespace")
        ]
        assert (await tenancy.find_namespace(reader, caller.tenant_id, name="default")) is not None
    assert counts == [1, 1, 1, 1]


async def test_a_keys_text_is_kept_nowhere(database: Database, new_id: NewId) -> None:
    """platform.md, Tenancy: shown once, stored as a hash."""
    key = await make_default(database, new_id)
    assert key is not None and key.startswith("fm_") and len(key) == 46
    async with database.reader() as reader:
        row = await reader.connection.fetchrow("select hash, prefix, k::text as row from api_key k")
    assert row["hash"] == hashlib.sha256(key.encode()).digest()
    assert row["prefix"] == key[:8] and key not in row["row"]


async def test_the_owner_acts_within_the_process(database: Database, new_id: NewId) -> None:
    with pytest.raises(NotFound, match="folkmoot db upgrade"):
        await keys.owner(database)
    key = await make_default(database, new_id)
    owner, bearer = await keys.owner(database), await keys.authenticate(database, key=key)
    assert owner.key_id is None
    assert (owner.tenant_id, owner.user_id) == (bearer.tenant_id, bearer.user_id)


async def test_what_is_no_key_opens_nothing(database: Database, caller: Caller) -> None:
    for key in (None, "", "fm_", "nonsense", "fm_" + "a" * 43, "\x00", "\ud800", "é" * 5000):
        with pytest.raises(NotAllowed) as caught:
            await keys.authenticate(database, key=key)
        assert not key or key not in str(caught.value)


async def test_a_revoked_key_opens_nothing_and_says_so(database: Database, caller: Caller, new_id: NewId) -> None:
    """F43: a key revoked."""
    made, text = await keys.create(
        database, caller, name="ci", expires_at=None, new_id=new_id, random_bytes=secrets.token_bytes
    )
    assert (await keys.authenticate(database, key=text)).key_id == made.key_id
    revoked = await keys.revoke(database, caller, key_id=made.key_id)
    assert revoked.revoked_at is not None
    with pytest.raises(NotAllowed, match="was revoked"):
        await keys.authenticate(database, key=text)
    assert (await keys.revoke(database, caller, key_id=made.key_id)).revoked_at == revoked.revoked_at


async def test_a_key_expires_by_the_databases_clock(database: Database, caller: Caller, new_id: NewId) -> None:
    """F22: the database's clock decides expiries."""
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    _, text = await keys.create(
        database, caller, name="ci", expires_at=in_an_hour, new_id=new_id, random_bytes=secrets.token_bytes
    )
    await keys.authenticate(database, key=text)
    await shift_clock(database, timedelta(hours=2))
    with pytest.raises(NotAllowed, match="has expired"):
        await keys.authenticate(database, key=text)
    with pytest.raises(BadInput, match="passed"):
        await keys.create(
            database, caller, name="ci", expires_at=in_an_hour, new_id=new_id, random_bytes=secrets.token_bytes
        )


async def test_a_use_is_noted_at_most_once_a_minute(database: Database, new_id: NewId) -> None:
    """platform.md, Tenancy: last use."""
    key = await make_default(database, new_id)
    caller = await keys.authenticate(database, key=key)

    async def last_use() -> datetime | None:
        (shown,) = await keys.page(database, caller, after=None, limit=10)
        return shown.last_used_at

    first = await last_use()
    assert first is not None
    await keys.authenticate(database, key=key)
    assert await last_use() == first
    await shift_clock(database, timedelta(seconds=61))
    await asyncio.gather(*(keys.authenticate(database, key=key) for _ in range(5)))
    second = await last_use()
    assert second is not None and second > first + timedelta(seconds=60)


async def test_keys_are_listed_page_by_page_and_only_the_tenants(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B66: another tenant's key is as none."""
    stranger = await other_tenant(database, new_id)
    theirs, _ = await keys.create(
        database, stranger, name="theirs", expires_at=None, new_id=new_id, random_bytes=secrets.token_bytes
    )
    for number in range(3):
        await keys.create(
            database, caller, name=f"k{number}", expires_at=None, new_id=new_id, random_bytes=secrets.token_bytes
        )
    first = await keys.page(database, caller, after=None, limit=2)
    second = await keys.page(database, caller, after=first[-1].key_id, limit=10)
    assert [key.name for key in (*first, *second)] == ["first", "k0", "k1", "k2"]
    with pytest.raises(NotFound):
        await keys.revoke(database, caller, key_id=theirs.key_id)


@pytest.mark.parametrize("name", ["", "  ", "x" * 201])
async def test_a_key_needs_a_name(database: Database, caller: Caller, new_id: NewId, name: str) -> None:
    with pytest.raises(BadInput) as caught:
        await keys.create(database, caller, name=name, expires_at=None, new_id=new_id, random_bytes=secrets.token_bytes)
    assert [fault.pointer for fault in caught.value.faults] == ["/name"]


async def test_a_namespace_is_made_once_by_however_many_at_once(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B61: creation is atomic under concurrency."""

    async def make() -> object:
        async with database.writer() as writer:
            return await tenancy.get_or_create_namespace(writer, caller.tenant_id, name="examples", new_id=new_id)

    assert len(set(await asyncio.gather(*(make() for _ in range(8))))) == 1
    async with database.reader() as reader:
        names = [n.name for n in await tenancy.namespaces(reader, caller.tenant_id, after="", limit=10)]
        assert names == ["default", "examples"]
        rest = await tenancy.namespaces(reader, caller.tenant_id, after="default", limit=10)
        assert [n.name for n in rest] == ["examples"]
