"""Connectors as definitions: discovered when saved, looked at again, versioned and pinned (interactions.md; F53; B52)."""

from __future__ import annotations

import asyncio
import copy
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asyncpg import UniqueViolationError
from connectors_at_hand import READS, SHOP, SPACE, Bench, Keeper, document, reach_of
from definitions_at_hand import other_tenant
from mcp_at_hand import misbehaving
from recording_server import Received, RecordingServer, reply, saying

from folkmoot.domain.connectors import ConnectorHeader, McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.operation_changes import OperationSettings
from folkmoot.domain.operations import ApprovalMode, Http, OpenApiDescriptor, Stdio
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, BadInput, Conflict, ConnectorFault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import connectors, definitions, operations
from folkmoot.store import operations as store
from folkmoot.store.database import Database
from folkmoot.store.definitions import Outcome

OPEN_API = DefinitionKind.OPEN_API_CONNECTOR
MCP = DefinitionKind.MCP_CONNECTOR


@pytest.fixture
def keeper(database: Database, caller: Caller, new_id: NewId) -> Keeper:
    return Keeper(database, caller, new_id)


async def count(database: Database, table: str) -> int:
    async with database.reader() as reader:
        found: int = await reader.connection.fetchval(f"select count(*) from {table}")
    return found


async def test_a_server_is_looked_at_when_its_connector_is_saved(keeper: Keeper, bench: Bench) -> None:
    """interactions.md: its operations are discovered, and each operation is versioned."""
    published, refreshed = await keeper.bench(bench.url)
    assert (published.outcome, refreshed.added) == (Outcome.CREATED, ("look", "paint"))
    found = await keeper.operations()
    look, paint = found["look"].stored, found["paint"].stored
    assert (look.version.number, look.version.approval_mode, look.is_current) == (1, ApprovalMode.DESTRUCTIVE, True)
    assert (look.version.is_read_only, paint.version.is_read_only, paint.version.is_idempotent) == (True, False, False)
    again, unchanged = await keeper.bench(bench.url)
    assert again.outcome is Outcome.UNCHANGED
    assert (unchanged.added, unchanged.changed, unchanged.gone, unchanged.back) == ((), (), (), ())


async def test_a_changed_description_is_a_new_version_and_what_is_gone_is_marked(keeper: Keeper, bench: Bench) -> None:
    """interactions.md: a changed description or schema is a new version."""
    await keeper.bench(bench.url)
    bench.offer("look", "Looks at a thing, and deletes it.")
    bench.withdraw("paint")
    bench.offer("weigh", "Weighs a thing.")
    changed = await keeper.refresh()
    assert (changed.added, changed.changed, changed.gone, changed.back) == (("weigh",), ("look",), ("paint",), ())
    found = await keeper.operations()
    assert found["look"].stored.version.number == 2 and found["paint"].stored.operation.gone_at is not None
    look_id = found["look"].stored.operation.operation_id
    first = await operations.get(keeper.database, keeper.caller, operation_id=look_id, version=1)
    assert not first.stored.is_current and first.stored.version.descriptor.description == "Looks at a thing."
    bench.offer("paint", "Paints a thing.")
    assert (await keeper.refresh()).back == ("paint",)
    paint = (await keeper.operations())["paint"].stored
    assert (paint.operation.gone_at, paint.version.number) == (None, 1)


async def test_a_server_cannot_talk_itself_out_of_approval_or_back_on(keeper: Keeper, bench: Bench) -> None:
    """F53: annotations never lower the approval that is required; a disabled operation stays so."""
    await keeper.bench(bench.url)
    before = (await keeper.operations())["paint"].stored
    paint_id = before.operation.operation_id
    await operations.set_disabled(keeper.database, keeper.caller, operation_id=paint_id, number=1, is_disabled=True)
    bench.offer("paint", "Paints a thing.", annotations=READS)
    assert (await keeper.refresh()).changed == ("paint",)
    after = (await keeper.operations())["paint"].stored
    assert (after.version.number, after.version.approval_mode) == (2, ApprovalMode.ALWAYS)
    assert after.is_disabled and not after.version.is_read_only


