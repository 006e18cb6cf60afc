"""Tools of a run: bindings on agent, participant and interaction, settled at the start (interactions.md; B09, B50, F53, F56)."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any
from uuid import uuid4

import panels
import pytest
import pytest_asyncio
import swarm_at_hand as swarm
from connectors_at_hand import SPACE, Bench, Keeper, document
from definitions_at_hand import AGENT, MODEL, PANEL, SEARCH, other_tenant
from definitions_at_hand import bench as machine

from folkmoot.domain.approvals import server_of
from folkmoot.domain.calls import Tool
from folkmoot.domain.connectors import ConnectorHeader, OpenApiConnectorVersion
from folkmoot.domain.definitions import AgentBinding, DefinitionKind, InteractionVersion, Reference
from folkmoot.domain.operation_changes import OperationSettings
from folkmoot.domain.operations import ApprovalMode, Bound, Http, OperationTarget, Place, SecretHeader
from folkmoot.domain.swarms import StartableInteraction, SwarmSettings
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.tool_bindings import (
    AuthenticationHeader,
    BindingInput,
    NamedValue,
    OperationBinding,
    SecretInput,
)
from folkmoot.kernel.errors import BadDefinition, BadInput
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, operations, runs, starting, sub_run_starts, surveys
from folkmoot.services.apply import Document
from folkmoot.services.starting import StartFields
from folkmoot.services.sub_run_starts import Wanted
from folkmoot.store.database import Database

AT_PANEL = Reference("panel", SPACE)
ASK = ("question", "cats?")


def on_bench(name: str, operation: str, **fields: Any) -> OperationBinding:
    return OperationBinding(name=name, connector=Reference("bench"), operation=operation, **fields)


def on_shop(name: str, operation: str, **fields: Any) -> OperationBinding:
    return OperationBinding(name=name, connector=Reference("shop", SPACE), operation=operation, **fields)


CUSTOMER = BindingInput(
    connector=Reference("shop"), operation="orders/list", name="customer", target="customerId", type=Place.PATH, is_required=True
)  # fmt: skip


class Panel(Keeper):
    """Publishes and starts a panel of Ann and Ben that has tools."""

    async def publish(self, *, agent: Any = AGENT, **fields: Any) -> None:
        panel = replace(PANEL, **fields)
        documents = [
            Document(SPACE, "panel", panel),
            Document(SPACE, "optimist", agent),
            Document(SPACE, "small", MODEL),
        ]
        await apply.apply(self.database, self.caller, documents, new_id=self.new_id)

    async def refused(self, *, agent: Any = AGENT, **fields: Any) -> dict[str, str]:
        with pytest.raises(BadDefinition) as caught:
            await self.publish(agent=agent, **fields)
        return {fault.pointer: fault.message for fault in caught.value.faults}

    async def refused_at_once(self, **fields: Any) -> dict[str, str]:
        """The faults of the interaction alone, those in itself and those of its links."""
        await self.publish()
        with pytest.raises(BadDefinition) as caught:
            await definitions.publish(
                self.database, self.caller, namespace=SPACE, name="panel", version=replace(PANEL, **fields), new_id=self.new_id
            )  # fmt: skip
        return {fault.pointer: fault.message for fault in caught.value.faults}

    async def tools(self, *inputs: tuple[str, str], disabled: tuple[str, ...] | None = None) -> dict[str, list[Tool]]:
        request = StartFields(inputs=(ASK, *inputs), disabled_tools=disabled)
        run_id = await starting.start(
            self.database, self.caller, interaction=AT_PANEL, request=request, bench=machine(SEARCH), new_id=self.new_id,
            tell=lambda _: None,
        )  # fmt: skip
        whole = await runs.get(self.database, self.caller, run_id=run_id)
        return {each.name: list(each.tools) for each in whole.resolved.participants}

    async def not_started(self, *inputs: tuple[str, str]) -> list[tuple[str, str]]:
        with pytest.raises(BadInput) as caught:
            await self.tools(*inputs)
        return [(fault.pointer, fault.message) for fault in caught.value.faults]


@pytest_asyncio.fixture
async def panel(database: Database, caller: Caller, new_id: NewId, bench: Bench) -> Panel:
    """With an MCP server and the document of a shop published, whose secret is `token`."""
    made = Panel(database, caller, new_id)
    await made.bench(bench.url)
    await made.secret("token", "s3cr3t-of-ours")
    version = OpenApiConnectorVersion(
        document_hash=hashlib.sha256(document()).hexdigest(),
        base_url="https://shop.example.com/v1",
        headers=(ConnectorHeader("Authorization", Reference("token"), "Bearer"),),
    )
    await made.shop(version, uploaded=document())
    return made


def target_of(tool: Tool) -> OperationTarget:
    assert isinstance(tool.target, OperationTarget)
    return tool.target


async def test_tools_come_from_agent_participant_and_interaction(panel: Panel, bench: Bench) -> None:
    """interactions.md: `externalOperationsMcp`: tools that every participant gets beside its own."""
    agent = replace(AGENT, function_tools=("search",), external_operations_mcp=(on_bench("look_at", "look"),))
    ann = AgentBinding(
        Reference("optimist"), "Ann",
        external_operations_mcp=(on_bench("paint", "paint", is_terminal=True, prompt_guidance="About %%question%%."),),
    )  # fmt: skip
    orders = on_shop("orders", "orders/list", path_bindings=(NamedValue("customerId", "7"),))
    await panel.publish(
        agent=agent, agents=(ann, AgentBinding(Reference("optimist"), "Ben")), external_operations_open_api=(orders,)
    )
    found = await panel.tools()
    assert [tool.name for tool in found["Ann"]] == ["search", "look_at", "paint", "orders"]
    assert [tool.name for tool in found["Ben"]] == ["search", "look_at", "orders"]
    _, look, paint, listed = found["Ann"]
    assert (look.is_gated, look.is_read_only, paint.is_gated, paint.is_terminal) == (False, True, True, True)
    assert (paint.guidance, listed.is_gated, listed.is_read_only) == ("About cats?.", False, True)
    assert target_of(look).server == Http(bench.url) and target_of(look).connector_name == "examples/bench"
    assert target_of(listed).bound == (Bound(Place.PATH, "customerId", 7),)
    assert "customerId" not in listed.parameters["properties"]
    assert [header.scheme for header in target_of(listed).headers] == ["Bearer"]


async def test_a_start_by_survey_shows_what_is_gated(panel: Panel) -> None:
    """conversation.md, Tools: a person sees which tools are gated before starting a run."""
    await panel.publish(
        external_operations_mcp=(on_bench("look", "look"), on_bench("paint", "paint")),
        external_operations_open_api=(on_shop("orders", "orders/list"),),
        inputs_connector_binding=(CUSTOMER,),
    )
    survey = await surveys.tools_of(panel.database, panel.caller, interaction=AT_PANEL, bench=machine(SEARCH))
    assert survey.problems == ()
    gated = {tool.name: tool.is_gated for participant in survey.participants for tool in participant.tools}
    assert gated == {"look": False, "paint": True, "orders": False}
    await definitions.delete(
        panel.database, panel.caller, kind=DefinitionKind.MCP_CONNECTOR, reference=Reference("bench", SPACE)
    )
    survey = await surveys.tools_of(panel.database, panel.caller, interaction=AT_PANEL, bench=machine(SEARCH))
    assert len(survey.problems) == 2 and "'look' cannot be had" in survey.problems[0]


async def test_a_binding_tightens_and_never_loosens(panel: Panel) -> None:
    """interactions.md: a binding may tighten these, never loosen them; F53."""
    tight = on_bench("look", "look", approval_mode=ApprovalMode.ALWAYS, limit_seconds=1.0, limit_bytes=10)
    await panel.publish(external_operations_mcp=(tight,))
    (tool,) = (await panel.tools())["Ann"]
    assert (tool.is_gated, tool.limit_seconds, tool.limit_bytes) == (True, 1.0, 10)
    loose = on_bench("look", "look", approval_mode=ApprovalMode.NEVER)
    assert list(await panel.refused(external_operations_mcp=(loose,))) == ["/externalOperationsMcp/0/approvalMode"]
    look_id = (await panel.operations())["look"].stored.operation.operation_id
    limits = OperationSettings(limit_seconds=0.5)
    await operations.decide(panel.database, panel.caller, operation_id=look_id, settings=limits)
    ((_, message),) = await panel.not_started()
    assert "looser" in message and "'look'" in message


async def test_a_binding_pinned_to_a_changed_operation_fails_by_name(panel: Panel, bench: Bench) -> None:
    """interactions.md: a binding pinned to the old version fails instead of silently taking the new text; B09."""
    await panel.publish(
        external_operations_mcp=(on_bench("pinned", "look", external_operation_version=1), on_bench("free", "look"))
    )
    before = await panel.tools()
    bench.offer("look", "Looks at a thing, and tells everybody.")
    await panel.refresh()
    ((pointer, message),) = await panel.not_started()
    assert pointer == "" and "'pinned'" in message and "changed" in message and "version 2" in message
    (free,) = (await panel.tools(disabled=("pinned",)))["Ann"]
    assert (target_of(free).operation_version, free.description) == (2, "Looks at a thing, and tells everybody.")
    assert {target_of(tool).operation_version for tool in before["Ann"]} == {1}
    look_id = target_of(free).operation_id
    await operations.set_disabled(panel.database, panel.caller, operation_id=look_id, number=2, is_disabled=True)
    messages = [message for _, message in await panel.not_started()]
    assert len(messages) == 2 and "disabled" in messages[1]
    bench.withdraw("look")
    await panel.refresh()
    assert all("offered no more" in message for _, message in await panel.not_started())


async def test_a_pin_holds_while_only_the_operator_decides(panel: Panel) -> None:
    await panel.publish(external_operations_mcp=(on_bench("pinned", "look", external_operation_version=1),))
    look_id = (await panel.operations())["look"].stored.operation.operation_id
    settings = OperationSettings(approval_mode=ApprovalMode.ALWAYS)
    await operations.decide(panel.database, panel.caller, operation_id=look_id, settings=settings)
    (tool,) = (await panel.tools())["Ann"]
    assert target_of(tool).operation_version == 1 and not tool.is_gated
    await operations.set_disabled(panel.database, panel.caller, operation_id=look_id, number=1, is_disabled=True)
    assert ["is disabled" in message for _, message in await panel.not_started()] == [True]


async def test_run_inputs_go_into_calls_once_and_the_model_chooses_none(panel: Panel) -> None:
    """B50, F56: inputsConnectorBinding."""
    state = BindingInput(
        connector=Reference("shop"), operation="orders/list", name="state", target="state", type=Place.QUERY,
        agent=Reference("optimist"),
    )  # fmt: skip
    region = replace(state, name="region", target="X-Region", type=Place.HEADER, default_value="eu", agent=None)
    await panel.publish(
        external_operations_open_api=(on_shop("orders", "orders/list"),),
        inputs_connector_binding=(CUSTOMER, state, region),
    )
    (tool,) = (await panel.tools(("customer", "7"), ("state", "%%customer%%")))["Ann"]
    assert target_of(tool).bound == (
        Bound(Place.PATH, "customerId", 7),
        Bound(Place.QUERY, "state", "%%customer%%"),
        Bound(Place.HEADER, "X-Region", "eu"),
    )
    assert tool.parameters["properties"] == {}
    (tool,) = (await panel.tools(("customer", "7")))["Ben"]
    assert target_of(tool).bound[1] == Bound(Place.QUERY, "state", None, is_sent=False)
    assert [pointer for pointer, _ in await panel.not_started()] == ["/inputs", "/inputs"]
    assert [pointer for pointer, _ in await panel.not_started(("customer", "seven"))] == ["/inputs/1"]
    assert [pointer for pointer, _ in await panel.not_started(("customer", "7"), ("colour", "red"))] == ["/inputs/2"]


async def test_a_fixed_value_takes_an_input_in(panel: Panel) -> None:
    orders = on_shop(
        "orders", "orders/list", path_bindings=(NamedValue("customerId", "%%count%%"),),
        query_bindings=(NamedValue("state", "for %%question%%"),),
    )  # fmt: skip
    await panel.publish(external_operations_open_api=(orders,))
    (tool,) = (await panel.tools(("count", "5")))["Ann"]
    assert [bound.value for bound in target_of(tool).bound] == [5, "for cats?"]
    ((_, message),) = await panel.not_started()
    assert "customerId" in message  # `count` was not given, and nothing is no number


async def test_headers_come_from_connector_binding_and_run(panel: Panel) -> None:
    """interactions.md: authenticationHeader, inputsConnectorAuthenticationSecret; B52: ids, never secrets."""
    ours, theirs = await panel.secret("ours", "s3cr3t-ours"), await panel.secret("theirs", "s3cr3t-theirs")
    orders = on_shop(
        "orders", "orders/list", path_bindings=(NamedValue("customerId", "7"),),
        authentication_header=AuthenticationHeader("X-Key", secret_input_name="chosen"),
    )  # fmt: skip
    chosen = SecretInput(
        connector=Reference("shop"), operation="orders/list", name="chosen", header_name="authorization",
        default_secret=Reference("ours"), is_required=True,
    )  # fmt: skip
    await panel.publish(external_operations_open_api=(orders,), inputs_connector_authentication_secret=(chosen,))
    (tool,) = (await panel.tools())["Ann"]
    assert target_of(tool).headers == (SecretHeader("authorization", ours), SecretHeader("X-Key", ours))
    (tool,) = (await panel.tools(("chosen", str(theirs))))["Ann"]
    assert {header.secret_id for header in target_of(tool).headers} == {theirs}
    stranger = await other_tenant(panel.database, panel.new_id)
    foreign = await panel.secret("foreign", "s3cr3t-foreign", caller=stranger)
    for secret in (foreign, uuid4()):
        ((_, message),) = await panel.not_started(("chosen", str(secret)))
        assert f"The secret with the id {secret} was deleted, or never was" in message
    ((pointer, message),) = await panel.not_started(("chosen", "s3cr3t-itself"))
    assert pointer == "/inputs/1" and "s3cr3t" not in message


async def test_no_participant_chooses_a_secret_for_a_run_that_it_starts(panel: Panel) -> None:
    """conversation.md, Sub-interactions: whatever ids it has read somewhere; the input's default is what is sent."""
    ours, theirs = await panel.secret("ours", "s3cr3t-ours"), await panel.secret("theirs", "s3cr3t-theirs")
    orders = on_shop("orders", "orders/list", path_bindings=(NamedValue("customerId", "7"),))
    chosen = SecretInput(
        connector=Reference("shop"), operation="orders/list", name="chosen", header_name="authorization", default_secret=Reference("ours")
    )  # fmt: skip
    await panel.publish(external_operations_open_api=(orders,), inputs_connector_authentication_secret=(chosen,))
    stored = await definitions.get(panel.database, panel.caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)
    startable = StartableInteraction("panel", SPACE, stored.definition.definition_id, stored.number, "", "{}")
    above = swarm.parent(panel.new_id, [startable], swarm.TALK)
    started = await swarm.start(panel.database, panel.caller, panel.new_id, above)
    (claimed,) = await panels.claim(panel.database, await panels.register(panel.database, panel.new_id))
    inputs = [(ASK, ("chosen", str(theirs))), (ASK, ("chosen", "s3cr3t-itself")), (ASK,)]
    *refused, right = await sub_run_starts.start(
        panel.database, claimed.claim, wanted=[Wanted(panel.new_id(), "Ann", "panel", each) for each in inputs], bench=machine(SEARCH),
        new_id=panel.new_id, tell=lambda _: None,
    )  # fmt: skip
    for each in refused:
        assert isinstance(each, BadInput)
        (fault,) = each.faults
        assert fault.pointer.startswith("/inputs/") and "no participant chooses secrets" in fault.message
        assert "s3cr3t" not in str(each)
    assert right is None
    (row,) = await swarm.children(panel.database, started)
    whole = await runs.get(panel.database, panel.caller, run_id=row["run_id"])
    (tool, *_) = whole.resolved.participants[0].tools
    assert {header.secret_id for header in target_of(tool).headers} == {ours}


