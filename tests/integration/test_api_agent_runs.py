"""Agent runs over HTTP: started, read, watched, answered, cancelled (agent-runs.md; api.md; B03, B05, B10, B12 to B15, B63, B65; F40, F43)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_asyncio
from agent_runs_at_hand import (
    AGENT_RUNS,
    consent_to,
    publish_agent,
    rest_of,
    start_agent_run,
    until_asked,
    watching_agent_run,
)
from agents_at_hand import Deeds, call, met, plan, script, step
from api_at_hand import (
    NAMESPACE,
    NEW_ID,
    RUNS,
    Served,
    document,
    problem_of,
    put,
    sequences_of,
    served,
    stranger_key,
    working_beside,
)
from waiting_at_hand import ask_consent, fetch

from folkmoot.domain.rights import Role
from folkmoot.services import keys, users
from folkmoot.tools.functions import FunctionTools

ADDS = plan(step("Add them.", "add"), step("Tell Bo.", "tell"))
WORK = [
    "The numbers are 20 and 22.", ADDS, [call("add", one=20, other=22)], "It is 42.", [call("tell", who="Bo", what="4\u202e2")], "Told.",
    met("42"),
]  # fmt: skip
HUGE = 2**63
SIGNING = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass
class Office:
    """A server, what its functions did, and the agent `clerk`."""

    server: Served
    deeds: Deeds
    clerk: str

    @property
    def client(self) -> Any:
        return self.server.client

    async def key_of(self, role: Role, name: str) -> str:
        database = self.server.installation.database
        owner = await keys.owner(database)
        user = await users.add(database, owner, name=name, role=role, new_id=NEW_ID)
        _, text = await keys.create(
            database, owner, name="k", expires_at=None, new_id=NEW_ID, random_bytes=lambda n: user.user_id.bytes[:n] * 9, user_id=user.user_id
        )  # fmt: skip
        return text


@pytest_asyncio.fixture
async def office(database_dsn: str, tmp_path: Path) -> AsyncIterator[Office]:
    """Without a worker: what is started is not begun."""
    deeds = Deeds()
    functions = FunctionTools.discover(deeds.functions)
    async with served(database_dsn, data_dir=tmp_path, functions=functions) as server:
        rules = script(clerk=[[call("look")], *WORK])
        clerk = await publish_agent(server.client, tmp_path, rules, consentTime="00:10:00")
        yield Office(server, deeds, clerk)


async def test_a_run_goes_from_its_start_to_its_answer(office: Office) -> None:
    """agent-runs.md: the loop with a consent, watched and answered over HTTP; B65: a stream resumed from any id gives exactly the rest."""
    client = office.client
    hook = {"url": "https://127.0.0.1:9/", "kinds": ["approval.requested"]}  # where nothing may be sent to
    assert (await client.post("/webhooks", json=hook)).status_code == 201
    run = await start_agent_run(client, office.clerk, replyParams='{"thread": 7}', tags=["demo"])
    assert set(run) == set(document()["components"]["schemas"]["AgentRun"]["properties"]) and len(run) == 20
    assert (run["status"], run["currentPhase"], run["channel"]) == ("running", "gather", "web")
    assert run["agent"] == {"id": office.clerk, "name": "clerk", "version": 1} and run["adminOrg"]["name"] == "default"
    assert (run["replyParams"], run["parentRun"], run["lastError"]) == ('{"thread": 7}', None, None)
    path = f"{AGENT_RUNS}/{run['id']}"
    async with working_beside(office.server.installation), watching_agent_run(client, run["id"]) as events:
        item = await until_asked(events)
        waiting = (await client.get(path)).json()
        assert waiting["status"] == "awaiting_consent" and waiting["chatItemId"] == item["id"]
        assert waiting["pendingToolId"] == item["consent"]["call"]["toolCallId"]
        assert item["consent"]["expiresAt"] == waiting["expiresAt"] and waiting["awaitingSince"]
        assert item["consent"]["call"]["functionName"] == "tell" and not item["consent"]["executed"]
        shown = item["consent"]["call"]["argumentsJson"]
        assert "\u202e" not in shown and json.loads(shown) == {"who": "Bo", "what": "4\u202e2"}
        (entry,) = (await client.get("/approvals?status=Pending")).json()["items"]
        assert (entry["kind"], entry["agentRun"], entry["chatItemId"]) == ("Approval", run["id"], item["id"])
        assert (
            entry["interactionName"] == "clerk"
            and entry["approval"]["argumentsHash"] == consent_to(item)["argumentsHash"]
        )
        (told,) = await fetch(office.server.installation.database, "select body from outbox")
        listed = (await client.get(f"{RUNS}/by-id/{entry['runId']}/approvals/{entry['id']}")).json()
        assert json.loads(told["body"])["data"] == listed and listed["agentRun"] == run["id"]
        assert [name for name, _ in office.deeds.done] == ["look", "add"]
        answered = await client.post(f"{path}/consent", json=consent_to(item))
        assert answered.status_code == 200, answered.text
        block = answered.json()["consent"]
        assert (block["status"], block["decidedByName"], block["decidedOver"]) == ("approved", "owner", "api")
        rest = await rest_of(events)
    assert office.deeds.done[-1] == ("tell", ("Bo", "4\u202e2"))
    end = rest[-1]
    assert (end.name, end.data) == ("end", {"status": "completed", "output": "42", "lastError": None})
    assert [event.data["waitsFor"] for event in rest if event.name == "approval"][-1] is None
    done = (await client.get(path)).json()
    assert (done["status"], done["pendingToolId"], done["expiresAt"]) == ("completed", None, None)
    assert [event for event in rest if event.name == "status"][-1].data == done
    await _read_whole(office, done)


async def _read_whole(office: Office, run: Any) -> None:
    """What the ended run's pointers point to, by pages and from every place."""
    client, path = office.client, f"{AGENT_RUNS}/{run['id']}"
    whole = (await client.get(f"{path}/conversation?limit=200")).json()
    sequences = [item["sequence"] for item in whole["items"]]
    assert sequences == list(range(1, len(sequences) + 1)) and whole["next"] is None
    assert whole["output"] == "42" and whole["conversationId"] == run["conversationId"]
    assert [(item["kind"], item["number"]) for item in whole["chatItems"]] == [("consent", 1), ("message", 2)]
    asked, answer = whole["chatItems"]
    assert asked["consent"]["executed"] and asked["consent"]["executedAt"] and asked["agentRun"] == {"id": run["id"]}
    assert (answer["text"], answer["authorName"], answer["consent"]) == ("42", "clerk", None)
    first = (await client.get(f"{path}/conversation?limit=3")).json()
    second = (await client.get(f"{path}/conversation?limit=3&after={first['next']}")).json()
    assert first["items"] + second["items"] == whole["items"][:6]
    for after in (0, 1, len(sequences) // 2, len(sequences) - 1, len(sequences), len(sequences) + 5):
        async with watching_agent_run(client, run["id"], after=after) as events:
            rest = await rest_of(events)
        assert sequences_of(rest) == sequences[after:] and rest[-1].name == "end", after
        assert [event.name for event in rest].count("end") == 1
    payload = (await client.get(f"{path}/payload")).json()["payload"]
    assert payload["budget"]["toolCalls"]["used"] == 3
    problem_of(await client.post(f"{path}/cancel"), 409, "run_ended")
    problem_of(await client.post(f"/processes/AgentRun/{run['id']}/stop"), 409, "run_ended")
    usage = (await client.get("/usage?groupBy=interaction&thenBy=run")).json()["items"]
    assert [each["group"]["interactionName"] for each in usage] == ["clerk"]


async def test_a_start_says_what_is_wrong_and_lists_hold_what_was_started(office: Office) -> None:
    """api.md: everything is checked before the run exists; pages by cursor (B63), Idempotency-Key (B61), ids of 64 bits."""
    client, starts = office.client, f"/agents/by-id/{office.clerk}/runs"
    for body, pointers in (
        ({"goal": "x", "replyParams": "{no json"}, ["/replyParams"]),
        ({"goal": " "}, ["/goal"]),
        ({}, ["/goal"]),
        ({"goal": "x", "channel": "nowhere"}, ["/channel"]),
        ({"goal": "x", "status": "completed", "decidedBy": "Ann"}, ["/status", "/decidedBy"]),
        ({"goal": "x", "conversationId": "7", "budget": {"calls": 1}}, ["/conversationId", "/budget/calls"]),
        ({"goal": "x", "budget": {"modelCalls": 0}}, ["/budget/modelCalls"]),
    ):
        problem = problem_of(await client.post(starts, json=body), 422, "bad_input")
        assert [error["pointer"] for error in problem["errors"]] == pointers, problem
    problem_of(await client.post(f"/agents/by-id/{NEW_ID()}/runs", json={"goal": "x"}), 404, "not_found")
    problem_of(await client.post(starts, json={"goal": "x", "version": 9}), 422, "bad_input")
    assert (await client.get(AGENT_RUNS)).json() == {"items": [], "next": None}

    conversation = str(NEW_ID())
    body = {"goal": "Go.", "conversationId": conversation, "budget": {"modelCalls": 9}}
    key = {"Idempotency-Key": "once"}
    made = [(await client.post(starts, json=body, headers=key)).json() for _ in range(2)]
    assert made[0] == made[1] and made[0]["conversationId"] == conversation
    problem_of(await client.post(starts, json={"goal": "Else."}, headers=key), 422, "key_reused")
    runs = [made[0], *[await start_agent_run(client, office.clerk) for _ in range(4)]]
    ids = [run["id"] for run in reversed(runs)]
    seen, after = [], ""
    while after is not None:
        page = (await client.get(f"{AGENT_RUNS}?limit=2{after and f'&after={after}'}")).json()
        seen += [run["id"] for run in page["items"]]
        after = page["next"]
    assert seen == ids
    for query, found in (
        (f"agent={office.clerk}", ids), (f"agent={NEW_ID()}", []), ("status=running", ids), ("status=expired", []),
        (f"conversation={conversation}", ids[-1:]), (f"parent={ids[0]}", []),
    ):  # fmt: skip
        assert [run["id"] for run in (await client.get(f"{AGENT_RUNS}?{query}")).json()["items"]] == found, query
    for id_, status in (
        ("0", 422),
        ("-1", 422),
        ("x", 422),
        (str(HUGE), 422),
        (str(HUGE - 1), 404),
        (str(NEW_ID()), 422),
    ):
        for rest in ("", "/conversation", "/payload", "/messages", "/events"):
            problem_of(await client.get(f"{AGENT_RUNS}/{id_}{rest}"), status)
        problem_of(await client.post(f"{AGENT_RUNS}/{id_}/cancel"), status)
    for query in ("status=Running", f"parent={HUGE}", "after=x", "limit=0", "agent=x"):
        problem_of(await client.get(f"{AGENT_RUNS}?{query}"), 422, "bad_input")
    said = (await client.get(f"{AGENT_RUNS}/{made[0]['id']}/conversation")).json()
    assert [(item["kind"], item["text"]) for item in said["chatItems"]] == [("message", "Go.")] and said["items"] == []
    assert (await client.get(f"{AGENT_RUNS}/{made[0]['id']}/payload")).json() == {"payload": {}}
    cancelled = (await client.post(f"{AGENT_RUNS}/{ids[0]}/cancel")).json()
    assert (cancelled["status"], cancelled["lastError"]) == ("failed", "cancelled by owner") and cancelled[
        "completedDate"
    ]


async def test_only_whoever_may_answers_once_and_in_time(office: Office) -> None:
    """B03, B05, B12, B14, B15, F40, F42: each wrong answer is told why, and changes nothing."""
    client, database = office.client, office.server.installation.database
    secret = await put(client, f"/namespaces/{NAMESPACE}/secrets/by-name/signing", {"value": SIGNING})
    channel = {"app": "webhook", "settings": {"url": "https://hooks.example/x"}, "secrets": {"signing": secret["id"]}}
    await put(client, f"/namespaces/{NAMESPACE}/channels/by-name/hook", channel)
    runs = [(await start_agent_run(client, office.clerk, channel=name))["id"] for name in ("hook", None, None, None)]
    asked = {id_: await ask_consent(database, id_, expires_in=600) for id_ in runs}
    run, declined, cancelled, late = runs

    def body(id_: int, decision: str = "approve", **more: Any) -> dict[str, Any]:
        item_id, hash_ = asked[id_]
        return {"chatItemId": str(item_id), "argumentsHash": hash_, "decision": decision, **more}

    async def answer(id_: int, sent: dict[str, Any], by: Any = client) -> Any:
        return await by.post(f"{AGENT_RUNS}/{id_}/consent", json=sent)

    before = await _records(office)
    for method in ("get", "head"):  # B14
        for path in (f"/{run}/consent", f"/{run}/consent?decision=approve", f"/{run}", f"/{run}/conversation"):
            await getattr(client, method)(f"{AGENT_RUNS}{path}")
    for sent, pointers in (
        ({**body(run), "decision": "Approve"}, ["/decision"]),
        ({**body(run), "decidedBy": "owner", "user": "owner"}, ["/decidedBy", "/user"]),  # B15
        ({"decision": "approve", "argumentsHash": asked[run][1]}, ["/chatItemId"]),
        (body(run, reason="Because."), ["/reason"]),
    ):
        problem = problem_of(await answer(run, sent), 422, "bad_input")
        assert [error["pointer"] for error in problem["errors"]] == pointers, problem
    problem_of(await answer(run, {**body(run), "argumentsHash": "00" * 32}), 409, "stale_approval")
    for other in (str(NEW_ID()), str(asked[late][0])):
        problem_of(await answer(run, {**body(run), "chatItemId": other}), 404, "not_found")
    _, strangers = await stranger_key(database)
    async with office.server.of(strangers) as theirs:
        problem_of(await answer(run, body(run), theirs), 404, "not_found")
        assert (await theirs.get("/approvals")).json()["items"] == []
    async with office.server.of(await office.key_of(Role.OPERATOR, "Ann")) as anns:
        assert "for its agent's owner" in problem_of(await answer(run, body(run), anns), 403, "not_permitted")["detail"]
        problem_of(await anns.get(f"{AGENT_RUNS}/{run}/payload"), 403, "not_permitted")
        assert (await anns.get(f"{AGENT_RUNS}/{run}/conversation")).status_code == 200
    narrow = (await client.post("/keys", json={"name": "narrow", "scopes": ["read"]})).json()["key"]
    async with office.server.of(narrow) as reading:
        problem_of(await answer(run, body(run), reading), 403, "not_permitted")
    refused = (await client.get("/audit?action=approval.refused")).json()["items"]
    assert [(entry["userName"], entry["detail"].get("code")) for entry in refused] == [
        ("Ann", "not-permitted"), ("owner", "stale_approval"),
    ]  # fmt: skip
    assert await _records(office) == before

    first = await answer(run, body(run))
    assert first.status_code == 200 and first.json()["consent"]["status"] == "approved"
    assert (await answer(run, {**body(run), "argumentsHash": asked[run][1].upper()})).json() == first.json()
    await _told_over_its_channel(office, run, str(asked[run][0]))
    detail = problem_of(await answer(run, body(run, "decline")), 409, "already_decided")["detail"]
    assert detail.startswith(f"The consent {asked[run][0]} was approved by owner at 20"), "by the id that was sent"
    told = (await answer(declined, body(declined, "decline", reason="Too late in the day."))).json()["consent"]
    assert (told["status"], told["reason"], told["executed"]) == ("declined", "Too late in the day.", False)
    assert (await client.post(f"{AGENT_RUNS}/{cancelled}/cancel")).status_code == 200
    late_words = problem_of(await answer(cancelled, body(cancelled)), 409, "too_late")["detail"]
    assert "is closed: owner cancelled the run at 20" in late_words
    await _by_the_kernels_id(office, late)
    async with database.writer() as writer:
        await writer.connection.execute("update clock_shift set shift = shift + interval '601 s'")
    assert "expired at" in problem_of(await answer(late, body(late)), 409, "too_late")["detail"]
    assert (await answer(run, body(run))).json() == first.json()


async def _records(office: Office) -> list[Any]:
    """All that an answer could change."""
    database = office.server.installation.database
    tables = ("pending", "chat_item", "agent_run")
    return [await fetch(database, f"select t::text from {table} t order by 1") for table in tables]


async def _told_over_its_channel(office: Office, id_: int, item_id: str) -> None:
    """What waits to be sent to the owner, page by page, without the request's secret."""
    path = f"{AGENT_RUNS}/{id_}/messages?limit=1"
    first = (await office.client.get(path)).json()
    second = (await office.client.get(f"{path}&after={first['next']}")).json()
    messages = first["items"] + second["items"]
    told = [(each["kind"], each["status"], each["chatItemId"], each["attempts"]) for each in messages]
    assert told == [("consent.requested", "waiting", item_id, 0), ("consent.decided", "waiting", item_id, 0)]
    assert second["next"] is None and all(each["nextAttemptAt"] and each["deliveredAt"] is None for each in messages)


async def _by_the_kernels_id(office: Office, id_: int) -> None:
    """By the routes of interactions it is not found, and the right ones are named (B10: the inbox says what is needed)."""
    client = office.client
    (entry,) = [e for e in (await client.get("/approvals?status=Pending")).json()["items"] if e["agentRun"] == id_]
    decision = {"decision": "Approve", "argumentsHash": entry["approval"]["argumentsHash"]}
    path = f"{RUNS}/by-id/{entry['runId']}"
    answer = await client.post(f"{path}/approvals/{entry['id']}", json=decision)
    assert f"POST /agent-runs/{id_}/consent" in problem_of(answer, 404, "not_found")["detail"]
    for target in (path, f"{path}/details", f"{path}/items", f"{path}/usage", f"{path}/events"):
        assert f"/agent-runs/{id_}" in problem_of(await client.get(target), 404, "not_found")["detail"]
    problem_of(await client.post(f"{path}/stop"), 404, "not_found")
    for wrong in (f"/processes/AgentRun/{entry['runId']}", f"/processes/Interaction/{id_}"):
        assert "goes by its" in problem_of(await client.get(f"{wrong}/tree"), 404, "not_found")["detail"]


async def test_what_a_specialist_asks_is_shown_at_its_root_and_in_its_tree(office: Office, tmp_path: Path) -> None:
    """B10: nested, under an App run; lists and trees by it, a channel's messages, and a cancel of the root that ends all of it."""
    client = office.client
    specialist = await publish_agent(
        client,
        tmp_path,
        script(teller=["Ready.", plan(step("Tell.", "tell")), [call("tell", who="Bo", what="1")]]),
        "teller",
    )
    rules = script(
        boss=[
            "Ready.",
            plan(step("Have Bo told.", None, "teller")),
            [call("delegate", specialist="teller", task="Tell Bo.")],
        ]
    )
    boss = await publish_agent(
        client, tmp_path, rules, "boss", functionTools=[], toolWhitelist=[], specialists=["teller"]
    )
    app = (await client.post("/apps/nightly-import/runs", json={})).json()["id"]
    root = await start_agent_run(client, boss, parentProcessId=app)
    async with working_beside(office.server.installation), watching_agent_run(client, root["id"]) as events:
        item = await until_asked(events)
        (child,) = (await client.get(f"{AGENT_RUNS}?parent={root['id']}")).json()["items"]
        assert child["parentRun"] == {"id": root["id"]} and child["agent"]["id"] == specialist
        assert item["agentRun"] == {"id": child["id"]} and item["consent"]["askedBy"] == "teller"
        now = (await client.get(f"{AGENT_RUNS}/{root['id']}")).json()
        assert (now["status"], now["pendingSpecialist"], now["chatItemId"]) == (
            "awaiting_consent",
            "teller",
            item["id"],
        )
        tree = (await client.get(f"/processes/AgentRun/{child['id']}/tree")).json()
        assert [(n["type"], n["agentRun"], n["name"], n["interaction"], n["depth"]) for n in tree["nodes"]] == [
            ("App", None, "nightly-import", None, 0), ("AgentRun", root["id"], "boss", None, 1), ("AgentRun", child["id"], "teller", None, 2),
        ]  # fmt: skip
        uuids = [node["id"] for node in tree["nodes"]]
        assert [run["id"] for run in (await client.get(f"{RUNS}?root={app}")).json()["items"]] == uuids[::-1]
        assert [run["id"] for run in (await client.get(f"{RUNS}?root={uuids[1]}")).json()["items"]] == uuids[:0:-1]
        (entry,) = (await client.get(f"/approvals?root={uuids[1]}&status=Pending")).json()["items"]
        assert (entry["agentRun"], entry["runId"], entry["rootProcessId"]) == (child["id"], uuids[2], app)
        stopped = (await client.post(f"/processes/AgentRun/{root['id']}/stop")).json()
        assert (stopped["id"], stopped["agentRun"]) == (uuids[1], root["id"])
        rest = await rest_of(events)
        assert rest[-1].data["lastError"] == "cancelled by owner"
        assert [event.data["waitsFor"] for event in rest if event.name == "approval"][-1] is None
        async with watching_agent_run(client, child["id"]) as below:
            assert (await rest_of(below))[-1].data["status"] == "failed"
    page = (await client.get(f"{AGENT_RUNS}?status=failed")).json()["items"]
    assert [(run["id"], run["pendingSpecialist"], run["expiresAt"]) for run in page] == [
        (child["id"], None, None), (root["id"], None, None),
    ]  # fmt: skip
