"""Delegated runs: specialists with tools, gates and owners of their own, and consents that stand for a whole delegation (agent-runs.md,
Delegation and Consent 0; B10, B37, B38; F58, F59)."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import agents_at_hand as agents
import panels
import pytest
from agents_at_hand import Deeds, call, met, plan, script, step
from crews import Listening, crew, rescuers, until

from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus
from folkmoot.domain.agent_settings import AgentBudget, AgentRunSettings
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, RunEnded, TooLate
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_runs, apps, definitions, stops, users
from folkmoot.services.apps import Opening
from folkmoot.services.closure import StartFields, Workbench
from folkmoot.store import audit, runs
from folkmoot.store.database import Database

SENDS = plan(step("Tell Bo.", "tell"))
TOLD = [call("tell", who="Bo", what="42")]


def delegates(to: str, task: str = "Tell Bo that it is 42.") -> list[Any]:
    """Replies of an agent that hands all of it to a specialist."""
    return [
        plan(step("Let it be done.", specialist=to)),
        [call("delegate", specialist=to, task=task)],
        "It is done.",
        met("Done."),
    ]


def telling(name: str) -> dict[str, list[Any]]:
    return {name: ["Nothing.", SENDS, TOLD, "Told.", met("Bo was told.")]}


async def crew_of(
    database: Database,
    caller: Caller,
    new_id: NewId,
    deeds: Deeds,
    rules: dict[str, Any],
    chain: tuple[str, ...],
    **settings: Any,
) -> Workbench:
    """Agents of which each has the next for a specialist; the last one has the tools. `settings`: of an agent, by its name."""
    bench = deeds.bench(rules)
    for name, below in zip(reversed(chain), (None, *reversed(chain)), strict=False):
        own = (
            {"specialists": (Reference(below),)}
            if below is not None
            else {"tool_whitelist": ("look", "add", "tell", "pay")}
        )
        found = AgentRunSettings(**{**own, **settings.get(name, {})})
        functions = () if below is not None else ("look", "add", "tell", "pay")
        await agents.publish(database, caller, new_id, bench=bench, name=name, settings=found, functions=functions)
    return bench


async def three_that_wait(database: Database, caller: Caller, new_id: NewId) -> tuple[Deeds, Workbench, AgentRun]:
    """A boss's run that has delegated to a lead, which has delegated to a clerk, who asks; nobody is at work. The boss's run."""
    deeds = Deeds()
    rules = script(boss=delegates("lead"), lead=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "lead", "clerk"))
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, root))
    return deeds, bench, root


async def run_of(database: Database, caller: Caller, started: Any) -> AgentRun:
    found = await agent_runs.page(database, caller, wanted=agent_runs.AgentRunFilter(), after=None, limit=100)
    return next(each for each in found if each.run_id == started.run_id)


async def results(database: Database, run: AgentRun) -> list[items.ToolResult]:
    stored = await panels.items_of(database, agents.kernel_run(run))
    return [each.item.body for each in stored if isinstance(each.item.body, items.ToolResult)]


async def test_a_gate_two_runs_below_pauses_all_of_them_and_its_answer_goes_to_that_very_call(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Consent 0: all hold the same chatItemId and pendingToolId, each pendingSpecialist is the direct child's agent; the claim takes all out
    together. Nobody holds a worker meanwhile (F59), and with one slot nothing deadlocks."""
    deeds = Deeds()
    rules = script(boss=delegates("lead"), lead=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "lead", "clerk"))
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions, slots=1) as made:
        await until(agents.awaits(database, caller, root))
        (lead,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
        (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, lead)]
        waiting = [await agents.now(database, caller, each) for each in (root, lead, clerk)]
        item = await agents.asked(database, caller, root)
        assert item.consent is not None and item.consent.asked_by == "clerk"
        assert {(each.status, each.chat_item_id, each.pending_tool_id) for each in waiting} == {
            ("awaiting_consent", item.chat_item_id, item.consent.call_id)
        }
        assert [each.pending_specialist for each in waiting] == ["lead", "clerk", None]
        assert [each.parent_run for each in waiting] == [None, root.id, lead.id]
        assert (
            len({each.conversation_id for each in waiting}) == 1
            and len({each.correlation_token for each in waiting}) == 3
        )
        kernel = [await panels.row_of(database, agents.kernel_run(each)) for each in (root, lead, clerk)]
        assert [row["status"] for row in kernel] == [
            "PendingSubInteractions",
            "PendingSubInteractions",
            "PendingApproval",
        ]
        assert all(row["worker_id"] is None and row["awaits_since"] is None for row in kernel), "nobody is at work"
        await agents.consent(database, caller, root, tell=made.tell)
        await until(agents.ended(database, caller, root))
    assert deeds.done == [("tell", ("Bo", "42"))]
    done = [await agents.now(database, caller, each) for each in (root, lead, clerk)]
    assert [each.status for each in done] == ["completed"] * 3 and all(each.pending_tool_id is None for each in done)
    told = (await results(database, root))[1]
    assert told.result == "Done.", "the child's answer is the call's result"
    used = (await agent_runs.payload(database, caller, id_=root.id))["budget"]
    assert used["toolCalls"]["used"] == 3 and used["modelCalls"]["used"] == 4 + 4 + 5, "with those of delegated runs"


