"""Between wire and domain: every field goes through, defaults are shown, nothing is lost on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from pydantic import TypeAdapter

from folkmoot.api.mapping import agents, ai_models, cursors, interactions, items, keys, overrides, runs, teams
from folkmoot.api.mapping.references import version_at
from folkmoot.api.mapping.starts import start_fields
from folkmoot.domain import items as domain
from folkmoot.domain.definitions import (
    AgentVersion,
    AiModelVersion,
    Definition,
    DefinitionKind,
    InteractionVersion,
    Reference,
    ResolvedInteraction,
    StoredVersion,
    SystemPromptMode,
    Version,
)
from folkmoot.domain.items import Author, AuthorKind, Floor, Item, StoredItem, TurnEnd
from folkmoot.domain.model_calls import Usage
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import Run
from folkmoot.domain.tenancy import ApiKey
from folkmoot.domain.usage import UsageSum
from folkmoot.kernel.errors import BadDefinition, BadInput, Fault
from folkmoot.services.runs import RunCursor, RunDetails, RunView, WholeRun
from folkmoot.store.codecs import VERSIONS
from folkmoot.store.conversations import ModelCallRecord
from folkmoot.store.run_lists import TreeCounts
from folkmoot.wire import definitions as wire
from folkmoot.wire.items import ConversationItem
from folkmoot.wire.runs import StartRequest

CONTRACT = json.loads((Path(__file__).parents[2] / "docs" / "spec" / "contract.json").read_text())["types"]
OURS = {"durationHumanTimeout", "maximumRounds", "solutionRule", "voteRule", "budget", "type"}
MOMENT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def uid(number: int) -> UUID:
    return UUID(int=(7 << 76) | (2 << 62) | number)


TENANT, USER, RUN = uid(1), uid(2), uid(3)

BINDING = {
    "name": "lookup", "externalOperationId": str(uid(11)), "externalOperationVersion": 2,
    "requestBindings": [{"name": "a", "value": "%%question%%"}],
    "authenticationHeader": {"headerName": "X-Key", "secretId": str(uid(12)), "secretInputName": None, "scheme": "Bearer"},
    "promptGuidance": "Look first.", "isTerminal": True, "approvalMode": "Always", "isIdempotent": False, "limitSeconds": 5.5,
    "limitBytes": 1000,
}  # fmt: skip
OPEN_API = {**BINDING, "pathBindings": [{"name": "p", "value": "1"}], "queryBindings": []}
LOOM = {
    "enabled": True, "scope": "Input", "scopeInput": "customer", "shared": True, "recall": "EveryTurn", "weave": "OnEnd",
    "tapestryTokens": 500, "subjectInputs": ["customer"], "nightWeaving": True, "quietMinutes": 5, "weaverModel": "small",
    "vetModel": "small", "vetRecall": True, "seedFromLoomId": str(uid(13)), "readFromLoomIds": [str(uid(14))],
}  # fmt: skip
CONTEXT = {
    "mode": "Compact", "targetUtilization": 70, "toolResultTrimmingMode": "AfterCycles", "toolResultTrimmingMaxCycles": 3,
    "toolResultTrimmingStyle": "HeadTail", "toolResultTrimmingReplacement": "(gone)", "compactionType": "DedicatedModel",
    "compactionModel": {"id": str(uid(15)), "version": 2},
    "lowWaterUtilization": 30, "compactAtUtilization": 80, "compactKeepRecentTokens": 100, "compactTargetTokens": 200,
    "maxToolCallLoops": 4, "responseMaxTokens": 300, "compactMaxTokens": 400,
}  # fmt: skip
FULL: dict[str, Any] = {
    "type": "RoundRobin",
    "agents": [
        {
            "name": "Ann", "agent": {"id": str(uid(20)), "version": 3}, "externalOperationsMcp": [BINDING],
            "externalOperationsOpenApi": [OPEN_API], "loomId": str(uid(21)), "webAccess": {"search": True, "fetch": False},
            "kind": "Router", "description": "Knows all.",
        },
        {
            "name": None, "agent": {"id": str(uid(22)), "version": 0}, "externalOperationsMcp": [],
            "externalOperationsOpenApi": [], "loomId": None, "webAccess": None, "kind": "Agent", "description": None,
        },
    ],
    "isNoActionAllowed": True, "isVotingAllowed": True, "isDirectQuestioningAllowed": True, "isSolutionProposalAllowed": True,
    "humanSettings": {"chatMode": "EveryRound", "includeInVotes": True, "includeInSolutions": True},
    "maximumNoActionLoops": 2, "externalOperationsMcp": [BINDING], "externalOperationsOpenApi": [OPEN_API],
    "inputsConnectorAuthenticationSecret": [{
        "externalOperationId": str(uid(23)), "agentId": None, "defaultSecretId": str(uid(24)), "headerName": "X", "name": "key",
        "description": "d", "isRequired": True, "scheme": None,
    }],
    "inputsConnectorBinding": [{
        "externalOperationId": str(uid(23)), "agentId": str(uid(20)), "target": "t", "defaultValue": "v", "type": "Query",
        "name": "in", "description": None, "isRequired": False,
    }],
    "inputsPrompt": [{"dataType": "Integer", "name": "question", "description": "What?", "isRequired": True}],
    "prompt": "Decide: %%question%%", "solutionSchema": '{"type": "string"}', "systemPromptMode": "ReplaceDefault",
    "systemPrompts": ["One.", "Two."], "durationWarningToAi": "00:01:00", "durationAutoTermination": "1.00:05:00",
    "contextSettings": CONTEXT, "loom": LOOM,
    "swarm": {
        "interactions": [{"id": str(uid(25)), "version": 1}], "participants": ["Ann"], "maxDepth": 2, "maxConcurrent": 3,
        "maxTotal": 4,
    },
    "credentialStack": "main", "durationHumanTimeout": "01:00:00", "maximumRounds": 9, "solutionRule": "Unanimous",
    "voteRule": "Unanimous", "budget": {"tokens": 5_000_000_000, "money": 0.25, "calls": 40},
}  # fmt: skip


CUSTOM: dict[str, Any] = {
    "provider": "openai", "modelName": "m", "baseUrl": "https://x.test/v1", "contextWindow": 1000, "largestResponse": 100,
    "capabilities": {"tools": False, "structuredOutput": False, "images": True, "reasoning": True},
    "prices": {"input": 0.15, "cachedInput": None, "cacheWrite": 1, "output": 0.6, "reasoning": None}, "path": None,
    "apiKeyVariable": "MY_KEY",
}  # fmt: skip


def stored(kind: DefinitionKind, body: Version, *, number: int = 4) -> StoredVersion:
    """The version as it comes back from its column."""
    codec = VERSIONS[kind]
    definition = Definition(uid(9), kind, "examples", "thing", 5, USER, MOMENT, MOMENT + timedelta(seconds=1))
    return StoredVersion(definition, number, codec.read(codec.write(body)), True, MOMENT)


def shown(shape: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shape.model_dump_json(by_alias=True))
    return found


def through(request: dict[str, Any]) -> dict[str, Any]:
    """An interaction's request as it is shown after it was stored."""
    version = interactions.version_of(wire.RoundRobinInteractionVersionRequest.model_validate(request))
    return shown(interactions.version(stored(DefinitionKind.INTERACTION, version)))


