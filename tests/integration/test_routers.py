"""Routers as definitions and in a run's closure: links, circles, chains, seats (conversation.md, Routers; interactions.md)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from crews import until
from definitions_at_hand import AGENT, MODEL, NAMESPACE, PANEL, bench, documents
from waiting_at_hand import waits_for_a_lock

from folkmoot.domain.budgets import Budget
from folkmoot.domain.definitions import (
    AgentBinding,
    AiModelVersion,
    DefinitionKind,
    InteractionVersion,
    ModelOverride,
    Participant,
    Reference,
    ResolvedInteraction,
)
from folkmoot.domain.model_calls import ModelChoice, ModelPurpose
from folkmoot.domain.routers import MAX_DEPTH, CandidateKind, RouterCandidate, RouterRule, RouterVersion
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, BadInput
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, definitions, runs, starting
from folkmoot.services.apply import Document
from folkmoot.services.closure import StartFields
from folkmoot.store import routers as router_rows
from folkmoot.store.database import Database

REQUEST = StartFields(inputs=(("question", "cats?"),))
TO_AGENT = RouterCandidate(agent=Reference("optimist"))


def to(*names: str, **fields: Any) -> RouterVersion:
    """A router that may choose these, and the agent where nothing else is said."""
    candidates = (TO_AGENT, *(RouterCandidate(router=Reference(name)) for name in names))
    return replace(RouterVersion(candidates=candidates, fallback="optimist"), **fields)


class Desk:
    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database, self.caller, self.new_id = database, caller, new_id

    async def publish(self, **versions: Any) -> None:
        """Each by the name of the argument, one after the other."""
        for name, version in versions.items():
            await definitions.publish(
                self.database, self.caller, namespace=NAMESPACE, name=name, version=version, new_id=self.new_id
            )

    async def refused(self, **versions: Any) -> dict[str, str]:
        with pytest.raises(BadDefinition) as caught:
            await self.publish(**versions)
        return {fault.pointer: fault.message for fault in caught.value.faults}

    async def disable(self, kind: DefinitionKind, name: str, number: int) -> None:
        reference = Reference(name, NAMESPACE, version=number)
        await definitions.set_disabled(self.database, self.caller, kind=kind, reference=reference, is_disabled=True)

    async def resolved(self, *overrides: ModelOverride, at: str = "panel", **fields: Any) -> ResolvedInteraction:
        run_id = await starting.start(
            self.database, self.caller, interaction=Reference(at, NAMESPACE),
            request=replace(REQUEST, ai_model_overrides=overrides, **fields), bench=bench(), new_id=self.new_id, tell=lambda _: None,
        )  # fmt: skip
        return (await runs.get(self.database, self.caller, run_id=run_id)).resolved

    async def start_refused(self, *overrides: ModelOverride, **fields: Any) -> dict[str, str]:
        with pytest.raises(BadInput) as caught:
            await self.resolved(*overrides, **fields)
        return {fault.pointer: fault.message for fault in caught.value.faults}


@pytest.fixture
async def desk(database: Database, caller: Caller, new_id: NewId) -> Desk:
    made = Desk(database, caller, new_id)
    await apply.apply(database, caller, documents(), new_id=new_id)
    await made.publish(sceptic=replace(AGENT, prompts=("You doubt %%question%%.",), description="Doubts."))
    return made


def seat(binding: str = "chooser", **fields: Any) -> InteractionVersion:
    return replace(
        PANEL, agents=(AgentBinding(Reference(binding), "Ann", **fields), AgentBinding(Reference("optimist"), "Ben"))
    )


# Saving


async def test_links_of_a_router_are_settled_to_ids(desk: Desk) -> None:
    await desk.publish(inner=to(), chooser=to("inner", model=Reference("small")))
    found = await definitions.get(
        desk.database, desk.caller, kind=DefinitionKind.ROUTER, reference=Reference("chooser", NAMESPACE)
    )
    assert isinstance(found.body, RouterVersion)
    links = [*(each.link for each in found.body.candidates), found.body.model]
    assert [(link.name, link.namespace) for link in links if link] == [
        ("optimist", NAMESPACE), ("inner", NAMESPACE), ("small", NAMESPACE),
    ]  # fmt: skip
    assert all(link is not None and link.definition_id is not None for link in links)


async def test_links_that_lead_nowhere_are_refused_with_their_places(desk: Desk) -> None:
    wrong = RouterVersion(
        candidates=(RouterCandidate(agent=Reference("nobody")), RouterCandidate(router=Reference("optimist"))),
        fallback="nobody",
        model=Reference("optimist"),
    )
    found = await desk.refused(chooser=wrong)
    assert list(found) == ["/candidates/0/agent", "/candidates/1/router", "/model"]
    assert "no router 'examples/optimist'" in found["/candidates/1/router"]


async def test_a_circle_is_refused_by_its_names_also_when_another_router_closes_it(desk: Desk) -> None:
    await desk.publish(a=to(), b=to("a"), c=to("b"))
    found = await desk.refused(a=to("c"))
    assert list(found) == ["/candidates"]
    assert "examples/a -> examples/c -> examples/b -> examples/a" in found["/candidates"]
    assert "examples/a -> examples/a" in (await desk.refused(a=to("a")))["/candidates"]


async def test_a_link_to_a_version_before_the_circle_closes_none(desk: Desk) -> None:
    pinned = RouterVersion(
        candidates=(TO_AGENT, RouterCandidate(router=Reference("a", version=1))), fallback="optimist"
    )
    await desk.publish(a=to(), b=pinned)
    await desk.publish(a=to("b"))


async def test_a_chain_is_bounded_from_whichever_end_it_grows(desk: Desk) -> None:
    names = [f"r{number}" for number in range(MAX_DEPTH)]
    await desk.publish(**{names[0]: to()})
    await desk.publish(**{name: to(below) for below, name in pairwise(names)})
    above = await desk.refused(r8=to("r7"))
    assert "8 deep" in above["/candidates"] and "examples/r8 -> examples/r7" in above["/candidates"]
    await desk.publish(last=to())
    below = await desk.refused(r0=to("last"))
    assert below["/candidates"].count("->") == MAX_DEPTH and "examples/r0 -> examples/last" in below["/candidates"]


async def closes_a_circle_at_once(desk: Desk) -> bool:
    """Two people let two routers lead to each other; whether the second one gets that far before the first is done."""
    await desk.publish(a=to(), b=to())
    async with desk.database.writer() as writer:
        await definitions.publish_in(
            writer, desk.caller, namespace=NAMESPACE, name="a", version=to("b"), new_id=desk.new_id
        )
        second = asyncio.create_task(desk.publish(b=to("a")))
        await until(lambda: _is_done_or_waits(desk.database, second))
        was_done = second.done()
    result = (await asyncio.gather(second, return_exceptions=True))[0]
    assert was_done or isinstance(result, BadDefinition)
    return result is None


async def _is_done_or_waits(database: Database, task: asyncio.Task[None]) -> bool:
    return task.done() or await waits_for_a_lock(database)


async def test_two_that_close_a_circle_at_once_are_not_both_saved(desk: Desk) -> None:
    assert not await closes_a_circle_at_once(desk)


async def test_without_the_lock_both_would_be_saved(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""

    async def no_lock(*_: object) -> None:
        return None

    monkeypatch.setattr(router_rows, "lock", no_lock)
    assert await closes_a_circle_at_once(desk)


async def test_an_agent_goes_before_a_router_of_its_name_unless_the_router_is_meant(desk: Desk) -> None:
    """A binding's `agent` may link to either."""
    await desk.publish(optimist=to(), chooser=to())
    await desk.publish(
        mixed=replace(
            PANEL,
            agents=(
                AgentBinding(Reference("optimist"), "Ann"),
                AgentBinding(Reference("optimist"), "Ben", kind=CandidateKind.ROUTER),
                AgentBinding(Reference("chooser"), "Cid"),
            ),
        )
    )
    at = Reference("mixed", NAMESPACE)
    found = await definitions.get(desk.database, desk.caller, kind=DefinitionKind.INTERACTION, reference=at)
    assert isinstance(found.body, InteractionVersion)
    assert [binding.kind for binding in found.body.agents] == ["Agent", "Router", "Router"]
    again = await definitions.publish(
        desk.database, desk.caller, namespace=NAMESPACE, name="mixed", version=found.body, new_id=desk.new_id
    )
    assert again.outcome == "unchanged"


