"""Agent runs from start to end, with a whole worker and a real database (agent-runs.md; B02, B05, B12, B38, B43; F04, F34, F54)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import agents_at_hand as agents
import panels
import pytest
from agents_at_hand import Deeds, call, met, plan, script, step, unmet
from crews import Listening, crew, until

from folkmoot.domain import items
from folkmoot.domain.agent_runs import AgentRun, AgentRunStatus, Phase
from folkmoot.domain.agent_settings import AgentBudget, Comparison, ConsentRule
from folkmoot.domain.budgets import Budget
from folkmoot.domain.rights import Role
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, NotPermitted, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_runs, users
from folkmoot.store.database import Database

TELLS = plan(step("Tell Bo.", "tell"))
TOLD = [call("tell", who="Bo", what="42")]


async def run(
    database: Database, caller: Caller, new_id: NewId, deeds: Deeds, rules: dict[str, Any], *, approves: bool | None = None, **more: Any
) -> AgentRun:  # fmt: skip
    """A run of the agent `clerk`, to its end. `approves`: what its owner says to each request."""
    bench = deeds.bench(rules)
    request = more.pop("request", {})
    await agents.publish(database, caller, new_id, bench=bench, **more)
    started = await agents.start(database, caller, new_id, bench=bench, **request)

    async def is_over() -> bool:
        now = await agents.now(database, caller, started)
        if now.status is AgentRunStatus.AWAITING_CONSENT and approves is not None:
            await agents.consent(
                database, caller, started, approves=approves, reason=None if approves else "Not today.", tell=made.tell
            )
        return now.completed_at is not None

    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(is_over)
    return await agents.now(database, caller, started)


async def kinds(database: Database, run: AgentRun) -> list[str]:
    return [stored.item.body.kind for stored in await panels.items_of(database, agents.kernel_run(run))]


async def results(database: Database, run: AgentRun) -> list[items.ToolResult]:
    stored = await panels.items_of(database, agents.kernel_run(run))
    return [each.item.body for each in stored if isinstance(each.item.body, items.ToolResult)]


async def test_a_run_gathers_plans_acts_asks_and_verifies(database: Database, caller: Caller, new_id: NewId) -> None:
    """The loop: each phase in its turn; the gated call waits for the owner, and runs once as it was shown. The row of pointers throughout."""
    deeds = Deeds()
    plans = plan(step("Add them.", "add"), step("Tell Bo.", "tell"))
    rules = script(
        clerk=[
            [call("look")],
            "They are 20 and 22.",
            plans,
            [call("add", one=20, other=22)],
            "It is 42.",
            TOLD,
            "Told.",
            met("42"),
        ]
    )
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    run = await agents.start(database, caller, new_id, bench=bench)
    assert (run.status, run.current_phase, run.channel, run.conversation_id, run.parent_run) == (
        "running",
        "gather",
        "web",
        None,
        None,
    )
    assert run.tenant_id == caller.tenant_id and run.owner_id == caller.user_id and len(run.correlation_token) == 26
    assert (run.claimed_at, run.completed_at, run.awaiting_since, run.chat_item_id) == (None,) * 4
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, run))
        waiting, item = await agents.now(database, caller, run), await agents.asked(database, caller, run)
        assert item.consent is not None
        assert waiting.pending_tool_id == item.consent.call_id and waiting.current_phase is Phase.ACT
        assert (
            waiting.awaiting_since and waiting.expires_at and waiting.claimed_at and waiting.pending_specialist is None
        )
        assert waiting.conversation_id == item.conversation_id, "it gets a conversation at its first gate"
        assert item.consent.card["functionName"] == "tell" and item.consent.executed_at is None
        assert [name for name, _ in deeds.done] == ["look", "add"], "nothing gated was called"
        pending = (await agent_runs.payload(database, caller, id_=run.id))["pendingCall"]
        assert pending == item.consent.call_id
        row = (await panels.rows_of(database, agents.kernel_run(run), "pending"))[0]
        assert '"tell"' not in row["card"] and '"42"' not in row["card"], (
            "tool and arguments stand in the chat item alone"
        )
        decided = await agents.consent(database, caller, run, tell=made.tell)
        assert decided.consent is not None and decided.consent.decided_by_name == caller.user_name
        await until(agents.ended(database, caller, run))
    done = await agents.now(database, caller, run)
    kernel = await panels.row_of(database, agents.kernel_run(run))
    assert (done.status, done.last_error, kernel["output"]) == ("completed", None, "42"), kernel["failure_details"]
    assert (done.pending_tool_id, done.awaiting_since, done.expires_at) == (None, None, None), "cleared by the resume"
    assert deeds.done == [("look", None), ("add", (20, 22)), ("tell", ("Bo", "42"))]
    payload = await agent_runs.payload(database, caller, id_=run.id)
    assert payload["budget"]["toolCalls"]["used"] == 3 and payload["budget"]["modelCalls"]["used"] == 8
    assert payload["answer"] == "42" and payload["verification"]["isMet"] and payload["pendingCall"] is None
    assert payload["verification"]["criteria"][0]["isMet"]
    executed = (await agents.asked(database, caller, run)).consent
    assert executed is not None and executed.executed_at is not None
    said = await agent_runs.chat(database, caller, id_=run.id, before=None, limit=10)
    assert [each.text for each in said if each.text] == ["42"]
    revisions = await panels.fetch(
        database, "select path from content where path is not null order by created_at, content_id"
    )
    numbers = [int(each["path"].rpartition("/")[2]) for each in revisions]
    assert numbers == list(range(1, len(numbers) + 1)) and revisions[0]["path"] == f"agent-runs/{run.id}/1"


async def test_without_gathering_a_plan_has_as_many_tries_as_with_it(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """plan: the third reply in a row without a plan fails the run, which says so, and stands in that phase."""
    deeds = Deeds()
    bench = deeds.bench({"rules": [{"reply": {"text": "I would rather talk."}}]})
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(whitelist=("add",)))
    run = await agents.start(database, caller, new_id, bench=bench)
    model = Listening()
    async with crew(database, new_id, bench=bench, functions=deeds.functions, model=model):
        await until(agents.ended(database, caller, run))
    done = await agents.now(database, caller, run)
    assert len(model.requests) == 3
    assert (done.status, done.current_phase) == ("failed", "plan")
    assert done.last_error is not None and done.last_error.startswith("No plan could be made.")


async def test_verifying_sees_what_was_recorded_and_nothing_that_was_said(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """agent-runs.md, verify: from the recorded results, not from memory; criteria are the plan's own."""
    deeds = Deeds()
    rules = script(
        clerk=["Nothing.", plan(step("Add.", "add")), [call("add", one=1, other=2)], "I SWEAR IT IS 7.", met("3")]
    )
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    run = await agents.start(database, caller, new_id, bench=bench)
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.ended(database, caller, run))
        asked = made.model.requests[-1]
    shown = "\n".join(str(entry) for entry in asked.view)
    assert [tool.name for tool in asked.offered] == ["verdict"]
    assert "1. Bo was told." in shown and "add with" in shown and "gave: 3" in shown
    assert "OwnText" not in shown and "no evidence" in shown.partition("I SWEAR")[0]