def test_every_field_of_an_interaction_is_stored_and_returned() -> None:
    """Issue, Definitions: all fields of `RoundRobinInteractionVersion` are stored and returned now."""
    assert set(FULL) == set(CONTRACT["RoundRobinInteractionVersion"]) - {"version", "date", "isDisabled"} | OURS
    found = through(FULL)
    assert set(found) == set(CONTRACT["RoundRobinInteractionVersion"]) | OURS
    assert (found["version"], found["date"], found["isDisabled"]) == (4, "2026-11-30T12:00:00.0000000Z", True)
    for name, value in FULL.items():
        if name in ("loom", "contextSettings"):
            assert {inner: found[name][inner] for inner in value} == value
        else:
            assert found[name] == value, name
    assert set(found["loom"]) == set(CONTRACT["LoomConfiguration"])
    assert set(found["contextSettings"]) == set(CONTRACT["InteractionContextSettings"]) | {"compactionModel"}
    assert {n: v for n, v in found["loom"].items() if n not in LOOM} == {
        "effectiveScope": "Input", "effectiveShared": True, "effectiveRecall": "EveryTurn", "effectiveWeave": "OnEnd",
        "effectiveTapestryTokens": 500, "effectiveSubjectInputs": ["customer"], "effectiveReadFromLoomIds": [str(uid(14))],
        "vets": True, "effectiveVetRecall": True,
    }  # fmt: skip