async def test_what_a_router_can_lead_to_must_fit_the_interaction(desk: Desk) -> None:
    await desk.publish(
        stranger=replace(AGENT, prompts=("You know %%secrets%%.",)), inner=to(prompt="%%weather%%"), chooser=to("inner")
    )
    reaching = RouterVersion(candidates=(RouterCandidate(agent=Reference("stranger")),), fallback="stranger")
    assert "%%weather%%" in (await desk.refused(panel=seat()))["/agents/0/agent"]
    await desk.publish(chooser=reaching)
    assert "agent 'stranger'" in (await desk.refused(panel=seat()))["/agents/0/agent"]


# Closure


async def test_a_seat_with_a_router_holds_all_that_can_be_chosen(desk: Desk) -> None:
    """state.md, Pinning: a start resolves the whole closure, routers included."""
    inner = RouterVersion(
        candidates=(RouterCandidate(agent=Reference("sceptic"), description="For doubt."),), fallback="sceptic"
    )
    rules = (RouterRule("optimist", turn_number=2),)
    await desk.publish(
        inner=inner,
        chooser=to(
            "inner", fallback="inner", rules=rules, model=Reference("small"), prompt="On %%question%%", description="Picks."
        ),
        panel=seat(),
    )  # fmt: skip
    ann, ben = (await desk.resolved()).participants
    assert (ann.name, ann.agent_name, ann.description, ann.prompts) == (
        "Ann",
        "sceptic",
        "Picks.",
        ("You doubt cats?.",),
    )
    assert [router.name for router in ann.routers] == ["chooser", "inner"]
    first, second = ann.routers
    assert (first.prompt, first.rules, first.fallback, first.version) == ("On cats?", rules, "inner", 1)
    assert first.model is not None and first.model.model_name == "script" and second.model is None
    assert [(each.name, each.kind, each.version) for each in first.candidates] == [
        ("optimist", "Agent", 1), ("inner", "Router", 1),
    ]  # fmt: skip
    assert [each.description for each in second.candidates] == ["For doubt."]
    assert first.candidates[1].definition_id == second.router_id
    assert [(each.name, each.agent_name) for each in ann.candidates] == [("Ann", "optimist"), ("Ann", "sceptic")]
    assert [each.prompts for each in ann.candidates] == [("You look at cats?.",), ("You doubt cats?.",)]
    assert ben.routers == ben.candidates == ()


