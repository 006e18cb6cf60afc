"""Runs that start runs, with a whole worker and a real database (conversation.md, Sub-interactions; B09, B37, B38; F58, F59)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import asyncpg
import panels
import pytest
import swarm_at_hand as swarm
from crews import Listening, crew, until
from panels import Started
from swarm_at_hand import Filling, call, script, start_call

from folkmoot.api.mapping import runs as mapping
from folkmoot.domain.budgets import Budget
from folkmoot.domain.definitions import (
    AgentBinding,
    ChatMode,
    DataType,
    DefinitionKind,
    HumanSettings,
    PromptInput,
    Reference,
    ResolvedInteraction,
)
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.swarms import PinnedSwarm, SwarmLimits
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import answers, definitions, runs, starting
from folkmoot.store.appends import Append, Appender
from folkmoot.store.database import Database
from folkmoot.store.run_lists import RunFilter
from folkmoot.tools.functions import FunctionTools, function_tool

AWAIT = call("await_interactions")
SLOW = replace(swarm.CHILD, agents=(AgentBinding(Reference("kid"), "Slow"),))


async def run(
    database: Database, caller: Caller, new_id: NewId, resolved: ResolvedInteraction, **options: Any
) -> Started:
    """A run on top, to its end."""
    started = await swarm.start(database, caller, new_id, resolved)
    async with crew(database, new_id, bench=swarm.bench(), **options):
        await until(lambda: panels.has_ended(database, started))
    return started


def holding(*names: str) -> Listening:
    model = Listening()
    model.held = {name: asyncio.Event() for name in names}
    return model


def waits(database: Database, started: Started) -> Callable[[], Any]:
    async def condition() -> bool:
        return bool((await panels.row_of(database, started))["status"] == "PendingSubInteractions")

    return condition


async def test_a_run_starts_two_others_awaits_them_and_gets_what_came_of_them(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """conversation.md: with its parent, root and depth; waiting it holds no worker; one slot is enough (F59)."""
    child = await swarm.publish(database, caller, new_id)
    rules = script([start_call(), start_call()], [AWAIT], "Thank you.")
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules), slots=1)
    row = await panels.row_of(database, started)
    assert row["status"] == "Completed", row["failure_details"]
    below = await swarm.children(database, started)
    assert len(below) == 2
    for each in below:
        assert each["status"] == "Completed" and each["depth"] == 1 and each["started_by"] == "Ann"
        assert each["parent_kind"] == "Interaction" and each["created_by"] == caller.user_id
        assert each["tree_root_id"] == each["swarm_root_id"] == started.run_id
    found = await swarm.results(database, started)
    assert [is_error for _, is_error in found] == [False] * 3
    told = json.loads(found[2][0])
    assert [each["id"] for each in told] == [str(each["run_id"]) for each in below]
    assert {each["status"] for each in told} == {"Completed"}
    assert row["claim_number"] == 2  # it gave back its worker once, and was woken once
    assert row["await_ids"] is row["awaits_since"] is None


async def test_an_await_of_any_ends_with_the_first_and_the_other_can_be_listed_and_stopped(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    child = await swarm.publish(database, caller, new_id)
    slow = await swarm.publish(database, caller, new_id, name="slow", version=SLOW)
    rules = script(
        [start_call(), start_call("slow")],
        [call("await_interactions", ids=["$1", "$2"], mode="any")],
        [call("stop_interaction", id="$2"), AWAIT],
        [call("list_interactions")],
    )
    model = Filling(database)
    model.held = {"Slow": asyncio.Event()}
    started = await run(database, caller, new_id, swarm.parent(new_id, [child, slow], rules), model=model)
    found = [json.loads(text) for text, is_error in await swarm.results(database, started) if not is_error]
    assert len(found) == 6
    first, second = found[2]
    assert (first["status"], second["name"]) == ("Completed", "slow") and second["status"] in ("New", "Running")
    assert {each["status"] for each in found[4]} == {
        "Completed",
        "Stopped",
    }  # an await of all, after the stop in its reply
    assert [(each["name"], each["status"], each["startedBy"]) for each in found[5]] == [
        ("child", "Completed", "Ann"), ("slow", "Stopped", "Ann")
    ]  # fmt: skip


async def test_a_stop_of_a_run_that_has_ended_or_is_not_ones_own_changes_nothing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    child = await swarm.publish(database, caller, new_id)
    other = await panels.start(database, new_id, tenant_id=caller.tenant_id)
    rules = script(
        [call("stop_interaction", id=str(other.run_id)), call("await_interactions", ids=[str(other.run_id)]), AWAIT],
        [start_call()],
        [AWAIT, call("stop_interaction", id="$1")],
    )
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules), model=Filling(database))
    found = await swarm.results(database, started)
    assert [is_error for _, is_error in found] == [True, True, True, False, False, False]
    assert "was started here" in found[0][0] and "nothing to await" in found[1][0] and "nothing to await" in found[2][0]
    assert json.loads(found[5][0])["status"] == "Completed"
    assert (await panels.row_of(database, other))["stopped_by"] is None


async def test_a_start_that_is_wrong_starts_nothing_and_says_all_that_is_wrong(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    inputs = (
        PromptInput(DataType.INTEGER, "count", is_required=True),
        PromptInput(DataType.STRING, "topic", is_required=True),
    )
    version = replace(swarm.CHILD, inputs_prompt=inputs, prompt="%%topic%% %%count%%")
    child = await swarm.publish(database, caller, new_id, version=version)
    rules = script(
        [start_call(inputs={"count": "many", "colour": "red"})],
        [start_call(durationAutoTermination="soon", inputs={"count": 3, "topic": "x"})],
        [start_call(inputs={"count": 3, "topic": {"a": 1}})],
    )
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules))
    wrong, late, right = await swarm.results(database, started)
    assert wrong[1] and all(word in wrong[0] for word in ("'colour'", "'topic'", "/inputs", "3 things"))
    assert late[1] and "ISO 8601" in late[0] and "One thing is wrong" in late[0]
    assert not right[1]
    (row,) = await swarm.children(database, started)
    body = json.loads((await panels.rows_of(database, swarm.below(started, row), "resolved_definition"))[0]["body"])
    assert body["task"] == '{"a": 1} 3'


async def test_a_time_too_long_for_any_deadline_is_refused_and_workers_go_on(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F13: no row can keep a worker from claiming others; the database takes none whose deadline would be no time."""
    child = await swarm.publish(database, caller, new_id)
    spans = ("P999999999D", "P1000000D", "-PT1S", "P999999D")
    rules = script([start_call(durationAutoTermination=span) for span in spans], [AWAIT])
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules))
    found = await swarm.results(database, started)
    assert [is_error for _, is_error in found] == [True, True, True, False, False]
    assert all("/durationAutoTermination" in text and "999,999 days" in text for text, _ in found[:3])
    (row,) = await swarm.children(database, started)
    assert (row["status"], row["duration_auto_termination"]) == ("Completed", timedelta(days=999_999))
    for name in ("duration_auto_termination", "duration_human_timeout"):
        with pytest.raises(asyncpg.CheckViolationError):
            await panels.execute(database, f"update process set {name} = '1000000 days'")


