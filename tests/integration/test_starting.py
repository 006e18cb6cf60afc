"""Starting a run: everything is checked before it exists, the closure is settled, a key makes one run."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from definitions_at_hand import (
    AGENT,
    MODEL,
    NAMESPACE,
    PANEL,
    SCRIPT,
    SEARCH,
    bench,
    documents,
    other_tenant,
    publish_panel,
    shift_clock,
)

from folkmoot.domain.definitions import (
    AgentBinding,
    DataType,
    DefinitionKind,
    PromptInput,
    Reference,
    ResolvedInteraction,
)
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, InFlight, KeyReused, NotFound, NotYetBuilt
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, runs, starting
from folkmoot.services.starting import StartFields, Workbench
from folkmoot.store.database import Database
from folkmoot.store.idempotency import Scope

AT_PANEL = Reference("panel", NAMESPACE)
REQUEST = StartFields(inputs=(("question", "cats?"),))


class Starter:
    """Starts the panel and remembers what was told to other processes."""

    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database, self.caller, self.new_id = database, caller, new_id
        self.told: list[dict[str, Any]] = []

    async def start(
        self, request: StartFields = REQUEST, *, at: Reference = AT_PANEL, on: Workbench | None = None, scope: Scope | None = None
    ) -> UUID:  # fmt: skip
        return await starting.start(
            self.database, self.caller, interaction=at, request=request, bench=on or bench(SEARCH), new_id=self.new_id,
            tell=self.told.append, scope=scope,
        )  # fmt: skip

    async def resolved(self, request: StartFields = REQUEST, *, at: Reference = AT_PANEL) -> ResolvedInteraction:
        run_id = await self.start(request, at=at)
        return (await runs.get(self.database, self.caller, run_id=run_id)).resolved

    async def refused(self, request: StartFields = REQUEST, **how: Any) -> dict[str, str]:
        """The faults of a start that is refused, by pointer; nothing was made and nobody told."""
        with pytest.raises(BadInput) as caught:
            await self.start(request, **how)
        assert await self.count() == 0 and self.told == []
        return {fault.pointer: fault.message for fault in caught.value.faults}

    async def count(self) -> int:
        async with self.database.reader() as reader:
            found: int = await reader.connection.fetchval("select count(*) from process")
            assert found == await reader.connection.fetchval("select count(*) from resolved_definition")
        return found

    async def disable(self, kind: DefinitionKind, name: str, number: int) -> None:
        reference = Reference(name, NAMESPACE, version=number)
        await definitions.set_disabled(self.database, self.caller, kind=kind, reference=reference, is_disabled=True)


@pytest.fixture
async def starter(database: Database, caller: Caller, new_id: NewId) -> Starter:
    await publish_panel(database, caller, new_id)
    return Starter(database, caller, new_id)


def scope_of(caller: Caller, *, key: str = "k1", body: bytes = b"{}", route: str = "start") -> Scope:
    return Scope(caller.tenant_id, caller.user_id, route, key, hashlib.sha256(body).digest())


async def test_a_start_settles_the_whole_closure(starter: Starter) -> None:
    """state.md, Pinning: a start resolves the whole closure into the resolved definition."""
    request = replace(REQUEST, duration_auto_termination=timedelta(minutes=3), tags=("red", "red"), priority=5)
    run_id = await starter.start(request)
    whole = await runs.get(starter.database, starter.caller, run_id=run_id)
    resolved = whole.resolved
    assert (resolved.interaction_name, resolved.interaction_version, resolved.namespace) == ("panel", 1, NAMESPACE)
    assert resolved.task == "Decide: cats?"
    assert [participant.name for participant in resolved.participants] == ["Ann", "Ben"]
    ann = resolved.participants[0]
    assert (ann.agent_name, ann.agent_version, ann.prompts) == ("optimist", 1, ("You look at cats?.",))
    assert (ann.model.provider, ann.model.model_name, ann.model.script) == ("scripted", "script", SCRIPT)
    assert resolved.inputs == (("question", "cats?"),)
    assert resolved.duration_auto_termination == timedelta(minutes=3)
    run = whole.view.run
    assert (run.status, run.tags, run.interaction_version) == ("New", ("red",), 1)
    assert run.tree_root_id == run.run_id
    assert starter.told == [{"to": "workers"}]


async def test_a_run_keeps_the_versions_it_started_with(starter: Starter) -> None:
    """B09; interactions.md: a run records the exact versions of everything it took."""
    before = await starter.resolved()
    changed = documents(
        model=replace(MODEL, model_name="other"),
        agent=replace(AGENT, prompts=("New.",)),
        panel=replace(PANEL, prompt="New."),
    )
    await apply.apply(starter.database, starter.caller, changed, new_id=starter.new_id)
    after = await starter.resolved()
    assert (before.interaction_version, after.interaction_version) == (1, 2)
    assert before.participants[0].model.model_name == "script"
    newest = after.participants[0]
    assert (newest.agent_version, newest.prompts, newest.model.model_name) == (2, ("New.",), "other")
    pinned = await starter.resolved(at=replace(AT_PANEL, version=1))
    assert pinned.task == "Decide: cats?" and pinned.participants[0].agent_version == 2


async def test_a_start_by_id_is_the_same_as_by_name(starter: Starter) -> None:
    found = await definitions.get(starter.database, starter.caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)
    by_id = Reference(definition_id=found.definition.definition_id)
    assert await starter.resolved(at=by_id) == await starter.resolved()


@pytest.mark.parametrize(
    ("inputs", "pointers"),
    [
        ((), {"/inputs"}),
        ((("question", "x"), ("colour", "red")), {"/inputs/1"}),
        ((("question", "x"), ("count", "many")), {"/inputs/1"}),
        ((("count", "1.5"), ("question", "x")), {"/inputs/0"}),
        ((("question", "x"), ("question", "y")), {"/inputs/1"}),
        ((("colour", "red"), ("count", "x")), {"/inputs", "/inputs/0", "/inputs/1"}),
    ],
)
async def test_missing_unknown_and_mistyped_inputs_are_refused(
    starter: Starter, inputs: tuple[tuple[str, str], ...], pointers: set[str]
) -> None:
    """interactions.md, Starting: missing or unknown inputs, wrong types."""
    assert set(await starter.refused(StartFields(inputs=inputs))) == pointers


async def test_an_inputs_value_is_filled_in_once_and_never_scanned_again(starter: Starter) -> None:
    """F56: input values are substituted once."""
    resolved = await starter.resolved(StartFields(inputs=(("question", "%%count%% %%%% %%question%%"), ("count", "3"))))
    assert resolved.task == "Decide: %%count%% %%%% %%question%%"
    assert resolved.participants[0].prompts == ("You look at %%count%% %%%% %%question%%.",)


async def test_an_optional_input_that_is_not_given_is_empty_text(starter: Starter) -> None:
    await publish_panel(starter.database, starter.caller, starter.new_id, prompt="%%question%% [%%count%%]")
    resolved = await starter.resolved()
    assert resolved.task == "cats? []" and resolved.inputs == (("question", "cats?"),)


async def test_the_requests_schema_takes_the_definitions_place(starter: Starter) -> None:
    """interactions.md, Starting: `responseJsonSchema` in place of the definition's schema."""
    await publish_panel(starter.database, starter.caller, starter.new_id, solution_schema='{"type": "string"}')
    assert (await starter.resolved()).solution_schema == '{"type": "string"}'
    request = replace(REQUEST, response_json_schema='{"type": "object"}')
    run_id = await starter.start(request)
    whole = await runs.get(starter.database, starter.caller, run_id=run_id)
    assert whole.resolved.solution_schema == whole.view.run.response_json_schema == '{"type": "object"}'


