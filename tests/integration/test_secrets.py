"""Secrets in the database, over the API and at the start of a process (platform.md, Tenancy; F44, F45; B52)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import stat
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, VAULT, Served, problem_of, served
from definitions_at_hand import other_tenant
from logs_at_hand import all_logs

from folkmoot import settings
from folkmoot.bootstrap.installation import read_key
from folkmoot.bootstrap.vaults import KEY_FILE, open_vault
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, FolkmootError, NotFound, SecretFault
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys
from folkmoot.services import secrets as services
from folkmoot.store import secrets as rows
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.vault.keys import key_of, write_key
from folkmoot.vault.masks import mask
from folkmoot.vault.sealing import Vault
from folkmoot.vault.texts import SecretText

OLD, NEW = key_of(b"o" * 32), key_of(b"n" * 32)
BY_NAME = "/namespaces/team/secrets/by-name/api"


def vault(*which: Any) -> Vault:
    return Vault(which, random_bytes=secrets.token_bytes)


async def put(database: Database, caller: Caller, value: str, *, name: str = "api", sealing: Vault = VAULT) -> UUID:
    made, _ = await services.put(
        database, sealing, caller, namespace="team", name=name, value=SecretText(value), new_id=NEW_ID
    )
    return made.secret_id


async def opened(database: Database, caller: Caller, secret_id: UUID, *, opening: Vault = VAULT) -> str:
    return (await services.open_secret(database, opening, caller.tenant_id, secret_id=secret_id)).reveal()


class TestSecrets:
    async def test_a_value_is_read_anew_at_each_call(self, database: Database, caller: Caller) -> None:
        """platform.md: a rotated or withdrawn key takes effect at once."""
        secret_id = await put(database, caller, "first value")
        assert await opened(database, caller, secret_id) == "first value"
        assert await put(database, caller, "second value") == secret_id
        assert await opened(database, caller, secret_id) == "second value"
        await services.delete(database, caller, secret_id=secret_id)
        with pytest.raises(NotFound, match=str(secret_id)):
            await opened(database, caller, secret_id)

    async def test_another_tenant_opens_nothing(self, database: Database, caller: Caller, new_id: NewId) -> None:
        """B66."""
        secret_id = await put(database, caller, "first value")
        stranger = await other_tenant(database, new_id)
        with pytest.raises(NotFound):
            await opened(database, stranger, secret_id)

    async def test_the_database_holds_no_value(self, database: Database, caller: Caller) -> None:
        await put(database, caller, "canary-in-a-coal-mine")
        async with database.reader() as reader:
            for table in ("secret", "audit", "vault_check"):
                text = await reader.connection.fetchval(f"select coalesce(string_agg(t::text, ' '), '') from {table} t")
                assert "canary" not in text and b"canary".hex() not in text

    @pytest.mark.parametrize("move", ["to another row", "to another tenant's row"])
    async def test_moved_to_another_row_it_does_not_open(
        self, database: Database, caller: Caller, new_id: NewId, move: str
    ) -> None:
        """F45: by somebody who can write rows."""
        owner_of_other = caller if move == "to another row" else await other_tenant(database, new_id)
        theirs, own = (
            await put(database, caller, "their value"),
            await put(database, owner_of_other, "own value", name="own"),
        )
        async with database.writer() as writer:
            await writer.connection.execute(
                "update secret set sealed = (select sealed from secret where secret_id = $1) where secret_id = $2",
                theirs,
                own,
            )
        with pytest.raises(SecretFault, match="moved from another row"):
            await opened(database, owner_of_other, own)
        assert await opened(database, caller, theirs) == "their value"

    async def test_of_many_who_set_it_at_once_one_makes_it(self, database: Database, caller: Caller) -> None:
        """B61."""
        made = await asyncio.gather(*(put(database, caller, f"value number {number}") for number in range(6)))
        assert len(set(made)) == 1
        assert (await opened(database, caller, made[0])).startswith("value number ")

    @pytest.mark.parametrize(
        ("namespace", "name", "value", "pointer"),
        [
            ("team", "api", "", "/value"),
            ("team", "api", "ü" * 32_769, "/value"),
            ("team", "api", "\ud800canary", "/value"),
            ("team", "a/b", "canary", "/name"),
            ("", "api", "canary", "/namespace"),
        ],
    )
    async def test_what_cannot_be_kept_is_refused_and_not_shown(
        self, database: Database, caller: Caller, namespace: str, name: str, value: str, pointer: str
    ) -> None:
        with pytest.raises(BadInput) as caught:
            await services.put(
                database, VAULT, caller, namespace=namespace, name=name, value=SecretText(value), new_id=NEW_ID
            )
        assert [fault.pointer for fault in caught.value.faults] == [pointer]
        assert "canary" not in str(caught.value)
        async with database.reader() as reader:
            assert await reader.connection.fetchval("select count(*) from secret") == 0

    async def test_without_a_key_it_says_what_to_set(self, database: Database, caller: Caller) -> None:
        with pytest.raises(SecretFault, match="Set FOLKMOOT_SECRET_KEY"):
            await put(database, caller, "a value", sealing=vault())


class TestRotation:
    async def test_all_is_sealed_anew_while_it_is_used(
        self, database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F45: a value set meanwhile is not overwritten, and each read gives the newest."""
        both = vault(NEW, OLD)
        ids = [await put(database, caller, f"value {n}", name=f"s{n}", sealing=vault(OLD)) for n in range(12)]
        await self.begin(database, vault(OLD))
        monkeypatch.setattr(services, "_BATCH", 5)
        is_done = asyncio.Event()

        async def use() -> int:
            count = 0
            while not is_done.is_set():
                for number, secret_id in enumerate(ids[1:], 1):
                    assert await opened(database, caller, secret_id, opening=both) == f"value {number}"
                count += 1
            return count

        using = asyncio.create_task(use())
        count = await services.rotate(database, both, caller)
        is_done.set()
        assert await using > 0 and count == 12
        assert await services.rotate(database, both, caller) == 0
        for number, secret_id in enumerate(ids):
            assert await opened(database, caller, secret_id, opening=vault(NEW)) == f"value {number}"
        async with database.reader() as reader:
            check = await rows.check(reader)
        assert check is not None
        vault(NEW).check(check)
        with pytest.raises(SecretFault):
            vault(OLD).check(check)

    @staticmethod
    async def begin(database: Database, sealing: Vault) -> None:
        async with database.writer() as writer:
            await rows.ensure_check(writer, make=sealing.make_check)

    @staticmethod
    def set_meanwhile(database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
        """Just as a row was read and sealed, somebody sets another value."""
        reseal = rows.reseal

        async def late(writer: Writer, secret: Any, *, sealed: bytes, sealed_by: str) -> bool:
            await put(database, caller, "set meanwhile", sealing=vault(NEW, OLD))
            return await reseal(writer, secret, sealed=sealed, sealed_by=sealed_by)

        monkeypatch.setattr(rows, "reseal", late)

    async def test_a_value_that_is_set_meanwhile_stays(
        self, database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F45: rotation writes only over what it has read."""
        secret_id = await put(database, caller, "before", sealing=vault(OLD))
        self.set_meanwhile(database, caller, monkeypatch)
        await services.rotate(database, vault(NEW, OLD), caller)
        assert await opened(database, caller, secret_id, opening=vault(NEW)) == "set meanwhile"

    async def test_without_the_guard_it_would_be_lost(
        self, database: Database, caller: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The negative control of the test above."""

        async def blindly(writer: Writer, secret: Any, *, sealed: bytes, sealed_by: str) -> bool:
            about = secret.about
            return await rows.replace(
                writer, about.tenant_id, secret_id=about.secret_id, sealed=sealed, sealed_by=sealed_by
            )

        secret_id = await put(database, caller, "before", sealing=vault(OLD))
        monkeypatch.setattr(rows, "reseal", blindly)
        self.set_meanwhile(database, caller, monkeypatch)
        await services.rotate(database, vault(NEW, OLD), caller)
        assert await opened(database, caller, secret_id, opening=vault(NEW)) == "before"


async def everything(reader: Reader) -> list[Any]:
    return [
        [tuple(row) for row in await reader.connection.fetch(f"select * from {table} order by 1")]
        for table in ("secret", "vault_check", "audit")
    ]


class TestTheStart:
    """Which key a process starts with. The embedded server is not needed for it: a null URL stands for it."""

    def settings(self, **named: str) -> settings.Settings:
        return settings.read({f"FOLKMOOT_{name}": value for name, value in named.items()})

    async def open(self, database: Database, folder: Path, **named: str) -> Vault:
        return await open_vault(self.settings(**named), folder, database, random_bytes=secrets.token_bytes)

    async def test_the_embedded_database_gets_a_key_of_its_own_once(
        self, database: Database, caller: Caller, tmp_path: Path
    ) -> None:
        made = await asyncio.gather(*(self.open(database, tmp_path) for _ in range(6)))
        assert len({one.sealing_key_id for one in made}) == 1
        assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
        assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
        secret_id = await put(database, caller, "a value", sealing=made[0])
        assert await opened(database, caller, secret_id, opening=await self.open(database, tmp_path)) == "a value"

    async def test_another_key_is_refused_and_overwrites_nothing(
        self, database: Database, caller: Caller, tmp_path: Path
    ) -> None:
        """F45: a wrong key at the start, from wherever it comes, and a missing one."""
        await put(database, caller, "a value", sealing=await self.open(database, tmp_path))
        file, wrong = tmp_path / KEY_FILE, tmp_path / "wrong"
        right = file.read_text()
        wrong.write_text(write_key(b"w" * 32))
        async with database.reader() as reader:
            before = await everything(reader)
        refused = {"SECRET_KEY": write_key(b"w" * 32)}, {"SECRET_KEY_FILE": str(wrong)}
        for named in refused:
            with pytest.raises(SecretFault, match="nothing was changed"):
                await self.open(database, tmp_path, **named)
        file.unlink()
        with pytest.raises(SecretFault, match="Put it back from your backup"):
            await self.open(database, tmp_path)
        assert not file.exists()
        for text in ("", "nonsense"):
            wrong.write_text(text)
            with pytest.raises(SecretFault, match="openssl rand -base64 32"):
                await self.open(database, tmp_path, SECRET_KEY_FILE=str(wrong))
        with pytest.raises(SecretFault, match="cannot be read"):
            await self.open(database, tmp_path, SECRET_KEY_FILE=str(tmp_path / "none"))
        async with database.reader() as reader:
            assert await everything(reader) == before
        for named in ({"SECRET_KEY": right}, {"SECRET_KEY": f"{write_key(b'w' * 32)},{right}"}):
            assert (await self.open(database, tmp_path, **named)).has_keys

    async def test_a_server_of_somebody_elses_gets_no_key_by_itself(self, database: Database, tmp_path: Path) -> None:
        opened_vault = await self.open(database, tmp_path, DATABASE_URL="postgresql://x/y")
        assert not opened_vault.has_keys and list(tmp_path.iterdir()) == []

    def test_only_one_of_the_two_settings_is_set(self) -> None:
        with pytest.raises(BadInput, match="Set one of them"):
            self.settings(SECRET_KEY="x", SECRET_KEY_FILE="y")
        assert "canary" not in repr(self.settings(SECRET_KEY="canary"))


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


class TestOverTheApi:
    async def test_a_value_goes_in_and_never_comes_out(self, server: Served) -> None:
        client = server.client
        made = await client.put(BY_NAME, json={"value": "canary-one"})
        again = await client.put(BY_NAME, json={"value": "canary-two"})
        assert (made.status_code, again.status_code) == (201, 200)
        secret = again.json()
        assert made.json()["id"] == secret["id"] and secret["dateUpdated"] > secret["dateCreated"]
        await client.put("/namespaces/team/secrets/by-name/zoo", json={"value": "canary-three"})
        first = (await client.get("/namespaces/team/secrets?limit=1")).json()
        rest = (await client.get(f"/namespaces/team/secrets?after={first['next']}")).json()
        assert [shown["name"] for shown in first["items"] + rest["items"]] == ["api", "zoo"]
        by_id = f"/secrets/by-id/{secret['id']}"
        for path in (BY_NAME, by_id):
            assert (await client.get(path)).json() == secret
        database = server.installation.database
        owner = await keys.owner(database)
        assert await opened(database, owner, UUID(secret["id"])) == "canary-two"
        assert (await client.delete(by_id)).status_code == 204
        problem_of(await client.get(BY_NAME), 404, "not_found")

    async def test_no_secret_of_any_kind_shows_anywhere(self, server: Served) -> None:
        """F44, B52: canaries, plain and encoded, after success and failure: not in answers, logs, errors, the audit log."""
        canary = f'c4n"ry/{secrets.token_hex(8)}'
        client = server.client
        answers = []
        with all_logs() as log:
            for path, body in (
                (BY_NAME, {"value": canary}),
                (BY_NAME, {"value": canary, "more": canary}),
                (BY_NAME, {"value": [canary]}),
                (BY_NAME, {"value": {canary: canary}}),
                (BY_NAME, {"value": canary * 5000}),
                (BY_NAME, {canary: canary}),
                ("/namespaces/team/secrets/by-name/" + quote(canary, safe=""), {"value": canary}),
            ):
                answers.append(await client.put(path, json=body))
            answers.append(await client.put(BY_NAME, content=f'{{"value": "{canary}'.encode()))
            answers.append(await client.put(f"{BY_NAME}?value={quote(canary)}", json={}))
            for path in (
                f"/users?after={quote(canary)}",
                f"/audit?action={quote(canary)}",
                "/audit",
                "/namespaces/team/secrets",
            ):
                answers.append(await client.get(path))
            async with server.of(f"fm_{canary}") as stranger:
                answers.append(await stranger.get("/keys"))
            database = server.installation.database
            with suppress(FolkmootError):
                await services.open_secret(
                    database, vault(OLD), (await keys.owner(database)).tenant_id, secret_id=NEW_ID()
                )
            try:
                raise RuntimeError(
                    f"a server answered: {base64.b64encode(canary.encode()).decode()} {canary!r} {json.dumps(canary)}"
                )
            except RuntimeError:
                logging.getLogger("folkmoot.test").exception("It refused %s", quote(canary, safe=""))
        assert [answer.status_code for answer in answers].count(201) == 1
        told = log.getvalue() + " ".join(answer.text for answer in answers)
        assert "It refused •••" in told
        core = canary.rpartition("/")[2]
        for form in (core, base64.b64encode(canary.encode()).decode(), quote(canary, safe=""), canary.encode().hex()):
            assert form not in told

    def test_a_providers_key_is_masked_once_it_was_read(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """F44: the environment's secrets, too."""
        canary = f"sk-{secrets.token_hex(8)}"
        monkeypatch.setenv("CANARY_API_KEY", canary)
        assert mask(canary) == canary
        assert read_key("CANARY_API_KEY") == canary
        assert mask(f"Incorrect API key: {canary}") == "Incorrect API key: •••"

    async def test_an_answer_that_would_show_a_known_value_is_masked(
        self, server: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """F44: the last line, behind an error that quotes what it should not."""
        await server.client.put(BY_NAME, json={"value": "canary-in-an-error"})

        async def quoting(*_: Any, **__: Any) -> None:
            raise BadInput("It was canary-in-an-error.")

        monkeypatch.setattr(services, "get", quoting)
        problem = problem_of(await server.client.get(BY_NAME), 422, "bad_input")
        assert problem["detail"] == "It was •••."