async def test_what_the_operator_decides_is_a_version_and_goes_on(keeper: Keeper, bench: Bench) -> None:
    await keeper.bench(bench.url)
    paint_id = (await keeper.operations())["paint"].stored.operation.operation_id

    async def decide(settings: OperationSettings) -> Any:
        return (
            await operations.decide(keeper.database, keeper.caller, operation_id=paint_id, settings=settings)
        ).stored

    decided = await decide(OperationSettings(ApprovalMode.ALWAYS, is_idempotent=True, limit_seconds=5))
    assert (decided.version.number, decided.version.limit_seconds, decided.is_current) == (2, 5, True)
    assert (await decide(OperationSettings(is_idempotent=True))).version.number == 2
    at_once = await asyncio.gather(*(decide(OperationSettings(limit_bytes=size)) for size in (1, 2, 3, 4)))
    assert sorted(stored.version.number for stored in at_once) == [3, 4, 5, 6]
    with pytest.raises(BadInput, match="number of bytes"):
        await decide(OperationSettings(limit_bytes=0))
    bench.offer("paint", "Paints better.")
    await keeper.refresh()
    assert (await keeper.operations())["paint"].stored.version.approval_mode is ApprovalMode.ALWAYS
    found = await operations.versions(keeper.database, keeper.caller, operation_id=paint_id, before=None, limit=10)
    assert [(each.stored.version.number, each.stored.is_current) for each in found] == [(7, True)] + [
        (number, False) for number in (6, 5, 4, 3, 2, 1)
    ]