def test_a_managed_interaction_has_what_both_types_share_and_its_own() -> None:
    """interactions.md: `Managed` holds a manager, agents, and the fields that both kinds share."""
    theirs = set(wire.RoundRobinInteractionVersion.model_fields) - set(wire.ManagedInteractionVersion.model_fields)
    gone = {"isNoActionAllowed", "isVotingAllowed", "isDirectQuestioningAllowed", "isSolutionProposalAllowed"}
    gone |= {"maximumNoActionLoops", "maximumRounds", "solutionRule", "voteRule"}
    assert len(theirs) == len(gone)
    own = {"type": "Managed", "manager": FULL["agents"][0], "maximumConcurrentDispatches": 7}
    request = {name: value for name, value in FULL.items() if name not in gone} | own
    version = interactions.version_of(wire.ManagedInteractionVersionRequest.model_validate(request))
    found = shown(interactions.version(stored(DefinitionKind.INTERACTION, version)))
    assert set(found) == set(request) | {"version", "date", "isDisabled"}
    for name in set(request) - {"loom", "contextSettings"}:
        assert found[name] == request[name], name


def test_what_is_left_out_has_its_default_and_effective_fields_say_it() -> None:
    """conversation.md, Context: `effective…` fields show what applies after defaults."""
    found = through({"agents": [{"agent": {"id": str(uid(20))}}], "prompt": "Decide.", "loom": {}})
    assert set(found) == set(CONTRACT["RoundRobinInteractionVersion"]) | OURS
    assert found["agents"][0]["agent"] == {"id": str(uid(20)), "version": 0}
    assert found["humanSettings"] is found["swarm"] is found["credentialStack"] is found["durationWarningToAi"] is None
    assert found["externalOperationsMcp"] == found["inputsPrompt"] == found["systemPrompts"] == []
    assert (found["solutionRule"], found["voteRule"], found["systemPromptMode"]) == (
        "Majority",
        "Majority",
        "AppendToDefault",
    )
    context = found["contextSettings"]
    assert {name: context[name] for name in context if name.startswith("effective") or name == "mode"} == {
        "mode": "None", "effectiveToolResultTrimmingStyle": "Placeholder", "effectiveCompactionType": "SameAgent",
        "effectiveLowWaterUtilization": 50, "effectiveMaxToolCallLoops": 10,
    }  # fmt: skip
    loom = found["loom"]
    assert {name: loom[name] for name in loom if name.startswith("effective") or name == "vets"} == {
        "effectiveScope": "Process", "effectiveShared": False, "effectiveRecall": "OnWake", "effectiveWeave": "Manual",
        "effectiveTapestryTokens": 1000, "effectiveSubjectInputs": [], "effectiveReadFromLoomIds": [], "vets": False,
        "effectiveVetRecall": False,
    }  # fmt: skip


def test_a_request_says_the_same_with_and_without_what_is_null() -> None:
    """So that applying what was exported adds no version."""
    least: dict[str, Any] = {"agents": [{"agent": "optimist"}], "prompt": "Decide."}
    empty: dict[str, Any] = {
        "loom": None,
        "swarm": None,
        "externalOperationsMcp": [],
        "contextSettings": {"maxToolCallLoops": None},
    }
    made = [
        interactions.version_of(wire.RoundRobinInteractionVersionRequest.model_validate(request))
        for request in (least, {**least, **empty})
    ]
    assert made[0] == made[1] and made[0].later == {}


def test_the_low_water_is_never_above_the_mark_where_trimming_starts() -> None:
    request = {"agents": [{"agent": "a"}], "prompt": "x", "contextSettings": {"targetUtilization": 20}}
    assert through(request)["contextSettings"]["effectiveLowWaterUtilization"] == 20


