"""What belongs to another tenant is as if it never was, by every route and every id (F40, B66)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

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
    served,
    start_run,
    stranger_key,
)

_VERSIONED = ("", "/versions", "/versions/{number}/disable", "/versions/{number}/enable")
# What a path names of the owner's (# for its id, else its name), and what may follow it.
BY_ID = {
    "/agents/by-id/{definition_id}": ("#agent", _VERSIONED),
    "/ai-models/by-id/{definition_id}": ("#model", _VERSIONED),
    "/interactions/by-id/{definition_id}": ("#panel", _VERSIONED),
    "/interactions/processes/by-id/{interaction_id}": ("#panel", ("/start",)),
    "/interactions/processes/by-id/{run_id}": ("#run", ("", "/details", "/items", "/events", "/messages", "/stop")),
    "/keys/by-id/{key_id}": ("#key", ("/revoke",)),
}
BY_NAME = {
    "/namespaces/{namespace_name}/agents": ("", ("",)),
    "/namespaces/{namespace_name}/ai-models": ("", ("",)),
    "/namespaces/{namespace_name}/interactions": ("", ("",)),
    "/namespaces/{namespace_name}/agents/by-name/{name}": ("optimist", _VERSIONED),
    "/namespaces/{namespace_name}/ai-models/by-name/{name}": ("small", _VERSIONED),
    "/namespaces/{namespace_name}/interactions/by-name/{name}": ("panel", ("/start", *_VERSIONED)),
}
NAMES_NOTHING = {"/interactions/processes", "/keys", "/healthz", "/readyz"}
BODIES = {"/start": {}, "/messages": {"message": "Hello."}}


def targets() -> Iterator[tuple[str, str, str, str]]:
    """Each method and path that finds something, with what of the owner's it is to find, and what follows."""
    for base, (owned, rests) in {**BY_ID, **BY_NAME}.items():
        for rest in rests:
            for method in document()["paths"][base + rest]:
                if base in BY_ID or method in ("get", "delete") or rest:  # the others make something of the caller's
                    yield method.upper(), base + rest, owned, rest


def filled(path: str, *, thing: str, namespace: str = NAMESPACE) -> str:
    values = dict.fromkeys(("definition_id", "interaction_id", "run_id", "key_id", "name"), thing)
    return path.format(namespace_name=namespace, number=1, **values)


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
        checked = 0
        async with server.of(key) as theirs:
            for method, path, owned, rest in targets():
                thing, nothing = (ids[owned], str(NEW_ID())) if owned in ids else (owned, owned)
                real, none = filled(path, thing=thing), filled(path, thing=nothing, namespace="no-such")
                told = [
                    problem_of(await theirs.request(method, target, json=BODIES.get(rest)), 404, "not_found")
                    for target in (real, none)
                ]
                words = json.dumps(told[0]).replace(thing, nothing).replace(NAMESPACE, "no-such")
                assert words == json.dumps(told[1]), (method, path)
                checked += 1
        assert checked == 42
        assert await self.everything(server) == before

    async def test_the_owner_finds_it_by_every_route(self, server: Served) -> None:
        """The negative control: the 404s above are those of a stranger."""
        ids = await self.ids(server)
        for method, path, owned, rest in sorted(targets(), key=lambda target: (target[0] == "DELETE", target[3])):
            if rest != "/events":
                target = filled(path, thing=ids.get(owned, owned))
                answer = await server.client.request(method, target, json=BODIES.get(rest))
                assert answer.status_code in (200, 201, 204, 404 if method == "DELETE" else 200), (
                    method,
                    path,
                    answer.text,
                )

    async def test_lists_hold_what_is_ones_own(self, server: Served, tmp_path: Path) -> None:
        await self.ids(server)
        _, key = await stranger_key(server.installation.database)
        async with server.of(key) as theirs:
            assert (await theirs.get(RUNS)).json() == {"items": [], "next": None}
            assert [key["name"] for key in (await theirs.get("/keys")).json()["items"]] == ["theirs"]
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

    async def ids(self, server: Served) -> dict[str, str]:
        client, base = server.client, f"/namespaces/{NAMESPACE}"
        return {
            "#panel": (await client.get(PANEL)).json()["id"],
            "#agent": (await client.get(f"{base}/agents/by-name/optimist")).json()["id"],
            "#model": (await client.get(f"{base}/ai-models/by-name/small")).json()["id"],
            "#run": (await start_run(client))["id"],
            "#key": (await client.post("/keys", json={"name": "second"})).json()["id"],
        }

    async def everything(self, server: Served) -> list[Any]:
        """All that the owner's tenant holds, but for when keys were used."""
        tables = ("process", "item", "definition", "definition_version", "namespace")
        async with server.installation.database.reader() as reader:
            rows = [await reader.connection.fetch(f"select * from {table} order by 1, 2, 3") for table in tables]
            keys = await reader.connection.fetch("select key_id, revoked_at from api_key order by 1")
        return [[tuple(row) for row in part] for part in (*rows, keys)]