async def test_the_claim_takes_all_runs_out_of_awaiting_in_one_transaction(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Seen from outside: while the claiming transaction is open all still await; once it is committed none does."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, root))
    await agents.consent(database, caller, root)
    worker_id = await panels.register(database, new_id)
    statuses = "select distinct status::text from agent_run"
    async with database.writer() as writer:
        claimed = await panels.runs.claim(writer, worker_id, batch=1, suspects=False)
        inside = [row["status"] for row in await writer.connection.fetch(statuses)]
        outside = [row["status"] for row in await panels.fetch(database, statuses)]
    assert len(claimed) == 1 and (inside, outside) == (["running"], ["awaiting_consent"])
    times = [(await agents.now(database, caller, each)).awaiting_since for each in (root,)]
    above = await panels.row_of(database, agents.kernel_run(root))
    assert times == [None] and above["awaits_since"] is not None, "what waits above is at work again"


async def test_waiting_below_uses_up_no_working_time_above(database: Database, caller: Caller, new_id: NewId) -> None:
    """kernel.md, Time: waiting for people does not count; a run that waits for one that waits for a person is not at work."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    hour = {"budget": AgentBudget(working_time=timedelta(hours=1))}
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"), boss=hour)
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, root))
        await panels.shift_clock(database, 24 * 3600)
        await agents.consent(database, caller, root, tell=made.tell)
        await until(agents.ended(database, caller, root))
    done = await agents.now(database, caller, root)
    assert done.status is AgentRunStatus.COMPLETED, done.last_error
    assert (await panels.row_of(database, agents.kernel_run(root)))["execution_time"] < timedelta(minutes=10)


async def test_a_consent_that_expires_ends_root_and_delegated_runs_together(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Consent 4, F34: all are `expired`; the call is never made, and nobody goes on."""
    deeds = Deeds()
    rules = script(boss=delegates("lead"), lead=delegates("clerk"), **telling("clerk"))
    two = {"consent_time": timedelta(hours=2)}
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "lead", "clerk"), boss=two)
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    model = Listening()
    async with crew(database, new_id, bench=bench, functions=deeds.functions, model=model):
        await until(agents.awaits(database, caller, root))
        asked = len(model.requests)
        await panels.shift_clock(database, 2 * 3600 + 1)
        await until(agents.ended(database, caller, root))

        async def all_ended() -> bool:
            found = await agent_runs.page(database, caller, wanted=agent_runs.AgentRunFilter(), after=None, limit=10)
            return all(each.completed_at is not None for each in found)

        await until(all_ended)
    found = await agent_runs.page(database, caller, wanted=agent_runs.AgentRunFilter(), after=None, limit=10)
    assert [each.status for each in found] == ["expired"] * 3 and len(model.requests) == asked and deeds.done == []
    assert (await agents.asked(database, caller, root)).consent.status == "expired"  # type: ignore[union-attr]


