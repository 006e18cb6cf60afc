"""Routers in themselves: what may be saved, and chains of them (conversation.md, Routers)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.domain.credentials import purpose_of
from folkmoot.domain.model_calls import ModelPurpose, Purpose
from folkmoot.domain.references import Reference
from folkmoot.domain.router_chains import circle, too_long
from folkmoot.domain.router_checks import MOST_CANDIDATES, MOST_RULES, faults_of_router
from folkmoot.domain.routers import MAX_DEPTH, RouterCandidate, RouterRule, RouterVersion

ROUTER = RouterVersion(
    candidates=(
        RouterCandidate(agent=Reference("optimist"), description="For hope."),
        RouterCandidate(router=Reference("inner", "elsewhere"), name="others"),
    ),
    fallback="optimist",
    rules=(
        RouterRule("others", participant="Ann", turn_number=1),
        RouterRule("optimist", input="kind", input_value=""),
        RouterRule("others", thread="main", last_author="Human"),
    ),
    model=Reference("small"),
)
AGENT = RouterCandidate(agent=Reference("sceptic"))


def faults(**changes: Any) -> dict[str, str]:
    return {fault.pointer: fault.message for fault in faults_of_router(replace(ROUTER, **changes))}


def test_a_sound_router_has_no_fault() -> None:
    assert faults() == {}


@pytest.mark.parametrize(
    ("changes", "pointer", "words"),
    [
        ({"candidates": (*ROUTER.candidates, RouterCandidate())}, "/candidates/2", "one of 'agent' and 'router'"),
        (
            {"candidates": (*ROUTER.candidates, RouterCandidate(agent=Reference("a"), router=Reference("b")))},
            "/candidates/2",
            "one of 'agent' and 'router'",
        ),
        (
            {"candidates": (*ROUTER.candidates, replace(AGENT, name="OTHERS"))},
            "/candidates/2/name",
            "another candidate's",
        ),
        ({"candidates": (*ROUTER.candidates, replace(AGENT, name="a\u202eb"))}, "/candidates/2/name", "U+202E"),
        (
            {"candidates": (*ROUTER.candidates, RouterCandidate(agent=Reference("a", version=-1)))},
            "/candidates/2/agent",
            "no version -1",
        ),
        ({"fallback": "nobody"}, "/fallback", "The candidates: 'optimist', 'others'."),
        ({"rules": (RouterRule("nobody"),)}, "/rules/0/candidate", "no candidate 'nobody'"),
        ({"rules": (RouterRule("others", input="kind"),)}, "/rules/0/inputValue", "input 'kind'"),
        ({"rules": (RouterRule("others", input_value="x"),)}, "/rules/0/input", "which input"),
        ({"rules": (RouterRule("others", turn_number=0),)}, "/rules/0/turnNumber", "from 1"),
        ({"rules": (RouterRule("others"),) * (MOST_RULES + 1)}, "/rules", "at most 200"),
        ({"model": Reference("")}, "/model", "refers to nothing"),
    ],
)
def test_what_cannot_be_saved_is_named_with_its_place(changes: dict[str, Any], pointer: str, words: str) -> None:
    found = faults(**changes)
    assert list(found) == [pointer] and words in found[pointer]


def test_candidates_are_counted() -> None:
    assert "1 to 50 candidates; this has 0" in faults(candidates=())["/candidates"]
    many = tuple(RouterCandidate(agent=Reference(f"a{number}")) for number in range(MOST_CANDIDATES))
    assert "/candidates" not in faults(candidates=many)
    assert "this has 51" in faults(candidates=(*many, AGENT))["/candidates"]


def test_a_candidate_may_be_called_what_no_participant_may() -> None:
    assert faults(candidates=(*ROUTER.candidates, replace(AGENT, name="Human"))) == {}


def test_names_are_not_asked_for_where_a_link_is_by_id_alone() -> None:
    assert (
        faults(
            candidates=(*ROUTER.candidates, RouterCandidate(agent=Reference(definition_id=UUID(int=1)))), fallback="it"
        )
        == {}
    )


def test_a_routers_calls_have_a_purpose_of_their_own() -> None:
    assert purpose_of(Purpose.ROUTE) is ModelPurpose.ROUTER
    assert {purpose_of(purpose) for purpose in (Purpose.TURN, Purpose.BALLOT, Purpose.ANSWER)} == {ModelPurpose.AGENT}


# Chains


def line(count: int) -> dict[int, list[int]]:
    return {number: [number + 1] for number in range(1, count)}


def test_a_circle_is_told_from_where_it_closes() -> None:
    assert circle({1: [2], 2: [4, 3], 3: [1], 4: []}, 1) == (1, 2, 3, 1)
    assert circle({1: [2], 2: [3], 3: [2]}, 1) == (2, 3, 2)
    assert circle({1: [1]}, 1) == (1, 1)
    assert circle({2: [3], 3: [2]}, 1) == ()


def test_two_ways_to_one_router_are_no_circle() -> None:
    assert circle({1: [2, 3], 2: [4], 3: [4], 4: [5]}, 1) == ()


@pytest.mark.parametrize("start", [1, 4, MAX_DEPTH])
def test_a_chain_may_be_as_long_as_it_may_be_wherever_one_looks(start: int) -> None:
    assert too_long(line(MAX_DEPTH), start) == ()
    assert too_long(line(MAX_DEPTH + 1), start) == tuple(range(1, MAX_DEPTH + 2))


def test_a_short_way_beside_a_long_one_hides_nothing() -> None:
    links = {**line(MAX_DEPTH + 1), 1: [9, 2]}
    assert len(too_long(links, 1)) == MAX_DEPTH + 1


@given(st.dictionaries(st.integers(0, 7), st.lists(st.integers(0, 7), max_size=3), max_size=8))
def test_a_circle_is_found_where_there_is_one(links: dict[int, list[int]]) -> None:
    reached: set[int] = set()
    edge = {0}
    while edge - reached:
        reached |= edge
        edge = {each for node in edge for each in links.get(node, ())}
    left = set(reached)  # what nothing leads on from is no part of a circle
    while ends := {node for node in left if not set(links.get(node, ())) & left}:
        left -= ends
    found = circle(links, 0)
    assert bool(found) == bool(left)
    if found:
        assert found[0] == found[-1] and all(b in links[a] for a, b in pairwise(found))
