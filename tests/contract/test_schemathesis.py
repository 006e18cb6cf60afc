"""Schemathesis finds no fault with the API: every check it has, against a real server with things in it (api.md; issue 2, Shown by 5).

In the fast suite one route of each function is covered whole, up to a number, and the others by examples; in the long one all are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import secrets
import sys
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
import pytest_asyncio
from agent_runs_at_hand import publish_agent, start_agent_run
from api_at_hand import (
    NAMESPACE,
    NEW_ID,
    QUIET,
    RUNS,
    Served,
    document,
    ended,
    publish_panel,
    put,
    served,
    start_run,
    working_beside,
)
from connectors_at_hand import SHOP, bench_at_work
from waiting_at_hand import approval_card, ask, ask_consent

from folkmoot.domain.pending import PendingKind

BENCH = "FOLKMOOT_TEST_BENCH"  # where the hooks find an MCP server
SIGNING = "FOLKMOOT_TEST_SIGNING"  # what they sign a channel's messages by
HOOKS = Path(__file__).with_name("schemathesis_hooks.py")
PROGRAM = Path(sys.executable).with_name("schemathesis")
CONFIGURATION = """
hooks = "{hooks}"
headers = {{ Authorization = "Bearer {key}" }}
request-timeout = 30.0
continue-on-failure = true
max-stream-events = 50
seed = 1
cache.enabled = false
warnings = false

[generation]
max-examples = {examples}
deterministic = true
database = "none"

# A request that fits the schemas may still not hold together (README.md: 422), or be too long; the hooks look closer.
[checks]
positive_data_acceptance.expected-statuses = ["2xx", 401, 404, 409, 413, 422]
negative_data_rejection.expected-statuses = [400, 401, 404, 405, 413, 415, 422]

# What is asked for is mostly there, so that more than a 404 is met.
[dictionaries]
{dictionaries}

[parameters]
{parameters}

[[operations]]
include-operation-id-regex = "^[a-z]+_secrets?(_by_name)?$"
parameters = {{ "path.name" = {{ dictionary = "secret-names" }} }}

# Runs that are watched have ended, and so do their streams.
[[operations]]
include-operation-id = ["post_message", "stop_run"]
parameters = {{ "path.run_id" = {{ dictionary = "new-runs" }} }}

[[operations]]
include-operation-id = ["cast_vote", "answer_question", "decide_approval", "get_approval"]
parameters = {{ "path.run_id" = {{ dictionary = "waiting-runs" }} }}

# A run that no message is sent to: a message would be the turn.
[[operations]]
include-operation-id = ["pass_turn"]
parameters = {{ "path.run_id" = {{ dictionary = "passing-runs" }} }}

# Somebody who is not removed before.
[[operations]]
include-operation-id = ["delete_user_identity"]
parameters = {{ "path.user_id" = {{ dictionary = "bearers" }} }}

# Consents are answered at runs that go on waiting, and runs are cancelled that nobody else needs.
[[operations]]
include-operation-id = ["answer_consent"]
parameters = {{ "path.agent_run_id" = {{ dictionary = "asking-agent-runs" }} }}

[[operations]]
include-operation-id = ["cancel_agent_run"]
parameters = {{ "path.agent_run_id" = {{ dictionary = "new-agent-runs" }} }}

[[operations]]
include-operation-id = ["start_agent_run"]
parameters = {{ "path.definition_id" = {{ dictionary = "agent-starts" }} }}

[[operations]]
include-operation-id-regex = "^({not_covered})$"
phases.coverage.enabled = false

{definitions}
"""
OF_KIND = """
[[operations]]
include-operation-id-regex = "^[a-z]+_{noun}s?(_versions|_operations|_tools)?(_by_name)?$"
parameters = {{ "path.name" = {{ dictionary = "{noun}-names" }} }}

