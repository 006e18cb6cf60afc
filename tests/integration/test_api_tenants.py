"""What belongs to another tenant is as if it never was, by every route and every id (F40, B66)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest_asyncio
from api_at_hand import (
    NAMESPACE,
    NEW_ID,
    PANEL,
    RUNS,
    Served,
    document,
    problem_of,
    publish_panel,
    put,
    served,
    start_run,
    stranger_key,
)
from waiting_at_hand import ask, ask_consent

from folkmoot.domain.connectors import McpConnectorVersion
from folkmoot.domain.definitions import DefinitionKind
from folkmoot.domain.operations import Http
from folkmoot.domain.pending import PendingKind
from folkmoot.services import keys
from folkmoot.store import definitions, tenancy
from folkmoot.store.database import Database

_VERSIONED = ("", "/versions", "/versions/{number}/disable", "/versions/{number}/enable")
_CONNECTOR = (*_VERSIONED, "/operations", "/refresh")
_ANSWERS = ("/votes/{ballot_id}", "/questions/{question_id}", "/approvals/{approval_id}", "/pass")
# What a path names of the owner's (# for its id, else its name), and what may follow it.
BY_ID = {
    "/agents/by-id/{definition_id}": ("#agent", (*_VERSIONED, "/runs")),
    "/agent-runs/{agent_run_id}": (
        "#agentRun",
        ("", "/conversation", "/payload", "/messages", "/events", "/consent", "/cancel"),
    ),
    "/routers/by-id/{definition_id}": ("#router", _VERSIONED),
    "/ai-models/by-id/{definition_id}": ("#model", _VERSIONED),
    "/interactions/by-id/{definition_id}": ("#panel", (*_VERSIONED, "/tools")),
    "/connectors/mcp/by-id/{definition_id}": ("#files", _CONNECTOR),
    "/connectors/open-api/by-id/{definition_id}": ("#shop", _CONNECTOR),
    "/credential-stacks/by-id/{definition_id}": ("#stack", _VERSIONED),
    "/channels/by-id/{definition_id}": ("#channel", _VERSIONED),
    "/model-keys/by-id/{model_key_id}": ("#modelKey", ("",)),
    "/connectors/operations/by-id/{operation_id}": ("#operation", (*_VERSIONED, "/settings")),
    "/interactions/processes/by-id/{interaction_id}": ("#panel", ("/start",)),
    "/interactions/processes/by-id/{run_id}": (
        "#run",
        ("", "/details", "/items", "/events", "/usage", "/tree", "/messages", "/stop", *_ANSWERS),
    ),
    "/processes/{type}/{process_id}": ("#run", ("/tree", "/stop")),
    "/apps/{app_name}/runs/{app_run_id}": ("#app", ("", "/ping", "/end")),
    "/keys/by-id/{key_id}": ("#key", ("/revoke",)),
    "/users/by-id/{user_id}": ("#user", ("", "/role", "/identities", "/identities/{app}")),
    "/secrets/by-id/{secret_id}": ("#secret", ("",)),
    "/webhooks/by-id/{webhook_id}": ("#webhook", ("", "/rotate", "/messages")),
}
BY_NAME = {
    "/namespaces/{namespace_name}/agents": ("", ("",)),
    "/namespaces/{namespace_name}/routers": ("", ("",)),
    "/namespaces/{namespace_name}/ai-models": ("", ("",)),
    "/namespaces/{namespace_name}/interactions": ("", ("",)),
    "/namespaces/{namespace_name}/connectors/mcp": ("", ("",)),
    "/namespaces/{namespace_name}/connectors/open-api": ("", ("",)),
    "/namespaces/{namespace_name}/credential-stacks": ("", ("", "/default")),
    "/namespaces/{namespace_name}/channels": ("", ("",)),
    "/namespaces/{namespace_name}/secrets": ("", ("",)),
    "/namespaces/{namespace_name}/agents/by-name/{name}": ("optimist", _VERSIONED),
    "/namespaces/{namespace_name}/routers/by-name/{name}": ("chooser", _VERSIONED),
    "/namespaces/{namespace_name}/ai-models/by-name/{name}": ("small", _VERSIONED),
    "/namespaces/{namespace_name}/interactions/by-name/{name}": ("panel", ("/start", "/tools", *_VERSIONED)),
    "/namespaces/{namespace_name}/connectors/mcp/by-name/{name}": ("files", _CONNECTOR),
    "/namespaces/{namespace_name}/connectors/open-api/by-name/{name}": ("shop", _CONNECTOR),
    "/namespaces/{namespace_name}/credential-stacks/by-name/{name}": ("stack", _VERSIONED),
    "/namespaces/{namespace_name}/channels/by-name/{name}": ("desk", _VERSIONED),
    "/namespaces/{namespace_name}/secrets/by-name/{name}": ("token", ("",)),
}
NAMES_NOTHING = {
    "/interactions/processes", "/keys", "/users", "/audit", "/webhooks", "/approvals", "/approvals/count", "/approvals/events",
    "/usage", "/budget", "/agent-runs", "/healthz", "/readyz", "/model-keys", "/credential-stacks/default", "/apps/{app_name}/runs",
}  # fmt: skip
SECOND = {"ballot_id": PendingKind.VOTE, "question_id": PendingKind.QUESTION, "approval_id": PendingKind.APPROVAL}
CHAT_ITEM = UUID("01920000-0000-7000-8000-0000000000c1")
BODIES = {
    "/start": {},
    "/runs": {"goal": "Go."},
    "/consent": {"chatItemId": str(CHAT_ITEM), "decision": "approve", "argumentsHash": "00"},
    "/messages": {"message": "Hello."},
    "/votes/{ballot_id}": {"agree": True},
    "/questions/{question_id}": {"answer": "Tomorrow."},
    "/approvals/{approval_id}": {"decision": "Approve", "argumentsHash": "00"},
    "/settings": {"limitSeconds": 5},
    "/role": {"role": "viewer"},
    "/identities/{app}": {"address": "eve@example.com"},
    "/default": {"credentialStack": None},
    "/end": {"outcome": "Completed"},
}
KEY = {"provider": "openai", "credential": f"{NAMESPACE}/token"}
ROUTER = {"candidates": [{"agent": "optimist"}], "fallback": "optimist"}
CHANNEL = {"app": "webhook", "settings": {"url": "https://hooks.example"}, "secrets": {"signing": f"{NAMESPACE}/token"}}
STACK = {"entries": [{"name": "ours", **KEY}]}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "paths": {"/orders": {"get": {"operationId": "orders", "responses": {"200": {"description": "Orders."}}}}},
}
NO_NUMBER = "900000999"  # of an agent run that nobody has
TABLES = (
    "process", "item", "pending", "definition", "definition_version", "external_operation", "external_operation_version", "namespace",
    "app_user", "secret", "webhook", "model_key", "agent_run", "conversation", "chat_item", "channel_message", "default_credential_stack", "user_identity",
)  # fmt: skip


def targets() -> Iterator[tuple[str, str, str, str]]:
    """Each method and path that finds something, with what of the owner's it is to find, and what follows."""
    for base, (owned, rests) in {**BY_ID, **BY_NAME}.items():
        for rest in rests:
            for method in document()["paths"][base + rest]:
                if base in BY_ID or method in ("get", "delete") or rest:  # the others make something of the caller's
                    yield method.upper(), base + rest, owned, rest


