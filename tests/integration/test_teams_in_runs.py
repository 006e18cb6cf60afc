"""A team from its definitions to its answer, over HTTP with a worker: dispatches, a router, a gated call, an answer under a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import panels
import pytest
from api_at_hand import NAMESPACE, RUNS, Served, publish_panel, put, served, working_beside
from crews import until
from processes import SHOP

from folkmoot.bootstrap.installation import find_functions

BASE = f"/namespaces/{NAMESPACE}"
TEAM = f"{BASE}/interactions/by-name/team"
SCHEMA = '{"type": "object", "required": ["choice"], "properties": {"choice": {"type": "string"}}}'


def _sent(agent: str, message: str) -> dict[str, Any]:
    return {"name": "dispatch", "arguments": {"agent": agent, "message": message, "mode": "OneTime"}}


SCRIPT = {
    "rules": [
        {"when": {"purpose": "route"}, "reply": {"calls": [{"name": "choose", "arguments": {"candidate": "coder", "reason": "A bug."}}]}},
        {"when": {"participant": "Lead", "call": 1}, "reply": {"calls": [_sent("Desk", "Find it."), _sent("Clerk", "Sign it.")]}},
        {"when": {"participant": "Lead", "call": 2}, "reply": {"calls": [{"name": "finish", "arguments": {"answer": {"choice": 3}}}]}},
        {"when": {"participant": "Lead"}, "reply": {"calls": [{"name": "finish", "arguments": {"answer": {"choice": "B"}}}]}},
        {"when": {"participant": "Clerk", "call": 1}, "reply": {"calls": [{"name": "sign", "arguments": {"text": "the deed"}}]}},
        {"reply": {"text": "It is done."}},
    ]
}  # fmt: skip


async def publish_team(server: Served, folder: Path) -> None:
    client = server.client
    await publish_panel(client, folder, SCRIPT)
    for name in ("lead", "coder", "writer"):
        await put(client, f"{BASE}/agents/by-name/{name}", {"model": "small", "prompts": [f"You are a {name}."]})
    await put(client, f"{BASE}/agents/by-name/clerk", {"model": "small", "functionTools": ["sign"]})
    router = {"candidates": [{"agent": "coder"}, {"agent": "writer"}], "model": "small", "fallback": "writer"}
    await put(client, f"{BASE}/routers/by-name/desk", router)
    agents = [{"agent": "desk", "name": "Desk", "description": "Finds."}, {"agent": "clerk", "name": "Clerk"}]
    version = {
        "type": "Managed", "manager": {"agent": "lead", "name": "Lead"}, "agents": agents, "prompt": "Decide.",
        "solutionSchema": SCHEMA,
    }  # fmt: skip
    await put(client, TEAM, version)


async def run_of(client: httpx2.AsyncClient, run_id: str) -> Any:
    return (await client.get(f"{RUNS}/by-id/{run_id}")).json()


async def test_a_team_works_waits_for_an_approval_and_answers_under_its_schema(
    database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """conversation.md, Managed and Routers; B09: the paused run keeps the versions that it started with; B32."""
    monkeypatch.setenv("TOOL_LOG", str(tmp_path / "log"))
    async with served(database_dsn, data_dir=tmp_path, functions=find_functions((SHOP,))) as server:
        await publish_team(server, tmp_path)
        client = server.client
        started = await client.put(f"{TEAM}/start", json={})
        assert started.status_code == 201, started.text
        run_id = started.json()["id"]
        async with working_beside(server.installation):
            await until(lambda: _is(client, run_id, "PendingApproval"))
        run = await run_of(client, run_id)
        (decision,) = run["routingDecisions"]
        coder = (await client.get(f"{BASE}/agents/by-name/coder")).json()
        assert (decision["participantName"], decision["reason"], decision["isFallback"], decision["depth"]) == (
            "Desk",
            "A bug.",
            False,
            1,
        )
        assert decision["chosen"] == {"id": coder["id"], "version": 1}
        dispatch, pending = run["managedDispatch"], run["pendingApproval"]
        calls = {call["toolCallId"]: call for call in run["context"]["toolCall"]}
        assert json.loads(calls[dispatch["id"]]["argumentsJson"])["agent"] == dispatch["agentName"] == "Clerk"
        assert (dispatch["message"], dispatch["recordThreadId"], dispatch["mode"]) == ("Sign it.", "main", "OneTime")
        assert calls[pending["toolCallId"]]["threadId"] == dispatch["threadId"] != "main"
        # whatever is published meanwhile, and though a version is disabled, the run goes on as it began
        await put(client, f"{BASE}/agents/by-name/clerk", {"model": "small"})
        await put(client, f"{BASE}/routers/by-name/desk", {"candidates": [{"agent": "lead"}], "fallback": "lead"})
        shown = (await client.get("/approvals")).json()["items"][0]
        answer = {"decision": "Approve", "argumentsHash": shown["approval"]["argumentsHash"]}
        approved = await client.post(f"{RUNS}/by-id/{run_id}/approvals/{pending['id']}", json=answer)
        assert approved.status_code == 200, approved.text
        async with working_beside(server.installation):
            await until(lambda: _is(client, run_id, "Completed"))
        run = await run_of(client, run_id)
        assert json.loads(run["output"]) == {"choice": "B"} and run["managedDispatch"] is None
        results = {result["toolCallId"]: result for result in run["context"]["toolResult"]}
        assert results[pending["toolCallId"]]["result"] == "signed the deed"
        assert results[dispatch["id"]]["threadId"] == "main" and results[dispatch["id"]]["result"] == "It is done."
        assert [result["isError"] for result in results.values()].count(True) == 1  # the answer that did not fit
        assert all(usage["finished"] for usage in run["tokenUsage"])
        rows = await panels.fetch(
            server.installation.database, "select purpose from model_call where purpose = 'route'"
        )
        assert len(rows) == 1


async def _is(client: httpx2.AsyncClient, run_id: str, status: str) -> bool:
    run = await run_of(client, run_id)
    assert run["status"] != "Failed", run["failureDetails"]
    return bool(run["status"] == status)
