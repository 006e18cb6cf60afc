"""The OpenAPI document: what the contract has of it, what clients need of it, and that every route asks for a key (api.md; B66)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_at_hand import NEW_ID, Served, document, problem_of, served
from fastapi.routing import APIRoute, iter_route_contexts

from folkmoot.api.app import make_app
from folkmoot.store.database import Database

PUBLIC = {"/healthz", "/readyz", "/docs", "/openapi.json"}
INBOUND = "/channels/{channel_id}/inbound"  # of a channel, which proves itself by the channel's secrets
CHECK = Path(__file__).with_name("check_contract.py")


@pytest.fixture(name="document")
def _document() -> dict[str, Any]:
    return document()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def concrete(path: str) -> str:
    """The path with a value for each of its parameters."""
    values = {"number": "1", "namespace_name": "examples", "name": "panel"}
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], str(NEW_ID())), path)


class TestTheDocument:
    def test_it_holds_to_the_contract(self, document: dict[str, Any], tmp_path: Path) -> None:
        """Issue 2, Shown by 5."""
        path = tmp_path / "openapi.json"
        path.write_text(json.dumps(document))
        done = subprocess.run(
            [sys.executable, str(CHECK), str(path), "--existing"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert ", 0 faults" in done.stdout

    def test_a_type_that_breaks_the_contract_is_noticed(self, document: dict[str, Any], tmp_path: Path) -> None:
        """The negative control of the test above."""
        broken = json.loads(json.dumps(document))
        broken["components"]["schemas"]["InteractionProcess"]["required"].remove("dateEnded")
        path = tmp_path / "openapi.json"
        path.write_text(json.dumps(broken))
        done = subprocess.run(
            [sys.executable, str(CHECK), str(path), "--existing"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "InteractionProcess.dateEnded" in done.stdout

    def test_the_routes_and_the_document_are_the_same(self, document: dict[str, Any]) -> None:
        routes = {
            (method, context.path)
            for context in iter_route_contexts(make_app().routes)
            if isinstance(context.original_route, APIRoute) and context.include_in_schema
            for method in context.methods or ()
        }
        assert routes == {(method, path) for method, path, _ in operations(document)}
        assert len(routes) > 50

    def test_operation_ids_are_unique_names(self, document: dict[str, Any]) -> None:
        ids = [operation["operationId"] for _, _, operation in operations(document)]
        assert len(set(ids)) == len(ids)
        assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []

    def test_every_operation_says_what_it_does(self, document: dict[str, Any]) -> None:
        for method, path, operation in operations(document):
            assert operation.get("description", "").endswith("."), (method, path)

    def test_every_error_is_a_problem(self, document: dict[str, Any]) -> None:
        """README.md, Wire conventions. `/readyz` tells with its 503 what is missing."""
        for method, path, operation in operations(document):
            for status, answer in operation["responses"].items():
                if status.startswith(("4", "5")) and path != "/readyz":
                    schema = {"$ref": "#/components/schemas/Problem"}
                    assert answer["content"] == {"application/problem+json": {"schema": schema}}, (method, path, status)

    def test_every_route_names_the_errors_of_what_it_takes(self, document: dict[str, Any]) -> None:
        for method, path, operation in operations(document):
            if path in {*PUBLIC, INBOUND}:
                continue
            expected = {"401", "403", "422", "503"}
            expected |= {"400", "413", "415"} if "requestBody" in operation else set()
            expected |= {"404"} if "by-id" in path or ("by-name" in path and method != "PUT") else set()
            assert expected <= set(operation["responses"]), (method, path)

    def test_names_are_as_the_wire_writes_them(self, document: dict[str, Any]) -> None:
        for name, schema in document["components"]["schemas"].items():
            assert re.fullmatch(r"[A-Z][A-Za-z]+", name), name
            assert [f for f in schema.get("properties", {}) if not re.fullmatch(r"[a-z][A-Za-z]*", f)] == [], name

    def test_no_type_is_both_taken_and_given(self, document: dict[str, Any]) -> None:
        """README.md: request types are separate from response types. What is given promises each of its fields."""
        taken, given = set[str](), set[str]()
        for _, _, operation in operations(document):
            taken |= referred(operation.get("requestBody", {}), document)
            given |= referred(operation["responses"], document)
        schemas = document["components"]["schemas"]
        assert {name for name in taken & given if "enum" not in schemas[name]} == set()
        for name in given:
            properties = set(schemas[name].get("properties", {}))
            assert set(schemas[name].get("required", ())) == properties, name
        for name in taken - given:
            assert "enum" in schemas[name] or schemas[name]["additionalProperties"] is False, name
        assert set(schemas) == taken | given

    def test_every_reference_leads_somewhere(self, document: dict[str, Any]) -> None:
        names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
        assert names <= set(document["components"]["schemas"])

    def test_the_shapes_of_events_are_told(self, document: dict[str, Any]) -> None:
        """api.md, Events: the names. Ids are of items, and of the moments from which the inbox's feed goes on."""
        streams = {
            "/agent-runs/{agent_run_id}/events": (["approval", "delta", "end", "item", "status", "usage"], ["item"]),
            "/interactions/processes/by-id/{run_id}/events": (
                ["approval", "delta", "end", "item", "status", "usage"],
                ["item"],
            ),
            "/approvals/events": (["closed", "synced", "waiting"], ["synced"]),
        }
        for path, (names, with_id) in streams.items():
            answer = document["paths"][path]["get"]["responses"]["200"]
            events = [event["properties"] for event in answer["content"]["text/event-stream"]["itemSchema"]["oneOf"]]
            assert sorted(event["event"]["const"] for event in events) == names
            assert [event["event"]["const"] for event in events if "id" in event] == with_id