def test_every_link_that_is_no_reference_is_told_with_its_place() -> None:
    request = {
        "agents": [{"agent": "a@b"}, {"agent": "fine"}, {"agent": "x/y/z"}],
        "prompt": "x",
        "swarm": {"interactions": ["@1"]},
    }
    with pytest.raises(BadInput) as caught:
        interactions.version_of(wire.RoundRobinInteractionVersionRequest.model_validate(request))
    places = [fault.pointer for fault in caught.value.faults]
    assert places == ["/agents/0/agent", "/agents/2/agent", "/swarm/interactions/0"]


def test_faults_within_a_version_are_told_where_the_body_has_it() -> None:
    faults = (Fault("/prompt", "p"), Fault("", "whole"), Fault("/name", "n"))
    with pytest.raises(BadDefinition) as caught, version_at("/version"):
        raise BadDefinition("m", faults)
    assert [fault.pointer for fault in caught.value.faults] == ["/version/prompt", "/version", "/name"]


def test_an_agent_goes_through_whole() -> None:
    request = {
        "description": "d", "prompts": ["p"], "model": "other/small@3",
        "settings": {"temperature": 0.5, "topP": 0.9, "seed": 7, "maxTokens": 50}, "functionTools": ["search"],
        "externalOperationsMcp": [BINDING], "externalOperationsOpenApi": [OPEN_API],
        "webAccess": {"search": True, "fetch": True}, "loomId": str(uid(21)), "loom": LOOM,
    }  # fmt: skip
    version = agents.version_of(wire.AgentVersionRequest.model_validate(request))
    assert version.model == Reference("small", "other", version=3)
    version = replace(version, model=replace(version.model, definition_id=uid(30)))
    found = shown(agents.agent(stored(DefinitionKind.AGENT, version), TENANT))
    assert (found["id"], found["tenantId"], found["namespaceName"], found["name"]) == (
        str(uid(9)), str(TENANT), "examples", "thing",
    )  # fmt: skip
    latest = found["latestVersion"]
    assert latest["model"] == {"id": str(uid(30)), "version": 3}
    assert {name: latest[name] for name in request if name not in ("model", "loom")} == {
        name: value for name, value in request.items() if name not in ("model", "loom")
    }
    least = shown(agents.version(stored(DefinitionKind.AGENT, AgentVersion(Reference("m", "n", uid(30))))))
    assert least["loom"] is least["webAccess"] is None and least["externalOperationsMcp"] == []


def test_a_model_goes_through_whole() -> None:
    version = ai_models.version_of(wire.AiModelVersionRequest.model_validate(CUSTOM))
    latest = shown(ai_models.model(stored(DefinitionKind.AI_MODEL, version), TENANT))["latestVersion"]
    assert {name: latest[name] for name in CUSTOM} == CUSTOM
    least = ai_models.version_of(wire.AiModelVersionRequest.model_validate({"provider": "local", "modelName": "m"}))
    assert least == AiModelVersion(
        "local", "m", capabilities={"tools": True, "structuredOutput": True, "images": False, "reasoning": False}
    )


# Conversations

ANN = Author(AuthorKind.AGENT, "Ann", uid(40))
BODIES: tuple[Any, ...] = (
    domain.AgentMessage("m"),
    domain.Agree(uid(50)),
    domain.Disagree(uid(50), "r"),
    domain.DirectQuestionAsk(uid(51), "Ben", "q"),
    domain.DirectQuestionAnswer(uid(51), "a"),
    domain.HumanMessage("h"),
    domain.InjectedSystemMessage("i"),
    domain.NoAction(),
    domain.OrchestratorMessage("o"),
    domain.SolutionProposal(uid(52), "s"),
    domain.SystemPrompt("p"),
    domain.ToolCall("c1", "f", "{}"),
    domain.ToolResult("c1", "r", True, 1, uid(53), "no"),
    domain.VoteProposal(uid(54), "t"),
    domain.Summary("s", 3, 10, 5, "m"),
)


def item(sequence: int, body: Any, *, turn: UUID | None = None, detail: Any = None) -> StoredItem:
    return StoredItem(sequence, MOMENT, Item(uid(100 + sequence), ANN, body, detail, turn))