async def test_a_run_above_that_a_lost_worker_holds_expires_with_the_one_below(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Consent 4: together, also where the worker of the run above died before it paused; it reads no result of what expired, and goes on with nothing."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(
        database, caller, new_id, deeds, rules, ("boss", "clerk"), boss={"consent_time": timedelta(hours=2)}
    )
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, root))
    lost = await panels.register(database, new_id, lease_seconds=1)
    await panels.execute(
        database,
        "update process set status = 'Running', worker_id = $1, claim_id = folkmoot_new_id(), claimed_at = folkmoot_now(), await_ids = null "
        "where run_id = $2",
        lost, root.run_id,
    )  # fmt: skip
    await panels.shift_clock(database, 2 * 3600 + 1)
    async with database.writer() as writer:
        assert await runs.expire(writer, caller.tenant_id)
    model = Listening()
    async with rescuers(database, new_id, deeds.functions, bench=bench, model=model):
        await until(agents.ended(database, caller, root))
    found = await agent_runs.page(database, caller, wanted=agent_runs.AgentRunFilter(), after=None, limit=10)
    assert [each.status for each in found] == ["expired"] * 2 and model.requests == [] and deeds.done == []


async def test_a_cancelled_root_takes_its_delegation_along(database: Database, caller: Caller, new_id: NewId) -> None:
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, root))
        (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
        await agent_runs.cancel(database, caller, id_=root.id, tell=made.tell)
        await until(agents.ended(database, caller, clerk))
    done = [await agents.now(database, caller, each) for each in (root, clerk)]
    assert [each.status for each in done] == ["failed", "failed"] and deeds.done == []
    assert done[0].last_error == f"cancelled by {caller.user_name}" and "cancelled by" in (done[1].last_error or "")


async def test_a_specialist_that_was_deleted_is_an_error_result(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """The issue's bad input: deleted while its call was pending: before it was started nothing is; once it waits it goes on as it began (B09)."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    started, late = [await agents.start(database, caller, new_id, bench=bench, name="boss") for _ in range(2)]
    await panels.execute(database, "update process set ready_at = null where run_id = $1", late.run_id)
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, started))
        boss = Reference("boss", "default")
        await agents.publish(
            database, caller, new_id, bench=bench, name="boss", functions=(), settings=AgentRunSettings()
        )
        stored = await definitions.get(database, caller, kind=DefinitionKind.AGENT, reference=boss)
        assert stored.number == 2
        await definitions.delete(database, caller, kind=DefinitionKind.AGENT, reference=Reference("clerk", "default"))
        await panels.execute(database, "update process set ready_at = folkmoot_now() where run_id = $1", late.run_id)
        await agents.consent(database, caller, started, tell=made.tell)
        await until(agents.ended(database, caller, started))
        await until(agents.ended(database, caller, late))
    assert deeds.done == [("tell", ("Bo", "42"))], "what waited went on as it began"
    refused = [each.result for each in await results(database, late) if each.is_error]
    assert len(refused) == 1 and "Nothing was delegated to clerk" in refused[0]


async def test_depth_and_circles_hold_whatever_the_definitions_say(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Delegation: depth at most 4, circles refused; F58: by every door."""
    deeds = Deeds()
    names = ("one", "two", "three", "four", "five")
    rules = script(
        **{name: delegates(below) for name, below in pairwise(names)},
        five=[
            plan(step("On.", specialist="six")),
            [call("delegate", specialist="six", task="More.")],
            "No.",
            met("No."),
        ],
        **telling("six"),
    )
    bench = await crew_of(database, caller, new_id, deeds, rules, (*names[-1:], "six"), five={})
    await _links_past_the_checks(database, caller, new_id, bench, names)
    root = await agents.start(database, caller, new_id, bench=bench, name="one")
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.ended(database, caller, root))
        assert made.model.asked.count("six") == 0
    depths = await panels.fetch(database, "select max(depth) as depth from process where kind = 'AgentRun'")
    assert depths[0]["depth"] == 4 and deeds.done == []
    deepest = await panels.fetch(database, "select run_id from process where depth = 4")
    five = await run_of(database, caller, panels.Started(caller.tenant_id, deepest[0]["run_id"]))
    assert any("depth 4" in each.result for each in await results(database, five) if each.is_error)


async def _links_past_the_checks(
    database: Database, caller: Caller, new_id: NewId, bench: Workbench, names: tuple[str, ...]
) -> None:
    """Agents that delegate one to the next, deeper than can be saved: as definitions that were enabled again could."""
    for name in names[:-1]:
        await agents.publish(
            database, caller, new_id, bench=bench, name=name, functions=(), settings=AgentRunSettings()
        )
    for name, below in pairwise(names):
        stored = await definitions.get(
            database, caller, kind=DefinitionKind.AGENT, reference=Reference(below, "default")
        )
        link = json.dumps(
            [{"name": None, "namespace": None, "version": None, "definition_id": str(stored.definition.definition_id)}]
        )
        await panels.execute(
            database,
            "update definition_version v set body = jsonb_set(body, '{runs,specialists}', $2::jsonb) from definition d "
            "where d.definition_id = v.definition_id and d.name = $1",
            name, link,
        )  # fmt: skip


async def test_one_budget_goes_down_the_delegation(database: Database, caller: Caller, new_id: NewId) -> None:
    """B37: what is left above is all that a specialist has, whatever its own agent says; at the bound it fails, and its caller is told."""
    deeds = Deeds()
    adds = plan(step("Add.", "add"), step("Add.", "add"))
    rules = script(
        boss=delegates("clerk"), clerk=["Nothing.", adds, [call("add", one=1, other=2)], "3", [call("add", one=3, other=3)], "6", met("6")]
    )  # fmt: skip
    few = {"budget": AgentBudget(tool_calls=2)}
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"), boss=few)
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.ended(database, caller, root))
    assert deeds.done == [("add", (1, 2))]
    (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
    assert "1 tool calls" in (clerk.last_error or "")
    told = [each.result for each in await results(database, root) if each.is_error]
    assert len(told) == 1 and "clerk did not do it" in told[0]


async def test_what_a_specialist_wanted_and_never_called_is_not_charged_to_the_run_above(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """B37: a reply that asks for more calls than are left makes none of them; the run above has as many left as before."""
    deeds = Deeds()
    rules = script(
        boss=[
            plan(step("Let it be done.", specialist="clerk"), step("Again.", specialist="clerk")),
            [call("delegate", specialist="clerk", task="Pay.")],
            "It failed.",
            [call("delegate", specialist="clerk", task="Pay again.")],
            "It failed again.",
            met("Done."),
        ],
        clerk=["Nothing.", plan(step("Pay.", "pay")), [call("pay", amount=n) for n in range(12)], "Paid.", met("Paid.")],
    )  # fmt: skip
    budgets = {"boss": {"budget": AgentBudget(tool_calls=5)}, "clerk": {"budget": AgentBudget(tool_calls=2)}}
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"), **budgets)
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.ended(database, caller, root))
    assert (await agents.now(database, caller, root)).status == "completed" and deeds.done == []
    clerks = [await run_of(database, caller, each) for each in await agents.below(database, root)]
    for run, used in ((root, 2), *((each, 0) for each in clerks)):
        told = await agent_runs.payload(database, caller, id_=run.id)
        assert told["budget"]["toolCalls"]["used"] == used


async def test_a_call_needs_the_rights_of_the_specialists_owner_and_of_those_above(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """agent: in a delegation the specialist's owner is the context, and each call must be allowed to the delegating agent's owner too."""
    deeds = Deeds()
    above = await users.add(database, caller, name="Abe", role=Role.OPERATOR, new_id=new_id)
    below = await users.add(database, caller, name="Bea", role=Role.OPERATOR, new_id=new_id)
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(
        database, caller, new_id, deeds, rules, ("boss", "clerk"), boss={"owner": above.user_id}, clerk={"owner": below.user_id}
    )  # fmt: skip
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, root))
        (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
        assert (root.owner_id, clerk.owner_id) == (above.user_id, below.user_id)
        await users.set_role(database, caller, user_id=above.user_id, role=Role.VIEWER)
        await agents.consent(database, caller, root, tell=made.tell)
        await until(agents.ended(database, caller, root))
    assert deeds.done == []
    assert any("Abe" in each.result for each in await results(database, clerk) if each.is_error)


async def test_nobody_delegates_to_an_agent_that_acts_for_somebody_above_them(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """What a specialist asks is the root's owner's to answer: refused when saved, and again where owners have changed since (B38)."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    dev = await users.add(database, caller, name="Dev", role=Role.DEVELOPER, new_id=new_id)
    as_dev = replace(caller, user_id=dev.user_id, user_name="Dev", role=Role.DEVELOPER)
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    boss = AgentRunSettings(specialists=(Reference("clerk"),))
    with pytest.raises(BadDefinition) as refused:
        await agents.publish(database, as_dev, new_id, bench=bench, name="boss", functions=(), settings=boss)
    assert "above your role developer" in str(refused.value.faults)
    with pytest.raises(BadDefinition) as refused:  # whoever saves it may, and whom it would ask may not
        await agents.publish(
            database, caller, new_id, bench=bench, name="boss", functions=(), settings=replace(boss, owner=dev.user_id)
        )
    assert "above the role developer of 'Dev'" in str(refused.value.faults)
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(owner=dev.user_id))
    await agents.publish(database, as_dev, new_id, bench=bench, name="boss", functions=(), settings=boss)
    await users.set_role(database, caller, user_id=dev.user_id, role=Role.ADMIN)
    await agents.publish(database, caller, new_id, bench=bench)
    root = await agents.start(database, as_dev, new_id, bench=bench, name="boss")
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.ended(database, caller, root))
    assert deeds.done == [] and any("above that of the owner" in each.result for each in await results(database, root))


async def test_what_a_specialist_asks_is_closed_with_the_cancelling_of_its_root(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F31, F34: nobody approves it while the stop is on its way down; nor where a run above was only asked to stop."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    root, other = [await agents.start(database, caller, new_id, bench=bench, name="boss") for _ in range(2)]
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, root))
        await until(agents.awaits(database, caller, other))
    await agent_runs.cancel(database, caller, id_=root.id, tell=lambda _: None)
    assert (await agents.asked(database, caller, root)).consent.status == "cancelled"  # type: ignore[union-attr]
    await panels.execute(database, "update process set stopped_by = 'Pat' where run_id = $1", other.run_id)
    for run in (root, other):
        with pytest.raises((TooLate, RunEnded)):
            await agents.consent(database, caller, run)
    assert deeds.done == []


async def test_what_a_specialist_has_approved_is_not_made_once_its_root_is_cancelled(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F34: as in a run alone; the stop holds for the whole delegation from the moment that it is taken."""
    deeds, bench, root = await three_that_wait(database, caller, new_id)
    await agents.consent(database, caller, root)
    await agent_runs.cancel(database, caller, id_=root.id, tell=lambda _: None)
    (lead,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
    (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, lead)]
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        for each in (root, lead, clerk):
            await until(agents.ended(database, caller, each))
    assert deeds.done == []
    for each in (root, lead, clerk):
        done = await agents.now(database, caller, each)
        assert (done.status, done.last_error) == ("failed", f"cancelled by {caller.user_name}")


async def test_a_stop_by_a_door_for_any_run_stops_the_whole_delegation_and_undoes_no_expiry(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F34: `folkmoot runs stop` and POST /processes/…/stop, as the cancelling."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    root, late = [await agents.start(database, caller, new_id, bench=bench, name="boss") for _ in range(2)]
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        for each in (root, late):
            await until(agents.awaits(database, caller, each))
    await agents.consent(database, caller, root)
    shown = await stops.request(database, caller, run_id=root.run_id, tell=lambda _: None)
    assert (shown.run_id, shown.status) == (root.run_id, "PendingSubInteractions")
    (clerk,) = await agents.below(database, root)
    assert (await panels.row_of(database, clerk))["stopped_by"] == caller.user_name
    await panels.shift_clock(database, 8 * 24 * 3600)
    async with database.writer() as writer:
        assert await runs.expire(writer, caller.tenant_id)
    with pytest.raises(RunEnded, match="expired"):
        await stops.request(database, caller, run_id=late.run_id, tell=lambda _: None)
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        for each in (root, late, await run_of(database, caller, clerk)):
            await until(agents.ended(database, caller, each))
    assert deeds.done == []
    assert [(await agents.now(database, caller, each)).status for each in (root, late)] == ["failed", "expired"]


async def test_the_end_of_an_app_run_stops_whole_delegations_at_once(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F34: also where nobody cancels, and it follows from the end of a run above; an agent run that has expired stays expired."""
    deeds = Deeds()
    rules = script(boss=delegates("lead"), lead=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "lead", "clerk"))
    app = await apps.open_run(database, caller, opening=Opening("importer"), new_id=new_id)
    under = {"bench": bench, "name": "boss", "fields": StartFields(parent_process_id=app.run_id)}
    root, late = [await agents.start(database, caller, new_id, **under) for _ in range(2)]
    alone = await agents.start(database, caller, new_id, **{**under, "name": "clerk"})
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        for each in (root, late, alone):
            await until(agents.awaits(database, caller, each))
    await agents.consent(database, caller, root)
    await agents.consent(database, caller, alone)
    await panels.shift_clock(database, 8 * 24 * 3600)
    async with database.writer() as writer:
        assert await runs.expire(writer, caller.tenant_id)
    await stops.request(database, caller, run_id=app.run_id, tell=lambda _: None)
    (lead,) = await agents.below(database, root)
    (clerk,) = await agents.below(database, await run_of(database, caller, lead))
    for started in (agents.kernel_run(root), lead, clerk, agents.kernel_run(alone)):
        assert f"run {app.run_id}" in (await panels.row_of(database, started))["stopped_by"]
    noted = await panels.fetch(
        database, "select detail from audit where action = 'run.stop_requested' and subject_id = $1", clerk.run_id
    )
    assert [json.loads(each["detail"]) for each in noted] == [{"endedId": str(app.run_id), "endedAs": "Stopped"}]
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        for each in (root, late, alone, await run_of(database, caller, clerk)):
            await until(agents.ended(database, caller, each))
    assert deeds.done == []
    assert [(await agents.now(database, caller, each)).status for each in (root, late)] == ["failed", "expired"]


async def test_what_is_delegated_while_a_cancel_waits_is_cancelled_with_it(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F34: a start that holds its parent is waited for, and looked at again."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    is_starting, may_go_on, note = asyncio.Event(), asyncio.Event(), audit.note

    async def held(*arguments: Any, **named: Any) -> None:
        await note(*arguments, **named)
        if "parentId" in (named["detail"] or {}):
            is_starting.set()
            await may_go_on.wait()

    monkeypatch.setattr(audit, "note", held)
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await is_starting.wait()
        cancelling = asyncio.create_task(agent_runs.cancel(database, caller, id_=root.id, tell=lambda _: None))
        await until(partial(panels.is_waited_for, database))
        may_go_on.set()
        await cancelling
        (clerk,) = await agents.below(database, root)
        assert (await panels.row_of(database, clerk))["stopped_by"] == caller.user_name
        await until(agents.ended(database, caller, await run_of(database, caller, clerk)))


async def test_a_cancel_reaches_what_an_ended_specialist_left_at_work(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F34: by way of runs that have ended, too."""
    _, _, root = await three_that_wait(database, caller, new_id)
    (lead,) = await agents.below(database, root)
    (clerk,) = await agents.below(database, await run_of(database, caller, lead))
    await panels.execute(
        database, "update process set status = 'Failed', failure_details = 'It fell.', await_ids = null, awaits_since = null, ended_at = folkmoot_now() where run_id = $1", lead.run_id
    )  # fmt: skip
    await agent_runs.cancel(database, caller, id_=root.id, tell=lambda _: None)
    assert (await panels.row_of(database, clerk))["stopped_by"] == caller.user_name


async def test_a_run_above_a_cancelled_one_goes_on_and_awaits_nothing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """pendingToolId is set only while awaiting_consent, and who works does not await (B13); its time goes on."""
    deeds, bench, root = await three_that_wait(database, caller, new_id)
    (lead,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
    await agent_runs.cancel(database, caller, id_=lead.id, tell=lambda _: None)
    (clerk,) = [await run_of(database, caller, each) for each in await agents.below(database, lead)]
    for each in (root, lead, clerk):
        now = await agents.now(database, caller, each)
        assert (now.status, now.pending_tool_id, now.pending_specialist, now.expires_at) == (
            "running",
            None,
            None,
            None,
        )
    assert (await panels.row_of(database, agents.kernel_run(root)))["awaits_since"] is not None
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.ended(database, caller, root))
    told = (await results(database, root))[1]
    assert told.is_error and f"cancelled by {caller.user_name}" in told.result and deeds.done == []


async def test_a_step_is_delegated_to_the_specialist_that_it_names_and_to_no_other(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """F54: what a model reads cannot widen a step; the wrong name is an error that says which one there is."""
    deeds = Deeds()
    rules = script(
        boss=[
            plan(step("Let it be looked up.", specialist="reader")),
            [call("delegate", specialist="payer", task="Pay.")],
            [call("delegate", specialist="reader", task="Look.")],
            "It is done.",
            met("Done."),
        ],
        reader=["Nothing.", plan(step("Say it.")), "It is 42.", met("42")],
        payer=["Nothing.", plan(step("Pay.", "pay")), [call("pay", amount=1000)], "Paid.", met("Paid.")],
    )
    bench = deeds.bench(rules)
    for name in ("reader", "payer"):
        await agents.publish(database, caller, new_id, bench=bench, name=name)
    both = AgentRunSettings(specialists=(Reference("reader"), Reference("payer")))
    await agents.publish(database, caller, new_id, bench=bench, name="boss", functions=(), settings=both)
    root = await agents.start(database, caller, new_id, bench=bench, name="boss")
    model = Listening()
    async with crew(database, new_id, bench=bench, functions=deeds.functions, model=model):
        await until(agents.ended(database, caller, root))
    assert (await agents.now(database, caller, root)).status == "completed" and deeds.done == []
    (reader,) = await agents.below(database, root)
    assert (await run_of(database, caller, reader)).agent_name == "reader"
    refused = (await results(database, root))[1]
    assert refused.is_error and "specialist" in refused.result and "reader" in refused.result
    offered = [tool for request in model.requests for tool in request.offered if tool.name == "delegate"]
    assert {tuple(tool.parameters["properties"]["specialist"]["enum"]) for tool in offered} == {("reader",)}


async def test_a_delegation_goes_in_the_owners_name_whoever_started_the_run(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """agent: the rights of whoever started it decide nothing; an approval of somebody who may answer no more is void (F34)."""
    deeds = Deeds()
    rules = script(boss=delegates("clerk"), **telling("clerk"))
    bench = await crew_of(database, caller, new_id, deeds, rules, ("boss", "clerk"))
    starter = await users.add(database, caller, name="Sam", role=Role.ADMIN, new_id=new_id)
    as_starter = replace(caller, user_id=starter.user_id, user_name="Sam", role=Role.ADMIN)
    root, late = [await agents.start(database, as_starter, new_id, bench=bench, name="boss") for _ in range(2)]
    await panels.execute(database, "update process set ready_at = null where run_id = $1", late.run_id)
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, root))
    await agents.consent(database, as_starter, root)
    await users.set_role(database, caller, user_id=starter.user_id, role=Role.OPERATOR)
    await panels.execute(database, "update process set ready_at = folkmoot_now() where run_id = $1", late.run_id)
    async with crew(database, new_id, bench=bench, functions=deeds.functions):
        await until(agents.awaits(database, caller, late))
        await until(agents.ended(database, caller, root))
    assert deeds.done == [], "Sam may not answer this any more"
    (below,) = [await run_of(database, caller, each) for each in await agents.below(database, root)]
    assert any("is void" in each.result for each in await results(database, below) if each.is_error)
