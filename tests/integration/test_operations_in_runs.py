"""External tools in whole runs: servers that fail in every way, results too large, values that are bound, users kept apart.

Whatever a server does, the model reads an error, nothing is done twice, and the run goes on to its end.
"""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from api_at_hand import NAMESPACE, RUNS, problem_of, put, start_run
from connectors_at_hand import SHOP, document
from crews import Listening
from mcp_at_hand import misbehaving, serving, workshop
from operations_at_hand import AT_ONCE, MCP, OPEN_API, House, house
from panels import Started
from recording_server import Received, RecordingServer, reply, saying

from folkmoot.domain import items
from folkmoot.domain.model_calls import ModelFailure, ModelReply, ModelRequest, OnText, OwnCall, ReplyCall, Usage
from folkmoot.tools.mcp.service import McpTools

TOUCH = {"name": "touch", "arguments": {"text": "x"}}


@pytest_asyncio.fixture
async def home(database_dsn: str, tmp_path: Path) -> AsyncIterator[House]:
    async with house(database_dsn, tmp_path) as made:
        yield made


def on(connector: str, operation: str, **fields: Any) -> dict[str, Any]:
    return {"name": operation.replace("/", "_"), "connector": connector, "operation": operation, **fields}


def command(mode: str, journal: Path) -> dict[str, Any]:
    server = misbehaving(mode, journal)
    return {"command": server.command, "arguments": list(server.arguments), "environment": {"TOKEN": "t"}}


async def touching(home: House, mode: str, **settings: Any) -> Started:
    """A run that touches a server, which turned bad after it was looked at."""
    journal = home.folder / f"{mode}.log"
    await home.mcp(mode, command("fine", journal), **settings)
    journal.write_text("")
    journal.with_suffix(".mode").write_text(mode)
    await home.panel([TOUCH], externalOperationsMcp=[on(mode, "touch")])
    return await home.start()


def calls_of(home: House, mode: str) -> int:
    return (home.folder / f"{mode}.log").read_text().splitlines().count("called")


FAULTS: dict[str, tuple[str, int]] = {  # mode of the server: what the model reads, how often the tool was called
    "dies-at-start": ("ended with exit code 7 before it could be spoken to", 0),
    "says-nothing": ("took longer than its 1 seconds and was given up. It can be called again", 0),
    "dies-in-call": ("The outcome is unknown: it may or may not have happened", 1),
    "dies-once": ("The outcome is unknown: it may or may not have happened", 1),
    "hangs-in-call": ("its outcome is unknown: it may or may not have happened", 1),
    "huge": ("too large", 1),
    "noisy": ("was told: ", 1),
}


async def test_a_server_that_fails_is_an_error_that_the_model_reads_and_the_run_goes_on(home: House) -> None:
    """Issue, Bad input: down, slow, dies in a call, returns 50 MB; F04: what may have happened is not done again."""
    slow = ("says-nothing", "hangs-in-call")
    runs = {mode: await touching(home, mode, **AT_ONCE, limitSeconds=1 if mode in slow else 30) for mode in FAULTS}
    for mode, (words, calls) in FAULTS.items():
        assert await home.ended(runs[mode]) == "Completed"
        (result,) = await home.results(runs[mode])
        assert result.is_error is (mode != "noisy") and words in result.result, mode
        assert calls_of(home, mode) == calls, mode
        assert len(result.result) < 3_000
    seen = {entry.result for request in home.requests() for entry in request.view if isinstance(entry, OwnCall)}
    assert seen == {result.result for run in runs.values() for result in await home.results(run)}
    assert len(home.requests()) == 2 * len(FAULTS)


CHANGED = {"changes": "has changed there: its description", "many": "touch", "twins": "touch", "endless": "touch"}


async def approved(home: House, modes: list[str]) -> dict[str, items.ToolResult]:
    """The result of a gated call of each server, which is another by the time that somebody approves."""
    runs = {mode: await touching(home, mode, approvalMode="Always") for mode in modes}
    for mode, run in runs.items():
        if mode == "changes":  # it counts how often it was asked
            (home.folder / "changes.log").write_text("listed\n")
        assert (await home.decide(run, await home.approval(run))).status_code == 200
        assert await home.ended(run) == "Completed"
    return {mode: (await home.results(run))[0] for mode, run in runs.items()}