async def test_what_takes_a_secret_that_nobody_could_choose_keeps_a_run_with_such_a_swarm_from_starting(
    panel: Panel,
) -> None:
    await panel.secret("ours", "s3cr3t-ours")
    orders = on_shop("orders", "orders/list", path_bindings=(NamedValue("customerId", "7"),))
    chosen = SecretInput(
        connector=Reference("shop"), operation="orders/list", name="chosen", header_name="authorization", is_required=True
    )  # fmt: skip
    agents = (AgentBinding(Reference("optimist"), "Ann"),)
    top = InteractionVersion(
        agents=agents, prompt="Go.", maximum_rounds=1, inputs_prompt=PANEL.inputs_prompt, swarm=SwarmSettings((AT_PANEL,), ("Ann",))
    )  # fmt: skip
    for secret, can_start in (
        (chosen, False),
        (replace(chosen, is_required=False), True),
        (replace(chosen, default_secret=Reference("ours")), True),
    ):
        await panel.publish(external_operations_open_api=(orders,), inputs_connector_authentication_secret=(secret,))
        await apply.apply(panel.database, panel.caller, [Document(SPACE, "top", top)], new_id=panel.new_id)
        starts = starting.start(
            panel.database, panel.caller, interaction=Reference("top", SPACE), request=StartFields(inputs=(ASK,)), bench=machine(SEARCH),
            new_id=panel.new_id, tell=lambda _: None,
        )  # fmt: skip
        if can_start:
            await starts
            continue
        with pytest.raises(BadInput) as caught:
            await starts
        (fault,) = caught.value.faults
        assert (
            f"'{SPACE}/panel'" in fault.message
            and "input 'chosen' takes a secret, which only people choose" in fault.message
        )