@pytest.mark.parametrize("schema", ["{", '{"type": 5}', '{"$ref": "http://x.test/s"}', '{"$ref": "#"}', "[" * 100_000])
async def test_a_schema_that_is_none_is_refused(starter: Starter, schema: str) -> None:
    """interactions.md, Starting: a schema that is no schema."""
    assert set(await starter.refused(replace(REQUEST, response_json_schema=schema))) == {"/responseJsonSchema"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [(DefinitionKind.INTERACTION, "panel"), (DefinitionKind.AGENT, "optimist"), (DefinitionKind.AI_MODEL, "small")],
)
async def test_what_is_disabled_starts_nothing_and_is_named(starter: Starter, kind: DefinitionKind, name: str) -> None:
    """interactions.md: a disabled version is never used for anything new; runs already started go on."""
    await starter.disable(kind, name, 1)
    messages = await starter.refused()
    assert len(messages) == 1 and f"'examples/{name}' is disabled" in next(iter(messages.values()))


async def test_a_pinned_disabled_version_is_refused_though_a_newer_is_enabled(starter: Starter) -> None:
    await publish_panel(starter.database, starter.caller, starter.new_id, maximum_rounds=3)
    await starter.disable(DefinitionKind.INTERACTION, "panel", 1)
    messages = await starter.refused(at=replace(AT_PANEL, version=1))
    assert "Version 1 of interaction 'examples/panel' is disabled" in messages["/version"]
    assert (await starter.resolved()).interaction_version == 2


async def test_without_a_version_the_latest_enabled_one_is_taken(starter: Starter) -> None:
    await publish_panel(starter.database, starter.caller, starter.new_id, maximum_rounds=3)
    await starter.disable(DefinitionKind.INTERACTION, "panel", 2)
    assert (await starter.resolved()).interaction_version == 1