[[operations]]
include-operation-id-regex = "^[a-z]+_{noun}(_versions|_operations|_tools)?_by_id$"
parameters = {{ "path.definition_id" = {{ dictionary = "{noun}-ids" }} }}
"""
NOUNS = {
    "agent": "optimist", "ai_model": "small", "interaction": "panel", "mcp_connector": "bench", "open_api_connector": "shop",
    "credential_stack": "production", "router": "chooser", "channel": "desk",
}  # fmt: skip
PATHS = {"mcp_connector": "connectors/mcp", "open_api_connector": "connectors/open-api"}
# Under a budget that a request has set no run can be started any more.
TAKES_AWAY = "^((delete|disable|remove)_.*|set_day_budget|put_day_budget)$"
# Made by one function for all kinds, and of thousands of cases: these are the long suite's.
LARGE = ("create_agent", "put_agent", "create_interaction", "put_interaction", "start_by_id")
# What the fast suite may take, however many operations there come to be.
MOST_COVERED = 14
MOST_EXAMPLES = 160
PARAMETERS = {
    "path.namespace_name": "namespaces",
    "query.namespace": "namespaces",
    "path.name": "interaction-names",
    "path.number": "numbers",
    "query.version": "numbers",
    "path.run_id": "ended-runs",
    "path.interaction_id": "interaction-ids",
    "query.interaction": "interaction-ids",
    "path.key_id": "keys",
    "path.user_id": "users",
    "path.secret_id": "secret-ids",
    "path.operation_id": "operations",
    "path.ballot_id": "ballots",
    "path.question_id": "questions",
    "path.approval_id": "approvals",
    "path.webhook_id": "webhooks",
    "path.model_key_id": "model-keys",
    "query.turn": "turns",
    "path.app_name": "apps",
    "path.app": "channel-apps",
    "path.app_run_id": "app-runs",
    "path.process_id": "any-runs",
    "path.channel_id": "channel-ids",
    "path.agent_run_id": "ended-agent-runs",
    "query.agent": "agent-starts",
}


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    report: str
    statuses: Mapping[str, Counter[int]]

    def and_then(self, other: Outcome) -> Outcome:
        counts = {label: self.statuses.get(label, Counter()) + other.statuses.get(label, Counter())
                  for label in {*self.statuses, *other.statuses}}  # fmt: skip
        return Outcome(self.exit_code or other.exit_code, self.report + other.report, counts)

    def without_success(self) -> set[str]:
        """Operations that were never answered with what they are for."""
        labels = operations().values()
        return {label for label in labels if not any(200 <= status < 300 for status in self.statuses.get(label, ()))}


def operations() -> dict[str, str]:
    """Each operation's id, and the method and path that it is called by."""
    paths = document()["paths"].items()
    return {
        operation["operationId"]: f"{method.upper()} {path}" for path, methods in paths for method, operation in methods.items()
    }  # fmt: skip