def test_each_of_the_15_kinds_is_shown_alone_and_in_its_list() -> None:
    assert {type(body) for body in BODIES} == set(get_args(domain.Body))
    conversation = [item(number, body) for number, body in enumerate(BODIES, start=1)]
    lists = shown(items.context(conversation))
    assert set(lists) == set(CONTRACT["InteractionProcessContext"])
    for entry in conversation:
        kind = entry.item.body.kind
        alone = shown(items.conversation_item(entry))
        assert TypeAdapter(ConversationItem).validate_python(alone).kind == kind
        assert alone.pop("kind") == kind
        assert lists[kind] == [alone]
        assert alone["author"] == {"kind": "Agent", "name": "Ann", "id": str(uid(40))}
        assert (alone["sequence"], alone["threadId"]) == (entry.sequence, "main")


# Runs


def run(**changes: Any) -> Run:
    least = Run(
        tenant_id=TENANT, run_id=RUN, interaction_id=uid(9), interaction_version=2, status=RunStatus.RUNNING, created_by=USER,
        created_at=MOMENT, updated_at=MOMENT, started_at=MOMENT, claimed_at=MOMENT, ended_at=None, pinged_at=MOMENT,
        hostname="host", execution_time=timedelta(minutes=1), output=None, failure_details=None, last_sequence=0, tree_root_id=RUN,
    )  # fmt: skip
    return replace(least, **changes)


def view(**changes: Any) -> RunView:
    return RunView(run(**changes), MOMENT + timedelta(seconds=30), (("q", "v"),), ())


RESOLVED = ResolvedInteraction(uid(9), "panel", 2, "examples", (), "task", (), SystemPromptMode.APPEND)


def call(number: int, turn: int | None, name: str, usage: Usage | None = None, **changes: Any) -> ModelCallRecord:
    record = ModelCallRecord(
        uid(200 + number), uid(turn) if turn is not None else None, MOMENT + timedelta(seconds=number), MOMENT, name, "scripted", "s",
        None, usage, None, None,
    )  # fmt: skip
    return replace(record, **changes)


USED = UsageSum(Usage(7), 2, 0, 0, 0, Decimal("0.0125"))


def test_a_turn_that_a_router_gave_away_is_counted_for_whom_it_went_to() -> None:
    floor = Floor("Ann", 1, agent=uid(41))
    turns = teams.agents_of_turns(
        [item(1, domain.OrchestratorMessage("o"), turn=uid(60), detail=floor), item(2, domain.NoAction())]
    )
    calls = [call(1, 60, "Ann", Usage(1)), call(2, 61, "Ann", Usage(1))]
    usages = runs.token_usage(calls, agents={"Ann": uid(40)}, chosen=turns)
    assert [usage.agent_id for usage in usages] == [uid(41), uid(40)]


def test_a_run_shows_every_field_of_the_contract() -> None:
    whole = WholeRun(view(), RESOLVED, (item(1, BODIES[0]),), ())
    found = shown(runs.process(whole))
    assert set(found) == set(CONTRACT["InteractionProcess"])
    details = shown(runs.process_with_details(RunDetails(whole, "owner", TreeCounts(3, 1), USED)))
    assert set(CONTRACT["InteractionProcess"]) < set(details)
    assert (details["interactionName"], details["namespaceName"], details["userCreatedByName"]) == (
        "panel",
        "examples",
        "owner",
    )
    assert details["treeCounts"] == {"total": 3, "active": 1, "ended": 2} and details["cost"] == 0.0125
    # a part of it would hide the rest
    unpriced = RunDetails(whole, "owner", TreeCounts(3, 1), replace(USED, unpriced_calls=1))
    assert shown(runs.process_with_details(unpriced))["cost"] is None
    assert found["interaction"] == {"id": str(uid(9)), "version": 2}
    assert found["inputs"] == [{"name": "q", "value": "v"}]
    assert len(found["context"]["agentMessage"]) == 1