async def test_a_declined_call_is_not_made_and_the_model_goes_on(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """Consent 3, B12: the model learns by whom and why."""
    deeds = Deeds()
    rules = script(clerk=["Nothing.", TELLS, TOLD, "It was declined.", met("Declined.")])
    done = await run(database, caller, new_id, deeds, rules, approves=False)
    assert done.status is AgentRunStatus.COMPLETED and deeds.done == []
    refused = [each for each in await results(database, done) if each.rejection_reason]
    assert [each.rejection_reason for each in refused] == ["Not today."] and caller.user_name in refused[0].result
    payload = await agent_runs.payload(database, caller, id_=done.id)
    assert payload["budget"]["toolCalls"]["used"] == 0, "what was not made is not counted"


async def test_a_failing_call_changes_the_plan_and_going_back_is_bounded(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """act: a failing call may change the plan. verify: back to plan with what is missing, at most maximumIterations times."""
    deeds = Deeds(fails={"add"})
    adds = plan(step("Add.", "add"))
    rules = script(
        clerk=["Nothing.", adds, [call("add", one=1, other=2)], [call("replan", reason="add is out of order")], *[plan(step("Say it.")), "3"] * 2,
               unmet(), unmet("No."), met("3")]
    )  # fmt: skip
    done = await run(database, caller, new_id, deeds, rules, settings=agents.ruled(maximum_iterations=2))
    assert done.status is AgentRunStatus.COMPLETED, done.last_error
    payload = await agent_runs.payload(database, caller, id_=done.id)
    assert payload["iteration"] == 2 and payload["plan"]["steps"][0]["what"] == "Say it."
    assert deeds.done == [("add", (1, 2))]


async def test_a_goal_that_is_never_verified_fails_with_what_is_missing(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    deeds = Deeds()
    says = [plan(step("Say it.")), "3"] * 3
    rules = script(clerk=["Nothing.", *says, unmet("Bo was not told.")])
    done = await run(database, caller, new_id, deeds, rules, settings=agents.ruled(maximum_iterations=2))
    assert done.status is AgentRunStatus.FAILED
    assert done.last_error is not None and "2 times" in done.last_error and "Bo was not told." in done.last_error
    stored = await panels.items_of(database, agents.kernel_run(done))
    verified = [each for each in stored if isinstance(each.item.detail, items.Verified)]
    assert [each.item.thread_id for each in verified] == ["verify/1", "verify/2", "verify/3"]


@pytest.mark.parametrize(
    ("replies", "words"),
    [
        pytest.param(
            [plan(step("Fly.", "fly"))] * 3, "No plan could be made.", id="a plan that names a tool that there is not"
        ),
        pytest.param([plan(step("Both.", "add")), *["Words."] * 3], "", id="a step in words"),
        pytest.param(["I would rather talk."] * 3, "replies in words", id="words in place of a plan"),
    ],
)
async def test_a_plan_that_cannot_be_taken_goes_back_to_its_author_and_then_fails(
    database: Database, caller: Caller, new_id: NewId, replies: list[Any], words: str
) -> None:
    deeds = Deeds()
    rules = script(clerk=["Nothing.", *replies, met("Done.")])
    done = await run(database, caller, new_id, deeds, rules)
    if words:
        assert done.status is AgentRunStatus.FAILED and words in (done.last_error or "")
        assert [each.is_error for each in await results(database, done)] == [True] * (3 if "No plan" in words else 0)
    else:
        assert done.status is AgentRunStatus.COMPLETED
    assert deeds.done == []


async def test_in_act_only_what_the_step_names_is_offered(database: Database, caller: Caller, new_id: NewId) -> None:
    """F54: a model that obeys everything it reads reaches no other tool, and none that is not in the whitelist (B38: null is not all)."""
    deeds = Deeds()
    obeys = [
        call("pay", amount=1000),
        call("tell", who="all", what="secrets"),
        call("make_plan", steps=[], criteria=[]),
    ]
    rules = script(
        clerk=[
            [call("add", one=1, other=1), *obeys],
            "Nothing.",
            plan(step("Add.", "add")),
            [*obeys, call("add", one=1, other=2)],
            "3",
            met("3"),
        ]
    )
    done = await run(database, caller, new_id, deeds, rules, settings=agents.ruled(whitelist=("look", "add")))
    assert done.status is AgentRunStatus.COMPLETED and deeds.done == [("add", (1, 2))]
    refused = [each.result for each in await results(database, done) if each.is_error]
    assert len(refused) == 7 and all("There is no tool" in text for text in refused)


async def test_a_rule_on_arguments_asks_for_consent(database: Database, caller: Caller, new_id: NewId) -> None:
    """Consent 1: by the tool's approval mode, or by a rule on arguments, such as an amount over a limit."""
    deeds = Deeds()
    pays = plan(step("Pay little.", "pay"), step("Pay much.", "pay"))
    rules = script(
        clerk=["Nothing.", pays, [call("pay", amount=5)], "Paid.", [call("pay", amount=500)], "Paid.", met("Paid.")]
    )
    bench = deeds.bench(rules)
    over = ConsentRule("pay", Comparison.ABOVE, "amount", 100)
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(over))
    started = await agents.start(database, caller, new_id, bench=bench)
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, started))
        assert deeds.done == [("pay", (5.0, "Bo"))]
        await agents.consent(database, caller, started, tell=made.tell)
        await until(agents.ended(database, caller, started))
    assert deeds.done == [("pay", (5.0, "Bo")), ("pay", (500.0, "Bo"))]


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (AgentBudget(tool_calls=1), "1 tool calls"),
        (AgentBudget(calls=3), "3 calls"),
        (AgentBudget(tokens=60), "60 tokens"),
    ],
)
async def test_at_the_bound_of_a_budget_the_run_fails_and_says_which(
    database: Database, caller: Caller, new_id: NewId, budget: AgentBudget, words: str
) -> None:
    deeds = Deeds()
    twice = plan(step("Add.", "add"), step("Add.", "add"))
    rules = script(
        clerk=["Nothing.", twice, [call("add", one=1, other=2)], "3", [call("add", one=3, other=3)], "6", met("6")]
    )
    done = await run(database, caller, new_id, deeds, rules, settings=agents.ruled(budget=budget))
    assert done.status is AgentRunStatus.FAILED and words in (done.last_error or ""), done.last_error
    assert len(deeds.done) <= 1


