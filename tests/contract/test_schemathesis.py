"""Schemathesis finds no fault with the API: every check it has, against a real server with things in it (api.md; issue 2, Shown by 5).

In the fast suite most routes are covered whole, and those with the largest bodies by examples; in the long one all are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from api_at_hand import (
    NAMESPACE,
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

# Runs that are watched have ended, and so do their streams.
[[operations]]
include-operation-id = ["post_message", "stop_run"]
parameters = {{ "path.run_id" = {{ dictionary = "new-runs" }} }}

# Made by one function for all kinds, and of thousands of cases: these are the long suite's.
[[operations]]
include-operation-id-regex = "^(create|put)_(agent|interaction)$|^start_by_id$"
phases.coverage.enabled = {covers_all}

{definitions}
"""
OF_KIND = """
[[operations]]
include-operation-id-regex = "^[a-z]+_{noun}s?(_versions)?(_by_name)?$"
parameters = {{ "path.name" = {{ dictionary = "{noun}-names" }} }}

[[operations]]
include-operation-id-regex = "^[a-z]+_{noun}(_versions)?_by_id$"
parameters = {{ "path.definition_id" = {{ dictionary = "{noun}-ids" }} }}
"""
NOUNS = {"agent": "optimist", "ai_model": "small", "interaction": "panel"}
TAKES_AWAY = "^(delete|disable)_"
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
        labels = {f"{method.upper()} {path}" for path, methods in document()["paths"].items() for method in methods}
        return {label for label in labels if not any(200 <= status < 300 for status in self.statuses.get(label, ()))}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


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
    }
    found: dict[str, list[Any]] = {}
    for noun, name in NOUNS.items():
        path = f"{base}/{noun.replace('_', '-')}s/by-name"
        found[f"{noun}-names"] = [name]
        # Another one for its id than for its name: both are taken away.
        found[f"{noun}-ids"] = [(await put(client, f"{path}/other", others[noun]))["id"]]
    key = (await client.post("/keys", json={"name": "second"})).json()["id"]
    return {
        **found,
        "namespaces": [NAMESPACE],
        "numbers": [1],
        "ended-runs": [done, runs[0]],
        "new-runs": runs[1:],
        "keys": [key],
    }


async def run_schemathesis(server: Served, folder: Path, *, examples: int, covers_all: bool) -> Outcome:
    """Everything but what takes things away, then that: what is gone is found by nobody."""
    found = await seeds(server, folder)
    (folder / "schemathesis.toml").write_text(
        CONFIGURATION.format(
            hooks=HOOKS, key=server.key, examples=examples, covers_all=str(covers_all).lower(),
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
    outcome = await run_schemathesis(server, tmp_path, examples=4, covers_all=False)
    assert outcome.exit_code == 0, outcome.report[-20_000:]
    assert outcome.without_success() == set()
    assert sum(count for counts in outcome.statuses.values() for count in counts.values()) > 1000
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_no_check_finds_a_fault_in_the_long_run(server: Served, tmp_path: Path) -> None:
    """The same with every case of every route, and more examples."""
    outcome = await run_schemathesis(server, tmp_path, examples=50, covers_all=True)
    assert outcome.exit_code == 0, outcome.report[-20_000:]
    assert outcome.without_success() == set()