def test_a_row_of_a_list_has_its_conversation_and_usage_empty() -> None:
    """B63: rows have their conversation and usage lists empty."""
    found = shown(runs.row(view()))
    assert set(found) == set(CONTRACT["InteractionProcess"])
    assert found["tokenUsage"] == [] and not any(found["context"].values())


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "00:01:30"),
        ({"claimed_at": None}, "00:01:00"),
        ({"status": RunStatus.COMPLETED, "ended_at": MOMENT}, "00:01:00"),
        ({"claimed_at": MOMENT + timedelta(hours=1)}, "00:01:00"),
    ],
)
def test_execution_time_counts_the_stretch_under_way(changes: dict[str, Any], told: str) -> None:
    """kernel.md, States: while Running add now - dateRunnerClaimed; null until it is claimed again."""
    assert shown(runs.row(view(**changes)))["executionTime"] == told


def test_the_root_is_null_where_nothing_else_started_the_run() -> None:
    """kernel.md, Trees."""
    assert shown(runs.row(view()))["rootProcessId"] is None
    assert shown(runs.row(view(tree_root_id=uid(8))))["rootProcessId"] == str(uid(8))


def test_usage_is_told_per_turn_participant_and_model() -> None:
    """platform.md: a record per turn, more when it moved to another key or model; B45: kinds are kept apart."""
    calls = [
        call(1, 60, "Ann", Usage(input=10, cached_input=2, output=3)),
        call(2, 60, "Ann", Usage(input=20, cache_write=1, reasoning=4), error_class="Timeout"),
        call(3, 60, "Ben", Usage(input=5)),
        call(4, 60, "Ann", Usage(input=7), model="other"),
        call(5, 61, "Ben", None, ended_at=None),
        call(6, None, "Ann", None),
    ]
    found = [
        shown(record) for record in runs.token_usage(calls, agents={"Ann": uid(40)}, open_turns=frozenset({uid(61)}))
    ]
    assert [(r["turnId"], r["agentName"], r["model"], r["finished"]) for r in found] == [
        (str(uid(60)), "Ann", "s", True),
        (str(uid(60)), "Ben", "s", True),
        (str(uid(60)), "Ann", "other", True),
        (str(uid(61)), "Ben", "s", False),
        (str(uid(206)), "Ann", "s", True),
    ]
    assert {usage["type"]: usage["count"] for usage in found[0]["usages"]} == {
        "Input": 30, "CachedInput": 2, "CacheWrite": 1, "Output": 3, "Reasoning": 4,
    }  # fmt: skip
    assert (found[0]["agentId"], found[1]["agentId"]) == (str(uid(40)), None)
    assert found[0]["date"] == "2026-11-30T12:00:01.0000000Z"
    assert all(usage["count"] == 0 for usage in found[3]["usages"])


def test_without_items_the_turn_of_the_last_call_counts_as_under_way() -> None:
    found = runs.token_usage([call(1, 60, "Ann", Usage()), call(2, 61, "Ben", Usage())])
    assert [record.finished for record in found] == [True, False]
    assert runs.token_usage([]) == ()


def test_a_turn_is_under_way_until_the_next_has_the_floor() -> None:
    """conversation.md, 7: a direct question gives the asked participant a turn at once; then the asker's turn goes on."""
    said = domain.OrchestratorMessage("o")
    first, answer, second = uid(60), uid(61), uid(62)
    conversation = [
        item(1, said),
        item(2, said, turn=first, detail=Floor("Ann", 1)),
        item(3, BODIES[3], turn=first),
        item(4, said, turn=answer, detail=Floor("Ben", 1, question=uid(51))),
        item(5, BODIES[4], turn=answer, detail=TurnEnd()),
        item(6, BODIES[0], turn=first, detail=TurnEnd()),
        item(7, said, turn=second, detail=Floor("Ben", 1)),
    ]
    under_way = [runs.turns_under_way(conversation[:length], is_ended=False) for length in range(8)]
    assert under_way == [
        set(), set(), {first}, {first}, {first, answer}, {first, answer}, {first}, {second},
    ]  # fmt: skip
    assert runs.turns_under_way(conversation, is_ended=True) == frozenset()