async def test_a_start_lowers_a_budget_and_never_raises_it(database: Database, caller: Caller, new_id: NewId) -> None:
    deeds = Deeds()
    rules = script(clerk=["Nothing.", plan(step("Say it.")), "3", met("3")])
    lowered = await run(
        database, caller, new_id, deeds, rules, settings=agents.ruled(budget=AgentBudget(calls=50)), request={"budget": Budget(calls=2)}
    )  # fmt: skip
    assert "2 calls" in (lowered.last_error or "")


async def test_nothing_is_called_once_the_owner_may_not(database: Database, caller: Caller, new_id: NewId) -> None:
    """agent: its owner is the security context of every phase, whoever started the run; what was taken away counts at the next call."""
    owner = await users.add(database, caller, name="Olga", role=Role.OPERATOR, new_id=new_id)
    deeds = Deeds()
    rules = script(clerk=["Nothing.", TELLS, TOLD, "It could not be done.", met("Not done.")])
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench, settings=agents.ruled(owner=owner.user_id))
    run = await agents.start(database, caller, new_id, bench=bench)
    assert run.owner_id == owner.user_id
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, run))
        await users.set_role(database, caller, user_id=owner.user_id, role=Role.VIEWER)
        await agents.consent(database, caller, run, tell=made.tell)
        await until(agents.ended(database, caller, run))
    assert deeds.done == []
    told = [each.result for each in await results(database, run) if each.is_error]
    assert len(told) == 1 and "Olga" in told[0] and "was not made" in told[0]
    assert (await agents.asked(database, caller, run)).consent.executed_at is None  # type: ignore[union-attr]
    with pytest.raises(NotPermitted, match="Olga"):
        await agents.start(database, caller, new_id, bench=bench)