async def test_without_its_lock_decisions_at_once_collide(
    keeper: Keeper, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above."""
    await keeper.bench(bench.url)
    paint_id = (await keeper.operations())["paint"].stored.operation.operation_id
    met = asyncio.Barrier(2)
    add = store.add

    async def unlocked(*_: Any, **__: Any) -> None:
        return None

    async def added(*arguments: Any, **named: Any) -> None:
        await met.wait()
        await add(*arguments, **named)

    monkeypatch.setattr(store, "lock", unlocked)
    monkeypatch.setattr(store, "add", added)
    settings = [OperationSettings(limit_bytes=size) for size in (1, 2)]
    ended = await asyncio.gather(
        *(operations.decide(keeper.database, keeper.caller, operation_id=paint_id, settings=each) for each in settings),
        return_exceptions=True,
    )
    assert sum(isinstance(each, UniqueViolationError) for each in ended) == 1


async def test_looks_at_once_write_each_change_once(keeper: Keeper, bench: Bench) -> None:
    """B61, for operations."""
    await keeper.bench(bench.url)
    bench.offer("look", "Looks otherwise.")
    found = await asyncio.gather(*(keeper.refresh() for _ in range(6)))
    assert sorted(each.changed for each in found) == [()] * 5 + [("look",)]
    assert await count(keeper.database, "external_operation_version") == 3


async def test_without_its_lock_looks_at_once_collide(
    keeper: Keeper, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control of the test above: each compares before the other has written."""
    await keeper.bench(bench.url)
    bench.offer("look", "Looks otherwise.")
    met = asyncio.Barrier(2)
    compare = store.compare

    async def unlocked(*_: Any, **__: Any) -> bool:
        return True

    async def compared(*arguments: Any, **named: Any) -> Any:
        known = await compare(*arguments, **named)
        await met.wait()
        return known

    monkeypatch.setattr(store, "lock_connector", unlocked)
    monkeypatch.setattr(store, "compare", compared)
    looks = await asyncio.gather(keeper.refresh(), keeper.refresh(), return_exceptions=True)
    assert sum(isinstance(each, UniqueViolationError) for each in looks) == 1


@pytest.mark.parametrize("name", ["down", "not_allowed", "inside", "no_document", "swagger", "no_server", "slow"])
async def test_a_server_that_cannot_be_used_leaves_nothing_behind(keeper: Keeper, name: str) -> None:
    """Issue, Bad input: a server that is down or slow; Swagger 2.0; an address inside; clear errors."""
    async with RecordingServer(saying(reply(b"<html>", content_type="text/html"))) as server:
        inside = replace(shop_at(server.url), document_url="http://169.254.1.1/openapi.json")
        swagger = b'{"swagger": "2.0", "info": {}, "paths": {}}'
        without = copy.deepcopy(SHOP) | {"servers": [{"url": "{nowhere}"}]}
        keeper.reach = reach_of(keeper.database, limit_seconds=1.0)

        async def never(_: Received, __: Any) -> None:
            await asyncio.sleep(30)

        if name == "slow":
            server.answer = never
        cases: dict[str, tuple[Any, bytes | None, str]] = {
            "down": (McpConnectorVersion(Http("http://127.0.0.1:9/mcp")), None, "127.0.0.1"),
            "not_allowed": (McpConnectorVersion(Stdio("true")), None, "FOLKMOOT_ALLOW_STDIO"),
            "inside": (inside, None, "inside"),
            "no_document": (shop_at(server.url), None, "not read|OpenAPI"),
            "swagger": (uploaded(swagger), swagger, "Swagger 2.0"),
            "no_server": (uploaded(document(without)), document(without), "baseUrl"),
            "slow": (shop_at(server.url), None, "within 1 seconds|in time"),
        }
        version, body, words = cases[name]
        with pytest.raises(ConnectorFault, match=words):
            await connectors.publish(
                keeper.database, keeper.caller, keeper.reach, namespace="new", name="x", version=version, document=body,
                new_id=keeper.new_id,
            )  # fmt: skip
    for table in ("definition", "external_operation", "connector_document"):
        assert await count(keeper.database, table) == 0
    with pytest.raises(NotFound):
        await definitions.page(keeper.database, keeper.caller, kind=MCP, namespace="new", after="", limit=1)


def shop_at(url: str) -> OpenApiConnectorVersion:
    return OpenApiConnectorVersion(document_url=f"{url}/openapi.json?key=hidden")


def uploaded(body: bytes, **fields: Any) -> OpenApiConnectorVersion:
    return OpenApiConnectorVersion(document_hash=hashlib.sha256(body).hexdigest(), **fields)


async def test_the_address_of_an_mcp_server_is_no_documents_and_is_not_waited_for(keeper: Keeper, bench: Bench) -> None:
    """Issue, Bad input: it answers at once, with a stream that has no end."""
    keeper.reach = reach_of(keeper.database, limit_seconds=3600.0)
    async with asyncio.timeout(30):
        with pytest.raises(ConnectorFault, match=r"/mcp answers with a stream of events .* McpConnector\.$"):
            await keeper.shop(OpenApiConnectorVersion(document_url=bench.url))
    assert await count(keeper.database, "definition") == 0


async def test_a_document_is_fetched_and_its_server_is_settled(keeper: Keeper) -> None:
    """A document that names another server later changes nothing of where calls go: secrets would go there."""
    async with RecordingServer(saying(reply(document()))) as server:
        published, refreshed = await keeper.shop(shop_at(server.url))
        assert set(refreshed.added) == set(await keeper.operations("shop", OPEN_API)) == {"orders/list", "orders/add"}
        assert published.stored.body.server_url == f"{server.url}/v1"
        moved = copy.deepcopy(SHOP) | {"servers": [{"url": "https://elsewhere.example.com/v1"}]}
        server.answer = saying(reply(document(moved)))
        changed = await keeper.refresh("shop", OPEN_API)
        assert (changed.changed, changed.server_url) == ((), "https://elsewhere.example.com/v1")
    found = await definitions.get(keeper.database, keeper.caller, kind=OPEN_API, reference=Reference("shop", SPACE))
    assert found.number == 1 and found.body == published.stored.body


async def test_an_uploaded_document_is_kept_and_read_again(keeper: Keeper) -> None:
    version = uploaded(document(), base_url="https://shop.example.com/v2")
    published, refreshed = await keeper.shop(version, uploaded=document())
    assert len(refreshed.added) == 2 and published.stored.body.server_url == "https://shop.example.com/v2"
    assert (await keeper.refresh("shop", OPEN_API)).changed == ()
    again, _ = await keeper.shop(replace(version, description="Ours."))
    assert again.outcome is Outcome.CHANGED and await count(keeper.database, "connector_document") == 1
    (listed,) = [
        each.stored.version
        for each in (await keeper.operations("shop", OPEN_API)).values()
        if isinstance(each.stored.version.descriptor, OpenApiDescriptor)
        and each.stored.version.descriptor.method == "GET"
    ]
    assert listed.is_read_only and listed.is_idempotent
    with pytest.raises(ConnectorFault, match="Upload it"):
        await keeper.shop(uploaded(b"never seen"))


async def test_secrets_go_to_the_service_and_not_to_who_keeps_its_document(keeper: Keeper) -> None:
    """B52: a secret leaves only for where it was meant to go, and stands in no row and no error."""
    await keeper.secret("token", "s3cr3t-of-ours")
    headers = (ConnectorHeader("Authorization", Reference("token"), "Bearer"),)
    async with RecordingServer(saying(reply(document()))) as server:
        await keeper.shop(replace(shop_at(server.url), headers=headers))
        assert server.received[-1].header("authorization") is None
        await keeper.shop(replace(shop_at(server.url), headers=headers, base_url=f"{server.url}/v1"))
        assert server.received[-1].header("authorization") == "Bearer s3cr3t-of-ours"
        server.answer = saying(reply(status=500))
        with pytest.raises(ConnectorFault) as caught:
            await keeper.refresh("shop", OPEN_API)
    assert "s3cr3t" not in str(caught.value) and "hidden" not in str(caught.value)
    async with keeper.database.reader() as reader:
        bodies = await reader.connection.fetch("select body::text from definition_version")
    assert bodies and all("s3cr3t" not in row["body"] for row in bodies)


async def test_a_commands_secrets_are_variables_of_its_environment(keeper: Keeper, tmp_path: Path) -> None:
    """platform.md: connector secrets are sealed: they are in no version, and reach the process that is looked at."""
    await keeper.secret("token", "s3cr3t-of-ours")
    keeper.reach = reach_of(keeper.database, allows_stdio=True)
    journal = tmp_path / "journal"
    server = misbehaving("tells", journal, MODE="plain")

    async def publish(*headers: ConnectorHeader) -> Any:
        return await connectors.publish(
            keeper.database, keeper.caller, keeper.reach, namespace=SPACE, name="local",
            version=McpConnectorVersion(server, headers=headers), document=None, new_id=keeper.new_id,
        )  # fmt: skip

    token = Reference("token")
    for names, scheme, pointers in (
        (("X-Key",), None, ["/headers/0/headerName"]),
        (("9LIVES",), None, ["/headers/0/headerName"]),
        (("PATH",), None, ["/headers/0/headerName"]),
        (("home",), None, ["/headers/0/headerName"]),
        (("LD_PRELOAD",), None, ["/headers/0/headerName"]),
        (("PYTHONPATH",), None, ["/headers/0/headerName"]),
        (("MODE",), None, ["/headers/0/headerName"]),
        (("TOKEN", "TOKEN"), None, ["/headers/1/headerName"]),
        (("TOKEN",), "Bearer", ["/headers/0/scheme"]),
    ):
        with pytest.raises(BadDefinition) as caught:
            await publish(*(ConnectorHeader(name, token, scheme) for name in names))
        assert [fault.pointer for fault in caught.value.faults] == pointers, names
    assert journal.read_text() == ""
    published, refreshed = await publish(ConnectorHeader("TOKEN", token), ConnectorHeader("HOST", token))
    assert refreshed.added == ("touch",)
    assert f"token {hashlib.sha256(b's3cr3t-of-ours').hexdigest()}" in journal.read_text().splitlines()
    assert published.stored.body.server.environment == {"MODE": "plain"}
    async with keeper.database.reader() as reader:
        bodies = await reader.connection.fetch("select body::text from definition_version")
    assert bodies and all("s3cr3t" not in row["body"] for row in bodies)


async def test_another_tenants_secret_is_as_if_it_never_was(keeper: Keeper, bench: Bench) -> None:
    """F40; interactions.md: secrets of another tenant."""
    stranger = await other_tenant(keeper.database, keeper.new_id)
    theirs = await keeper.secret("theirs", "s3cr3t-of-theirs", caller=stranger)
    for secret in (Reference(definition_id=theirs), Reference("theirs"), Reference("nobody")):
        with pytest.raises(BadDefinition, match=r"no secret|never was") as caught:
            await keeper.bench(bench.url, headers=(ConnectorHeader("X-Key", secret),))
        assert [fault.pointer for fault in caught.value.faults] == ["/headers/0/secret"]
    await keeper.bench(bench.url)
    look = (await keeper.operations())["look"].stored.operation.operation_id
    with pytest.raises(NotFound):
        await operations.get(keeper.database, stranger, operation_id=look)


async def test_a_deleted_connector_takes_its_operations_along(keeper: Keeper, bench: Bench) -> None:
    await keeper.bench(bench.url)
    look = (await keeper.operations())["look"].stored.operation.operation_id
    reference = Reference("bench", SPACE)
    await definitions.set_disabled(
        keeper.database, keeper.caller, kind=MCP, reference=replace(reference, version=1), is_disabled=True
    )
    with pytest.raises(Conflict, match="disabled"):
        await keeper.refresh()
    await definitions.delete(keeper.database, keeper.caller, kind=MCP, reference=reference)
    with pytest.raises(NotFound):
        await operations.get(keeper.database, keeper.caller, operation_id=look)
    await keeper.bench(bench.url)
    assert (await keeper.operations())["look"].stored.operation.operation_id != look
