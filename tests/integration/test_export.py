"""Definitions into files and back, and what files do not name (interactions.md: `--prune`, `folkmoot export`)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import pytest_asyncio
from connectors_at_hand import SPACE, Bench, Keeper, document
from definitions_at_hand import AGENT, MODEL, PANEL
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.api.definition_export import as_files, as_text
from folkmoot.api.definition_files import read_files
from folkmoot.api.yaml_values import read_documents
from folkmoot.api.yaml_writing import written
from folkmoot.domain.agent_settings import AgentBudget, AgentRunSettings, Comparison, ConsentRule
from folkmoot.domain.budgets import Budget
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.connectors import ConnectorHeader, OpenApiConnectorVersion
from folkmoot.domain.definitions import (
    AgentBinding,
    ChatMode,
    DefinitionKind,
    HumanSettings,
    InteractionType,
    InteractionVersion,
    Reference,
)
from folkmoot.domain.operations import ApprovalMode, Place
from folkmoot.domain.routers import RouterCandidate, RouterRule, RouterVersion
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.tool_bindings import AuthenticationHeader, BindingInput, NamedValue, OperationBinding, SecretInput
from folkmoot.kernel.errors import BadDefinition, Conflict, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, exporting
from folkmoot.services.apply import Document
from folkmoot.store.database import Database

SHOP = "orders/list"


@pytest_asyncio.fixture
async def keeper(database: Database, caller: Caller, new_id: NewId, bench: Bench) -> Keeper:
    """With a definition of each kind, and every sort of binding."""
    made = Keeper(database, caller, new_id)
    await made.secret("token", "s3cr3t-of-ours")
    token = (ConnectorHeader("Authorization", Reference("token"), "Bearer"),)
    await made.bench(bench.url, headers=token)
    version = OpenApiConnectorVersion(
        document_hash=hashlib.sha256(document()).hexdigest(), base_url="https://shop.example.com", headers=token
    )
    await made.shop(version, uploaded=document())
    look = OperationBinding(
        name="look", connector=Reference("bench"), operation="look", external_operation_version=1, approval_mode=ApprovalMode.ALWAYS,
        is_idempotent=False, limit_seconds=2.5, prompt_guidance="First:\n  look.\n", is_terminal=True,
    )  # fmt: skip
    orders = OperationBinding(
        name="orders", connector=Reference("shop"), operation=SHOP, query_bindings=(NamedValue("state", "yes"),),
        authentication_header=AuthenticationHeader("X-Key", secret_input_name="key"),
    )  # fmt: skip
    panel = replace(
        PANEL,
        agents=(AgentBinding(Reference("optimist", version=1), "Ann", (look,)), AgentBinding(Reference("optimist"), "Ben: 2")),
        external_operations_open_api=(orders,),
        inputs_connector_authentication_secret=(
            SecretInput(connector=Reference("shop"), operation=SHOP, name="key", header_name="X-Other", default_secret=Reference("token")),
        ),
        inputs_connector_binding=(
            BindingInput(
                connector=Reference("shop"), operation=SHOP, name="customer", target="customerId", type=Place.PATH,
                agent=Reference("optimist"), default_value="7",
            ),
        ),
        human_settings=HumanSettings(ChatMode.OBSERVING),
        duration_auto_termination=timedelta(days=1, seconds=5, milliseconds=20),
        solution_schema='{ "type":"string" }',
        context_settings={"mode": "None", "toolResultTrimmingMode": "Never", "maxToolCallLoops": 4, "compactionType": "DedicatedModel"},
        compaction_model=Reference("small"),
        budget=Budget(tokens=9_000, money=Decimal("0.25")),
        swarm=SwarmSettings((Reference("team"),), ("Ann",), max_depth=2),
    )  # fmt: skip
    model = replace(
        MODEL,
        prices={"input": 0.5},
        capabilities={"tools": False, "structuredOutput": True, "images": False, "reasoning": False},
    )
    chooser = RouterVersion(
        candidates=(
            RouterCandidate(agent=Reference("optimist", version=1), name="kind", description="For hope."),
            RouterCandidate(router=Reference("later")),  # which is later by name, and made before it all the same
        ),
        fallback="later", rules=(RouterRule("kind", turn_number=1), RouterRule("later", input="question", input_value="7")),
        model=Reference("small"), prompt="Of %%question%%: choose.", description="Chooses.",
    )  # fmt: skip
    later = RouterVersion(candidates=(RouterCandidate(agent=Reference("optimist")),), fallback="optimist")
    team = InteractionVersion(
        type=InteractionType.MANAGED,
        manager=AgentBinding(Reference("optimist"), "Boss"),
        agents=(
            AgentBinding(Reference("chooser"), description="Knows whom to ask."),
            AgentBinding(Reference("optimist"), "Ben"),
        ),
        maximum_concurrent_dispatches=2,
        context_settings={"mode": "None", "toolResultTrimmingMode": "Never"},
        prompt="Decide: %%question%%",
        inputs_prompt=PANEL.inputs_prompt,
    )
    desk = ChannelVersion("email", {"host": "mail.example.com", "ports": [25, 2.5]}, {"password": Reference("token")})
    clerk = replace(
        AGENT,
        external_operations_mcp=(look,),
        runs=AgentRunSettings(
            owner_name=caller.user_name, tool_whitelist=("look",), specialists=(Reference("optimist", version=1), Reference("waiter")),
            consent_rules=(
                ConsentRule("look"), ConsentRule("look", Comparison.ABOVE, "amount", 7.5),
                ConsentRule("look", Comparison.EQUALS, "/a~1b", {"yes": [None, True]}),
            ),
            maximum_iterations=9, budget=AgentBudget(5, Decimal(10), 4, 3, timedelta(minutes=30)), channel="desk", consent_time=None,
        ),
    )  # fmt: skip
    documents = [
        Document(SPACE, "clerk", clerk), Document(SPACE, "waiter", AGENT), Document(SPACE, "desk", desk),
        Document(SPACE, "panel", panel), Document(SPACE, "team", team), Document(SPACE, "optimist", AGENT),
        Document(SPACE, "small", model), Document(SPACE, "chooser", chooser), Document(SPACE, "later", later),
    ]  # fmt: skip
    await apply.apply(database, caller, documents, new_id=new_id)
    return made


def written_to(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


async def test_what_was_exported_applies_again_without_a_change(keeper: Keeper, tmp_path: Path) -> None:
    exported = await exporting.export(keeper.database, keeper.caller, namespace=SPACE)
    kinds = [stored.definition.kind.value for stored in exported.definitions]
    assert list(dict.fromkeys(kinds)) == [
        "AiModel",
        "McpConnector",
        "OpenApiConnector",
        "Channel",
        "Agent",
        "Router",
        "Interaction",
    ]
    files = as_files(exported)
    assert sorted(files)[:4] == ["agents.yaml", "ai-models.yaml", "channels.yaml", "connectors.yaml"]
    assert b"s3cr3t" not in b"".join(files.values()) and b"examples/token" in files["connectors.yaml"]
    (tmp_path / "one.yaml").write_text(as_text(exported), encoding="utf-8")
    folder = tmp_path / "many"
    folder.mkdir()
    for source in (written_to(folder, files), tmp_path / "one.yaml"):
        documents = read_files([source])
        found = await apply.look(keeper.database, keeper.caller, keeper.reach, documents)
        assert found == {}, "what did not change is not asked for"
        changes = await apply.diff(
            keeper.database, keeper.caller, documents, new_id=keeper.new_id, found=found, prunes=True
        )
        assert [(change.outcome, change.differences) for change in changes] == [("unchanged", ())] * 11


async def test_a_set_with_connectors_is_made_where_nothing_is(keeper: Keeper, tmp_path: Path) -> None:
    """The files of one namespace, moved to another: servers are looked at first, then all is one transaction."""
    exported = await exporting.export(keeper.database, keeper.caller, namespace=SPACE)
    text = as_text(exported).replace("namespace: examples", "namespace: moved").replace("examples/", "moved/")
    text = text.replace("moved/token", "examples/token")
    (tmp_path / "all.yaml").write_text(text, encoding="utf-8")
    documents = read_files([tmp_path / "all.yaml"])
    with pytest.raises((Conflict, BadDefinition)):
        await apply.apply(keeper.database, keeper.caller, documents, new_id=keeper.new_id)
    found = await apply.look(keeper.database, keeper.caller, keeper.reach, documents)
    assert len(found) == 2
    changes = await apply.apply(keeper.database, keeper.caller, documents, new_id=keeper.new_id, found=found)
    assert {change.outcome for change in changes} == {"created"}
    again = await apply.look(keeper.database, keeper.caller, keeper.reach, documents)
    assert again == {}


async def test_pruning_deletes_what_the_named_namespaces_hold_beside_the_set_and_no_more(keeper: Keeper) -> None:
    """interactions.md: `--prune`."""
    elsewhere = Document("elsewhere", "small", MODEL)
    await apply.apply(keeper.database, keeper.caller, [elsewhere], new_id=keeper.new_id)
    kept = [Document(SPACE, "optimist", AGENT), Document(SPACE, "small", MODEL)]
    arguments = (keeper.database, keeper.caller, kept)
    promised = await apply.diff(*arguments, new_id=keeper.new_id, prunes=True)
    assert [(change.kind, change.name) for change in promised if change.outcome == "deleted"] == [
        ("Interaction", "panel"), ("Interaction", "team"), ("Router", "chooser"), ("Router", "later"), ("Agent", "clerk"), ("Agent", "waiter"),
            ("Channel", "desk"), ("OpenApiConnector", "shop"), ("McpConnector", "bench"),
    ]  # fmt: skip
    panel = Reference("panel", SPACE)
    await definitions.get(keeper.database, keeper.caller, kind=DefinitionKind.INTERACTION, reference=panel)
    assert await apply.apply(*arguments, new_id=keeper.new_id, prunes=True) == promised
    with pytest.raises(NotFound):
        await definitions.get(keeper.database, keeper.caller, kind=DefinitionKind.INTERACTION, reference=panel)
    await definitions.get(
        keeper.database, keeper.caller, kind=DefinitionKind.AI_MODEL, reference=Reference("small", "elsewhere")
    )
    left = await apply.apply(*arguments, new_id=keeper.new_id, prunes=True)
    assert all(change.outcome == "unchanged" for change in left)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12)
    | st.sampled_from(["no", "0o17", "1e3", "12:30", "2026-10-26", "~", "null", "a: b", "- x", "#x", "|", "x\n\n", " y", "<<", "=", "\t", "é\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES, min_size=1, max_size=3))
def test_what_is_written_is_read_as_the_same(value: dict[str, object]) -> None:
    """Neither YAML's other words for values nor its many signs change what is said."""
    (read,) = read_documents(written(value), "file")
    assert read.faults == () and json.dumps(read.value) == json.dumps(value)
