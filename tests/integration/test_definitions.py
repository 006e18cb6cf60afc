"""Definitions: versions, names, links, disabling, applying a set (interactions.md)."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from crews import until
from definitions_at_hand import AGENT, MODEL, NAMESPACE, PANEL, documents, other_tenant, publish_panel
from waiting_at_hand import waits_for_a_lock

from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    DefinitionKind,
    InteractionType,
    InteractionVersion,
    Reference,
    StoredVersion,
)
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Conflict, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions
from folkmoot.services.apply import Document
from folkmoot.services.differences import Difference
from folkmoot.store import definitions as rows
from folkmoot.store.database import Database, migrations
from folkmoot.store.definitions import Outcome

AT_PANEL = Reference("panel", NAMESPACE)
AT_AGENT = Reference("optimist", NAMESPACE)
AT_MODEL = Reference("small", NAMESPACE)


async def publish_model(database: Database, caller: Caller, new_id: NewId, *, window: int = 8192) -> Outcome:
    version = replace(MODEL, context_window=window)
    published = await definitions.publish(
        database, caller, namespace=NAMESPACE, name="small", version=version, new_id=new_id
    )
    return published.outcome


async def numbers(database: Database, caller: Caller, kind: DefinitionKind, reference: Reference) -> list[int]:
    found = await definitions.versions(database, caller, kind=kind, reference=reference, before=None, limit=100)
    return [version.number for version in found]


async def test_every_change_adds_a_version_and_no_change_adds_none(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md: every change adds a version (1, 2, 3 …), never rewrites one."""
    outcomes = [await publish_model(database, caller, new_id, window=window) for window in (1000, 1000, 2000, 1000)]
    assert outcomes == ["created", "unchanged", "changed", "changed"]
    kind = DefinitionKind.AI_MODEL
    assert await numbers(database, caller, kind, AT_MODEL) == [3, 2, 1]
    second = await definitions.get(database, caller, kind=kind, reference=replace(AT_MODEL, version=2))
    assert second.body == replace(MODEL, context_window=2000)
    newest = await definitions.get(database, caller, kind=kind, reference=AT_MODEL)
    assert (newest.number, newest.definition.latest_version) == (3, 3)
    by_id = Reference(definition_id=newest.definition.definition_id)
    assert await definitions.get(database, caller, kind=kind, reference=by_id) == newest