async def test_a_cancelled_run_is_failed_and_says_by_whom(database: Database, caller: Caller, new_id: NewId) -> None:
    """status: a cancelled run is `failed` with `cancelled by …`; what it asked is closed (B13), and the call is never made (F34)."""
    deeds = Deeds()
    rules = script(clerk=["Nothing.", TELLS, TOLD, "Told.", met()])
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    run, fresh = [await agents.start(database, caller, new_id, bench=bench) for _ in range(2)]
    cancelled = await agent_runs.cancel(database, caller, id_=fresh.id, tell=lambda _: None)
    assert (cancelled.status, cancelled.last_error) == ("failed", f"cancelled by {caller.user_name}")
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, run))
        await agent_runs.cancel(database, caller, id_=run.id, tell=made.tell)
        await until(agents.ended(database, caller, run))
    done = await agents.now(database, caller, run)
    assert (done.status, done.last_error) == ("failed", f"cancelled by {caller.user_name}") and deeds.done == []
    assert (await agents.asked(database, caller, run)).consent.status == "cancelled"  # type: ignore[union-attr]
    with pytest.raises(RunEnded):
        await agent_runs.cancel(database, caller, id_=run.id, tell=lambda _: None)


async def test_what_is_wrong_with_a_start_is_said_and_nothing_is_started(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    deeds = Deeds()
    bench = deeds.bench(script(clerk=["Nothing."]))
    await agents.publish(database, caller, new_id, bench=bench)
    for request, pointer in (
        ({"goal": "  "}, "/goal"),
        ({"reply_params": "{no json"}, "/replyParams"),
        ({"channel": "pigeons"}, "/channel"),
        ({"budget": Budget(calls=0)}, "/budget/calls"),
    ):
        with pytest.raises(BadInput) as refused:
            await agents.start(database, caller, new_id, bench=bench, **request)
        assert [fault.pointer for fault in refused.value.faults] == [pointer]
    with pytest.raises(BadInput) as refused:
        await agents.start(database, caller, new_id, bench=replace(bench, find_function=lambda _: None))
    assert {"which this server does not have" in fault.message for fault in refused.value.faults} == {True}
    assert await panels.fetch(database, "select from process where kind = 'AgentRun'") == []


async def test_a_conversation_goes_on_with_the_next_run(database: Database, caller: Caller, new_id: NewId) -> None:
    """conversationId: the conversation behind a run; its request and its answer are said there, and the next run is told of them."""
    deeds = Deeds()
    rules = script(clerk=["Nothing.", plan(step("Say it.")), "3", met("It is three.")])
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    conversation_id = new_id()
    first = await agents.start(database, caller, new_id, bench=bench, goal="How many?", conversation_id=conversation_id)
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.ended(database, caller, first))
        second = await agents.start(
            database, caller, new_id, bench=bench, goal="And now?", conversation_id=conversation_id
        )
        await until(agents.ended(database, caller, second))
        shown = "\n".join(str(entry) for entry in made.model.requests[-2].view)
    assert "How many?" in shown and "It is three." in shown and "And now?" in shown
    said = await agent_runs.chat(database, caller, id_=second.id, before=None, limit=10)
    assert [each.text for each in reversed(said)] == ["How many?", "It is three.", "And now?", "It is three."]