@pytest.mark.parametrize(
    "at", [Reference("nobody", NAMESPACE), Reference("panel", "x"), Reference(definition_id=uuid4()), replace(AT_PANEL, version=7)]
)  # fmt: skip
async def test_an_interaction_that_is_not_there_is_not_found(starter: Starter, at: Reference) -> None:
    with pytest.raises(NotFound):
        await starter.start(at=at)
    assert await starter.count() == 0


async def test_another_tenants_interaction_is_not_found(starter: Starter) -> None:
    """B66: another tenant's id is the same 404 as none."""
    found = await definitions.get(starter.database, starter.caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)
    starter.caller = await other_tenant(starter.database, starter.new_id)
    for at in (AT_PANEL, Reference(definition_id=found.definition.definition_id)):
        with pytest.raises(NotFound):
            await starter.start(at=at)


async def test_a_deleted_agent_starts_nothing_and_is_named(starter: Starter) -> None:
    reference = Reference("optimist", NAMESPACE)
    await definitions.delete(starter.database, starter.caller, kind=DefinitionKind.AGENT, reference=reference)
    assert "no agent with the id" in (await starter.refused())[""]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("credentialStack", "main"),
        ("retentionLease", {}),
        ("allowPlatformFallback", True),
        ("parentProcessId", "0199aaaa-0000-7000-8000-000000000000"),
        ("lane", "fast"),
    ],
)
async def test_a_field_of_a_later_part_is_refused_by_name_and_never_ignored(
    starter: Starter, name: str, value: Any
) -> None:
    """Issue, Definitions: until then a start that sets such a field is refused with an error that says so: never ignored."""
    with pytest.raises(NotYetBuilt) as caught:
        await starter.start(replace(REQUEST, later={name: value}))
    (fault,) = caught.value.faults
    assert fault.pointer == f"/{name}" and name in fault.message and await starter.count() == 0


async def test_fields_of_later_parts_that_say_nothing_are_no_hindrance(starter: Starter) -> None:
    later: dict[str, Any] = {
        "lane": None,
        "looms": [],
        "allowPlatformFallback": False,
        "webAccessOverrides": None,
        "credentials": (),
    }
    await starter.start(replace(REQUEST, later=later))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"later": {"credentialStack": "main"}}, "credentialStack"),
        ({"agents": (AgentBinding(Reference("optimist"), "Ann", later={"webAccess": {"search": True}}),)}, "webAccess"),
    ],
)
async def test_a_definition_that_needs_a_later_part_is_stored_and_not_started(
    starter: Starter, change: dict[str, Any], name: str
) -> None:
    """Issue, Definitions: all fields are stored; a start that sets such a field is refused."""
    await publish_panel(starter.database, starter.caller, starter.new_id, **change)
    with pytest.raises(NotYetBuilt, match=name):
        await starter.start()
    assert await starter.count() == 0


async def test_an_agent_that_needs_a_later_part_is_named_once(starter: Starter) -> None:
    agent = replace(AGENT, later={"webAccess": {"search": True, "fetch": False}})
    await apply.apply(starter.database, starter.caller, documents(agent=agent), new_id=starter.new_id)
    with pytest.raises(NotYetBuilt) as caught:
        await starter.start()
    (fault,) = caught.value.faults
    assert "agent 'optimist'" in fault.message


async def test_functions_are_settled_by_name_and_disabled_by_name(starter: Starter) -> None:
    """conversation.md, Tools: `disabledTools` removes external and platform tools by name."""
    agent = replace(AGENT, function_tools=("search",))
    await apply.apply(starter.database, starter.caller, documents(agent=agent), new_id=starter.new_id)
    messages = await starter.refused(replace(REQUEST, disabled_tools=("search", "serach", "pass")))
    assert set(messages) == {"/disabledTools/1", "/disabledTools/2"}
    assert "The tools: search" in messages["/disabledTools/1"]
    resolved = await starter.resolved(replace(REQUEST, disabled_tools=("search",)))
    assert resolved.participants[0].tools == (SEARCH,) and resolved.disabled_tools == ("search",)


async def test_a_function_that_this_server_lacks_is_named(starter: Starter) -> None:
    agent = replace(AGENT, function_tools=("search",))
    await apply.apply(starter.database, starter.caller, documents(agent=agent), new_id=starter.new_id)
    message = (await starter.refused(on=bench()))[""]
    assert "'search'" in message and "FOLKMOOT_FUNCTIONS" in message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (FileNotFoundError(2, "No such file or directory"), "No such file"),
        (BadInput("Rule 3 is odd."), "Rule 3 is odd"),
    ],
)
async def test_a_script_that_cannot_be_read_is_named(starter: Starter, error: Exception, words: str) -> None:
    def read_script(_: str) -> Any:
        raise error

    message = (await starter.refused(on=Workbench(lambda _: None, read_script)))[""]
    assert words in message and "'small'" in message