def referred(part: Any, document: dict[str, Any]) -> set[str]:
    """Names of all schemas that a part of the document needs."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        names = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(waiting.pop()))) - found
        found |= names
        waiting += [document["components"]["schemas"][name] for name in names]
    return found


class TestKeys:
    @pytest_asyncio.fixture
    async def server(self, database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
        async with served(database_dsn, data_dir=tmp_path) as server:
            yield server

    async def test_no_route_is_without_a_check(self, server: Served, document: dict[str, Any]) -> None:
        """B66: without a key, with a key that is none, and with one of no use any more, each route but those that say so."""
        revoked = (await server.client.post("/keys", json={"name": "old"})).json()
        assert (await server.client.post(f"/keys/by-id/{revoked['id']}/revoke")).status_code == 200
        expired = await expired_key(server)
        told = {
            None: "A key is needed",
            "fm_nonsense": "not known",
            revoked["key"]: "was revoked",
            expired: "has expired",
        }
        checked = 0
        for key, words in told.items():
            async with server.of(key) as client:
                for method, path, _ in operations(document):
                    if path in {*PUBLIC, INBOUND}:
                        continue
                    # A body that no route could read: nobody is told so before it is known who asks.
                    problem = problem_of(await client.request(method, concrete(path), content=b"{"), 401, "not_allowed")
                    assert words in problem["detail"], (method, path)
                    checked += 1
        assert checked > 200

    async def test_no_route_takes_a_parameter_that_it_does_not_have(
        self, server: Served, document: dict[str, Any]
    ) -> None:
        """README.md, Wire conventions, as of bodies: unknown names are refused, by name; so is one that stands twice."""
        for method, path, operation in operations(document):
            if path in {*PUBLIC, INBOUND}:
                continue
            names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            query = "&".join(["sta~u=Running", *(f"{name}=1&{name}=1" for name in names)])
            problem = problem_of(await server.client.request(method, f"{concrete(path)}?{query}"), 422, "bad_input")
            told = {error["pointer"]: error["message"] for error in problem["errors"]}
            assert sorted(told) == sorted(["/query/sta~0u", *(f"/query/{name}" for name in names)]), (method, path)
            assert told["/query/sta~0u"] in problem["detail"]
            assert all(told[f"/query/{name}"].endswith("is there 2 times; leave one.") for name in names)

    async def test_what_names_a_parameter_wrongly_is_told_the_right_ones(self, server: Served) -> None:
        """And each name but a few of thousands, shortened."""
        problem = problem_of(await server.client.get("/approvals?statu=Pending&kind=Vote&x"), 422, "bad_input")
        there = "this path takes status, kind, run, root, limit, after; remove it, or correct its name."
        told = {error["pointer"]: error["message"] for error in problem["errors"]}
        assert told == {f"/query/{name}": f"There is no parameter '{name}' here, {there}" for name in ("statu", "x")}
        problem = problem_of(await server.client.get("/approvals/count?x=1"), 422, "bad_input")
        assert "this path takes none" in problem["detail"]
        many = await server.client.get("/keys?" + "&".join(f"{n}{'x' * 50}" for n in range(1_000)))
        assert len(problem_of(many, 422, "bad_input")["errors"]) == 100 and len(many.content) < 50_000
        assert (await server.client.get("/approvals?status=Pending&kind=Vote&limit=1")).status_code == 200

    async def test_a_key_is_passed_in_one_way(self, server: Served) -> None:
        """F41."""
        values = [
            "Basic {key}",
            "{key}",
            "Bearer",
            "Bearer {key}x",
            "Token {key}",
            "Bearer {key} {key}",
            "Bearer \xff\xfe",
        ]
        async with server.of(None) as client:
            for value in values:
                headers = [(b"Authorization", value.format(key=server.key).encode("latin-1"))]
                answer = await client.get("/keys", headers=headers)
                assert server.key not in problem_of(answer, 401, "not_allowed")["detail"]
                assert answer.headers["www-authenticate"] == "Bearer"
            answer = await client.get(f"/keys?key={server.key}", headers={"X-Api-Key": server.key})
            problem_of(answer, 401, "not_allowed")

    async def test_no_other_spelling_of_a_path_leads_anywhere(self, server: Served) -> None:
        """F41."""
        async with server.of(None) as client:
            for path in ("/keys/", "//keys", "/KEYS", "/keys/../keys", "/%6Beys", "/keys;x", "/docs/../keys"):
                # whole, since `//keys` alone is a host's name
                answer = await client.get(str(client.base_url).rstrip("/") + path)
                assert answer.status_code in (401, 404), path

    async def test_what_needs_no_key_tells_of_no_tenant(self, server: Served) -> None:
        async with server.of(None) as client:
            answers = {path: await client.get(path) for path in sorted(PUBLIC)}
        assert {answer.status_code for answer in answers.values()} == {200}
        told = " ".join(answer.text for answer in answers.values())
        assert server.key not in told and str(server.installation.data_dir) not in told


async def expired_key(server: Served) -> str:
    """A key that was good for an hour, an hour ago."""
    later = "2099-01-01T00:00:00Z"
    made = (await server.client.post("/keys", json={"name": "short", "dateExpires": later})).json()
    database: Database = server.installation.database
    async with database.writer() as writer:
        await writer.connection.execute(
            "update api_key set expires_at = folkmoot_now() - $1::interval where name = 'short'", timedelta(hours=1)
        )
    return str(made["key"])


async def test_the_docs_page_shows_everything_and_takes_nothing_from_outside(
    database_dsn: str, tmp_path: Path, document: dict[str, Any]
) -> None:
    """api.md: `/docs` shows the document."""
    async with served(database_dsn, data_dir=tmp_path) as server, server.of(None) as client:
        page = await client.get("/docs")
    for method, path, operation in operations(document):
        assert f"<b>{method}</b> <code>{path}</code> {operation['operationId']}" in page.text
    for name, schema in document["components"]["schemas"].items():
        assert f'id="{name}"' in page.text
        for value in schema.get("enum", ()):
            assert value in page.text
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= set(document["components"]["schemas"])
    policy = dict(part.strip().partition(" ")[::2] for part in page.headers["content-security-policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert not re.search(r"<script|<link|<img|<iframe|src=|https?://", page.text)
