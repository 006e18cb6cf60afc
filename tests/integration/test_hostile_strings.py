"""Hostile text in every string that people and tools bring: a normal form or a clear refusal, never a fault, never a lost run (F25)."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest_asyncio
from api_at_hand import NAMESPACE, PANEL, RUNS, Served, ended, problem_of, put, start_run
from connectors_at_hand import SHOP
from mcp_at_hand import misbehaving
from operations_at_hand import AT_ONCE, House, house
from panels import Started
from recording_server import RecordingServer, reply, saying
from waiting_at_hand import approval_card, ask, hash_of

from folkmoot.domain.pending import PendingKind

JSON = {"Content-Type": "application/json"}
HOLE = "<hole>"
WORD = "w" * 1_000_000
# values as they stand in a body
TEXTS: dict[str, str] = {
    "NUL": '"a\\u0000b"',
    "only NUL": '"\\u0000"',
    "a lone surrogate": '"a\\ud800b"',
    "controls and bidi": '"a\\u001b[31m\\u202e\\u200b\\udb40\\udc41b"',
    "a word of 1 MB": f'"{WORD}"',
    "longer than any text": f'"{WORD}{WORD}"',
    "emoji": '"\\ud83d\\ude00"',
    "empty": '""',
    "NaN": "NaN",
    "5,000 digits": "9" * 5_000,
    "a number beyond": "1e999",
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep, and read": "[" * 400 + "]" * 400,
    "a key twice": '{"a": 1, "a": 2}',
    "an object": '{"a": [null]}',
    "null": "null",
}
REFUSED = {
    "a lone surrogate",
    "NaN",
    "5,000 digits",
    "deep",
    "deep, and read",
    "a key twice",
    "an object",
    "a number beyond",
}
MCP = f"/namespaces/{NAMESPACE}/connectors/mcp"
OPEN_API = f"/namespaces/{NAMESPACE}/connectors/open-api"
LOOK = {"name": "touch", "connector": "fine", "operation": "touch"}
LIST = {"connector": "shop", "operation": "orders/list"}
ORDERS = {"externalOperationsOpenApi": [{"name": "orders", **LIST}]}
TAKEN = {"requestBindings": [{"name": "text", "value": HOLE}]}


def bound(**fields: Any) -> dict[str, Any]:
    """A panel that binds the tool in this way."""
    return {"externalOperationsMcp": [{**LOOK, **fields}]}


def given(**fields: Any) -> dict[str, Any]:
    return {
        **ORDERS,
        "inputsConnectorBinding": [{**LIST, "name": "customer", "target": "customerId", "type": "Path", **fields}],
    }


def chosen(**fields: Any) -> dict[str, Any]:
    return {
        **ORDERS,
        "inputsConnectorAuthenticationSecret": [{**LIST, "name": "chosen", "headerName": "X-Key", **fields}],
    }


# method, path, body with a hole in it, and where what was taken is listed
PLACES: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", "/users", {"name": HOLE, "role": "viewer"}, "/users"),
    ("POST", "/users", {"name": "u", "role": HOLE}, "/users"),
    ("POST", "/keys", {"name": HOLE}, "/keys"),
    ("POST", "/keys", {"name": "k", "scopes": [HOLE]}, "/keys"),
    ("POST", "/keys", {"name": "k", "userId": HOLE}, "/keys"),
    ("PUT", f"/namespaces/{NAMESPACE}/secrets/by-name/s", {"value": HOLE}, f"/namespaces/{NAMESPACE}/secrets"),
    ("POST", "/webhooks", {"url": HOLE, "kinds": ["approval.decided"]}, "/webhooks"),
    ("POST", "/webhooks", {"url": "https://x.example.com/", "kinds": [HOLE]}, "/webhooks"),
    ("POST", MCP, {"name": HOLE, "version": {"url": "http://127.0.0.1:9/mcp"}}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"url": HOLE}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"command": HOLE}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"command": "false", "arguments": [HOLE]}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"command": "false", "environment": {"A": HOLE}}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"url": "http://127.0.0.1:9/", "headers": [{"headerName": HOLE, "secret": "known"}]}, MCP),
    ("PUT", f"{MCP}/by-name/x", {"url": "http://127.0.0.1:9/", "headers": [{"headerName": "X", "secret": HOLE}]}, MCP),
    ("PUT", f"{OPEN_API}/by-name/x", {"document": HOLE}, OPEN_API),
    ("PUT", f"{OPEN_API}/by-name/x", {"documentUrl": HOLE}, OPEN_API),
    ("PUT", f"{OPEN_API}/by-name/shop", {"document": "SHOP", "baseUrl": HOLE}, OPEN_API),
    ("PUT", f"{OPEN_API}/by-name/shop", {"document": "SHOP", "description": HOLE}, OPEN_API),
    ("PUT", f"{OPEN_API}/by-name/shop", {"document": "SHOP", "headers": [{"headerName": "X", "secret": "known", "scheme": HOLE}]}, OPEN_API),
    ("PUT", "OPERATION/settings", {"approvalMode": HOLE}, f"{MCP}/by-name/fine/operations"),
    ("PUT", "OPERATION/settings", {"limitSeconds": HOLE}, f"{MCP}/by-name/fine/operations"),
    ("PUT", PANEL, bound(**TAKEN), PANEL),
    ("PUT", PANEL, bound(requestBindings=[{"name": HOLE, "value": "1"}]), PANEL),
    ("PUT", PANEL, bound(name=HOLE), PANEL),
    ("PUT", PANEL, bound(operation=HOLE), PANEL),
    ("PUT", PANEL, bound(promptGuidance=HOLE), PANEL),
    ("PUT", PANEL, bound(authenticationHeader={"headerName": HOLE, "secret": "known"}), PANEL),
    ("PUT", PANEL, given(target=HOLE), PANEL),
    ("PUT", PANEL, given(name=HOLE), PANEL),
    ("PUT", PANEL, given(defaultValue=HOLE), PANEL),
    ("PUT", PANEL, given(description=HOLE), PANEL),
    ("PUT", PANEL, chosen(headerName=HOLE), PANEL),
    ("PUT", PANEL, chosen(scheme=HOLE), PANEL),
    ("PUT", PANEL, chosen(defaultSecret=HOLE), PANEL),
)  # fmt: skip


@pytest_asyncio.fixture
async def home(database_dsn: str, tmp_path: Path) -> AsyncIterator[House]:
    async with house(database_dsn, tmp_path) as made:
        server = misbehaving("fine", tmp_path / "fine.log")
        await made.mcp("fine", {"command": server.command, "arguments": list(server.arguments)}, **AT_ONCE)
        await made.secret("known", "s3cr3t-that-is-known")
        shop = copy.deepcopy(SHOP) | {"servers": [{"url": "https://shop.example.com"}]}
        await made.open_api("shop", {"document": json.dumps(shop)})
        await made.panel([])
        yield made


def told(answer: httpx2.Response, title: str, place: str) -> bool:
    """Whether it was taken; what was not was refused with a sentence."""
    assert answer.status_code < 500, (title, place, answer.text[:500])
    if answer.status_code < 300:
        return True
    assert problem_of(answer, answer.status_code)["detail"], (title, place)
    assert len(answer.content) < 60_000, (title, place, len(answer.content))
    return False


async def test_every_string_of_people_and_connectors_is_taken_or_refused(home: House) -> None:
    """F25: over the API, and what was taken can be listed; a run starts and ends as if nothing had been."""
    client = home.server.client
    shop = json.dumps(copy.deepcopy(SHOP) | {"servers": [{"url": "https://shop.example.com"}]})
    (operation,) = (await client.get(f"{MCP}/by-name/fine/operations")).json()["items"]
    panel = (await client.get(PANEL)).json()["latestVersion"]
    ground = {"agents": [{"agent": "optimist", "name": "Ann"}], "prompt": "Go on.", "maximumRounds": 1}
    assert panel["prompt"] == "Go on."
    taken: set[str] = set()
    for method, path, body, listed in PLACES:
        path = path.replace("OPERATION", f"/connectors/operations/by-id/{operation['id']}")
        whole = {**ground, "humanSettings": {"chatMode": "Observing"}, **body} if path == PANEL else body
        text = json.dumps(whole).replace('"SHOP"', json.dumps(shop))
        for title, value in TEXTS.items():
            content = text.replace(f'"{HOLE}"', value).encode()
            answer = await client.request(method, path, content=content, headers=JSON)
            place = f"{path} {json.dumps(body)[:120]}"
            is_taken = told(answer, title, place)
            assert not (is_taken and title in REFUSED), (title, place, answer.text[:300])
            if is_taken:
                again = await client.get(listed)
                assert again.status_code == 200, (title, place, again.text[:300])
            if is_taken and path == PANEL:
                taken.add(json.dumps(body))
                begun = await client.put(f"{PANEL}/start", json={})
                if told(begun, title, place):
                    started = Started(UUID(begun.json()["tenantId"]), UUID(begun.json()["id"]))
                    assert await home.ended(started) == "Completed", (title, place)
    assert len(taken) == 7, "the others name something, which no text of these does"
    await put(client, PANEL, {**ground, **bound()})
    assert await home.ended(await home.start()) == "Completed"


async def test_every_query_and_path_is_read_or_refused(home: House) -> None:
    """F25, F41: also where it would be a cursor, an id, or an enum."""
    client = home.server.client
    values = ["%00", "%ed%a0%80", "%ff", "%F0%9F%98%80", "w" * 20_000, "9" * 5_000, "NaN", "%E2%80%AE", "..%2f", ""]
    queries = (
        "/audit?action=", "/audit?subjectKind=", "/audit?subject=", "/audit?user=", "/audit?after=", "/users?after=", "/keys?after=",
        "/approvals?status=", "/approvals?kind=", "/approvals?run=", "/approvals?after=", "/webhooks?after=",
        f"{MCP}/by-name/fine/operations?text=", f"{MCP}/by-name/fine/operations?operation=", f"{MCP}/by-name/fine/operations?after=",
        f"{MCP}/by-name/", "/users/by-id/", "/secrets/by-id/", f"/namespaces/{NAMESPACE}/secrets/by-name/", "/connectors/operations/by-id/",
    )  # fmt: skip
    for query in queries:
        for value in values:
            told(await client.get(f"{query}{value}"), value[:20], query)


async def a_waiting(server: Served, kind: PendingKind, card: dict[str, Any] | None = None) -> tuple[str, str]:
    run = (await start_run(server.client))["id"]
    return run, str(await ask(server.installation.database, run, kind, card=card))


ANSWERS: tuple[tuple[PendingKind, str, dict[str, Any]], ...] = (
    (PendingKind.VOTE, "votes", {"agree": False, "reason": HOLE}),
    (PendingKind.VOTE, "votes", {"agree": HOLE}),
    (PendingKind.QUESTION, "questions", {"answer": HOLE}),
    (PendingKind.APPROVAL, "approvals", {"decision": "Reject", "argumentsHash": "HASH", "reason": HOLE}),
    (PendingKind.APPROVAL, "approvals", {"decision": "Approve", "argumentsHash": HOLE}),
    (PendingKind.APPROVAL, "approvals", {"decision": HOLE, "argumentsHash": "HASH"}),
)


async def test_every_answer_of_a_person_is_taken_or_refused(database_dsn: str, tmp_path: Path) -> None:
    """F25, B11: an answer that cannot be is no silent no; one that can be is in the record, the list and the audit log."""
    async with house(database_dsn, tmp_path, works=False) as home:
        await home.panel([])
        client = home.server.client
        for kind, part, body in ANSWERS:
            run, subject = await a_waiting(home.server, kind)
            text = json.dumps(body).replace("HASH", hash_of('{"path": "a.txt"}').hex())
            for title, value in TEXTS.items():
                content = text.replace(f'"{HOLE}"', value).encode()
                answer = await client.post(f"{RUNS}/by-id/{run}/{part}/{subject}", content=content, headers=JSON)
                if not told(answer, title, part):
                    continue
                assert title not in REFUSED, (title, part)
                for path in (f"{RUNS}/by-id/{run}/items", f"{RUNS}/by-id/{run}/approvals/{subject}"):
                    assert (await client.get(path)).status_code == 200, (title, path)
                run, subject = await a_waiting(home.server, kind)
            for path in ("/approvals", "/audit"):  # each shows the last fifty
                assert (await client.get(path)).status_code == 200, (part, path)


async def test_a_hostile_card_is_shown_and_can_be_decided(database_dsn: str, tmp_path: Path) -> None:
    """F25, F33: whatever a model or a server wrote into what waits."""
    async with house(database_dsn, tmp_path, works=False) as home:
        await home.panel([])
        for value in ("a\u2400\\ud800b", "\u202e\u200b\U000e0041\x1b[31m", WORD, "[" * 5_000):
            call_id = uuid4()
            card = approval_card(
                call_id, json.dumps({"text": value}), functionName=value[:50], description=value, server=value[:500]
            )
            run, subject = await a_waiting(home.server, PendingKind.APPROVAL, card)
            client = home.server.client
            for path in ("/approvals", f"{RUNS}/by-id/{run}/approvals/{subject}", f"{RUNS}/by-id/{run}"):
                answer = await client.get(path)
                assert answer.status_code == 200 and "\u202e" not in answer.text and "\x1b" not in answer.text
            body = {"decision": "Approve", "argumentsHash": card["argumentsHash"]}
            answer = await client.post(f"{RUNS}/by-id/{run}/approvals/{subject}", json=body)
            assert answer.status_code == 200, answer.text


RESULTS: dict[str, tuple[bytes, str]] = {
    "NUL": (reply(b"a\x00b", content_type="text/plain"), "a\u2400b"),
    "NUL in JSON": (reply(b'{"a": "\\u0000"}'), "\\u0000"),
    "a lone surrogate": (reply(b'{"a": "\\ud800"}'), "\\ud800"),
    "a surrogate in bytes": (reply(b"a\xed\xa0\x80b", content_type="text/plain"), "a"),
    "NaN": (reply(b'{"a": NaN}'), "NaN"),
    "5,000 digits": (reply(b"9" * 5_000), "9" * 5_000),
    "deep": (reply(b"[" * 30_000 + b"]" * 2_000), "[[["),
    "a key twice": (reply(b'{"a": 1, "a": 2}'), '"a": 2'),
    "a word of 1 MB": (reply(WORD.encode()), "are not shown"),
    "bidi": (reply("\u202e\u200b".encode()), ""),
}


async def test_every_result_of_a_server_is_kept_shown_and_read(home: House) -> None:
    """F25: the run goes on to its end, whatever came back, and whatever the model asked for."""
    client = home.server.client
    async with RecordingServer() as server:
        await home.open_api("shop", {"document": json.dumps(SHOP), "baseUrl": server.url}, **AT_ONCE)
        for title, (answer, shown) in RESULTS.items():
            server.answer = saying(answer)
            arguments = '{"customerId": 7, "state": "a\\u0000\\ud800\\u202e"}'
            calls = [{"name": "orders", "arguments": arguments}]
            (result,) = await home.outcome(calls, externalOperationsOpenApi=[{"name": "orders", **LIST}])
            assert not result.is_error and shown in result.result, (title, result.result[:200])
            run = (await client.get(RUNS)).json()["items"][0]["id"]
            for path in ("", "/details", "/items"):
                assert (await client.get(f"{RUNS}/by-id/{run}{path}")).status_code == 200, (title, path)
            assert (await ended(client, run))[-1].data["status"] == "Completed"


async def test_what_a_server_says_of_its_operations_is_kept_or_left_out_by_name(home: House) -> None:
    """F25, F53: descriptions and names from documents and MCP servers."""
    client = home.server.client
    texts = ["a\x00b", "a\ud800b", "\u202e\u200b\x1b[31m", WORD, "\U0001f600"]
    for text in texts:
        shop = copy.deepcopy(SHOP) | {"servers": [{"url": "https://shop.example.com"}]}
        place = shop["paths"]["/customers/{customerId}/orders"]
        place["get"]["summary"] = text
        place["get"]["parameters"][0]["description"] = text
        place["post"]["operationId"] = text
        answer = await client.put(f"{OPEN_API}/by-name/hostile", json={"document": json.dumps(shop)})
        if not told(answer, ascii(text[:20]), "document"):
            continue
        listed = await client.get(f"{OPEN_API}/by-name/hostile/operations")
        assert listed.status_code == 200 and "orders/list" in {each["name"] for each in listed.json()["items"]}
        assert "\u202e" not in listed.text and "\x1b" not in listed.text and len(listed.content) < 200_000
    server = misbehaving("hostile", home.folder / "hostile.log")
    await home.mcp("hostile", {"command": server.command, "arguments": list(server.arguments)})
    listed = await client.get(f"{MCP}/by-name/hostile/operations")
    assert listed.status_code == 200 and "\u202e" not in listed.text and len(listed.content) < 200_000