async def test_versions_published_at_once_are_numbered_without_gap_or_double(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B61: creation is atomic under concurrency."""
    outcomes = await asyncio.gather(
        *(publish_model(database, caller, new_id, window=1000 + number) for number in range(12))
    )
    assert sorted(outcomes) == ["changed"] * 11 + ["created"]
    assert await numbers(database, caller, DefinitionKind.AI_MODEL, AT_MODEL) == list(range(12, 0, -1))


async def test_the_same_version_published_at_once_is_there_once(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    outcomes = await asyncio.gather(*(publish_model(database, caller, new_id) for _ in range(12)))
    assert sorted(outcomes) == ["created"] + ["unchanged"] * 11
    assert await numbers(database, caller, DefinitionKind.AI_MODEL, AT_MODEL) == [1]


async def test_creating_what_is_there_is_a_conflict_and_changes_nothing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    await publish_model(database, caller, new_id)
    with pytest.raises(Conflict, match="already an AI model 'examples/small'"):
        await definitions.publish(
            database, caller, namespace=NAMESPACE, name="small", version=replace(MODEL, context_window=7), new_id=new_id,
            only_if_new=True,
        )  # fmt: skip
    assert await numbers(database, caller, DefinitionKind.AI_MODEL, AT_MODEL) == [1]


async def test_links_are_settled_to_ids_when_saved(database: Database, caller: Caller, new_id: NewId) -> None:
    """interactions.md: `VersionReference` is {id, version}."""
    await publish_panel(database, caller, new_id)
    panel = (await definitions.get(database, caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)).body
    agent = await definitions.get(database, caller, kind=DefinitionKind.AGENT, reference=AT_AGENT)
    assert isinstance(panel, InteractionVersion)
    settled = Reference("optimist", NAMESPACE, agent.definition.definition_id)
    assert [binding.agent for binding in panel.agents] == [settled, settled]


async def test_interactions_that_participants_may_start_are_settled_too(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B66: every id in a body is checked for its owner."""
    await publish_panel(database, caller, new_id)
    panel = await definitions.get(database, caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)
    await apply.apply(database, caller, [Document(NAMESPACE, "other", PANEL)], new_id=new_id)
    links = (Reference(definition_id=panel.definition.definition_id), Reference("other", NAMESPACE, version=1))
    parent = replace(PANEL, swarm=SwarmSettings(links, ("Ann",), max_depth=2))
    published = await definitions.publish(
        database, caller, namespace=NAMESPACE, name="parent", version=parent, new_id=new_id
    )
    assert isinstance(published.stored.body, InteractionVersion)
    settled = published.stored.body.swarm
    assert settled is not None and settled.participants == ("Ann",) and settled.max_depth == 2
    assert [(link.name, link.version) for link in settled.interactions] == [("panel", None), ("other", 1)]
    assert settled.interactions[0].definition_id == panel.definition.definition_id
    unknown = replace(PANEL, swarm=SwarmSettings((*links, Reference(definition_id=uuid4())), ("Ann",)))
    with pytest.raises(BadDefinition) as caught:
        await definitions.publish(database, caller, namespace=NAMESPACE, name="p2", version=unknown, new_id=new_id)
    assert [fault.pointer for fault in caught.value.faults] == ["/swarm/interactions/2"]
    twice = replace(PANEL, swarm=SwarmSettings((Reference("panel"), links[0]), ("Ann",)))
    with pytest.raises(BadDefinition, match="named twice"):
        await definitions.publish(database, caller, namespace=NAMESPACE, name="p3", version=twice, new_id=new_id)


async def test_a_swarm_that_was_kept_for_later_finds_its_place(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """What a version stored before there were swarms is what it would store now."""
    await publish_panel(database, caller, new_id)
    panel = await definitions.get(database, caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)
    id_ = panel.definition.definition_id
    links = [{"id": str(id_), "version": 3}, {"id": str(id_), "version": 0}]
    kept = {"interactions": links, "participants": ["Ann"], "maxDepth": 2, "maxConcurrent": None, "maxTotal": None}
    (text,) = [text for name, text in migrations() if "teams" in name]
    async with database.writer() as writer:
        await writer.connection.execute(
            "update definition_version set body = body - 'swarm' - 'type' || jsonb_build_object('later', $2::jsonb) where definition_id = $1",
            id_, json.dumps({"swarm": kept, "loom": {"enabled": False}}),
        )  # fmt: skip
        await writer.connection.execute(text[text.index("update definition_version") :])
    found = (await definitions.get(database, caller, kind=DefinitionKind.INTERACTION, reference=AT_PANEL)).body
    assert isinstance(found, InteractionVersion)
    moved = tuple(Reference(definition_id=id_, version=number) for number in (3, None))
    assert found.swarm == SwarmSettings(moved, ("Ann",), max_depth=2) and found.later == {"loom": {"enabled": False}}


MANAGED = replace(PANEL, type=InteractionType.MANAGED, manager=AgentBinding(Reference("optimist"), "Boss"))


async def made_at_once(database: Database, caller: Caller, new_id: NewId) -> list[InteractionType]:
    """Two people make one interaction, each of another type, the second while the first is not done; the types that were saved."""
    await apply.apply(database, caller, documents()[1:], new_id=new_id)
    place = {"namespace": NAMESPACE, "name": "team", "new_id": new_id}
    async with database.writer() as writer:
        await definitions.publish_in(writer, caller, **place, version=PANEL)
        second = asyncio.create_task(definitions.publish(database, caller, **place, version=MANAGED))
        await until(lambda: waits_for_a_lock(database))
    with suppress(BadDefinition):
        await second
    at = Reference("team", NAMESPACE)
    found = await definitions.versions(
        database, caller, kind=DefinitionKind.INTERACTION, reference=at, before=None, limit=9
    )
    return [each.body.type for each in found if isinstance(each.body, InteractionVersion)]


async def test_two_types_made_at_once_become_one(database: Database, caller: Caller, new_id: NewId) -> None:
    """An interaction keeps the type of its first version."""
    assert await made_at_once(database, caller, new_id) == ["RoundRobin"]


async def test_without_the_look_under_the_lock_it_would_have_both_types(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    lock = rows._sql.lock_definition

    async def blindly(*positional: Any, **named: Any) -> Any:
        return {**await lock(*positional, **named), "is_other_type": False}

    monkeypatch.setattr(rows._sql, "lock_definition", blindly)
    assert await made_at_once(database, caller, new_id) == ["Managed", "RoundRobin"]


@pytest.mark.parametrize(
    ("link", "words"),
    [
        (Reference("nobody"), "no agent or router 'examples/nobody'"),
        (Reference("optimist", "elsewhere"), "no agent or router 'elsewhere/optimist'"),
        (Reference(definition_id=uuid4()), "no agent or router with the id"),
        (Reference("optimist", version=9), "no version 9 of agent 'examples/optimist'; its newest is 1"),
        (Reference("small"), "no agent or router 'examples/small'"),
    ],
)
async def test_a_link_that_leads_nowhere_is_refused_with_its_place(
    database: Database, caller: Caller, new_id: NewId, link: Reference, words: str
) -> None:
    """Issue, 'Bad input': a model that does not exist; interactions.md: whatever pins a disabled version fails, by name."""
    await publish_panel(database, caller, new_id)
    panel = replace(PANEL, agents=(PANEL.agents[0], AgentBinding(link, "Zoe")))
    with pytest.raises(BadDefinition) as caught:
        await definitions.publish(database, caller, namespace=NAMESPACE, name="p2", version=panel, new_id=new_id)
    (fault,) = caught.value.faults
    assert fault.pointer == "/agents/1/agent" and words in fault.message


async def test_everything_wrong_is_told_at_once_and_nothing_is_saved(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    await publish_panel(database, caller, new_id)
    panel = replace(
        PANEL, agents=(AgentBinding(Reference("nobody"), "Ann"), AgentBinding(AT_AGENT, "ann")),
        prompt="%%typo%%", maximum_rounds=0, solution_schema='{"type": 5}',
    )  # fmt: skip
    with pytest.raises(BadDefinition) as caught:
        await definitions.publish(database, caller, namespace="new/place", name="p@2", version=panel, new_id=new_id)
    assert {fault.pointer for fault in caught.value.faults} == {
        "/namespace", "/name", "/agents/0/agent", "/agents/1/name", "/prompt", "/maximumRounds", "/solutionSchema",
    }  # fmt: skip
    with pytest.raises(NotFound):
        await definitions.page(database, caller, kind=DefinitionKind.AGENT, namespace="new/place", after="", limit=5)


async def test_a_participant_without_a_name_bears_its_agents_and_must_differ(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md, agents: the agent's own name if null; conversation.md, 9: two participants can share one agent."""
    await publish_panel(database, caller, new_id)
    twice = (AgentBinding(Reference("optimist")), AgentBinding(Reference("optimist")))
    with pytest.raises(BadDefinition, match="optimist"):
        await publish_panel(database, caller, new_id, agents=twice)
    by_id = Reference(definition_id=(await at_agent(database, caller)).definition.definition_id)
    with pytest.raises(BadDefinition) as caught:
        await publish_panel(database, caller, new_id, agents=(AgentBinding(by_id), AgentBinding(by_id)))
    assert [fault.pointer for fault in caught.value.faults] == ["/agents/1/name"]
    await publish_panel(database, caller, new_id, agents=(AgentBinding(by_id), AgentBinding(by_id, "Ben")))


async def at_agent(database: Database, caller: Caller) -> StoredVersion:
    return await definitions.get(database, caller, kind=DefinitionKind.AGENT, reference=AT_AGENT)


async def test_an_agents_prompt_may_use_only_the_interactions_inputs(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md, inputsPrompt: an unknown %%name%% in a prompt is an error when the definition is saved."""
    agent = replace(AGENT, prompts=("%%question%% and %%typo%%",))
    with pytest.raises(BadDefinition) as caught:
        await apply.apply(database, caller, documents(agent=agent), new_id=new_id)
    assert [fault.pointer for fault in caught.value.faults] == ["/agents/0/agent", "/agents/1/agent"]
    assert "'%%typo%%'" in str(caught.value) and "optimist" in str(caught.value)


async def test_a_disabled_version_is_used_for_nothing_new_until_it_is_enabled(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md: links without a version take the latest enabled one; whatever pins a disabled version fails, by name."""
    await publish_model(database, caller, new_id, window=1000)
    await publish_model(database, caller, new_id, window=2000)

    async def save(model: Reference) -> str:
        try:
            await definitions.publish(
                database, caller, namespace=NAMESPACE, name="a", version=AgentVersion(model=model), new_id=new_id
            )
        except BadDefinition as error:
            return error.faults[0].message
        return "saved"

    async def disable(number: int, *, is_disabled: bool = True) -> None:
        pinned = replace(AT_MODEL, version=number)
        found = await definitions.set_disabled(
            database, caller, kind=DefinitionKind.AI_MODEL, reference=pinned, is_disabled=is_disabled
        )
        assert (found.number, found.is_disabled) == (number, is_disabled)

    await disable(2)
    assert await save(Reference("small")) == "saved"
    assert "Version 2 of AI model 'examples/small' is disabled" in await save(Reference("small", version=2))
    await disable(1)
    assert "Every version of AI model 'examples/small' is disabled" in await save(Reference("small"))
    await disable(2, is_disabled=False)
    assert await save(Reference("small", version=2)) == "saved"
    with pytest.raises(NotFound, match="no version 9"):
        await disable(9)


async def test_a_deleted_definition_is_found_by_nobody_and_its_name_is_free(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md: deleting a definition hides it."""
    kind = DefinitionKind.AI_MODEL
    await publish_model(database, caller, new_id)
    first = await definitions.get(database, caller, kind=kind, reference=AT_MODEL)
    await definitions.delete(database, caller, kind=kind, reference=AT_MODEL)
    for reference in (AT_MODEL, Reference(definition_id=first.definition.definition_id)):
        with pytest.raises(NotFound):
            await definitions.get(database, caller, kind=kind, reference=reference)
    with pytest.raises(NotFound):
        await definitions.delete(database, caller, kind=kind, reference=AT_MODEL)
    assert await publish_model(database, caller, new_id) is Outcome.CREATED
    second = await definitions.get(database, caller, kind=kind, reference=AT_MODEL)
    assert second.number == 1 and second.definition.definition_id != first.definition.definition_id


async def test_definitions_are_listed_by_name_page_by_page(database: Database, caller: Caller, new_id: NewId) -> None:
    """README.md: lists are paged by cursor; B63: keyset pages."""
    for name in ("c", "a", "d", "b"):
        await definitions.publish(database, caller, namespace=NAMESPACE, name=name, version=MODEL, new_id=new_id)
    kind = DefinitionKind.AI_MODEL
    first = await definitions.page(database, caller, kind=kind, namespace=NAMESPACE, after="", limit=3)
    rest = await definitions.page(database, caller, kind=kind, namespace=NAMESPACE, after="c", limit=3)
    assert [v.definition.name for v in first] == ["a", "b", "c"] and [v.definition.name for v in rest] == ["d"]
    assert (
        await definitions.page(database, caller, kind=DefinitionKind.AGENT, namespace=NAMESPACE, after="", limit=3)
        == []
    )
    with pytest.raises(NotFound, match="no namespace 'nowhere'"):
        await definitions.page(database, caller, kind=kind, namespace="nowhere", after="", limit=3)


async def test_another_tenants_definition_is_as_none(database: Database, caller: Caller, new_id: NewId) -> None:
    """B66; platform.md, Tenancy: an object of another tenant is a 404, the same as one that never was."""
    await publish_panel(database, caller, new_id)
    agent = await at_agent(database, caller)
    stranger = await other_tenant(database, new_id)
    links = (AT_AGENT, Reference(definition_id=agent.definition.definition_id))
    for reference in links:
        with pytest.raises(NotFound):
            await definitions.get(database, stranger, kind=DefinitionKind.AGENT, reference=reference)
        with pytest.raises(NotFound):
            await definitions.delete(database, stranger, kind=DefinitionKind.AGENT, reference=reference)
        with pytest.raises(NotFound):
            await definitions.set_disabled(
                database, stranger, kind=DefinitionKind.AGENT, reference=reference, is_disabled=True
            )
        panel = replace(PANEL, agents=(AgentBinding(reference, "Ann"),))
        with pytest.raises(BadDefinition, match="There is no agent"):
            await definitions.publish(database, stranger, namespace="x", name="p", version=panel, new_id=new_id)


async def test_hostile_names_are_refused_or_not_found_and_never_fail_otherwise(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F25: hostile text in every stored string. B67: index entries never fail on large values."""
    for name in ("", "a\x00b", "\ud800", "x" * 201, " a", "a/b", "a@1", "..", "\u202eevil", str(uuid4())):
        with pytest.raises(NotFound):
            await definitions.get(database, caller, kind=DefinitionKind.AGENT, reference=Reference(name, NAMESPACE))
        with pytest.raises(BadDefinition):
            await definitions.publish(database, caller, namespace=NAMESPACE, name=name, version=MODEL, new_id=new_id)
    await definitions.publish(database, caller, namespace="日" * 200, name="本" * 200, version=MODEL, new_id=new_id)


async def test_hostile_text_in_a_version_comes_back_in_its_normal_form(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B25, F25: NUL and lone surrogates are made visible."""
    await publish_model(database, caller, new_id)
    agent = AgentVersion(model=Reference("small"), prompts=("a\x00b", "c\ud83dd", "😀"))
    for outcome in (Outcome.CREATED, Outcome.UNCHANGED):
        published = await definitions.publish(
            database, caller, namespace=NAMESPACE, name="a", version=agent, new_id=new_id
        )
        assert published.outcome is outcome
        assert isinstance(published.stored.body, AgentVersion)
        assert published.stored.body.prompts == ("a\u2400b", "c\\ud83dd", "😀")


async def test_a_set_is_applied_whole_in_its_own_order_and_again_changes_nothing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md: `folkmoot apply` is idempotent."""
    first = await apply.apply(database, caller, documents(), new_id=new_id)
    assert [(change.name, change.outcome, change.number) for change in first] == [
        ("panel", "created", 1), ("optimist", "created", 1), ("small", "created", 1),
    ]  # fmt: skip
    again = await apply.apply(database, caller, documents(), new_id=new_id)
    assert [(change.outcome, change.number, change.differences) for change in again] == [("unchanged", 1, ())] * 3


async def test_a_diff_tells_what_applying_would_do_and_does_nothing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """interactions.md: with a diff first."""
    promised = await apply.diff(database, caller, documents(), new_id=new_id)
    assert {change.outcome for change in promised} == {Outcome.CREATED}
    with pytest.raises(NotFound):
        await definitions.get(database, caller, kind=DefinitionKind.AGENT, reference=AT_AGENT)
    assert await apply.apply(database, caller, documents(), new_id=new_id) == promised
    changed = documents(
        panel=replace(PANEL, maximum_rounds=4, agents=PANEL.agents[:1], later={"credentialStack": "main"}),
        agent=replace(AGENT, description="Kind."),
    )
    promised = await apply.diff(database, caller, changed, new_id=new_id)
    assert [(change.outcome, change.number) for change in promised] == [
        ("changed", 2),
        ("changed", 2),
        ("unchanged", 1),
    ]
    assert promised[0].differences == (
        Difference("/agents/1", {"agent": "examples/optimist", "name": "Ben"}, None),
        Difference("/maximumRounds", None, 4),
        Difference("/credentialStack", None, "main"),
    )
    assert promised[1].differences == (Difference("/description", None, "Kind."),)
    assert await apply.apply(database, caller, changed, new_id=new_id) == promised


async def test_a_set_with_a_fault_applies_nothing_and_names_every_place(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    lines = {"": 10, "/prompt": 12}
    faulty = [
        *documents()[1:],
        Document(NAMESPACE, "panel", replace(PANEL, prompt="%%typo%%"), "a.yaml", lines),
        Document(NAMESPACE, "other", replace(PANEL, maximum_rounds=0), "b.yaml", {"": 3, "/maximumRounds": 8}),
    ]
    with pytest.raises(BadDefinition) as caught:
        await apply.apply(database, caller, faulty, new_id=new_id)
    assert [(f.file, f.line, f.pointer) for f in caught.value.faults] == [
        ("a.yaml", 12, "/prompt"), ("b.yaml", 8, "/maximumRounds"),
    ]  # fmt: skip
    with pytest.raises(NotFound):
        await definitions.get(database, caller, kind=DefinitionKind.AI_MODEL, reference=AT_MODEL)
    missing = [Document(NAMESPACE, "panel", PANEL, "a.yaml", {"": 10, "/agents/0/agent": 11}), documents()[2]]
    with pytest.raises(BadDefinition) as caught:
        await apply.apply(database, caller, missing, new_id=new_id)
    assert [(f.line, f.pointer) for f in caught.value.faults] == [(11, "/agents/0/agent"), (10, "/agents/1/agent")]
    with pytest.raises(NotFound):
        await definitions.get(database, caller, kind=DefinitionKind.AI_MODEL, reference=AT_MODEL)


async def test_sets_applied_at_once_do_not_wait_for_each_other_for_ever(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B61; no deadlock between two that apply the same set in different orders."""
    forward = [Document(NAMESPACE, f"m{number}", MODEL) for number in range(10)]
    results = await asyncio.gather(
        *(apply.apply(database, caller, forward if n % 2 else forward[::-1], new_id=new_id) for n in range(6))
    )
    created = sum(change.outcome is Outcome.CREATED for result in results for change in result)
    assert created == 10


async def test_a_name_that_means_another_definition_now_makes_a_new_version(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    await apply.apply(database, caller, documents(), new_id=new_id)
    await definitions.delete(database, caller, kind=DefinitionKind.AI_MODEL, reference=AT_MODEL)
    changes = await apply.apply(database, caller, documents(), new_id=new_id)
    assert [change.outcome for change in changes] == ["unchanged", "changed", "created"]
    (difference,) = changes[1].differences
    assert difference.pointer == "/model"
