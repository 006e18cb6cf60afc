"""Whose an address is in the app of a channel: it decides who may approve (agent-runs.md, Consent 2; F40, F41)."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, Served, problem_of, put, served
from crews import until
from definitions_at_hand import other_tenant
from shell import Shell
from waiting_at_hand import waits_for_a_lock

from folkmoot.domain.audit import AuditFilter
from folkmoot.domain.channels import AppShape
from folkmoot.domain.rights import RIGHTS, Role
from folkmoot.domain.tenancy import Caller, User
from folkmoot.kernel.errors import BadInput, Conflict, NotFound, NotPermitted
from folkmoot.kernel.ids import NewId
from folkmoot.services import audit, identities, keys, users
from folkmoot.store import identities as rows
from folkmoot.store.database import Database

ANN = "ann@example.com"


async def user_of(database: Database, owner: Caller, role: Role = Role.APPROVER) -> User:
    return await users.add(database, owner, name=f"{role}-{secrets.token_hex(3)}", role=role, new_id=NEW_ID)


def as_user(user: User) -> Caller:
    return Caller(user.tenant_id, user.user_id, user.name, role=user.role, rights=RIGHTS[user.role])


async def set_for(database: Database, caller: Caller, user: User, address: str = ANN, app: str = "email") -> str:
    made = await identities.put(database, caller, user_id=user.user_id, app=app, address=address)
    return made.address


async def whose(database: Database, caller: Caller, address: str = ANN, app: str = "email") -> str | None:
    async with database.reader() as reader:
        found = await rows.user_of(reader, caller.tenant_id, app=app, address=address)
    return found.name if found is not None else None


async def address_of(database: Database, user: User, app: str = "email") -> str | None:
    async with database.reader() as reader:
        return await rows.address_of(reader, user.tenant_id, user_id=user.user_id, app=app)


async def notes(database: Database, caller: Caller) -> list[tuple[str, object]]:
    entries = await audit.page(database, caller, wanted=AuditFilter(subject_kind="user"), after=None, limit=50)
    return [
        (each.action, each.detail.get("address")) for each in reversed(entries) if each.action.startswith("identity.")
    ]


async def test_an_address_is_found_in_whatever_way_it_is_written(database: Database, caller: Caller) -> None:
    user = await user_of(database, caller)
    assert await set_for(database, caller, user, " Ann@Example.COM ") == ANN
    assert await whose(database, caller, "ANN@example.com") == user.name
    assert await whose(database, caller, ANN, "slack") is None
    assert (await address_of(database, user), await address_of(database, user, "slack")) == (ANN, None)


async def test_a_user_has_one_address_in_each_app(database: Database, caller: Caller) -> None:
    user = await user_of(database, caller)
    for address, app in ((ANN, "email"), ("U1", "slack"), ("new@example.com", "email"), ("new@example.com", "email")):
        await set_for(database, caller, user, address, app)
    found = await identities.of_user(database, caller, user_id=user.user_id)
    assert [(each.app, each.address) for each in found] == [("email", "new@example.com"), ("slack", "U1")]
    assert await whose(database, caller) is None
    assert await notes(database, caller) == [
        ("identity.set", ANN),
        ("identity.set", "U1"),
        ("identity.set", "new@example.com"),
    ]


async def test_an_address_is_one_users_and_a_refusal_changes_nothing(database: Database, caller: Caller) -> None:
    ann, ben = await user_of(database, caller), await user_of(database, caller)
    await set_for(database, caller, ann)
    await set_for(database, caller, ben, "ben@example.com")
    with pytest.raises(Conflict, match=f"'{ANN}' is the address of '{ann.name}' in the app 'email'"):
        await set_for(database, caller, ben, "Ann@example.com")
    assert await address_of(database, ben) == "ben@example.com"
    await identities.delete(database, caller, user_id=ann.user_id, app="email")
    await set_for(database, caller, ben)
    assert await whose(database, caller) == ben.name
    with pytest.raises(NotFound, match="has no address"):
        await identities.delete(database, caller, user_id=ann.user_id, app="email")


async def test_the_same_address_may_be_anothers_in_another_tenant(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F40: and neither sees the other's."""
    user = await user_of(database, caller)
    stranger = await other_tenant(database, new_id)
    await set_for(database, caller, user)
    assert await whose(database, stranger) is None
    await identities.put(database, stranger, user_id=stranger.user_id, app="email", address=ANN)
    assert (await whose(database, caller), await whose(database, stranger)) == (user.name, "Stranger")
    for attempt in (
        identities.put(database, stranger, user_id=user.user_id, app="email", address="x@example.com"),
        identities.delete(database, stranger, user_id=user.user_id, app="email"),
        identities.of_user(database, stranger, user_id=user.user_id),
    ):
        with pytest.raises(NotFound):
            await attempt


async def test_nobody_claims_an_address_but_who_manages_users(database: Database, caller: Caller) -> None:
    """F41: also not their own. One sees one's own."""
    developer, admin = await user_of(database, caller, Role.DEVELOPER), await user_of(database, caller, Role.ADMIN)
    with pytest.raises(NotPermitted, match="manage_users"):
        await set_for(database, as_user(developer), developer)
    await set_for(database, as_user(admin), developer)
    with pytest.raises(NotPermitted, match="manage_users"):
        await identities.delete(database, as_user(developer), user_id=developer.user_id, app="email")
    seen = await identities.of_user(database, as_user(developer), user_id=developer.user_id)
    assert [each.address for each in seen] == [ANN]
    with pytest.raises(NotPermitted, match="manage_users"):
        await identities.of_user(database, as_user(developer), user_id=admin.user_id)