async def test_a_disabled_version_and_a_user_who_may_start_no_more_are_error_results(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B38: the caller's identity goes along, and its rights are asked for when something is done. state.md, Pinning."""
    child = await swarm.publish(database, caller, new_id)
    reference = Reference("child", swarm.NAMESPACE)
    await definitions.set_disabled(
        database, caller, kind=DefinitionKind.INTERACTION, reference=replace(reference, version=1), is_disabled=True
    )
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], script([start_call()])))
    ((text, is_error),) = await swarm.results(database, started)
    assert is_error and "is disabled" in text
    viewer = new_id()
    await panels.execute(
        database,
        "insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at) values ($1, $2, 'Vic', 'viewer', $2, now(), now())",
        caller.tenant_id, viewer,
    )  # fmt: skip
    resolved = swarm.parent(new_id, [child], script([start_call()]))
    started = await run(database, replace(caller, user_id=viewer), new_id, resolved)
    ((text, is_error),) = await swarm.results(database, started)
    assert is_error and "'start'" in text
    assert not await panels.fetch(database, "select from process where parent_id is not null")


async def test_agents_at_work_side_by_side_each_go_on_when_what_they_await_has_ended(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """A manager's agents: the end of what the second awaits wakes the run, though the first still waits."""
    child = await swarm.publish(database, caller, new_id)
    slow = await swarm.publish(database, caller, new_id, name="slow", version=SLOW)
    sent = [call("dispatch", agent=name, message="Await.", mode="OneTime") for name in ("Ann", "Ben")]
    of_agents = [
        script([start_call("slow"), start_call("child")], sent, [call("finish", answer="Good.")], participant="Boss"),
        script([call("await_interactions", ids=["$1"])], "A.", participant="Ann"),
        script([call("await_interactions", ids=["$2"])], "B.", participant="Ben"),
        swarm.TALK,
    ]
    rules = {"rules": [rule for each in of_agents[:3] for rule in each["rules"][:-1]] + of_agents[3]["rules"]}
    resolved = swarm.parent(
        new_id, [slow, child], rules, names=("Boss", "Ann", "Ben"), participants=("Boss", "Ann", "Ben"), manager="Boss"
    )
    started, model = await swarm.start(database, caller, new_id, resolved), Filling(database)
    model.held = {name: asyncio.Event() for name in ("Slow", "Kid")}
    async with crew(database, new_id, bench=swarm.bench(), model=model):
        await until(waits(database, started))
        assert len((await panels.row_of(database, started))["await_ids"]) == 2
        model.held["Kid"].set()

        async def has_gone_on() -> bool:
            return "Ben: B." in panels.texts(await panels.items_of(database, started))

        await until(has_gone_on)
        await until(waits(database, started))
        assert len((await panels.row_of(database, started))["await_ids"]) == 1
        model.held["Slow"].set()
        await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"], row["await_ids"]) == ("Completed", "Good.", None)


async def test_what_one_agent_awaits_goes_on_while_a_person_is_asked_about_anothers_call(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """The approval stays open meanwhile, and counts when it comes."""

    @function_tool(approval_mode="Always")
    async def pay() -> str:
        """Pay."""
        return "paid"

    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    sent = [call("dispatch", agent=name, message="Go.", mode="OneTime") for name in ("Ann", "Ben")]
    of_agents = [
        script([start_call()], sent, [call("finish", answer="Good.")], participant="Boss"),
        script([call("pay")], "A.", participant="Ann"),
        script([AWAIT], "B.", participant="Ben"),
    ]
    rules = {"rules": [rule for each in of_agents for rule in each["rules"][:-1]] + swarm.TALK["rules"]}
    tools = {"Ann": (FunctionTools.discover({"pay": pay}).offered("pay"),)}
    names = ("Boss", "Ann", "Ben")
    resolved = swarm.parent(new_id, [slow], rules, names=names, participants=names, manager="Boss", tools=tools)
    started, model = await swarm.start(database, caller, new_id, resolved), holding("Slow")

    async def is_asked() -> bool:
        row = await panels.row_of(database, started)
        return row["status"] == "PendingApproval" and row["ready_at"] is None

    async def has_gone_on() -> bool:
        return "Ben: B." in panels.texts(await panels.items_of(database, started))

    async with crew(database, new_id, bench=swarm.bench(), model=model, functions={"pay": pay}) as at_work:
        await until(is_asked)
        model.held["Slow"].set()
        await until(has_gone_on)
        await until(is_asked)
        (asked,) = await panels.rows_of(database, started, "pending")
        await answers.decide(
            database, caller, run_id=started.run_id, call_id=asked["pending_id"], approves=True, reason=None,
            arguments_hash=asked["binding_hash"].hex(), tell=at_work.tell,
        )  # fmt: skip
        await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"]) == ("Completed", "Good.")
    assert ("paid", False) in await swarm.results(database, started)


async def test_the_end_of_a_sub_run_is_handed_in_under_its_parent(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By which the appender gathers it apart from all else."""
    ends: dict[Any, Any] = {}
    append = Appender.append

    async def noting(appender: Appender, outcome: Append) -> Any:
        if outcome.end is not None:
            ends[outcome.claim.run_id] = outcome.ends_under
        return await append(appender, outcome)

    monkeypatch.setattr(Appender, "append", noting)
    child = await swarm.publish(database, caller, new_id)
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], script([start_call()], [AWAIT])))
    (row,) = await swarm.children(database, started)
    assert ends == {started.run_id: None, row["run_id"]: started.run_id}


async def test_whoever_is_idle_is_told_of_a_sub_runs_end_and_takes_up_its_parent_at_once(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """No worker looks by itself for as long as this lasts, and the one that ended the sub-run has something more urgent to do."""
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    started = await swarm.start(database, caller, new_id, swarm.parent(new_id, [slow], script([start_call()], [AWAIT])))
    model = holding("Slow", "Ben")
    looks: dict[str, Any] = {"slots": 1, "poll_seconds": 1000, "sweep_seconds": 1000}
    async with crew(database, new_id, bench=swarm.bench(), model=model, **looks):
        await until(lambda: "Slow" in model.asked)
        async with crew(database, new_id, bench=swarm.bench(), **looks):
            await until(lambda: is_registered(database, 2))
            urgent = await panels.start(database, new_id, panels.interaction(new_id, names=("Ben",)))
            await panels.execute(database, "update process set priority = 9 where run_id = $1", urgent.run_id)
            model.held["Slow"].set()
            await until(lambda: panels.has_ended(database, started))
    assert (await panels.row_of(database, started))["status"] == "Completed"


async def is_registered(database: Database, count: int) -> bool:
    return len(await panels.fetch(database, "select from worker")) == count


async def test_a_start_beyond_a_limit_is_an_error_result_and_no_queue(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B37, F58."""
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    words = {
        SwarmLimits(max_total=1): "at most 1 runs may ever be started in this tree (maxTotal), and 1 were",
        SwarmLimits(
            max_concurrent=1
        ): "at most 1 started runs may go on in this tree at once (maxConcurrent), and 1 do",
        SwarmLimits(max_depth=0): "down to depth 0 (maxDepth), and this one would be at 1",
    }
    calls = script([start_call(), start_call()])
    resolved = [swarm.parent(new_id, [slow], calls, limits=limits) for limits in words]
    started = [await swarm.start(database, caller, new_id, each) for each in resolved]
    async with crew(database, new_id, bench=swarm.bench(), model=holding("Slow")):
        for each, says in zip(started, words.values(), strict=True):
            await until(partial(panels.has_ended, database, each))
            text, is_error = (await swarm.results(database, each))[-1]
            assert is_error and says in text
    assert [len(await swarm.children(database, each)) for each in started] == [1, 1, 0]


async def test_starts_that_stand_together_are_one_transaction_in_their_order_each_refused_alone(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    child = await swarm.publish(database, caller, new_id)
    wrong = start_call(inputs={"colour": "red"})
    rules = script(
        [start_call(), wrong, *[start_call(durationAutoTermination=f"PT{n}M") for n in (3, 2)], start_call()]
    )
    limits = SwarmLimits(max_total=3)
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules, limits=limits))
    below = await swarm.children(database, started)
    assert [each["duration_auto_termination"] for each in below] == [None, timedelta(minutes=3), timedelta(minutes=2)]
    found = await swarm.results(database, started)
    assert [is_error for _, is_error in found] == [False, True, False, False, True]
    assert "colour" in found[1][0] and "maxTotal), and 3 were" in found[4][0]
    assert [json.loads(found[n][0])["id"] for n in (0, 2, 3)] == [str(each["run_id"]) for each in below]
    noted = await panels.fetch(
        database, "select subject_id, xmin::text as written_in from audit where action = 'run.started' order by at"
    )
    assert [each["subject_id"] for each in noted] == [each["run_id"] for each in below]
    assert len({each["written_in"] for each in noted}) == 1
    results = await panels.fetch(
        database, "select distinct created_at from item where run_id = $1 and kind = 'toolResult'", started.run_id
    )
    assert len(results) == 1  # the results are in one commit, too


async def test_a_place_is_free_again_once_a_run_has_ended(database: Database, caller: Caller, new_id: NewId) -> None:
    child = await swarm.publish(database, caller, new_id)
    rules = script([start_call()], [AWAIT], [start_call()], [AWAIT])
    limits = SwarmLimits(max_concurrent=1, max_total=2)
    started = await run(database, caller, new_id, swarm.parent(new_id, [child], rules, limits=limits))
    assert [row["status"] for row in await swarm.children(database, started)] == ["Completed", "Completed"]


def with_swarms_below(monkeypatch: pytest.MonkeyPatch, pinned: PinnedSwarm) -> None:
    """Whatever is started may start these, too: as if its definition said so."""
    resolve = starting.resolve

    async def resolved(*args: Any, **settings: Any) -> ResolvedInteraction:
        return replace(await resolve(*args, **settings), swarm=pinned)

    monkeypatch.setattr(starting, "resolve", resolved)


async def test_depth_three_with_one_slot_does_not_deadlock_and_goes_no_deeper(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F58, F59: an agent that only starts itself, and awaits what it started."""
    child = await swarm.publish(database, caller, new_id)
    again = {"rules": [*script([start_call()], [AWAIT], participant="Kid")["rules"]]}
    with_swarms_below(monkeypatch, PinnedSwarm((child,), ("Kid",), SwarmLimits(max_depth=9)))
    started = await swarm.start(
        database, caller, new_id, swarm.parent(new_id, [child], script([start_call()], [AWAIT]))
    )
    async with crew(database, new_id, bench=swarm.bench(again), slots=1):
        await until(lambda: panels.has_ended(database, started))
    rows = await panels.fetch(database, "select * from process order by depth")
    assert [(row["depth"], row["status"]) for row in rows] == [(depth, "Completed") for depth in range(4)]
    assert {row["swarm_root_id"] for row in rows} == {started.run_id}
    deepest = swarm.below(started, rows[-1])
    assert "down to depth 3 (maxDepth)" in (await swarm.results(database, deepest))[0][0]


async def test_waiting_for_sub_runs_is_time_at_work(database: Database, caller: Caller, new_id: NewId) -> None:
    """kernel.md: executionTime, and the time limit, which counts the same."""
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    rules = script([start_call()], [AWAIT])
    limit = timedelta(seconds=1000)
    resolved = swarm.parent(new_id, [slow], rules, duration_auto_termination=limit)
    started, model = await swarm.start(database, caller, new_id, resolved), holding("Slow")
    async with crew(database, new_id, bench=swarm.bench(), model=model):
        await until(waits(database, started))
        await panels.shift_clock(database, 300)
        shown = mapping.process(await runs.get(database, caller, run_id=started.run_id))
        assert timedelta(seconds=300) <= shown.execution_time < timedelta(seconds=330)
        model.held["Slow"].set()
        await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    assert row["status"] == "Completed" and timedelta(seconds=300) <= row["execution_time"] < timedelta(seconds=330)


async def test_a_waiting_run_whose_time_is_up_is_woken_and_fails(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    resolved = swarm.parent(
        new_id, [slow], script([start_call()], [AWAIT]), duration_auto_termination=timedelta(seconds=1000)
    )
    started = await swarm.start(database, caller, new_id, resolved)
    async with crew(database, new_id, bench=swarm.bench(), model=holding("Slow")):
        await until(waits(database, started))
        await panels.shift_clock(database, 1001)
        await until(lambda: panels.has_ended(database, started))
        row = await panels.row_of(database, started)
        assert row["status"] == "Failed" and "time limit" in row["failure_details"]


async def test_an_await_is_cut_for_the_last_turn(database: Database, caller: Caller, new_id: NewId) -> None:
    """B72: the limit leaves room for an answer, also where a participant waits for sub-runs when its time has come."""
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    resolved = swarm.parent(
        new_id, [slow], script([start_call()], [AWAIT], "The best I have."), duration_auto_termination=timedelta(seconds=1000),
        duration_warning_to_ai=timedelta(seconds=600),
    )  # fmt: skip
    started, model = await swarm.start(database, caller, new_id, resolved), holding("Slow")
    async with crew(database, new_id, bench=swarm.bench(), model=model):
        await until(waits(database, started))
        await panels.shift_clock(database, 910)
        await until(lambda: panels.has_ended(database, started))
    assert "Ann: The best I have." in panels.texts(await panels.items_of(database, started))
    assert "almost up" in (await swarm.results(database, started))[1][0]


async def test_a_message_of_a_person_leaves_a_waiting_run_waiting(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    people = HumanSettings(ChatMode.OBSERVING)
    resolved = swarm.parent(new_id, [slow], script([start_call()], [AWAIT], "I see."), human_settings=people)
    started, model = await swarm.start(database, caller, new_id, resolved), holding("Slow")
    async with crew(database, new_id, bench=swarm.bench(), model=model):
        await until(waits(database, started))
        await panels.post(database, started, new_id)
        assert (await panels.row_of(database, started))["status"] == "PendingSubInteractions"
        model.held["Slow"].set()
        await until(lambda: panels.has_ended(database, started))
    assert panels.texts(await panels.items_of(database, started)) == ["Pat: A word from me.", "Ann: I see."]


async def test_a_stop_ends_a_waiting_run_at_once(database: Database, caller: Caller, new_id: NewId) -> None:
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    started = await swarm.start(database, caller, new_id, swarm.parent(new_id, [slow], script([start_call()], [AWAIT])))
    async with crew(database, new_id, bench=swarm.bench(), model=holding("Slow")) as at_work:
        await until(waits(database, started))
        await runs.request_stop(database, caller, run_id=started.run_id, tell=at_work.tell)
        await until(lambda: panels.has_ended(database, started))
        assert (await panels.row_of(database, started))["status"] == "Stopped"
        assert "no result: the run was stopped" in (await swarm.results(database, started))[1][0]


async def test_a_sub_run_that_is_stopped_before_anybody_began_it_wakes_its_parent(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """By whatever door a sub-run ends: here by a request to stop one that is New."""
    child = await swarm.publish(database, caller, new_id)
    started = await swarm.start(
        database, caller, new_id, swarm.parent(new_id, [child], script([start_call()], [AWAIT]))
    )
    async with crew(database, new_id, bench=swarm.bench()) as at_work:
        # nobody claims what is to come later
        await panels.execute(
            database,
            "create function later() returns trigger language plpgsql as $$ begin new.ready_at := now() + interval '1 hour'; return new; end $$; "
            "create trigger later before insert on process for each row execute function later();",
        )  # fmt: skip
        await until(waits(database, started))
        (row,) = await swarm.children(database, started)
        assert row["status"] == "New"
        status = await runs.request_stop(database, caller, run_id=row["run_id"], tell=at_work.tell)
        assert status is RunStatus.STOPPED
        await until(lambda: panels.has_ended(database, started))
    assert json.loads((await swarm.results(database, started))[1][0])[0]["status"] == "Stopped"


async def test_one_budget_goes_down_the_tree(database: Database, caller: Caller, new_id: NewId) -> None:
    """B37: calls of sub-runs are held to the budget on top, and to their own."""
    child = await swarm.publish(database, caller, new_id)
    rules = script([start_call(), start_call(), start_call(), AWAIT], "The end.")
    resolved = swarm.parent(new_id, [child], rules, budget=Budget(calls=3))
    started = await run(database, caller, new_id, resolved)
    below = await swarm.children(database, started)
    assert sorted(row["status"] for row in below) == ["Completed", "Completed", "Failed"]
    failed = next(row for row in below if row["status"] == "Failed")
    assert f"budget that it shares with the run {started.run_id} is 3 calls" in failed["failure_details"]
    row = await panels.row_of(database, started)
    assert row["status"] == "Failed" and "run's budget is 3 calls" in row["failure_details"]
    made = await panels.fetch(database, "select from model_call where error_class is null")
    assert len(made) == 3


async def test_a_sub_runs_own_budget_holds_for_it_alone(database: Database, caller: Caller, new_id: NewId) -> None:
    version = replace(swarm.CHILD, budget=Budget(calls=1), maximum_rounds=2)
    child = await swarm.publish(database, caller, new_id, version=version)
    resolved = swarm.parent(
        new_id, [child], script([start_call(), start_call()], [AWAIT]), budget=Budget(calls=50), maximum_rounds=2
    )
    started = await run(database, caller, new_id, resolved)
    assert (await panels.row_of(database, started))["status"] == "Completed"
    for row in await swarm.children(database, started):
        assert row["status"] == "Failed" and "The run's budget is 1 calls" in row["failure_details"]


async def test_a_run_shows_its_place_in_its_tree(database: Database, caller: Caller, new_id: NewId) -> None:
    """contract.json, InteractionProcessSwarm: while it waits, and once the results were taken up."""
    slow = await swarm.publish(database, caller, new_id, version=SLOW)
    limits = SwarmLimits(2, 5, 7)
    started = await swarm.start(
        database, caller, new_id, swarm.parent(new_id, [slow], script([start_call()], [AWAIT]), limits=limits)
    )
    model = holding("Slow")

    async def shown(run_id: Any) -> Any:
        found = mapping.process(await runs.get(database, caller, run_id=run_id))
        return json.loads(found.model_dump_json(by_alias=True))

    before = (await shown(started.run_id))["swarm"]
    assert before["limits"] == {"maxDepth": 2, "maxConcurrent": 5, "maxTotal": 7}
    assert (before["rootId"], before["started"], before["children"], before["await"]) == (
        str(started.run_id),
        0,
        [],
        None,
    )
    async with crew(database, new_id, bench=swarm.bench(), model=model):
        await until(waits(database, started))
        waiting = await shown(started.run_id)
        assert waiting["status"] == "PendingSubInteractions" and waiting["rootProcessId"] is None
        place = waiting["swarm"]
        assert (place["depth"], place["started"], place["running"], place["released"]) == (0, 1, 1, False)
        (child,) = place["children"]
        assert (child["name"], child["startedBy"], child["dateEnded"]) == ("child", "Ann", None)
        awaited = place["await"]
        assert (awaited["processIds"], awaited["all"], awaited["participantName"], awaited["threadId"], awaited["takenBy"]) == (
            [child["processId"]], True, "Ann", "main", None
        )  # fmt: skip
        model.held["Slow"].set()
        await until(lambda: panels.has_ended(database, started))
    over = await shown(started.run_id)
    author = over["swarm"]["await"]["takenBy"]
    assert (author["kind"], author["name"]) == ("Agent", "Ann") and author["id"] is not None
    assert (over["swarm"]["running"], over["swarm"]["released"]) == (0, True)
    below = await shown(child["processId"])
    assert (below["parentProcessId"], below["parentProcessType"]) == (str(started.run_id), "Interaction")
    assert below["rootProcessId"] == str(started.run_id)
    assert (below["swarm"]["depth"], below["swarm"]["released"], below["swarm"]["rootId"]) == (
        1,
        True,
        str(started.run_id),
    )
    rows = await runs.page(database, caller, wanted=RunFilter(), after=None, limit=10)
    assert [(row.swarm.started, row.swarm.children) for row in rows if row.swarm is not None] == [(1, ())] * 2  # B63
    lone = await panels.start(database, new_id, tenant_id=caller.tenant_id)
    assert (await shown(lone.run_id))["swarm"] is None