def covered_in_haste() -> list[str]:
    """The operations that the fast suite covers: the smallest kind's for all kinds, which have their functions in common."""
    first = {
        re.sub("|".join(NOUNS), "definition", name): name
        for name in reversed(operations())
        if name not in LARGE and not name.startswith("watch_")
    }
    first |= {name.replace("ai_model", "definition"): name for name in operations() if "ai_model" in name}
    names = sorted(first.values())
    return names[:: -(-len(names) // MOST_COVERED)]


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with bench_at_work() as bench, served(database_dsn, data_dir=tmp_path, allows="127.0.0.1") as server:
        os.environ |= {BENCH: bench.url, SIGNING: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
        yield server
    del os.environ[BENCH], os.environ[SIGNING]


async def seeds(server: Served, folder: Path) -> dict[str, list[Any]]:
    """What is there to be asked for, by the names of the dictionaries."""
    client, base = server.client, f"/namespaces/{NAMESPACE}"
    await publish_panel(client, folder)
    done = (await start_run(client, {"inputs": [{"name": "question", "value": "Why?"}], "tags": ["a"]}))["id"]
    async with working_beside(server.installation):
        await ended(client, done)
    runs = [(await start_run(client))["id"] for _ in range(3)]
    await client.post(f"{RUNS}/by-id/{runs[0]}/stop")
    others = {
        "agent": {"model": "small"},
        "ai_model": {"provider": "scripted", "modelName": "x", "path": "x"},
        "interaction": {"agents": [{"agent": "optimist"}], "prompt": "x", "maximumRounds": 1},
        "mcp_connector": {"url": os.environ[BENCH]},
        "open_api_connector": {"document": json.dumps(SHOP), "baseUrl": "https://shop.example.com"},
    }
    others["credential_stack"] = {
        "entries": [{"name": "here", "provider": "openai-compatible", "baseUrl": "http://127.0.0.1:1/v1"}]
    }
    await put(client, f"{base}/secrets/by-name/signing", {"value": os.environ[SIGNING]})
    others["channel"] = {
        "app": "webhook", "settings": {"url": "https://hooks.example.com"}, "secrets": {"signing": "signing"}
    }  # fmt: skip
    await put(client, f"{base}/agents/by-name/sceptic", {"model": "small"})  # whom the example of a router names
    others["router"] = {"candidates": [{"agent": "optimist"}], "fallback": "optimist"}
    for noun, path in (
        *PATHS.items(),
        ("credential_stack", "credential-stacks"),
        ("router", "routers"),
        ("channel", "channels"),
    ):
        await put(client, f"{base}/{path}/by-name/{NOUNS[noun]}", others[noun])
    found: dict[str, list[Any]] = {}
    for noun, name in NOUNS.items():
        path = f"{base}/{PATHS.get(noun, noun.replace('_', '-') + 's')}/by-name"
        found[f"{noun}-names"] = [name]
        # Another one for its id than for its name: both are taken away.
        found[f"{noun}-ids"] = [(await put(client, f"{path}/other", others[noun]))["id"]]
    key = (await client.post("/keys", json={"name": "second"})).json()["id"]
    user = (await client.post("/users", json={"name": "Ann", "role": "viewer"})).json()["id"]
    bearer = (await client.post("/users", json={"name": "Bea", "role": "viewer"})).json()["id"]
    addresses = {"email": "bea@example.com", "slack": "U1", "webhook": "7"}
    for app, address in addresses.items():
        await put(client, f"/users/by-id/{bearer}/identities/{app}", {"address": address})
    await put(client, f"{base}/secrets/by-name/token", {"value": "a value"})
    secret = (await put(client, f"{base}/secrets/by-name/other", {"value": "a value"}))["id"]
    offered = (await client.get(f"{base}/connectors/mcp/by-name/bench/operations")).json()["items"]
    model_key = {"name": "ours", "provider": "openai", "credential": f"{NAMESPACE}/token"}
    hook = {"url": "https://example.com", "kinds": ["approval.requested"]}
    return {
        **found,
        **await waiting(server),
        **await of_agents(server, folder),
        "model-keys": [(await client.post("/model-keys", json=model_key)).json()["id"]],
        "webhooks": [(await client.post("/webhooks", json=hook)).json()["id"]],
        "namespaces": [NAMESPACE],
        "numbers": [1],
        "ended-runs": [done, runs[0]],
        "new-runs": runs[1:],
        **await of_apps(client),
        "keys": [key],
        "users": [user],
        "bearers": [bearer],
        "channel-apps": list(addresses),
        "secret-names": ["token"],
        "secret-ids": [secret],
        "operations": [each["id"] for each in offered],
    }


async def of_apps(client: httpx2.AsyncClient) -> dict[str, list[Any]]:
    """Runs of an app: many that go on for those that are pinged and ended, and of both types for what is done to any run."""
    opened = [(await client.post("/apps/nightly-import/runs", json={})).json()["id"] for _ in range(30)]
    stopped = [(await start_run(client))["id"] for _ in range(10)]
    return {"apps": ["nightly-import"], "app-runs": opened[:20], "any-runs": [*opened[20:], *stopped]}


async def of_agents(server: Served, folder: Path) -> dict[str, list[Any]]:
    """Runs of an agent: some that have ended, so that their streams do, many to be cancelled, and one that asks what the example answers."""
    client = server.client
    agent_id = await publish_agent(client, folder, QUIET, functionTools=[], toolWhitelist=[])
    runs = [(await start_agent_run(client, agent_id))["id"] for _ in range(24)]
    for id_ in runs[:2]:
        await client.post(f"/agent-runs/{id_}/cancel")
    operation = document()["paths"]["/agent-runs/{agent_run_id}/consent"]["post"]
    example = operation["requestBody"]["content"]["application/json"]["examples"]["example"]["value"]
    card = approval_card(NEW_ID(), argumentsHash=example["argumentsHash"])
    await ask_consent(server.installation.database, runs[2], chat_item_id=UUID(example["chatItemId"]), card=card)
    return {
        "agent-starts": [agent_id],
        "ended-agent-runs": runs[:2],
        "asking-agent-runs": runs[2:3],
        "new-agent-runs": runs[3:],
    }


async def waiting(server: Served) -> dict[str, list[Any]]:
    """A run that waits for something of every kind, and one for so much that nobody follows the inbox for long."""
    database = server.installation.database
    run_id, crowded, passing = [(await start_run(server.client))["id"] for _ in range(3)]
    for _ in range(60):
        await ask(database, crowded, PendingKind.TURN)
    turn = await ask(database, passing, PendingKind.TURN)
    await ask(database, run_id, PendingKind.TURN)
    example = document()["paths"][f"{RUNS}/by-id/{{run_id}}/approvals/{{approval_id}}"]["post"]["requestBody"][
        "content"
    ]
    shown = example["application/json"]["examples"]["example"]["value"]["argumentsHash"]
    card = approval_card(NEW_ID(), argumentsHash=shown)
    return {
        "waiting-runs": [run_id],
        "passing-runs": [passing],
        "turns": [str(turn)],
        "ballots": [str(await ask(database, run_id, PendingKind.VOTE))],
        "questions": [str(await ask(database, run_id, PendingKind.QUESTION))],
        "approvals": [str(await ask(database, run_id, PendingKind.APPROVAL, card=card))],
    }


async def run_schemathesis(server: Served, folder: Path, *, examples: int, covered: Collection[str]) -> Outcome:
    """Everything but what takes things away, then that: what is gone is found by nobody."""
    found = await seeds(server, folder)
    # A stream of a run that goes on has no end, and ids of such runs are found in what other operations answer.
    not_covered = [name for name in operations() if name not in covered or name.startswith("watch_")]
    (folder / "schemathesis.toml").write_text(
        CONFIGURATION.format(
            hooks=HOOKS, key=server.key, examples=examples, not_covered="|".join(not_covered) or "none",
            definitions="".join(OF_KIND.format(noun=noun) for noun in NOUNS),
            dictionaries="\n".join(f"{name} = {{ values = {json.dumps(values)} }}" for name, values in found.items()),
            parameters="\n".join(f'"{name}" = {{ dictionary = "{values}", probability = 0.9 }}' for name, values in PARAMETERS.items()),
        )
    )  # fmt: skip
    first = await _run(server, folder, "--exclude-operation-id-regex", TAKES_AWAY)
    return first.and_then(await _run(server, folder, "--include-operation-id-regex", TAKES_AWAY))


async def _run(server: Served, folder: Path, *arguments: str) -> Outcome:
    events = folder / f"{secrets.token_hex(4)}.ndjson"
    process = await asyncio.create_subprocess_exec(
        str(PROGRAM), "--no-color", "--config-file", "schemathesis.toml", "run", f"{server.url}/openapi.json", "--checks", "all",
        "--report", "ndjson", "--report-ndjson-path", str(events), *arguments,
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        report, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert events.exists(), report.decode()
    return Outcome(process.returncode or 0, report.decode(), statuses(events))


def statuses(events: Path) -> dict[str, Counter[int]]:
    """How often each operation answered with which status."""
    found: dict[str, Counter[int]] = {}
    with events.open(encoding="utf-8") as lines:
        scenarios = [event["ScenarioFinished"] for line in lines if "ScenarioFinished" in (event := json.loads(line))]
    for recorded in (scenario["recorder"] for scenario in scenarios):
        for case_id, interaction in recorded.get("interactions", {}).items():
            case, response = recorded["cases"][case_id]["value"], interaction.get("response")
            if response is not None:
                counts = found.setdefault(f"{case['method']} {case['path']}", Counter())
                counts[response["status_code"]] += 1
    return found


@pytest.mark.timeout(300)
async def test_no_check_finds_a_fault(server: Served, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Issue 2, Shown by 5; F25: no request meets a fault of the server."""
    examples = max(2, MOST_EXAMPLES // len(operations()))
    outcome = await run_schemathesis(server, tmp_path, examples=examples, covered=covered_in_haste())
    assert outcome.exit_code == 0, outcome.report[-20_000:]
    assert outcome.without_success() == set()
    assert sum(count for counts in outcome.statuses.values() for count in counts.values()) > 1000
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_no_check_finds_a_fault_in_the_long_run(server: Served, tmp_path: Path) -> None:
    """The same with every case of every route, and more examples."""
    outcome = await run_schemathesis(server, tmp_path, examples=50, covered=operations())
    assert outcome.exit_code == 0, outcome.report[-20_000:]
    assert outcome.without_success() == set()