async def test_a_router_alone_is_a_seats_name(desk: Desk) -> None:
    await desk.publish(chooser=to(), panel=replace(PANEL, agents=(AgentBinding(Reference("chooser")),)))
    (only,) = (await desk.resolved()).participants
    assert (only.name, only.agent_name) == ("chooser", "optimist")


async def test_an_agent_that_could_be_chosen_in_two_versions_is_refused(desk: Desk) -> None:
    await desk.publish(optimist=replace(AGENT, description="New."), inner=to())
    old = RouterCandidate(agent=Reference("optimist", version=1), name="old")
    chooser = RouterVersion(candidates=(old, RouterCandidate(router=Reference("inner"))), fallback="old")
    found = await desk.refused(chooser=chooser, panel=seat())
    assert "agent 'examples/optimist' could be chosen in two versions, 1 and 2" in found["/agents/0/agent"]


async def test_a_circle_that_disabling_makes_is_found_by_the_start(desk: Desk) -> None:
    await desk.publish(b=to(), a=to("b"))
    await desk.publish(a=to(), b=to("a"), panel=seat("b"))
    await desk.disable(DefinitionKind.ROUTER, "a", 2)
    found = await desk.start_refused()
    assert "circle: examples/b -> examples/a -> examples/b" in found[""]


async def test_a_disabled_candidate_is_named_at_the_start(desk: Desk) -> None:
    await desk.publish(chooser=to(), panel=replace(seat(), agents=seat().agents[:1]))
    await desk.disable(DefinitionKind.AGENT, "optimist", 1)
    found = await desk.start_refused()
    assert "Router 'chooser' cannot be used. Every version of agent 'examples/optimist' is disabled." in found[""]


def asked(participant: Participant) -> list[str | None]:
    return [router.model.model_name if router.model is not None else None for router in participant.routers]


async def test_an_override_of_purpose_router_is_for_the_seats_routers(desk: Desk) -> None:
    """interactions.md: `aiModelOverrides`."""
    custom = AiModelVersion("openai-compatible", "mine", 4096, base_url="http://models.test/v1")
    await desk.publish(inner=to(model=Reference("small")), chooser=to("inner"), panel=seat())
    ann, _ = (await desk.resolved(ModelOverride("Ann", ModelPurpose.ROUTER, custom_model=custom))).participants
    assert asked(ann) == [None, "mine"] and ann.model.model_name == "script"
    ann, _ = (await desk.resolved(model=ModelChoice("local", "m"))).participants
    assert asked(ann) == [None, "m"]
    found = await desk.start_refused(ModelOverride("Ben", ModelPurpose.ROUTER, custom_model=custom))
    assert "'Ben' has no router that asks a model" in found["/aiModelOverrides/0/purpose"]
    await desk.publish(inner=to())
    found = await desk.start_refused(ModelOverride("Ann", ModelPurpose.ROUTER, custom_model=custom))
    assert list(found) == ["/aiModelOverrides/0/purpose"]


async def test_a_routers_model_without_a_price_is_named_where_money_is_limited(desk: Desk) -> None:
    model = replace(MODEL, provider="openai-compatible", model_name="dear", base_url="http://127.0.0.1:1/v1", path=None)
    await desk.publish(dear=model, chooser=to(model=Reference("dear")))
    await apply.apply(
        desk.database, desk.caller,
        [Document(NAMESPACE, "panel", replace(seat(), budget=Budget(money=Decimal("1"))))], new_id=desk.new_id,
    )  # fmt: skip
    found = await desk.start_refused()
    assert "'dear' (router 'chooser')" in found[""]


async def test_a_routers_model_without_a_key_is_named_where_the_run_is_worked_on_here(desk: Desk) -> None:
    await desk.publish(far=AiModelVersion("openai", "gpt"), chooser=to(model=Reference("far")), panel=seat())
    without_keys = replace(bench(), read_key=lambda _: None)
    with pytest.raises(BadInput) as caught:
        await starting.start(
            desk.database, desk.caller, interaction=Reference("panel", NAMESPACE), request=REQUEST, bench=without_keys,
            new_id=desk.new_id, tell=lambda _: None,
        )  # fmt: skip
    (fault,) = caught.value.faults
    assert fault.message.startswith("Router 'chooser' cannot be asked. Model 'gpt' needs a key")