async def test_an_agents_prompt_is_checked_where_it_meets_the_inputs(starter: Starter) -> None:
    """interactions.md, inputsPrompt: the agent has changed since the interaction was saved."""
    agent = replace(AGENT, prompts=("%%gone%%",))
    await apply.apply(starter.database, starter.caller, documents(agent=agent)[1:], new_id=starter.new_id)
    assert "'%%gone%%'" in (await starter.refused())[""]


async def test_tags_and_time_are_bounded(starter: Starter) -> None:
    request = replace(REQUEST, tags=("", "x" * 201, "fine"), duration_auto_termination=timedelta(0))
    assert set(await starter.refused(request)) == {"/tags/0", "/tags/1", "/durationAutoTermination"}
    assert set(await starter.refused(replace(REQUEST, tags=tuple(map(str, range(51)))))) == {"/tags"}


async def test_hostile_text_starts_a_run_in_its_normal_form(starter: Starter) -> None:
    """B25, F25, B67: NUL, lone surrogates, a large word in an indexed column."""
    value = "a\x00b\ud83d" + "x" * 1_000_000
    run_id = await starter.start(StartFields(inputs=(("question", value),), tags=("t\x00", "\udc00")))
    whole = await runs.get(starter.database, starter.caller, run_id=run_id)
    assert whole.resolved.inputs[0][1].startswith("a\u2400b\\ud83dxxx")
    assert whole.view.run.tags == ("t\u2400", "\\udc00")


async def test_json_input_is_checked(starter: Starter) -> None:
    inputs = (PromptInput(DataType.STRING, "question"), PromptInput(DataType.JSON, "data"))
    await publish_panel(starter.database, starter.caller, starter.new_id, inputs_prompt=inputs)
    await starter.start(StartFields(inputs=(("data", '{"a": [1]}'),)))
    with pytest.raises(BadInput):
        await starter.start(StartFields(inputs=(("data", "[" * 100_000),)))


async def test_twenty_starts_at_once_with_one_key_make_one_run(starter: Starter) -> None:
    """B61, F47: creation is idempotent under concurrency; one still in flight is a 409."""
    scope = scope_of(starter.caller)
    results = await asyncio.gather(*(starter.start(scope=scope) for _ in range(20)), return_exceptions=True)
    made = {result for result in results if isinstance(result, UUID)}
    assert len(made) == 1 and await starter.count() == 1
    assert all(isinstance(result, UUID | InFlight) for result in results)
    assert await starter.start(scope=scope) in made
    assert starter.told == [{"to": "workers"}]


async def test_without_a_key_twenty_starts_make_twenty_runs(starter: Starter) -> None:
    """The control of the test above: it is the key that makes them one."""
    made = await asyncio.gather(*(starter.start() for _ in range(20)))
    assert len(set(made)) == await starter.count() == 20


async def test_a_key_with_another_body_is_refused(starter: Starter) -> None:
    """README.md, Wire conventions: the same key and another body is a 422; B61."""
    first = await starter.start(scope=scope_of(starter.caller))
    with pytest.raises(KeyReused):
        await starter.start(scope=scope_of(starter.caller, body=b"other"))
    assert await starter.count() == 1
    others = [
        scope_of(starter.caller, key="k2"),
        scope_of(starter.caller, route="other"),
        replace(scope_of(starter.caller), user_id=uuid4()),
        replace(scope_of(starter.caller), tenant_id=uuid4()),
    ]
    made = [await starter.start(scope=scope) for scope in others]
    assert len({first, *made}) == 5


async def test_a_key_gives_the_first_run_again_though_everything_has_changed_since(starter: Starter) -> None:
    """README.md, Wire conventions: the same key and body give the first response again."""
    first = await starter.start(scope=scope_of(starter.caller))
    await starter.disable(DefinitionKind.INTERACTION, "panel", 1)
    assert await starter.start(scope=scope_of(starter.caller)) == first


async def test_a_key_is_kept_for_a_day(starter: Starter) -> None:
    """README.md, Wire conventions: kept 24 hours."""
    first = await starter.start(scope=scope_of(starter.caller))
    await shift_clock(starter.database, timedelta(hours=23, minutes=59))
    assert await starter.start(scope=scope_of(starter.caller)) == first
    await shift_clock(starter.database, timedelta(minutes=2))
    assert await starter.start(scope=scope_of(starter.caller)) != first


async def test_a_refused_start_leaves_its_key_free(starter: Starter) -> None:
    with pytest.raises(BadInput):
        await starter.start(StartFields(), scope=scope_of(starter.caller))
    await starter.start(scope=scope_of(starter.caller))
    with pytest.raises(BadInput, match="Idempotency-Key"):
        await starter.start(scope=scope_of(starter.caller, key="x" * 201))
