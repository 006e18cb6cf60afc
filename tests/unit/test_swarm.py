"""Sub-runs as the engine sees them: who is given which tools, what an await waits for, and what it is told (B07, B37)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from engine_harness import NOW, Conversation, call, panel, reply, seat, tool

from folkmoot.domain import items
from folkmoot.domain.calls import CallResult
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.swarms import PinnedSwarm, StartableInteraction, SwarmLimits
from folkmoot.domain.tool_names import SWARM_TOOLS, problem_of_name
from folkmoot.engine.instructions import system_prompt
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel, RunCall, Wait

ONE, TWO = UUID(int=101), UUID(int=102)
SURVEY = StartableInteraction("survey", "default", UUID(int=9), 1, "Asks around.", '{"type":"object"}')
SWARM = PinnedSwarm((SURVEY,), ("Ann",), SwarmLimits())
RUNNING, COMPLETED = RunStatus.RUNNING, RunStatus.COMPLETED
AWAIT = call("await_interactions")


def swarm(*seats: Any, **settings: Any) -> Any:
    return panel(*(seats or ("Ann", "Ben")), swarm=SWARM, **settings)


def conversation(*calls: Any, sub_runs: dict[UUID, RunStatus], definition: Any = None) -> Conversation:
    """Ann has made these calls in one reply, in a run that has started these."""
    made = Conversation(definition or swarm())
    made.sub_runs = sub_runs
    made.say("Ann", reply("", *calls))
    return made


def the_wait(made: Conversation) -> Wait:
    (step,) = made.steps
    assert isinstance(step, Wait)
    return step


def the_error(made: Conversation) -> str:
    result = next(item.body for item in reversed(made.items) if isinstance(item.body, items.ToolResult))
    assert result.is_error
    return result.result


def test_only_the_named_participants_are_given_the_tools_and_disabled_ones_are_taken_away() -> None:
    seating = Seating(swarm())
    assert set(SWARM_TOOLS) <= seating.tools["Ann"].keys() and not set(SWARM_TOOLS) & seating.tools["Ben"].keys()
    less = Seating(replace(swarm(), disabled_tools=("stop_interaction", "start_interaction")))
    assert set(SWARM_TOOLS) & less.tools["Ann"].keys() == {"await_interactions", "list_interactions"}


def test_the_instructions_say_what_can_be_started_to_whoever_can_start_it() -> None:
    definition = swarm()
    ann, ben = (system_prompt(definition, participant) for participant in definition.participants)
    assert '- survey: Asks around. Inputs: {"type":"object"}' in ann and "survey" not in ben
    less = replace(definition, disabled_tools=("start_interaction",))
    assert "survey" not in system_prompt(less, less.participants[0])


@pytest.mark.parametrize("name", SWARM_TOOLS)
def test_no_other_tool_may_have_such_a_name(name: str) -> None:
    assert "sub-runs" in (problem_of_name(name) or "")


@pytest.mark.parametrize(
    ("arguments", "first", "second", "waits"),
    [
        ({}, RUNNING, COMPLETED, True),
        ({"mode": "all"}, COMPLETED, RUNNING, True),
        ({"mode": "any"}, COMPLETED, RUNNING, False),
        ({"mode": "any"}, RUNNING, RunStatus.NEW, True),
        ({"ids": [str(TWO)]}, RUNNING, RunStatus.FAILED, False),
        ({"ids": [str(ONE)]}, RunStatus.PENDING_HUMAN, COMPLETED, True),
        ({"ids": [f" {str(ONE).upper()} ", str(ONE)]}, RunStatus.STOPPED, RUNNING, False),
        ({}, RunStatus.TIMED_OUT, COMPLETED, False),
    ],
)
def test_an_await_waits_until_all_or_any_of_its_runs_have_ended(
    arguments: dict[str, Any], first: RunStatus, second: RunStatus, waits: bool
) -> None:
    made = conversation(call("await_interactions", **arguments), sub_runs={ONE: first, TWO: second})
    (step,) = made.steps
    assert isinstance(step, Wait if waits else RunCall)


def test_a_wait_says_which_call_awaits_which_runs_for_whom() -> None:
    made = conversation(AWAIT, sub_runs={ONE: RUNNING, TWO: RUNNING})
    wait = the_wait(made)
    (awaits,) = wait.awaits
    assert wait.pending is None and wait.status is RunStatus.PENDING_SUB_INTERACTIONS
    assert (awaits.run_ids, awaits.is_all, awaits.participant, awaits.thread_id) == ((ONE, TWO), True, "Ann", "main")
    assert wait.key == f"await:{awaits.await_id}" and awaits.author_id == made.seating.authors["Ann"].id
    made.sub_runs = dict.fromkeys((ONE, TWO), COMPLETED)
    made.settle()
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.call_id == str(awaits.await_id)
    made.take(step, CallResult("[]", is_error=False))
    assert isinstance(made.steps[0], AskModel)


def test_an_await_of_what_was_not_started_here_or_of_nothing_is_an_error_result() -> None:
    strange = conversation(call("await_interactions", ids=[str(ONE), "seven"]), sub_runs={ONE: RUNNING})
    assert "seven" in the_error(strange) and f"Started here: {ONE}" in the_error(strange)
    assert "nothing to await" in the_error(conversation(AWAIT, sub_runs={}))
    none = conversation(call("await_interactions", ids=[]), sub_runs={ONE: RUNNING})
    assert "do not fit its schema" in the_error(none)


def test_the_run_waits_only_when_nothing_else_can_go_on_and_what_comes_after_keeps_its_order() -> None:
    """B07: reads of the same reply go on beside an await; other calls stand behind it."""
    definition = swarm(seat("Ann", tool("look", is_read_only=True), tool("write")), "Ben")
    made = conversation(AWAIT, call("write"), call("look"), sub_runs={ONE: RUNNING}, definition=definition)
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.name == "look"
    made.take(step, CallResult("seen", is_error=False))
    the_wait(made)
    made.sub_runs = {ONE: COMPLETED}
    made.settle()
    made.take(made.steps[0], CallResult("[]", is_error=False))
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.name == "write"


def test_an_await_behind_a_start_waits_for_what_that_started() -> None:
    made = conversation(call("start_interaction", name="survey"), AWAIT, sub_runs={})
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.name == "start_interaction" and step.tool.is_idempotent
    made.sub_runs = {UUID(step.call.call_id): RunStatus.NEW}
    made.take(step, CallResult("{}", is_error=False))
    (awaits,) = the_wait(made).awaits
    assert awaits.run_ids == (UUID(step.call.call_id),)


def test_starts_that_stand_together_go_side_by_side_and_all_else_keeps_its_order() -> None:
    """B07: the first that keeps the order decides; a start behind another call stands behind it, and what is behind waits for all."""
    start, stop = call("start_interaction", name="survey"), call("stop_interaction", id=str(ONE))
    made = conversation(start, start, stop, start, sub_runs={ONE: RUNNING})
    names = ["start_interaction", "start_interaction"]
    assert [step.call.name for step in made.steps if isinstance(step, RunCall)] == names
    first, second = made.steps
    made.take(second, CallResult("{}", is_error=False))
    (left,) = made.steps
    assert left == first
    made.take(first, CallResult("{}", is_error=False))
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.name == "stop_interaction"
    behind = conversation(stop, start, start, sub_runs={ONE: RUNNING})
    (step,) = behind.steps
    assert isinstance(step, RunCall) and step.call.name == "stop_interaction"


def team(*agents: Any, sub_runs: dict[UUID, RunStatus]) -> Conversation:
    """A manager has sent work to Ann and to Ben, who may start runs."""
    managed = panel("Lead", *agents, manager="Lead", swarm=PinnedSwarm((SURVEY,), ("Ann", "Ben"), SwarmLimits()))
    closed = dict.fromkeys(
        ("is_no_action_allowed", "is_voting_allowed", "is_direct_questioning_allowed", "is_solution_proposal_allowed"), False
    )  # fmt: skip
    made = Conversation(replace(managed, **closed))
    made.sub_runs = sub_runs
    made.say(
        "Lead", reply("", *(call("dispatch", agent=name, message="Go.", mode="OneTime") for name in ("Ann", "Ben")))
    )
    return made


def test_a_wait_has_the_awaits_of_all_who_await_and_the_end_of_any_goes_on() -> None:
    """Two agents at work side by side, each with sub-runs of its own."""
    made = team("Ann", "Ben", sub_runs={ONE: RUNNING, TWO: RUNNING})
    made.say("Ben", reply("", call("await_interactions", ids=[str(TWO)])))
    made.say("Ann", reply("", call("await_interactions", ids=[str(ONE)])))
    wait = the_wait(made)
    assert [(each.participant, each.run_ids) for each in wait.awaits] == [("Ann", (ONE,)), ("Ben", (TWO,))]
    assert wait.status is RunStatus.PENDING_SUB_INTERACTIONS
    made.sub_runs = {ONE: RUNNING, TWO: COMPLETED}
    made.settle()
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.participant == "Ben"


@pytest.mark.parametrize("asker", ["Ann", "Ben"])
def test_a_person_is_asked_first_and_what_others_await_is_awaited_beside_it(asker: str) -> None:
    other = {"Ann": "Ben", "Ben": "Ann"}[asker]
    pay = tool("pay", is_gated=True)
    made = team(seat("Ann", pay), seat("Ben", pay), sub_runs={ONE: RUNNING})
    made.say(asker, reply("", call("pay")))
    made.say(other, reply("", AWAIT))
    wait = the_wait(made)
    assert wait.status is RunStatus.PENDING_APPROVAL and wait.pending is not None
    assert wait.pending.card["managedDispatch"]["agentName"] == asker
    assert [(each.participant, each.run_ids) for each in wait.awaits] == [(other, (ONE,))]
    made.sub_runs = {ONE: COMPLETED}
    made.settle()
    (step,) = made.steps
    assert isinstance(step, RunCall) and step.call.participant == other


def test_an_interaction_that_is_not_listed_cannot_be_started() -> None:
    made = conversation(call("start_interaction", name="other"), sub_runs={})
    assert "start_interaction" in the_error(made)


def test_a_stop_and_the_cut_before_the_time_limit_close_an_open_await() -> None:
    """B13, B20, B72."""
    stopped = conversation(AWAIT, sub_runs={ONE: RUNNING})
    stopped.stop("Pat")
    assert stopped.end is not None and "stopped" in the_error(stopped)
    limit, warning = timedelta(seconds=100), timedelta(seconds=60)
    definition = swarm(duration_auto_termination=limit, duration_warning_to_ai=warning)
    cut = conversation(AWAIT, sub_runs={ONE: RUNNING}, definition=definition)
    cut.deadline, cut.now = NOW + limit, NOW + timedelta(seconds=91)
    cut.settle()
    assert "almost up" in the_error(cut)
    assert isinstance(cut.steps[0], AskModel)
