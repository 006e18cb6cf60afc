"""Connectors over the API: saved, listed, decided on, refreshed; documents of many megabytes; what a run starts with (api.md)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio
from api_at_hand import NAMESPACE, PANEL, RUNS, Served, problem_of, publish_panel, put, served, start_run
from connectors_at_hand import READS, SHOP, Bench

MCP = f"/namespaces/{NAMESPACE}/connectors/mcp"
OPEN_API = f"/namespaces/{NAMESPACE}/connectors/open-api"


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path, allows="127.0.0.1") as found:
        yield found


async def operations(server: Served, path: str) -> dict[str, Any]:
    found = (await server.client.get(f"{path}/operations")).json()
    return {each["name"]: each for each in found["items"]}


async def test_an_mcp_server_from_its_address_to_a_gated_tool_of_a_run(
    server: Served, bench: Bench, tmp_path: Path
) -> None:
    """api.md: `/connectors/mcp`; conversation.md: a person sees which tools are gated before starting a run."""
    made = await server.client.post(MCP, json={"name": "bench", "version": {"url": bench.url}})
    assert made.status_code == 201 and made.json()["latestVersion"]["url"] == bench.url
    problem_of(await server.client.post(MCP, json={"name": "bench", "version": {"url": bench.url}}), 409, "conflict")
    down = {"name": "down", "version": {"url": "http://127.0.0.1:9/mcp"}}
    problem_of(await server.client.post(MCP, json=down), 422, "connector_fault")
    both = {"name": "both", "version": {"url": bench.url, "command": "true"}}
    wrong = problem_of(await server.client.post(MCP, json=both), 422, "bad_input")
    assert [error["pointer"] for error in wrong["errors"]] == ["/version"]
    at = f"{MCP}/by-name/bench"
    paint = (await operations(server, at))["paint"]
    assert (paint["type"], paint["latestVersion"]["isGated"], paint["dateGone"]) == ("Mcp", True, None)
    assert json.loads(paint["latestVersion"]["parametersSchema"])["required"] == ["thing"]
    by_id = f"/connectors/operations/by-id/{paint['id']}"
    settled = await put(server.client, f"{by_id}/settings", {"approvalMode": "Always", "limitSeconds": 5})
    assert (settled["latestVersion"]["version"], settled["latestVersion"]["limitSeconds"]) == (2, 5.0)
    tool = {"name": "paint", "externalOperationId": paint["id"], "requestBindings": [{"name": "shade", "value": "3"}]}
    look = {"name": "look", "connector": "bench", "operation": "look"}
    await publish_panel(server.client, tmp_path, externalOperationsMcp=[tool, look])
    stored = (await server.client.get(PANEL)).json()["latestVersion"]["externalOperationsMcp"]
    assert stored[0]["externalOperationId"] == paint["id"] and stored[0]["approvalMode"] is None
    told = (await server.client.get(f"{PANEL}/tools")).json()
    assert told["problems"] == []
    assert [(t["functionName"], t["isGated"], t["operationVersion"]) for t in told["participants"][0]["tools"]] == [
        ("paint", True, 2),
        ("look", False, 1),
    ]
    run = await start_run(server.client)
    details = (await server.client.get(f"{RUNS}/by-id/{run['id']}/details")).json()
    assert details["gatedTools"] == [{"agentName": name, "functionName": "paint"} for name in ("Ann", "Ben")]
    bench.offer("look", "Looks away.", annotations=READS)
    bench.withdraw("paint")
    changed = (await server.client.post(f"{at}/refresh")).json()
    assert (changed["changed"], changed["gone"], changed["serverUrl"]) == (["look"], ["paint"], None)
    problem = problem_of(await server.client.put(f"{PANEL}/start", json={}), 422, "bad_input")
    assert "'paint' cannot be had" in problem["detail"] and "offered no more" in problem["detail"]
    told = (await server.client.get(f"{PANEL}/tools")).json()
    assert len(told["problems"]) == 1
    for word, is_disabled in (("disable", True), ("enable", False)):
        answer = await server.client.post(f"{by_id}/versions/1/{word}")
        assert answer.json()["latestVersion"]["isDisabled"] is is_disabled
    versions = (await server.client.get(f"{by_id}/versions")).json()["items"]
    assert [version["version"] for version in versions] == [2, 1]
    audit = (await server.client.get("/audit")).json()["items"]
    assert {"connector.refreshed", "operation.decided", "operation.disabled"} <= {entry["action"] for entry in audit}


async def test_a_document_of_13_megabytes_can_be_uploaded_and_no_larger_body_anywhere_else(
    server: Served, tmp_path: Path
) -> None:
    """Issue, Bad input: 13 MB."""
    large = SHOP | {"servers": [{"url": "https://shop.example.com"}], "x-notes": "n" * 13_000_000}
    body = {"document": json.dumps(large), "baseUrl": None}
    made = await server.client.put(f"{OPEN_API}/by-name/shop", json=body)
    assert made.status_code == 201, made.text
    version = made.json()["latestVersion"]
    assert (version["serverUrl"], len(version["documentHash"])) == ("https://shop.example.com", 64)
    assert set(await operations(server, f"/connectors/open-api/by-id/{made.json()['id']}")) == {
        "orders/add",
        "orders/list",
    }
    listed = await server.client.get(OPEN_API)
    assert len(listed.content) < 2_000
    part = (await server.client.get(f"{OPEN_API}/by-name/shop/operations?text=ADD")).json()["items"]
    assert [(each["name"], each["latestVersion"]["method"]) for each in part] == [("orders/add", "POST")]
    for path, size in ((f"{OPEN_API}/by-name/shop", 33), (f"{MCP}/by-name/x", 9)):
        problem = problem_of(await server.client.put(path, content=b" " * (size * 1024 * 1024)), 413, "too_large")
        assert f"{32 if size == 33 else 8} MiB" in problem["detail"]


async def test_what_no_document_can_be_is_refused(server: Served) -> None:
    """Issue, Bad input: Swagger 2.0, 3.2, circular, remote, an address inside; F53."""
    cases = {
        "Swagger 2.0": {"document": '{"swagger": "2.0"}'},
        "3.2": {"document": '{"openapi": "3.2.0", "paths": {}}'},
        "inside": {"documentUrl": "http://169.254.169.254/openapi.json"},
        "one document": {"document": "{}", "documentUrl": "https://x.example.com/"},
        "no user": {"documentUrl": "https://ann:pw@x.example.com/"},
        "named twice": {"document": "{}", "headers": [{"headerName": "X", "secret": "a", "secretId": "0" * 8 + "-0000-7000-8000-" + "0" * 12}]},
    }  # fmt: skip
    for words, version in cases.items():
        answer = await server.client.put(f"{OPEN_API}/by-name/shop", json=version)
        assert words in problem_of(answer, 422)["detail"] or words == "no user", answer.text
    problem_of(await server.client.get(f"{OPEN_API}/by-name/shop"), 404)


async def test_a_viewer_sees_connectors_and_changes_none(server: Served, bench: Bench) -> None:
    """platform.md, Tenancy: every route checks a right."""
    await put(server.client, f"{MCP}/by-name/bench", {"url": bench.url})
    key = (await server.client.post("/keys", json={"name": "narrow", "scopes": ["read"]})).json()["key"]
    async with server.of(key) as viewer:
        found = (await viewer.get(f"{MCP}/by-name/bench/operations")).json()["items"]
        assert len(found) == 2
        by_id = f"/connectors/operations/by-id/{found[0]['id']}"
        for method, path, body in (
            ("PUT", f"{MCP}/by-name/bench", {"url": bench.url}),
            ("POST", f"{MCP}/by-name/bench/refresh", None),
            ("PUT", f"{by_id}/settings", {"approvalMode": "Never"}),
            ("POST", f"{by_id}/versions/1/enable", None),
        ):
            problem_of(await viewer.request(method, path, json=body), 403, "not_permitted")
