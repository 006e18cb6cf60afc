"""What a sub-run gets of the run that starts it: less, never more (conversation.md, Sub-interactions; B37, B38)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import panels
import pytest
import swarm_at_hand as swarm
from panels import Started

from folkmoot.domain.budgets import Budget, BudgetAbove
from folkmoot.domain.credentials import CredentialStackVersion, StackEntry, StackSnapshot, StackSource
from folkmoot.domain.definitions import InteractionVersion, Reference, ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.runs import Claim
from folkmoot.domain.swarms import SwarmLimits, SwarmSettings
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Conflict, FolkmootError
from folkmoot.kernel.ids import NewId
from folkmoot.services import apply, sub_run_starts
from folkmoot.services import runs as run_services
from folkmoot.services.apply import Document
from folkmoot.services.sub_run_starts import Outcome, Wanted
from folkmoot.store import runs
from folkmoot.store.database import Database

MINUTE = timedelta(minutes=1)
OWN = swarm.CHILD


class House:
    """One tenant, in which a claimed run starts others through the service."""

    def __init__(self, database: Database, caller: Caller, new_id: NewId) -> None:
        self.database = database
        self.caller = caller
        self.new_id = new_id
        self.claims: dict[UUID, Claim] = {}

    async def parent(self, version: InteractionVersion = OWN, **settings: Any) -> Started:
        child = await swarm.publish(self.database, self.caller, self.new_id, version=version)
        resolved = swarm.parent(self.new_id, [child], swarm.TALK, **settings)
        started = await swarm.start(self.database, self.caller, self.new_id, resolved)
        return await self.claimed(started)

    async def claimed(self, started: Started) -> Started:
        worker_id = await panels.register(self.database, self.new_id)
        self.claims |= {
            found.claim.run_id: found.claim for found in await panels.claim(self.database, worker_id, batch=100)
        }
        return started

    async def start_as(self, started: Started, wanted: Wanted) -> Outcome:
        (outcome,) = await sub_run_starts.start(
            self.database,
            self.claims[started.run_id],
            wanted=[wanted],
            bench=swarm.bench(),
            new_id=self.new_id,
            tell=lambda _: None,
        )
        return outcome

    async def start(self, started: Started, **wanted: Any) -> ResolvedInteraction:
        """Start its child; the closure it got."""
        run_id = wanted.pop("run_id", None) or self.new_id()
        outcome = await self.start_as(started, Wanted(run_id, "Ann", "child", **wanted))
        if isinstance(outcome, FolkmootError):
            raise outcome
        async with self.database.reader() as reader:
            return await runs.resolved(reader, started.tenant_id, run_id=run_id)


@pytest.fixture
def house(database: Database, caller: Caller, new_id: NewId) -> House:
    return House(database, caller, new_id)


async def test_time_is_at_most_what_the_run_above_has_left(house: House) -> None:
    started = await house.parent(duration_auto_termination=10 * MINUTE)
    await panels.shift_clock(house.database, 240)
    left = (await house.start(started)).duration_auto_termination
    assert left is not None and 5 * MINUTE < left <= 6 * MINUTE
    assert (await house.start(started, duration=2 * MINUTE)).duration_auto_termination == 2 * MINUTE
    bounded = (await house.start(started, duration=60 * MINUTE)).duration_auto_termination
    assert bounded is not None and bounded <= 6 * MINUTE
    await panels.shift_clock(house.database, 600)
    with pytest.raises(Conflict, match="time limit"):
        await house.start(started)


async def test_a_warning_keeps_its_place_within_a_shorter_time(house: House) -> None:
    version = replace(OWN, duration_auto_termination=60 * MINUTE, duration_warning_to_ai=45 * MINUTE)
    started = await house.parent(version)
    found = await house.start(started, duration=20 * MINUTE)
    assert (found.duration_auto_termination, found.duration_warning_to_ai) == (20 * MINUTE, 15 * MINUTE)
    found = await house.start(started)
    assert (found.duration_auto_termination, found.duration_warning_to_ai) == (60 * MINUTE, 45 * MINUTE)


async def test_rounds_are_at_most_those_of_the_run_above(house: House) -> None:
    for own, above, holds in ((None, 3, 3), (2, 3, 2), (5, 3, 3), (5, None, 5), (None, None, None)):
        version = replace(OWN, maximum_rounds=own, is_solution_proposal_allowed=True)
        started = await house.parent(version, maximum_rounds=above)
        assert (await house.start(started)).maximum_rounds == holds


async def test_disabled_tools_are_those_of_the_run_above_known_or_not(house: House) -> None:
    started = await house.parent(disabled_tools=("search", "stop_interaction"))
    assert (await house.start(started)).disabled_tools == ("search", "stop_interaction")


async def test_the_operators_keys_are_allowed_where_they_are_above(house: House) -> None:
    for allows in (True, False, None):
        started = await house.parent(allow_platform_fallback=allows)
        assert (await house.start(started)).allow_platform_fallback is allows


async def test_a_credential_stack_goes_down_where_it_says_so(house: House) -> None:
    """Else it is the sub-run's own: here its interaction's."""
    entry = StackEntry("first", "openai-compatible", base_url="http://127.0.0.1:9/v1")
    document = Document(swarm.NAMESPACE, "own", CredentialStackVersion((entry,)))
    await apply.apply(house.database, house.caller, [document], new_id=house.new_id)
    above = StackSnapshot(
        house.new_id(), "above", 3, StackSource.START, datetime.now(UTC), (entry.settled(house.new_id(), secret_id=None),),
    )  # fmt: skip
    version = replace(OWN, credential_stack="own")
    passed_on = replace(above, passes_to_children=True)
    started = await house.parent(version, credential_stack=passed_on)
    assert (await house.start(started)).credential_stack == replace(passed_on, source=StackSource.PARENT)
    started = await house.parent(version, credential_stack=above)
    stack = (await house.start(started)).credential_stack
    assert stack is not None and (stack.stack_name, stack.source) == ("own", StackSource.INTERACTION)


async def test_budgets_above_hold_with_all_those_above_them(house: House) -> None:
    above = BudgetAbove(UUID(int=9), Budget(tokens=100))
    started = await house.parent(budget=Budget(calls=7), budgets_above=(above,))
    found = await house.start(started)
    assert found.budgets_above == (above, BudgetAbove(started.run_id, Budget(calls=7))) and found.budget is None
    with pytest.raises(BadInput, match="budget of a run above limits money"):
        await house.start(await house.parent(budget=Budget(money=Decimal(1))))


async def test_limits_of_a_sub_runs_own_can_lower_those_of_the_tree_and_never_raise_them() -> None:
    tree = SwarmLimits(3, 20, 200)
    assert tree.lowered(SwarmSettings(max_depth=9, max_concurrent=2), depth=1) == SwarmLimits(3, 2, 200)
    assert tree.lowered(SwarmSettings(), depth=1) == tree
    depths = [tree.lowered(SwarmSettings(max_depth=1), depth=depth).max_depth for depth in (1, 2, 3)]
    assert depths == [2, 3, 3]


async def test_limits_of_a_sub_runs_own_interaction_hold_for_what_it_starts(house: House) -> None:
    """Its own maxDepth counts from itself: 1 lets it start others that start none."""
    child = await swarm.publish(house.database, house.caller, house.new_id, name="leaf")
    leaf = Reference("leaf", swarm.NAMESPACE)
    own = SwarmSettings((leaf,), ("Kid",), max_depth=1, max_concurrent=2, max_total=500)
    started = await house.parent(replace(OWN, swarm=own), limits=SwarmLimits(9, 20, 200))
    found = await house.start(started)
    assert found.swarm is not None and found.swarm.limits == SwarmLimits(2, 2, 200) and found.swarm.depth == 1
    (row,) = await swarm.children(house.database, started)
    below = await house.claimed(swarm.below(started, row))
    leaf_id = house.new_id()
    assert await house.start_as(below, Wanted(leaf_id, "Kid", child.name)) is None
    (row,) = await swarm.children(house.database, below)
    assert (row["depth"], row["run_id"]) == (2, leaf_id)


async def test_depth_of_a_sub_runs_own_is_no_deeper_than_it_says(house: House) -> None:
    """One whose own interaction says 1, below one that could go on to 9, starts what can start nothing."""
    await swarm.publish(house.database, house.caller, house.new_id, name="leaf")
    inner = SwarmSettings((Reference("leaf", swarm.NAMESPACE),), ("Kid",))
    await swarm.publish(house.database, house.caller, house.new_id, name="middle", version=replace(OWN, swarm=inner))
    outer = SwarmSettings((Reference("middle", swarm.NAMESPACE),), ("Kid",), max_depth=1)
    started = await house.parent(replace(OWN, swarm=outer), limits=SwarmLimits(9, 20, 200))
    await house.start(started)
    (row,) = await swarm.children(house.database, started)
    second = await house.claimed(swarm.below(started, row))
    assert await house.start_as(second, Wanted(house.new_id(), "Kid", "middle")) is None
    (row,) = await swarm.children(house.database, second)
    third = await house.claimed(swarm.below(started, row))
    refused = await house.start_as(third, Wanted(house.new_id(), "Kid", "leaf"))
    assert isinstance(refused, Conflict) and "down to depth 2 (maxDepth), and this one would be at 3" in str(refused)


async def test_a_start_made_again_by_the_same_call_starts_nothing_twice(house: House) -> None:
    started, run_id = await house.parent(), house.new_id()
    first = await house.start(started, run_id=run_id)
    assert await house.start(started, run_id=run_id) == first
    rows = await panels.fetch(house.database, "select started from swarm where root_id = $1", started.run_id)
    assert [row["started"] for row in rows] == [1] and len(await swarm.children(house.database, started)) == 1
    audit = await panels.fetch(house.database, "select detail from audit where action = 'run.started'")
    assert [json.loads(row["detail"])["participant"] for row in audit] == ["Ann"]


async def test_a_run_that_is_to_be_stopped_starts_no_more(house: House) -> None:
    started = await house.parent()
    await run_services.request_stop(house.database, house.caller, run_id=started.run_id, tell=lambda _: None)
    with pytest.raises(Conflict, match="is to be stopped"):
        await house.start(started)


async def test_a_model_that_a_command_puts_in_place_of_all_is_used_below_too(house: House) -> None:
    """Else sub-runs have the models that their definitions name; what a start gives single participants is for its run alone."""
    given = ModelChoice("openai-compatible", "other", base_url="http://127.0.0.1:9/v1")
    found = await house.start(await house.parent(model_for_all=given))
    assert ([each.model for each in found.participants], found.model_for_all) == ([given], given)
    found = await house.start(await house.parent())
    assert [each.model.provider for each in found.participants] == ["scripted"]


async def test_the_priority_goes_down(house: House) -> None:
    started = await house.parent()
    await panels.execute(house.database, "update process set priority = 7")
    await house.start(started)
    assert [row["priority"] for row in await swarm.children(house.database, started)] == [7]
