"""Agent runs from start to answer, with a whole worker and a real database (agent-runs.md; B10, B12, B16, B17; F04, F05, F07, F30 to F34)."""

from __future__ import annotations

import agents_at_hand as agents
import panels
from agents_at_hand import Deeds, call, met, plan, script, step
from crews import crew, until

from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_runs
from folkmoot.store.database import Database

ADDS = plan(step("Add them.", "add"), step("Tell Bo.", "tell"))
WORK = [
    "The numbers are 20 and 22.",
    ADDS,
    [call("add", one=20, other=22)],
    "It is 42.",
    [call("tell", who="Bo", what="42")],
    "Told.",
    met("42"),
]


async def test_a_run_gathers_plans_acts_asks_and_verifies(database: Database, caller: Caller, new_id: NewId) -> None:
    """The loop: each phase in its turn; the gated call waits for the owner, and runs once as it was shown."""
    deeds = Deeds()
    rules = script(clerk=[[call("look")], *WORK])
    bench = deeds.bench(rules)
    await agents.publish(database, caller, new_id, bench=bench)
    run = await agents.start(database, caller, new_id, bench=bench)
    assert (run.status, run.current_phase, run.channel, run.conversation_id) == ("running", "gather", "web", None)
    async with crew(database, new_id, bench=bench, functions=deeds.functions) as made:
        await until(agents.awaits(database, caller, run))
        waiting = await agents.now(database, caller, run)
        item = await agents.asked(database, caller, run)
        assert waiting.pending_tool_id == item.consent.call_id and waiting.awaiting_since and waiting.expires_at
        assert item.consent.card["functionName"] == "tell" and item.consent.executed_at is None
        assert [name for name, _ in deeds.done] == ["look", "add"], "nothing gated was called"
        await agents.consent(database, caller, run, tell=made.tell)
        await until(agents.ended(database, caller, run))
    done = await agents.now(database, caller, run)
    row = await panels.row_of(database, agents.kernel_run(run))
    assert (done.status, done.last_error, row["output"]) == ("completed", None, "42"), row["failure_details"]
    assert deeds.done == [("look", None), ("add", (20, 22)), ("tell", ("Bo", "42"))]
    payload = await agent_runs.payload(database, caller, id_=run.id)
    assert payload["budget"]["toolCalls"]["used"] == 3 and payload["answer"] == "42"
