"""Routers, managed interactions and swarms over HTTP, and what runs show of them (interactions.md, api.md, contract.json)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest_asyncio
from api_at_hand import NAMESPACE, NEW_ID, PANEL, RUNS, Served, problem_of, publish_panel, put, served, start_run
from waiting_at_hand import approval_card, ask

from folkmoot.domain.definitions import DEFAULT_CONCURRENT_DISPATCHES, ResolvedInteraction
from folkmoot.domain.items import Floor, Routing
from folkmoot.domain.pending import PendingKind
from folkmoot.domain.swarms import DEFAULT_LIMITS
from folkmoot.services import keys, runs
from folkmoot.store.codecs import DETAIL

BASE = f"/namespaces/{NAMESPACE}"
TEAM = f"{BASE}/interactions/by-name/team"
CHOOSER = f"{BASE}/routers/by-name/chooser"
ROUTER = {
    "description": "Picks.",
    "candidates": [{"agent": "optimist", "description": "For hope."}, {"agent": "sceptic", "name": "doubt"}],
    "rules": [{"candidate": "doubt", "input": "question", "inputValue": "cats", "turnNumber": 2}],
    "model": "small", "prompt": "Choose on %%question%%.", "fallback": "doubt",
}  # fmt: skip
MANAGED: dict[str, Any] = {
    "type": "Managed",
    "manager": {"agent": "optimist", "name": "Boss"},
    "agents": [{"agent": "sceptic", "description": "Doubts well."}, {"agent": "chooser", "name": "Desk"}],
    "prompt": "Decide: %%question%%",
    "inputsPrompt": [{"name": "question"}],
}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        await put(server.client, f"{BASE}/agents/by-name/sceptic", {"model": "small", "prompts": ["You doubt."]})
        await put(server.client, CHOOSER, ROUTER)
        yield server


async def resolved_of(server: Served, run_id: str) -> ResolvedInteraction:
    database = server.installation.database
    return (await runs.get(database, await keys.owner(database), run_id=UUID(run_id))).resolved


# Routers


async def test_a_router_is_a_definition_like_any_other(server: Served) -> None:
    found = (await server.client.get(CHOOSER)).json()
    latest = found["latestVersion"]
    assert (found["name"], latest["version"], latest["fallback"], latest["description"]) == (
        "chooser",
        1,
        "doubt",
        "Picks.",
    )
    ids = {
        name: (await server.client.get(f"{BASE}/agents/by-name/{name}")).json()["id"]
        for name in ("optimist", "sceptic")
    }
    assert latest["candidates"] == [
        {"name": None, "agent": {"id": ids["optimist"], "version": 0}, "router": None, "description": "For hope."},
        {"name": "doubt", "agent": {"id": ids["sceptic"], "version": 0}, "router": None, "description": None},
    ]
    rule = {"participant": None, "thread": None, "lastAuthor": None}
    assert latest["rules"] == [{**ROUTER["rules"][0], **rule}] and latest["model"]["version"] == 0
    again = {name: latest[name] for name in ("candidates", "rules", "model", "prompt", "fallback", "description")}
    assert (await put(server.client, CHOOSER, again))["latestVersion"]["version"] == 1, "what is shown says the same"
    outer = {"candidates": [{"router": "chooser"}], "fallback": "chooser"}
    made = await server.client.post(f"{BASE}/routers", json={"name": "outer", "version": outer})
    assert made.status_code == 201 and made.json()["latestVersion"]["candidates"][0]["router"]["id"] == found["id"]
    told = problem_of(
        await server.client.put(
            CHOOSER, json={**ROUTER, "candidates": [{"router": "outer"}], "fallback": "outer", "rules": []}
        ),
        422,
    )
    assert [error["pointer"] for error in told["errors"]] == ["/candidates"]
    assert "examples/chooser -> examples/outer -> examples/chooser" in told["errors"][0]["message"]
    listed = (await server.client.get(f"{BASE}/routers")).json()["items"]
    assert [each["name"] for each in listed] == ["chooser", "outer"]
    assert (await server.client.delete(f"/routers/by-id/{found['id']}")).status_code == 204


# Managed interactions


async def test_a_managed_interaction_has_a_version_type_of_its_own(server: Served) -> None:
    body = {"name": "team", "type": "Managed", "version": {name: MANAGED[name] for name in MANAGED if name != "type"}}
    made = await server.client.post(f"{BASE}/interactions", json=body)
    assert made.status_code == 201, made.text
    found = (await server.client.get(TEAM)).json()
    latest = found["latestVersion"]
    assert (found["type"], latest["type"], latest["maximumConcurrentDispatches"]) == (
        "Managed",
        "Managed",
        DEFAULT_CONCURRENT_DISPATCHES,
    )
    assert latest["manager"]["name"] == "Boss"
    assert [(each["kind"], each["description"]) for each in latest["agents"]] == [
        ("Agent", "Doubts well."),
        ("Router", None),
    ]
    assert "isVotingAllowed" not in latest and "maximumRounds" not in latest and "voteRule" not in latest
    assert (await put(server.client, TEAM, MANAGED))["latestVersion"]["version"] == 1
    assert (await put(server.client, TEAM, {**MANAGED, "maximumConcurrentDispatches": 9}))["latestVersion"][
        "version"
    ] == 2
    shown = (await server.client.get(f"{TEAM}/versions")).json()["items"]
    assert [each["maximumConcurrentDispatches"] for each in shown] == [9, 4]
    listed = (await server.client.get(f"{BASE}/interactions")).json()["items"]
    assert [(each["name"], each["type"]) for each in listed] == [("panel", "RoundRobin"), ("team", "Managed")]


async def test_an_interaction_keeps_its_type(server: Served) -> None:
    await put(server.client, TEAM, MANAGED)
    for path, version in (
        (PANEL, MANAGED),
        (TEAM, {"agents": [{"agent": "optimist"}], "prompt": "x", "maximumRounds": 1}),
    ):
        told = problem_of(await server.client.put(path, json=version), 422)
        assert [error["pointer"] for error in told["errors"]] == ["/type"]
        assert "keeps the type of its first version" in told["detail"]
    assert (await server.client.get(PANEL)).json()["type"] == "RoundRobin"


WRONG: tuple[tuple[dict[str, Any], str, str], ...] = (
    ({"type": "Debate"}, "", "'RoundRobin' or 'Managed'"),
    ({"manager": None}, "/manager", "object"),
    ({"isVotingAllowed": True}, "/isVotingAllowed", "no field 'isVotingAllowed'"),
    ({"maximumConcurrentDispatches": 51}, "/maximumConcurrentDispatches", "50"),
    ({"agents": [*MANAGED["agents"], {"agent": "sceptic", "kind": "Person"}]}, "/agents/2/kind", "'Agent' or 'Router'"),
    ({"agents": [{"agent": "sceptic", "kind": "Router"}]}, "/agents/0/agent", "no router 'examples/sceptic'"),
    ({"agents": [{"agent": "optimist", "name": "boss"}]}, "/agents/0/name", "looks like 'Boss'"),
    ({"humanSettings": {"chatMode": "EveryRound"}}, "/humanSettings/chatMode", "no rounds"),
    ({"type": "RoundRobin"}, "/manager", "no field 'manager'"),
)


async def test_a_wrong_field_is_named_where_it_stands(server: Served) -> None:
    """A version without its type is taken for a round-robin one: so were all before there were two types."""
    for change, pointer, words in WRONG:
        told = problem_of(await server.client.put(TEAM, json={**MANAGED, **change}), 422)
        assert [error["pointer"] for error in told["errors"]] == [pointer], told
        assert words in told["errors"][0]["message"]
    untyped = {name: value for name, value in MANAGED.items() if name != "type"}
    assert problem_of(await server.client.put(TEAM, json=untyped), 422)["errors"] == told["errors"]


async def test_a_start_pins_the_manager_and_the_agents_and_a_survey_tells_of_them(server: Served) -> None:
    """state.md, Pinning."""
    await put(server.client, TEAM, MANAGED)
    run = (await server.client.put(f"{TEAM}/start", json={"inputs": [{"name": "question", "value": "cats"}]})).json()
    resolved = await resolved_of(server, run["id"])
    assert (resolved.manager, resolved.maximum_concurrent_dispatches) == ("Boss", DEFAULT_CONCURRENT_DISPATCHES)
    assert [(each.name, each.agent_name, each.description) for each in resolved.participants] == [
        ("Boss", "optimist", None), ("sceptic", "sceptic", "Doubts well."), ("Desk", "sceptic", "Picks."),
    ]  # fmt: skip
    assert [router.prompt for router in resolved.participants[2].routers] == ["Choose on cats."]
    told = (await server.client.get(f"{TEAM}/tools")).json()
    assert [each["agentName"] for each in told["participants"]] == ["Boss", "sceptic", "Desk"] and told[
        "problems"
    ] == []


# Swarms


async def test_a_swarm_is_settled_shown_and_pinned(server: Served) -> None:
    await put(server.client, TEAM, {**MANAGED, "prompt": "Long: " + "word " * 100})
    link = {"id": (await server.client.get(TEAM)).json()["id"], "version": 0}
    swarm = {"interactions": ["team"], "participants": ["Ann"], "maxDepth": None, "maxConcurrent": 2, "maxTotal": None}
    changes = {"agents": [{"agent": "optimist", "name": "Ann"}], "prompt": "Go.", "maximumRounds": 1, "swarm": swarm}
    shown = (await put(server.client, PANEL, changes))["latestVersion"]
    assert shown["swarm"] == {**swarm, "interactions": [link]}
    run = await start_run(server.client)
    pinned = (await resolved_of(server, run["id"])).swarm
    assert pinned is not None
    assert (pinned.participants, pinned.depth) == (("Ann",), 0)
    assert (pinned.limits.max_concurrent, pinned.limits.max_total) == (2, DEFAULT_LIMITS.max_total)
    (team,) = pinned.interactions
    assert (team.name, team.namespace, team.version, str(team.interaction_id)) == ("team", NAMESPACE, 1, link["id"])
    assert team.description.startswith("Long: word") and len(team.description) <= 210
    assert json.loads(team.inputs_schema) == {
        "type": "object", "properties": {"question": {"type": "string"}}, "required": [], "additionalProperties": False,
    }  # fmt: skip
    await server.client.post(f"{TEAM}/versions/1/disable")
    told = problem_of(await server.client.put(f"{PANEL}/start", json={}), 422)
    assert "Every version of interaction 'examples/team' is disabled." in told["detail"]


async def test_interactions_of_one_name_are_told_apart_by_their_namespaces(server: Served) -> None:
    alone = {"agents": [{"agent": "examples/optimist"}], "prompt": "x", "maximumRounds": 1}
    await put(server.client, "/namespaces/elsewhere/interactions/by-name/panel", alone)
    swarm = {"interactions": ["panel", "elsewhere/panel"], "participants": ["optimist"]}
    await put(server.client, PANEL, {**alone, "swarm": swarm})
    pinned = (await resolved_of(server, (await start_run(server.client))["id"])).swarm
    assert pinned is not None and [each.name for each in pinned.interactions] == ["examples/panel", "elsewhere/panel"]


# Runs


async def say(server: Served, run_id: str, sequence: int, detail: Floor) -> None:
    """An item that opens a turn, as a worker appends it."""
    async with server.installation.database.writer() as writer:
        await writer.connection.execute(
            """
            insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, thread_id, body, detail)
            select tenant_id, run_id, $2, '2026-11-30 12:00+00', $3, 'orchestratorMessage', 'Orchestrator', 'Orchestrator', 'main',
                   '{"message": "Go.", "kind": "orchestratorMessage"}', $4
            from process where run_id = $1
            """,
            UUID(run_id), sequence, NEW_ID(), DETAIL.write(detail),
        )  # fmt: skip


async def test_a_run_tells_what_its_routers_decided(server: Served) -> None:
    """contract.json, `InteractionRoutingDecision`; state.md: read from the details of the turns' openings."""
    run_id = (await start_run(server.client))["id"]
    router, agent = NEW_ID(), NEW_ID()
    chain = (
        Routing(router, "chooser", 3, router, 1, "inner", "It is deep.", False, 1),
        Routing(router, "inner", 1, None, None, None, None, True, 2),
    )
    await say(server, run_id, 1, Floor("Ann", 1, chain, agent=agent))
    shown = (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()["routingDecisions"]
    assert shown == [
        {
            "date": "2026-11-30T12:00:00.0000000Z", "participantName": "Ann", "router": {"id": str(router), "version": 3},
            "chosen": {"id": str(router), "version": 1}, "reason": "It is deep.", "isFallback": False, "depth": 1,
        },
        {
            "date": "2026-11-30T12:00:00.0000000Z", "participantName": "Ann", "router": {"id": str(router), "version": 1},
            "chosen": None, "reason": None, "isFallback": True, "depth": 2,
        },
    ]  # fmt: skip


async def test_a_run_that_waits_for_a_dispatched_agents_call_tells_the_dispatch(server: Served) -> None:
    """conversation.md, Managed: a dispatched agent's gated call pauses the whole run with `managedDispatch` set."""
    run_id = (await start_run(server.client))["id"]
    call = str(NEW_ID())
    await say(server, run_id, 4, Floor("Ann", 1, dispatch=call))
    dispatch = {
        "id": call, "agentName": "Ann", "message": "Count.", "threadId": "t1", "recordThreadId": "main", "mode": "Continue",
    }  # fmt: skip
    card = approval_card(NEW_ID(), managedDispatch={**dispatch, "floorSequence": 4})
    await ask(server.installation.database, run_id, PendingKind.APPROVAL, card=card)
    expected = {**dispatch, "dateStarted": "2026-11-30T12:00:00.0000000Z"}
    assert (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()["managedDispatch"] == expected
    (row,) = (await server.client.get(RUNS)).json()["items"]
    assert row["managedDispatch"] == expected
    await ask(server.installation.database, run_id, PendingKind.APPROVAL)
    assert (await server.client.get(f"{RUNS}/by-id/{run_id}")).json()["managedDispatch"] is None, "another call"