async def test_a_tool_that_changed_while_its_approval_waited_is_refused(home: House) -> None:
    """F32, F53: also by a server that lists 10,000 tools, two alike, or pages without an end."""
    for mode, result in (await approved(home, list(CHANGED))).items():
        assert result.is_error and CHANGED[mode] in result.result and "not called" in result.result, result.result
        assert calls_of(home, mode) == 0


async def test_control_without_a_second_look_the_changed_tool_would_be_called(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of F32."""
    call = McpTools.call

    async def trusting(self: McpTools, *given: Any, verify: bool, **named: Any) -> Any:
        return await call(self, *given, verify=False, **named)

    monkeypatch.setattr(McpTools, "call", trusting)
    assert not (await approved(home, ["changes"]))["changes"].is_error
    assert calls_of(home, "changes") == 1


OFFSETS = (6_000, 500_000, 990_000)


class ReadingOn(Listening):
    """Reads on in a result that was cut, at these offsets."""

    async def ask(self, request: ModelRequest, on_text: OnText) -> ModelReply | ModelFailure:
        seen = [entry for entry in request.view[: request.view_length] if isinstance(entry, OwnCall)]
        cut = next((each.result for each in seen if "read_tool_result, id " in each.result), None)
        read = sum(each.name == "read_tool_result" for each in seen)
        if cut is None or read == len(OFFSETS):
            return await super().ask(request, on_text)
        self.requests.append(request)
        content_id = cut.partition("read_tool_result, id ")[2].partition(",")[0]
        arguments = json.dumps({"id": content_id, "offset": OFFSETS[read], "length": 30_000})
        return ModelReply("", (ReplyCall("read_tool_result", arguments),), Usage())


async def test_calls_over_http_carry_their_key_and_large_results_are_read_on(database_dsn: str, tmp_path: Path) -> None:
    """B42; conversation.md, Tools: over 32 KiB a result is kept and read on; a call's key is its own id. A server that went down later is an error."""
    journal = tmp_path / "journal"
    note = {"name": "note", "arguments": {"text": "bought"}}
    much = {"name": "much", "arguments": {"megabytes": 0}}
    async with house(database_dsn, tmp_path, model=ReadingOn()) as home:
        async with serving(workshop(journal).streamable_http_app(stateless_http=True)) as url:
            await home.mcp("bench", {"url": f"{url}/mcp"}, **AT_ONCE)
            bound = [on("bench", "note"), on("bench", "much", requestBindings=[{"name": "megabytes", "value": "1"}])]
            await home.panel([note, much], externalOperationsMcp=bound)
            started = await home.start()
            assert await home.ended(started) == "Completed"
            found = await home.conversation(started)
        first, large, *pieces = await home.results(started)
        call_ids = [each.item.body.tool_call_id for each in found if isinstance(each.item.body, items.ToolCall)]
        assert journal.read_text() == f"bought {call_ids[0]}\n" and first.result == "noted"
        assert large.tool_result_id is not None and large.result_size == 1_000_000 and len(large.result) < 9_000
        assert [piece.result.count("much of it") for piece in pieces] == [3_000, 3_000, 1_000]
        (down,) = await home.outcome([note], externalOperationsMcp=[on("bench", "note")])
        assert down.is_error and "cannot be reached" in down.result


BROKEN = ['{"text": ', "[]", '{"text": NaN}', '{"text": 7}', "\ud800"]


async def test_arguments_that_are_none_call_nothing(home: House) -> None:
    """B43, B20: each has its error, and the next reply is asked for."""
    journal = home.folder / "fine.log"
    await home.mcp("fine", command("fine", journal), approvalMode="Always")
    calls = [{"name": "touch", "arguments": text} for text in BROKEN]
    results = await home.outcome(calls, externalOperationsMcp=[on("fine", "touch")])
    assert len(results) == len(BROKEN) and all(result.is_error for result in results), results
    assert calls_of(home, "fine") == 0


def shop() -> dict[str, Any]:
    """The shop, with a search whose filter is an object."""
    made = copy.deepcopy(SHOP)
    fields = {"customer": {"type": "string"}, "state": {"type": "string"}}
    schema = {"type": "object", "properties": {"filter": {"type": "object", "properties": fields}}}
    content = {"application/json": {"schema": schema}}
    made["paths"]["/search"] = {"post": {"operationId": "search", "requestBody": {"content": content}}}
    file = {"name": "file", "in": "path", "required": True, "schema": {"type": "string"}}
    made["paths"]["/files/{file}"] = {"get": {"operationId": "file", "parameters": [file]}}
    return made


async def test_a_bound_value_wins_over_whatever_a_model_sends(home: House) -> None:
    """B50, nested too; F56: a value that looks like an input is sent as it is; F51: a path's values stay one step."""
    async with RecordingServer() as server:
        await home.open_api("shop", {"document": document(shop()).decode(), "baseUrl": f"{server.url}/v1"}, **AT_ONCE)
        bound = [
            on("shop", "orders/list", pathBindings=[{"name": "customerId", "value": "7"}]),
            on("shop", "search", requestBindings=[{"name": "filter.customer", "value": "%%customer%%"}]),
            on("shop", "file"),
        ]
        inputs = [{"name": "customer"}, {"name": "other"}]
        forged = {"filter": {"customer": "9", "state": "open"}, "filter.customer": "9"}
        calls = [
            {"name": "orders_list", "arguments": {"customerId": 9, "state": "%%other%%"}},
            {"name": "search", "arguments": forged},
            *({"name": "file", "arguments": {"file": text}} for text in ("../admin", "..%2f", "a\r\nX: y", "a/b?c#d")),
        ]
        given = [{"name": "customer", "value": "%%other%%"}, {"name": "other", "value": "s3cret"}]
        results = await home.outcome(calls, externalOperationsOpenApi=bound, inputsPrompt=inputs, inputs=given)
        received = {each.target: each for each in server.received}
    assert sorted(result.is_error for result in results) == [False, False, False, True, True, True], results
    assert set(received) == {"/v1/customers/7/orders?state=%25%25other%25%25", "/v1/search", "/v1/files/a%2Fb%3Fc%23d"}
    assert json.loads(received["/v1/search"].body) == {"filter": {"customer": "%%other%%", "state": "open"}}
    assert len({each.header("Idempotency-Key") for each in received.values()}) == 3
    offered = {tool.name: tool.parameters for tool in home.requests()[0].offered}
    assert "customer" not in json.dumps([offered["orders_list"], offered["search"]])


async def test_no_document_leads_a_call_or_a_refresh_inside(home: House) -> None:
    """F50; issue, Bad input: a spec whose server URL points inside; a redirect to one; a document that became Swagger."""
    async with RecordingServer(saying(reply(document()))) as server:
        inside = copy.deepcopy(SHOP) | {"servers": [{"url": "http://169.254.169.254/latest"}]}
        await home.open_api("inside", {"document": document(inside).decode()}, **AT_ONCE)
        await home.open_api("shop", {"documentUrl": f"{server.url}/openapi.json"}, **AT_ONCE)
        order = {"name": "orders_list", "arguments": {"customerId": 7}}
        for binding in (on("inside", "orders/list"), on("shop", "orders/list")):
            (result,) = await home.outcome([order], externalOperationsOpenApi=[binding])
            assert result.is_error is (binding["connector"] == "inside"), result.result
        (refused,) = [each for each in home.requests()[1].view if isinstance(each, OwnCall)]
        assert "169.254.169.254" in refused.result and "Nothing was sent" in refused.result
        answers = {
            "Swagger 2.0": reply(b'{"swagger": "2.0"}'),
            "3.2": reply(b'{"openapi": "3.2.0", "paths": {}}'),
            "169.254.169.254": reply(b"", status=302, headers=("Location: http://169.254.169.254/openapi.json",)),
            "500": reply(status=500),
        }
        for words, answer in answers.items():
            server.answer = saying(answer)
            problem = problem_of(await home.server.client.post(f"{OPEN_API}/shop/refresh"), 422, "connector_fault")
            assert words in problem["detail"], problem
        server.answer = saying(reply(document(inside)))
        told = (await home.server.client.post(f"{OPEN_API}/shop/refresh")).json()
        assert told["serverUrl"] == "http://169.254.169.254/latest"
        (result,) = await home.outcome([order], externalOperationsOpenApi=[on("shop", "orders/list")])
        assert server.received[-1].target == "/v1/customers/7/orders" and not result.is_error


async def test_what_a_server_lists_badly_changes_nothing_for_runs_under_way(home: House) -> None:
    """Issue, Bad input: 10,000 tools, two of one name, changed tools: told at the refresh; a waiting run keeps its version (B09)."""
    run = await touching(home, "waits", approvalMode="Always")
    pending = await home.approval(run)
    later = home.folder / "waits.mode"
    for mode, words in (
        ("many", "more than 2,000 tools"),
        ("twins", "alike"),
        ("dies-at-start", "exit code 7"),
        ("endless", "pages"),
    ):
        later.write_text(mode)
        problem = problem_of(await home.server.client.post(f"{MCP}/waits/refresh"), 422, "connector_fault")
        assert words in problem["detail"], problem["detail"]
    later.write_text("fine")
    assert (await home.decide(run, pending)).status_code == 200
    assert await home.ended(run) == "Completed" and calls_of(home, "waits") == 1


async def test_an_approval_counts_once_and_only_from_who_may(home: House) -> None:
    """B03, B13, B15, F30: a viewer's, a second one, and one for what has ended are refused, and the call is made once."""
    run = await touching(home, "fine", approvalMode="Always")
    pending = await home.approval(run)
    key = (await home.server.client.post("/keys", json={"name": "narrow", "scopes": ["read"]})).json()["key"]
    path = f"{RUNS}/by-id/{run.run_id}/approvals/{pending['id']}"
    body = {"decision": "Approve", "argumentsHash": pending["approval"]["argumentsHash"]}
    async with home.server.of(key) as viewer:
        problem_of(await viewer.post(path, json=body), 403, "not_permitted")
    answers = await asyncio.gather(*(home.decide(run, pending) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200} and len({answer.text for answer in answers}) == 1
    assert await home.ended(run) == "Completed"
    problem_of(await home.decide(run, pending, "Reject"), 409, "already_decided")
    assert calls_of(home, "fine") == 1


async def test_no_result_serves_a_second_call_or_another_user(home: House) -> None:
    """B51: the same read-only call by two runs of two users is made twice, whatever the server says of keeping it."""
    count = 0

    async def answer(received: Received, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        count += 1
        kept = ("Cache-Control: public, max-age=3600", 'ETag: "one"', f"Set-Cookie: user={count}")
        writer.write(reply(f'"answer {count}"'.encode(), headers=kept))

    async with RecordingServer(answer) as server:
        await home.open_api("shop", {"document": document().decode(), "baseUrl": server.url}, **AT_ONCE)
        bound = on("shop", "orders/list", pathBindings=[{"name": "customerId", "value": "7"}])
        first = await home.outcome([{"name": "orders_list"}], externalOperationsOpenApi=[bound])
        user = (await home.server.client.post("/users", json={"name": "Other", "role": "developer"})).json()
        key = (await home.server.client.post("/keys", json={"name": "other", "userId": user["id"]})).json()["key"]
        async with home.server.of(key) as other:
            run = await start_run(other)
        started = Started(UUID(run["tenantId"]), UUID(run["id"]))
        assert await home.ended(started) == "Completed"
        results = [*first, *await home.results(started)]
    assert len({result.result for result in results}) == 2 and count == 2
    assert all(each.header("Cookie") is None and each.header("If-None-Match") is None for each in server.received)


async def test_another_participants_tools_are_neither_shown_nor_callable(home: House) -> None:
    """B35: Ben has none of Ann's tools, sees no call of hers, and one that he makes all the same is refused."""
    await home.mcp("fine", command("fine", home.folder / "fine.log"), **AT_ONCE)
    await home.panel([])
    version = {"model": "small", "prompts": ["You hope."]}
    await put(home.server.client, f"/namespaces/{NAMESPACE}/agents/by-name/other", version)
    ann = {"agent": "optimist", "name": "Ann", "externalOperationsMcp": [on("fine", "touch")]}
    await home.panel([TOUCH], agents=[ann, {"agent": "other", "name": "Ben"}])
    script = {"rules": [{"when": {"call": 1}, "reply": {"calls": [TOUCH]}}, {"reply": {"text": "Well."}}]}
    path = home.folder / "both.script.yaml"
    path.write_text(json.dumps(script))
    model = {"provider": "scripted", "modelName": "script", "path": str(path)}
    await put(home.server.client, f"/namespaces/{NAMESPACE}/ai-models/by-name/small", model)
    started = await home.start()
    assert await home.ended(started) == "Completed"
    made, refused = await home.results(started)
    assert not made.is_error and refused.is_error and "touch" in refused.result
    assert calls_of(home, "fine") == 1
    first, second = home.requests("Ben")
    assert "touch" not in {tool.name for tool in first.offered}
    assert not any(isinstance(entry, OwnCall) for entry in first.view) and made.result not in str(second.view)