async def test_what_is_wrong_with_bindings_is_told_when_saved(panel: Panel) -> None:
    """interactions.md: everything is checked; each fault with its place."""
    wrong = await panel.refused_at_once(
        external_operations_mcp=(
            on_bench("look", "nothing"),
            on_bench("Look", "look", request_bindings=(NamedValue("nothing", "1"), NamedValue("shade", "dark"))),
            on_shop("orders", "orders/list"),
            OperationBinding(name="by_id", external_operation_id=uuid4()),
            on_bench("propose_solution", "paint", external_operation_version=9),
            on_bench("paint", "paint", authentication_header=AuthenticationHeader("X-Key", Reference("nobody"))),
        ),
        inputs_connector_binding=(CUSTOMER, replace(CUSTOMER, operation="nothing")),
        inputs_connector_authentication_secret=(
            SecretInput(connector=Reference("bench"), operation="look", name="question", header_name="X", agent=Reference("optimist")),
        ),
    )  # fmt: skip
    assert sorted(wrong) == [
        "/externalOperationsMcp/0",
        "/externalOperationsMcp/1/name",
        "/externalOperationsMcp/1/requestBindings/0",
        "/externalOperationsMcp/1/requestBindings/1",
        "/externalOperationsMcp/2",
        "/externalOperationsMcp/3",
        "/externalOperationsMcp/4",
        "/externalOperationsMcp/4/name",
        "/externalOperationsMcp/5/authenticationHeader/secret",
        "/inputsConnectorAuthenticationSecret/0/name",
        "/inputsConnectorBinding/0",
        "/inputsConnectorBinding/1",
    ]
    agent = replace(AGENT, function_tools=("look",), external_operations_mcp=(on_bench("LOOK", "look"),))
    assert list(await panel.refused(agent=agent)) == ["/externalOperationsMcp/0/name"]