async def test_nobody_says_whose_an_address_is_of_somebody_above_them(database: Database, caller: Caller) -> None:
    """Else an admin would approve as an owner."""
    admin, owner = await user_of(database, caller, Role.ADMIN), await user_of(database, caller, Role.OWNER)
    with pytest.raises(NotPermitted, match="manage_owners"):
        await set_for(database, as_user(admin), owner)
    assert await whose(database, caller) is None
    await set_for(database, as_user(owner), owner)
    assert await whose(database, caller) == owner.name


async def test_a_removed_users_addresses_are_gone(database: Database, caller: Caller) -> None:
    ann, ben = await user_of(database, caller), await user_of(database, caller)
    await set_for(database, caller, ann)
    await users.remove(database, caller, user_id=ann.user_id)
    assert await whose(database, caller) is None
    with pytest.raises(NotFound):
        await set_for(database, caller, ann)
    await set_for(database, caller, ben)
    assert await whose(database, caller) == ben.name


async def test_what_is_no_app_or_no_address_is_told_with_its_place(database: Database, caller: Caller) -> None:
    user, apps = await user_of(database, caller), {"email": AppShape({})}
    for app, address, pointers in (
        ("E Mail", "x", ["/app"]),
        ("email", "ann", ["/address"]),
        ("slack", "U1", ["/app"]),
        ("emial", " ", ["/app", "/address"]),
    ):
        with pytest.raises(BadInput) as caught:
            await identities.put(database, caller, user_id=user.user_id, app=app, address=address, channel_apps=apps)
        assert [fault.pointer for fault in caught.value.faults] == pointers


async def exchanged(database: Database, caller: Caller) -> list[str]:
    """Two people give each of two users the other's address, one in the middle of the other: what was raised, by its kind."""
    ann, ben = await user_of(database, caller), await user_of(database, caller)
    await set_for(database, caller, ann)
    await set_for(database, caller, ben, "ben@example.com")
    raised: list[object] = []
    second: asyncio.Task[str] | None = None
    try:
        async with database.writer() as writer:
            await rows.lock(writer, caller.tenant_id)
            await rows.delete(writer, caller.tenant_id, user_id=ann.user_id, app="email")
            second = asyncio.create_task(set_for(database, caller, ben))
            await until(lambda: waits_for_a_lock(database))
            await rows.put(
                writer, caller.tenant_id, user_id=ann.user_id, app="email", address="ben@example.com", created_by=caller.user_id
            )  # fmt: skip
    except asyncpg.DeadlockDetectedError as error:
        raised.append(error)
    assert second is not None
    raised += await asyncio.gather(second, return_exceptions=True)
    return [type(error).__name__ for error in raised if isinstance(error, BaseException)]


async def test_two_that_exchange_addresses_go_one_after_the_other(database: Database, caller: Caller) -> None:
    assert await exchanged(database, caller) == []


async def test_without_the_lock_each_would_wait_for_the_other(
    database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""

    async def no_lock(*_: object) -> None:
        return None

    monkeypatch.setattr(rows, "lock", no_lock)
    assert await exchanged(database, caller) == ["DeadlockDetectedError"]


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


async def test_over_the_api(server: Served) -> None:
    client = server.client
    owner = await keys.owner(server.installation.database)
    ids = [(await client.post("/users", json={"name": name, "role": "viewer"})).json()["id"] for name in ("Ann", "Ben")]
    path = f"/users/by-id/{ids[0]}/identities"
    made = await put(client, f"{path}/email", {"address": "Ann@Example.com"})
    assert {**made, "dateCreated": ""} == {
        "userId": ids[0], "app": "email", "address": ANN, "userCreatedById": str(owner.user_id), "dateCreated": "",
    }  # fmt: skip
    assert (await client.get(path)).json() == {"items": [made]}
    again = await client.put(f"/users/by-id/{ids[1]}/identities/email", json={"address": ANN})
    assert "is the address of 'Ann'" in problem_of(again, 409, "conflict")["detail"]
    wrong = problem_of(await client.put(f"{path}/email", json={"address": "ann"}), 422)
    assert [error["pointer"] for error in wrong["errors"]] == ["/address"]
    assert (await client.delete(f"{path}/email")).status_code == 204
    problem_of(await client.delete(f"{path}/email"), 404, "not_found")
    assert (await client.get(path)).json() == {"items": []}


def test_by_command(database_dsn: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path, database_dsn)
    try:
        assert shell.run("users", "add", "Ann").code == 0
        told = [
            shell.run("users", "identity", "Ann", *arguments)
            for arguments in (("email", "Ann@Example.com"), ("slack", "U1"), ("--json",), ("slack", "--none"), ())
        ]
        assert [one.code for one in told] == [0] * 5, told
        assert told[0].out.splitlines()[1].split() == ["email", ANN]
        assert [json.loads(line)["address"] for line in told[2].out.splitlines()] == [ANN, "U1"]
        assert [line.split()[0] for line in told[4].out.splitlines()[1:]] == ["email"]
        for arguments in (("--none",), ("email", "x@example.com", "--none")):
            assert shell.run("users", "identity", "Ann", *arguments).code == 2
    finally:
        shell.close()
