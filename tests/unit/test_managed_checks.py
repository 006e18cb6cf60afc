"""Managed interactions and swarms in themselves: what may be saved (conversation.md, Managed and Sub-interactions)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from folkmoot.domain.checking import faults_of_interaction
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    ChatMode,
    HumanSettings,
    InteractionType,
    InteractionVersion,
    Reference,
)
from folkmoot.domain.participant_checks import faults_of_participant
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.domain.tool_bindings import OperationBinding

MANAGED = InteractionVersion(
    type=InteractionType.MANAGED,
    manager=AgentBinding(Reference("boss")),
    agents=(AgentBinding(Reference("clerk"), "Ann"), AgentBinding(Reference("clerk"), "Ben", description="Counts.")),
    prompt="Do it.",
)
SWARM = SwarmSettings((Reference("other"), Reference("other", "elsewhere")), ("Ann", "boss"), 1, 2, 3)
TOOL = OperationBinding(name="look", connector=Reference("bench"), operation="look")


def faults(**changes: Any) -> dict[str, str]:
    return {fault.pointer: fault.message for fault in faults_of_interaction(replace(MANAGED, **changes))}


def test_a_managed_interaction_needs_no_bound_to_end() -> None:
    assert faults() == {} and faults(swarm=SWARM) == {}
    assert "" in faults(type=InteractionType.ROUND_ROBIN, manager=None)


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"manager": None}, "/manager", "needs a manager"),
        ({"manager": AgentBinding(Reference("x"), "ANN")}, "/agents/0/name", "looks like 'ANN'"),
        ({"manager": AgentBinding(Reference("x"), "Human")}, "/manager/name", "reserved"),
        ({"manager": AgentBinding(Reference(""), "Boss")}, "/manager/agent", "refers to nothing"),
        (
            {"manager": AgentBinding(Reference("boss"), None, (TOOL, TOOL))},
            "/manager/externalOperationsMcp/1/name",
            "look",
        ),
        ({"agents": ()}, "/agents", "at least one agent"),
        ({"maximum_concurrent_dispatches": 0}, "/maximumConcurrentDispatches", "1 to 50"),
        ({"maximum_concurrent_dispatches": 51}, "/maximumConcurrentDispatches", "1 to 50"),
        ({"human_settings": HumanSettings(ChatMode.EVERY_ROUND)}, "/humanSettings/chatMode", "no rounds"),
        (
            {"human_settings": HumanSettings(ChatMode.OBSERVING, include_in_votes=True)},
            "/humanSettings/includeInVotes",
            "no votes on topics",
        ),
        ({"swarm": replace(SWARM, interactions=())}, "/swarm/interactions", "1 to 50"),
        ({"swarm": replace(SWARM, interactions=(Reference("a"),) * 2)}, "/swarm/interactions/1", "named twice"),
        ({"swarm": replace(SWARM, interactions=(Reference(),))}, "/swarm/interactions/0", "refers to nothing"),
        ({"swarm": replace(SWARM, participants=())}, "/swarm/participants", "at least one participant"),
        ({"swarm": replace(SWARM, participants=("Ann", "Cid"))}, "/swarm/participants/1", "'boss', 'Ann', 'Ben'"),
        ({"swarm": replace(SWARM, participants=("Ann", "Ann"))}, "/swarm/participants/1", "named twice"),
        ({"swarm": replace(SWARM, max_depth=0)}, "/swarm/maxDepth", "from 1"),
        ({"swarm": replace(SWARM, max_concurrent=0)}, "/swarm/maxConcurrent", "from 1"),
        ({"swarm": replace(SWARM, max_total=0)}, "/swarm/maxTotal", "from 1"),
        ({"swarm": replace(SWARM, max_concurrent=10_001)}, "/swarm/maxConcurrent", "to 10,000"),
        ({"swarm": replace(SWARM, max_total=100_001)}, "/swarm/maxTotal", "to 100,000"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(changes: dict[str, Any], pointer: str, words: str) -> None:
    found = faults(**changes)
    assert words in found.pop(pointer) and not found


@pytest.mark.parametrize("mode", [ChatMode.EXCLUDED, ChatMode.OBSERVING, ChatMode.ON_QUESTION])
def test_a_person_may_watch_be_asked_and_agree_to_the_answer(mode: ChatMode) -> None:
    assert faults(human_settings=HumanSettings(mode, include_in_solutions=True)) == {}


def test_only_a_managed_interaction_has_a_manager() -> None:
    found = faults(type=InteractionType.ROUND_ROBIN, maximum_rounds=3)
    assert list(found) == ["/manager"] and "'Managed'" in found["/manager"]


def test_the_names_of_a_managers_tools_are_taken_there_and_nowhere_else() -> None:
    finish = replace(TOOL, name="finish")
    bound = {"external_operations_mcp": (finish,)}
    assert "the manager's" in faults(**bound)["/externalOperationsMcp/0/name"]
    assert "/externalOperationsMcp/0/name" not in faults(**bound, type=InteractionType.ROUND_ROBIN, manager=None)
    agent = AgentVersion(Reference("m"), function_tools=("dispatch",))
    (fault,) = faults_of_participant(
        "/agents/0", agent=agent, name="clerk", binding=MANAGED.agents[0], interaction=MANAGED
    )
    assert "agent 'clerk'" in fault.message and "'dispatch' is a tool of the manager's" in fault.message