async def test_an_agent_is_held_against_the_interaction_where_they_meet(panel: Panel) -> None:
    header = AuthenticationHeader("X-Key", secret_input_name="chosen")
    orders = on_shop(
        "orders", "orders/list", path_bindings=(NamedValue("customerId", "%%who%%"),), authentication_header=header
    )
    agent = replace(AGENT, external_operations_open_api=(orders,))
    wrong = await panel.refused(agent=agent, external_operations_open_api=(on_shop("orders", "orders/add"),))
    assert list(wrong) == ["/agents/0/agent", "/agents/1/agent"]


async def turned_into_a_command(panel: Panel) -> None:
    async with panel.database.writer() as writer:
        await writer.connection.execute(
            """update definition_version v
               set body = jsonb_set(v.body, '{server}', '{"type": "stdio", "command": "x", "environment": {"MODE": "a"}}')
               from definition d where d.definition_id = v.definition_id and d.kind = 'McpConnector'"""
        )


async def test_the_headers_of_a_command_are_variables_of_its_environment(panel: Panel) -> None:
    """platform.md, connector secrets: by their ids in the run, chosen at the start; told before the run exists where they cannot be."""
    theirs = await panel.secret("theirs", "s3cr3t-theirs")
    await turned_into_a_command(panel)
    chosen = SecretInput(
        connector=Reference("bench"), operation="look", name="chosen", header_name="Token", is_required=True
    )
    for header, message in (
        (AuthenticationHeader("TOKEN", Reference("token")), None),
        (AuthenticationHeader("X-Key", Reference("token")), "'X-Key' is no variable"),
        (AuthenticationHeader("LD_PRELOAD", Reference("token")), "'LD_PRELOAD' decides what a command runs"),
        (AuthenticationHeader("MODE", Reference("token")), "'MODE' is in the connector's 'environment' too"),
        (AuthenticationHeader("TOKEN", Reference("token"), scheme="Bearer"), "leave the scheme out"),
    ):
        look = on_bench("look", "look", authentication_header=header)
        await panel.publish(external_operations_mcp=(look,), inputs_connector_authentication_secret=(chosen,))
        if message is not None:
            assert any(message in told for _, told in await panel.not_started(("chosen", str(theirs)))), message
            continue
        (tool,) = (await panel.tools(("chosen", str(theirs))))["Ann"]
        names = {each.header_name: each.secret_id == theirs for each in target_of(tool).headers}
        assert names == {"TOKEN": False, "Token": True}
        assert "TOKEN" not in server_of(target_of(tool))


async def test_a_connector_that_runs_a_command_keeps_a_run_from_starting_where_none_is_allowed(panel: Panel) -> None:
    """Issue, Connectors: stdio only where the operator allows it; told before the run exists, not call by call."""
    await panel.publish(external_operations_mcp=(on_bench("look", "look"),))
    await panel.tools()
    await turned_into_a_command(panel)
    forbidding = replace(machine(SEARCH), allows_stdio=False)
    with pytest.raises(BadInput) as caught:
        await starting.start(
            panel.database, panel.caller, interaction=AT_PANEL, request=StartFields(inputs=(ASK,)), bench=forbidding,
            new_id=panel.new_id, tell=lambda _: None,
        )  # fmt: skip
    (fault,) = caught.value.faults
    assert "bench' runs a command" in fault.message and "FOLKMOOT_ALLOW_STDIO" in fault.message