def nothing_like(owned: str, nothing: str) -> str:
    """The id of nothing, of the form that ids of this kind have."""
    return NO_NUMBER if owned == "#agentRun" else nothing


def body_of(method: str, rest: str) -> Any:
    if method == "PUT" and not rest:
        return {"name": "ours", **KEY}  # only a model key is put by its id
    return BODIES.get(rest) if method != "GET" else None


def filled(path: str, *, thing: str, second: Mapping[str, str], namespace: str = NAMESPACE) -> str:
    names = set(re.findall(r"\{(\w+)\}", path)) - {"namespace_name", "number", "type", "app_name", "app", *second}
    fixed = {"number": 1, "type": "Interaction", "app_name": "nightly-import", "app": "email"}
    return path.format(namespace_name=namespace, **fixed, **dict.fromkeys(names, thing), **second)


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


class TestOtherTenants:
    def test_every_route_is_in_the_table(self) -> None:
        """F40: a new route fails until it is listed."""
        listed = {base + rest for base, (_, rests) in {**BY_ID, **BY_NAME}.items() for rest in rests}
        assert listed | NAMES_NOTHING == set(document()["paths"])

    async def test_what_is_anothers_is_as_if_it_never_was(self, server: Served) -> None:
        """F40, B66: the same 404 for an id or a name of another tenant and for one that nobody has."""
        _, key = await stranger_key(server.installation.database)
        ids = await self.ids(server)
        before = await self.everything(server)
        nothing = str(NEW_ID())
        nobody = dict.fromkeys(SECOND, nothing)
        checked = 0
        async with server.of(key) as theirs:
            for method, path, owned, rest in targets():
                thing, no_thing = (ids[owned], nothing_like(owned, nothing)) if owned in ids else (owned, owned)
                real = filled(path, thing=thing, second={name: ids[name] for name in SECOND})
                none = filled(path, thing=no_thing, second=nobody, namespace="no-such")
                told = [
                    problem_of(await theirs.request(method, target, json=body_of(method, rest)), 404, "not_found")
                    for target in (real, none)
                ]
                words = json.dumps(told[0]).replace(NAMESPACE, "no-such")
                for name, found in ids.items():
                    words = words.replace(found, nothing_like(name, nothing))
                assert words == json.dumps(told[1]), (method, path)
                checked += 1
        assert checked > 90
        assert await self.everything(server) == before

    async def test_anothers_id_in_the_second_place_is_as_none(self, server: Served, tmp_path: Path) -> None:
        """F40: below a run of one's own."""
        _, key = await stranger_key(server.installation.database)
        ids = await self.ids(server)
        async with server.of(key) as theirs:
            await publish_panel(theirs, tmp_path)
            run = f"{RUNS}/by-id/{(await start_run(theirs))['id']}"
            for rest in _ANSWERS[:-1]:
                nothing = str(NEW_ID())
                (place,) = set(SECOND) & set(re.findall(r"\w+", rest))
                told = [
                    (await theirs.post(run + rest.format(**{place: id_}), json=BODIES[rest])).json()
                    for id_ in (ids[place], nothing)
                ]
                assert json.dumps(told[0]).replace(ids[place], nothing) == json.dumps(told[1]), rest
                assert told[0]["status"] in (404, 409)

    async def test_the_owner_finds_it_by_every_route(self, server: Served) -> None:
        """The negative control: the 404s above are those of a stranger. What was deleted by one route is gone by the other."""
        ids = await self.ids(server)
        second = {name: ids[name] for name in SECOND}
        gone = set[str]()
        for method, path, owned, rest in sorted(targets(), key=lambda target: (target[0] == "DELETE", target[3])):
            if rest in ("/events", "/refresh"):  # the one does not end, the other goes out
                continue
            target = filled(path, thing=ids.get(owned, owned), second=second)
            answer = await server.client.request(method, target, json=body_of(method, rest))
            if method == "DELETE" and answer.status_code == 404:
                gone.add(path)
                continue
            # a run that waits for one answer may not take the next: it was found all the same
            assert answer.status_code in (200, 201, 204, 409), (method, path, answer.text)
        assert len(gone) == 10, gone

    async def test_lists_hold_what_is_ones_own(self, server: Served, tmp_path: Path) -> None:
        await self.ids(server)
        _, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            assert (await theirs.get(RUNS)).json() == {"items": [], "next": None}
            assert [key["name"] for key in (await theirs.get("/keys")).json()["items"]] == ["theirs"]
            assert [user["name"] for user in (await theirs.get("/users")).json()["items"]] == ["Stranger"]
            for path in ("/audit", "/webhooks", "/approvals", "/model-keys", "/agent-runs"):
                assert (await theirs.get(path)).json()["items"] == [], path
            for kind in ("agents", "ai-models", "interactions"):
                problem_of(await theirs.get(f"/namespaces/{NAMESPACE}/{kind}"), 404)
            own = (await publish_panel(theirs, tmp_path))["id"]
            page = (await theirs.get(f"/namespaces/{NAMESPACE}/interactions")).json()
            assert [shown["id"] for shown in page["items"]] == [own]

    async def test_an_id_in_a_body_is_ones_own(self, server: Served) -> None:
        """B66: a reference to what another tenant has is one to nothing."""
        ids = await self.ids(server)
        _, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            body = {"agents": [{"agent": {"id": ids["#agent"]}}], "prompt": "x", "maximumRounds": 1}
            problem = problem_of(await theirs.put(PANEL, json=body), 422, "bad_definition")
            assert [error["pointer"] for error in problem["errors"]] == ["/agents/0/agent"]
            answer = await theirs.put(
                f"/namespaces/{NAMESPACE}/agents/by-name/x", json={"model": {"id": ids["#model"]}}
            )
            problem_of(answer, 422, "bad_definition")
            for user in (ids["#user"], str(NEW_ID())):
                problem_of(await theirs.post("/keys", json={"name": "x", "userId": user}), 404, "not_found")
            for secret in (ids["#secret"], str(NEW_ID())):
                header = {"headerName": "X-Key", "secretId": secret}
                connector = {"document": json.dumps(DOCUMENT), "headers": [header]}
                answer = await theirs.put(f"/namespaces/{NAMESPACE}/connectors/open-api/by-name/x", json=connector)
                told = problem_of(answer, 422)
                assert [error["pointer"] for error in told["errors"]] == ["/headers/0/secret"], told

    async def ids(self, server: Served) -> dict[str, str]:
        client, base = server.client, f"/namespaces/{NAMESPACE}"
        shop = await put(client, f"{base}/connectors/open-api/by-name/shop", {"document": json.dumps(DOCUMENT)})
        operations = (await client.get(f"{base}/connectors/open-api/by-name/shop/operations")).json()["items"]
        run = (await start_run(client))["id"]
        user = (await client.post("/users", json={"name": "Ann", "role": "viewer"})).json()["id"]
        await put(client, f"/users/by-id/{user}/identities/email", {"address": "ann@example.com"})
        database = server.installation.database
        webhook = {"url": "https://hooks.example/x", "kinds": ["approval.requested"]}
        return {
            "#panel": (await client.get(PANEL)).json()["id"],
            "#agent": (await client.get(f"{base}/agents/by-name/optimist")).json()["id"],
            "#model": (await client.get(f"{base}/ai-models/by-name/small")).json()["id"],
            "#files": await self.mcp_connector(database),
            "#shop": shop["id"],
            "#operation": operations[0]["id"],
            "#run": run,
            "#app": (await client.post("/apps/nightly-import/runs", json={})).json()["id"],
            "#key": (await client.post("/keys", json={"name": "second"})).json()["id"],
            "#user": user,
            "#secret": (await put(client, f"{base}/secrets/by-name/token", {"value": "a value"}))["id"],
            "#stack": (await put(client, f"{base}/credential-stacks/by-name/stack", STACK))["id"],
            "#channel": (await put(client, f"{base}/channels/by-name/desk", CHANNEL))["id"],
            "#router": (await put(client, f"{base}/routers/by-name/chooser", ROUTER))["id"],
            "#modelKey": (await client.post("/model-keys", json={"name": "ours", **KEY})).json()["id"],
            "#webhook": (await client.post("/webhooks", json=webhook)).json()["id"],
            "#agentRun": await self.agent_run(server),
            **{name: str(await ask(database, run, kind)) for name, kind in SECOND.items()},
        }

    async def agent_run(self, server: Served) -> str:
        """One that waits for its owner's consent; its number is found again in any text."""
        client, database = server.client, server.installation.database
        async with database.writer() as writer:
            await writer.connection.execute("alter table agent_run alter column id restart with 900000001")
        agent = (await client.get(f"/namespaces/{NAMESPACE}/agents/by-name/optimist")).json()["id"]
        run = (await client.post(f"/agents/by-id/{agent}/runs", json={"goal": "Go."})).json()["id"]
        await ask_consent(database, run, chat_item_id=CHAT_ITEM)
        return str(run)

    async def mcp_connector(self, database: Database) -> str:
        """As it is once its server was looked at; there is no server here."""
        owner = await keys.owner(database)
        async with database.writer() as writer:
            place = await tenancy.find_namespace(writer, owner.tenant_id, name=NAMESPACE)
            assert place is not None
            made = await definitions.publish(
                writer, owner.tenant_id, kind=DefinitionKind.MCP_CONNECTOR, namespace_id=place.namespace_id, name="files",
                body=McpConnectorVersion(Http("https://files.example/mcp")), created_by=owner.user_id, definition_id=NEW_ID(),
            )  # fmt: skip
        return str(made.definition_id)

    async def everything(self, server: Served) -> list[Any]:
        """All that the owner's tenant holds, but for when keys were used."""
        async with server.installation.database.reader() as reader:
            rows = [await reader.connection.fetch(f"select * from {table} order by 1, 2") for table in TABLES]
            made = await reader.connection.fetch("select key_id, revoked_at from api_key order by 1")
        return [[tuple(row) for row in part] for part in (*rows, made)]