def test_a_start_keeps_every_field_of_later_parts_by_its_name() -> None:
    """Issue, Definitions: a start that sets such a field is refused: never ignored."""
    least = start_fields(StartRequest.model_validate({}))
    fields = {field.alias for field in StartRequest.model_fields.values()}
    now = {"version", "inputs", "responseJsonSchema", "disabledTools", "durationAutoTermination", "priority", "tags"}
    now |= {"durationHumanTimeout", "durationWarningToAi", "aiModelOverrides", "budget"}
    now |= {"credentials", "credentialStack", "allowPlatformFallback", "parentProcessId"}
    assert set(least.later) == fields - now
    full = {
        "version": 2, "inputs": [{"name": "q", "value": "v"}], "responseJsonSchema": "{}", "disabledTools": ["t"],
        "durationAutoTermination": "00:05:00", "priority": 3, "tags": ["x"], "lane": "fast", "durationWarningToAi": "00:01:00",
        "durationHumanTimeout": "1.00:00:00", "aiModelOverrides": [{"agentName": "Ann", "customModel": CUSTOM}],
    }  # fmt: skip
    found = start_fields(StartRequest.model_validate(full))
    assert (found.inputs, found.response_json_schema, found.disabled_tools) == ((("q", "v"),), "{}", ("t",))
    assert (found.duration_auto_termination, found.priority, found.tags) == (timedelta(minutes=5), 3, ("x",))
    assert found.duration_human_timeout == timedelta(days=1)
    assert found.later["lane"] == "fast" and found.duration_warning_to_ai == timedelta(minutes=1)
    (override,) = found.ai_model_overrides
    assert (override.agent_name, override.purpose, override.model_id) == ("Ann", "Agent", None)
    assert [shown(each) for each in overrides.shown(found.ai_model_overrides)] == [
        {"agentName": "Ann", "aiModelId": None, "customModel": CUSTOM, "purpose": "Agent"}
    ]


def test_a_key_is_shown_without_its_text_but_once() -> None:
    revoked_at = MOMENT + timedelta(hours=1)
    scopes = ("start", "read", "a right of a later version")
    made = ApiKey(TENANT, uid(5), USER, "ci", "fm_abcde", uid(6), MOMENT, None, revoked_at, None, scopes)
    found = shown(keys.key(made))
    assert "key" not in found and found["prefix"] == "fm_abcde"
    assert (found["userId"], found["userCreatedById"]) == (str(USER), str(uid(6)))
    assert found["scopes"] == ["read", "start"]
    assert shown(keys.key(replace(made, scopes=None)))["scopes"] is None
    assert found["dateUpdated"] == found["dateRevoked"] == "2026-11-30T13:00:00.0000000Z"
    assert shown(keys.created_key(made, "fm_text"))["key"] == "fm_text"


def test_a_cursor_comes_back_as_what_it_was() -> None:
    cursor = RunCursor(MOMENT + timedelta(microseconds=7), RUN)
    assert cursors.read_run_cursor(cursors.run_cursor(cursor)) == cursor
    assert cursors.read_name_cursor(cursors.name_cursor("日本 / ?")) == "日本 / ?"
    assert cursors.read_number_cursor(cursors.number_cursor(12)) == 12
    assert cursors.read_run_cursor(None) is None and cursors.read_number_cursor(None) is None
    assert cursors.read_name_cursor(None) == ""


@pytest.mark.parametrize(
    "text", ["", "x", "é", "\ud800", "bnVsbA", "W10", "WzEsMl0", "WyIyMDI2IiwgIngiXQ", "[" * 9999, "W1tdXQ"]
)
def test_what_is_no_cursor_of_the_list_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        cursors.read_run_cursor(text)
    if text != "WzEsMl0":
        with pytest.raises(BadInput):
            cursors.read_number_cursor(text)
    with pytest.raises(BadInput):
        cursors.read_name_cursor(text if text != "WyIyMDI2IiwgIngiXQ" else cursors.number_cursor(1))


def test_the_bodies_of_versions_hold_no_wire_type() -> None:
    version = interactions.version_of(wire.RoundRobinInteractionVersionRequest.model_validate(FULL))
    assert isinstance(version, InteractionVersion)
    assert json.loads(json.dumps(version.later)) == version.later
