"""Runs that wait for people, with a whole worker, a real database and the answers of `services.answers`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import panels
import pytest
from crews import QUICK, Crew, crew, until
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.definitions import ChatMode, HumanSettings
from folkmoot.domain.model_calls import OwnCall
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import TooLate, Unreachable
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.drive import Drive
from folkmoot.services import answers, runs
from folkmoot.store import contents, conversations
from folkmoot.store.database import Database, Writer
from folkmoot.tools.functions import CallContext, FunctionTools, function_tool

ASK_TO_PAY = {"name": "pay", "arguments": {"amount": 7}}


@dataclass
class Desk:
    """One tenant's runs with a gated function, and a person who answers them."""

    database: Database
    caller: Caller
    new_id: NewId
    log: list[tuple[str, str]] = field(default_factory=list)
    tell: Callable[[dict[str, Any]], None] = lambda _: None

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        log = self.log

        @function_tool(approval_mode="Always")
        async def pay(amount: int, context: CallContext) -> str:
            """Pay."""
            log.append(("pay", context.idempotency_key))
            return f"paid {amount}"

        @function_tool(is_read_only=True)
        async def look(context: CallContext) -> str:
            """Look."""
            log.append(("look", context.idempotency_key))
            return "seen"

        @function_tool()
        async def notify(context: CallContext) -> str:
            """Tell."""
            log.append(("notify", context.idempotency_key))
            return "told"

        return {"pay": pay, "look": look, "notify": notify}

    async def start(
        self, calls: list[dict[str, Any]], *, script: dict[str, Any] | None = None, **settings: Any
    ) -> Started:
        tools = FunctionTools.discover(self.functions)
        offered = tuple(tools.offered(name) for name in tools.names)
        first = {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": calls}}
        script = script or {"rules": [first, *panels.TALK["rules"]]}
        resolved = panels.interaction(self.new_id, script, names=("Ann",), tools={"Ann": offered}, **settings)
        return await panels.start(self.database, self.new_id, resolved, tenant_id=self.caller.tenant_id)

    async def is_waiting(self, started: Started, status: str = "PendingApproval") -> bool:
        return bool((await panels.row_of(self.database, started))["status"] == status)

    async def has_ended(self, started: Started) -> bool:
        return await panels.has_ended(self.database, started)

    async def waits_for(self, started: Started) -> dict[str, Any]:
        (row,) = [r for r in await panels.rows_of(self.database, started, "pending") if r["outcome"] is None]
        return row

    async def decide(self, started: Started, *, approve: bool = True, reason: str | None = None) -> None:
        row = await self.waits_for(started)
        await answers.decide(
            self.database, self.caller, run_id=started.run_id, call_id=row["pending_id"], approves=approve,
            arguments_hash=row["binding_hash"].hex(), reason=reason, tell=self.tell,
        )  # fmt: skip


@pytest.fixture
def desk(database: Database, caller: Caller, new_id: NewId) -> Desk:
    return Desk(database, caller, new_id)


@asynccontextmanager
async def at_work(desk: Desk, **options: Any) -> AsyncIterator[Crew]:
    async with crew(desk.database, desk.new_id, functions=desk.functions, **options) as made:
        desk.tell = made.tell
        yield made


async def results(desk: Desk, started: Started) -> list[items.ToolResult]:
    found = await panels.items_of(desk.database, started)
    return [s.item.body for s in found if isinstance(s.item.body, items.ToolResult)]


async def test_a_waiting_run_holds_no_worker_and_goes_on_where_it_was(desk: Desk) -> None:
    """B02, B05, B07, B08, F07; traces.md B: after a restart of everything what waits is there, and is made once."""
    started = await desk.start([{"name": "look"}, ASK_TO_PAY, {"name": "notify"}])
    async with at_work(desk) as made:
        await until(lambda: desk.is_waiting(started))
        assert not made.worker._tasks
    row = await panels.row_of(desk.database, started)
    assert (row["worker_id"], row["claim_id"], row["ready_at"], row["deadline_at"]) == (None, None, None, None)
    assert [name for name, _ in desk.log] == ["look"], "the read-only sibling did not wait"
    await desk.decide(started)
    row = await panels.row_of(desk.database, started)
    assert row["status"] == "PendingApproval" and row["ready_at"] is not None, "only a claim sets Running"
    async with at_work(desk) as made:
        await until(lambda: desk.has_ended(started))
        assert made.model.asked == ["Ann"], "nothing was asked again but for what follows"
    assert [name for name, _ in desk.log] == ["look", "pay", "notify"]
    assert [r.result for r in await results(desk, started)] == ["seen", "paid 7", "told"]
    assert (await panels.row_of(desk.database, started))["pending_id"] is None


async def test_a_rejected_call_is_not_made_and_the_model_is_told_why(desk: Desk) -> None:
    """B12."""
    started = await desk.start([ASK_TO_PAY])
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
        await desk.decide(started, approve=False, reason="too much")
        await until(lambda: desk.has_ended(started))
    assert desk.log == []
    (result,) = await results(desk, started)
    assert result.is_error and result.rejection_reason == "too much"


async def test_a_person_who_lost_the_right_to_approve_has_approved_nothing(desk: Desk) -> None:
    """F34: between the approval and the call the approver became a viewer."""
    started = await desk.start([ASK_TO_PAY])
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
    await desk.decide(started)
    await panels.execute(desk.database, "update app_user set role = 'viewer' where user_id = $1", desk.caller.user_id)
    async with at_work(desk):
        await until(lambda: desk.has_ended(started))
    assert desk.log == []
    assert "may approve no more" in (await results(desk, started))[0].result


async def test_control_without_a_look_at_the_right_a_void_approval_would_run(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of F34."""
    read = conversations._decision

    def trusting(row: Any) -> Any:
        word = read(row)
        return replace(word, is_void=False) if word is not None else None

    monkeypatch.setattr(conversations, "_decision", trusting)
    with pytest.raises(AssertionError):
        await test_a_person_who_lost_the_right_to_approve_has_approved_nothing(desk)


@pytest.mark.parametrize("status", ["PendingApproval", "PendingHuman"])
async def test_a_person_who_does_not_come_in_time_ends_the_run(desk: Desk, status: str) -> None:
    """kernel.md, Time; F34, B12: error results, TimedOut, and the waiting status that ran out; an answer is then too late."""
    people = HumanSettings(ChatMode.EVERY_ROUND)
    calls = [ASK_TO_PAY, {"name": "notify"}] if status == "PendingApproval" else []
    started = await desk.start(calls, human_settings=people, duration_human_timeout=timedelta(minutes=5))
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started, status))
        row = await desk.waits_for(started)
        assert row["expires_at"] - row["asked_at"] == timedelta(minutes=5)
        await panels.shift_clock(desk.database, 299)
        await panels.shift_clock(desk.database, 2)
        await until(lambda: desk.has_ended(started))
    ended = await panels.row_of(desk.database, started)
    assert (ended["status"], ended["before_timeout_status"]) == ("TimedOut", status)
    assert "nobody answered" in ended["failure_details"]
    assert all(result.is_error for result in await results(desk, started)) and desk.log == []
    (noted,) = await panels.fetch(desk.database, "select * from audit where action = 'pending.expired'")
    assert (noted["user_id"], noted["channel"], noted["subject_id"]) == (None, "clock", started.run_id)
    with pytest.raises(TooLate):
        await answer_late(desk, started, row)


async def answer_late(desk: Desk, started: Started, row: dict[str, Any]) -> None:
    if row["kind"] == "Turn":
        await answers.pass_turn(
            desk.database, desk.caller, run_id=started.run_id, turn_id=row["pending_id"], new_id=desk.new_id, tell=desk.tell
        )  # fmt: skip
    else:
        await answers.decide(
            desk.database, desk.caller, run_id=started.run_id, call_id=row["pending_id"], approves=True,
            arguments_hash=row["binding_hash"].hex(), reason=None, tell=desk.tell,
        )  # fmt: skip


async def test_waiting_for_a_person_is_no_working_time(desk: Desk) -> None:
    """kernel.md: the time limit counts work alone."""
    started = await desk.start([ASK_TO_PAY], duration_auto_termination=timedelta(minutes=1))
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
        await panels.shift_clock(desk.database, 86_400)
        await desk.decide(started)
        await until(lambda: desk.has_ended(started))
    row = await panels.row_of(desk.database, started)
    assert row["status"] == "Completed" and row["execution_time"] < timedelta(minutes=1)


async def test_a_stop_of_a_waiting_run_closes_what_waits_and_makes_no_call(desk: Desk) -> None:
    """B13, F34: traces.md B, stopped; the card stays in the record (B26)."""
    started = await desk.start([ASK_TO_PAY, {"name": "notify"}])
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
        await runs.request_stop(desk.database, desk.caller, run_id=started.run_id, tell=desk.tell)
        await until(lambda: desk.has_ended(started))
    assert (await panels.row_of(desk.database, started))["status"] == "Stopped"
    assert [r.is_error for r in await results(desk, started)] == [True, True] and desk.log == []
    (row,) = await panels.rows_of(desk.database, started, "pending")
    assert row["outcome"] == "Stopped" and '"functionName":"pay"' in row["card"].replace(" ", "")


async def test_a_message_between_a_decision_to_wait_and_the_wait_is_not_missed(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """state.md: the soft part is decided again when others wrote in between."""
    started = await desk.start([ASK_TO_PAY])
    append_plan = Drive._append_plan
    posted: list[int] = []

    async def late(self: Drive, firm: Any, plan: Any) -> bool:
        if plan.wait is not None and not posted:
            posted.append(1)
            await panels.post(desk.database, started, desk.new_id, "Wait, one more thing.")
            is_whole = await append_plan(self, firm, plan)
            assert not is_whole
            return is_whole
        return await append_plan(self, firm, plan)

    monkeypatch.setattr(Drive, "_append_plan", late)
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
    assert posted
    row = await panels.row_of(desk.database, started)
    assert row["pending_id"] == (await desk.waits_for(started))["pending_id"]


async def test_a_wake_for_nothing_asks_nothing_new(desk: Desk) -> None:
    """The pending row is its subject's: since when it waits, and until when, stay."""
    started = await desk.start([ASK_TO_PAY], duration_human_timeout=timedelta(days=1))
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
        before = await desk.waits_for(started)
        await panels.shift_clock(desk.database, 60)
        claims = (await panels.row_of(desk.database, started))["claim_number"]
        await panels.execute(desk.database, "update process set ready_at = folkmoot_now()")

        async def is_back() -> bool:
            row = await panels.row_of(desk.database, started)
            return bool(row["claim_number"] > claims and row["status"] == "PendingApproval")

        await until(is_back)
    assert await desk.waits_for(started) == before


async def test_large_result_is_kept_whole_and_read_on(database: Database, caller: Caller, new_id: NewId) -> None:
    """conversation.md: over 32 KiB the conversation carries head and tail with the id, and the rest is read by it."""
    whole = "".join(f"line {n} äöü\n" for n in range(9000))

    @function_tool(is_read_only=True, limit_bytes=10_000_000)
    async def dump() -> str:
        """Dump."""
        return whole

    tools = FunctionTools.discover({"dump": dump})
    script = {
        "rules": [
            {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": [{"name": "dump"}]}},
            *panels.TALK["rules"],
        ]
    }
    resolved = panels.interaction(new_id, script, names=("Ann",), tools={"Ann": (tools.offered("dump"),)})
    started = await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id)
    async with crew(database, new_id, functions={"dump": dump}) as made:
        await until(lambda: panels.has_ended(database, started))
        (result,) = [
            s.item.body for s in await panels.items_of(database, started) if isinstance(s.item.body, items.ToolResult)
        ]
        assert result.result_size == len(whole.encode()) and len(result.result) < 9000
        assert result.tool_result_id is not None and str(result.tool_result_id) in result.result
        assert result.result.startswith(whole[:1000]) and result.result.endswith(whole[-1000:])
        read = await read_all(made, started, result.tool_result_id, len(whole))
    assert read == whole
    others = await made_call(made, Started(new_id(), started.run_id), result.tool_result_id, offset=0)
    assert others.is_error, "another tenant's run finds nothing (F40)"


async def test_outages_while_a_large_result_is_kept_do_not_fail_the_run(
    database: Database, caller: Caller, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F21: a database that is away is no fault of the run's, however often; the call is made again, since it only reads."""
    put, outages = contents.put, [Unreachable("The database is away.")] * (QUICK.driver_errors_limit + 1)

    async def put_after_outages(writer: Writer, tenant_id: UUID, **kept: Any) -> None:
        if outages:
            raise outages.pop()
        await put(writer, tenant_id, **kept)

    @function_tool(is_read_only=True)
    async def dump() -> str:
        """Dump."""
        return "x" * 40_000

    monkeypatch.setattr(contents, "put", put_after_outages)
    offered = FunctionTools.discover({"dump": dump}).offered("dump")
    first = {"when": {"participant": "Ann", "call": 1}, "reply": {"calls": [{"name": "dump"}]}}
    script = {"rules": [first, *panels.TALK["rules"]]}
    resolved = panels.interaction(new_id, script, names=("Ann",), tools={"Ann": (offered,)})
    started = await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id)
    async with crew(database, new_id, functions={"dump": dump}):
        await until(lambda: panels.has_ended(database, started))
    assert (await panels.row_of(database, started))["status"] == "Completed" and not outages


async def read_all(made: Crew, started: Started, content_id: UUID, size: int) -> str:
    text = ""
    while len(text) < size:
        piece = await made_call(made, started, content_id, offset=len(text))
        text += piece.text.rsplit("\n[", 1)[0] if "characters follow" in piece.text[-80:] else piece.text
    return text


async def made_call(made: Crew, started: Started, content_id: UUID, *, offset: int) -> Any:
    return await made.read_result(
        {"id": str(content_id), "offset": offset}, tenant_id=started.tenant_id, run_id=started.run_id
    )


async def test_thousand_waits_are_rows_alone(desk: Desk) -> None:
    """kernel.md: waiting costs no memory and no worker."""
    started = [await desk.start([ASK_TO_PAY]) for _ in range(30)]
    async with at_work(desk) as made:
        for one in started:
            await until(lambda one=one: desk.is_waiting(one))  # type: ignore[misc]
        await until(lambda: not made.worker._tasks)
        assert not made.worker._drives
        await asyncio.gather(*(desk.decide(one) for one in started))
        for one in started:
            await until(lambda one=one: desk.has_ended(one))  # type: ignore[misc]
    assert len(desk.log) == len(set(desk.log)) == 30


async def test_a_model_that_fails_after_an_approved_call_neither_loses_nor_repeats_it(desk: Desk) -> None:
    """B06: the result is committed before the next model call."""
    fails = {"when": {"call": 2}, "fail": {"class": "Unavailable", "times": 2}}
    script = {"rules": [{"when": {"call": 1}, "reply": {"calls": [ASK_TO_PAY]}}, fails, *panels.TALK["rules"]]}
    started = await desk.start([], script=script)
    async with at_work(desk) as made:
        await until(lambda: desk.is_waiting(started))
        await desk.decide(started)
        await until(lambda: desk.has_ended(started))
        assert len(made.model.requests) == 4
    assert [name for name, _ in desk.log] == ["pay"]
    assert [r.result for r in await results(desk, started)] == ["paid 7"]


async def test_any_number_of_questions_to_the_person_each_has_its_own_answer(desk: Desk) -> None:
    """B10, B01: each goes to the very call that asked, and nothing goes on without it."""
    asks = [
        {"when": {"call": n}, "reply": {"calls": [{"name": "ask", "arguments": {"participant": "Human", "question": f"{n}?"}}]}}
        for n in (1, 2, 3)
    ]  # fmt: skip
    people = HumanSettings(ChatMode.ON_QUESTION)
    started = await desk.start(
        [], script={"rules": [*asks, *panels.TALK["rules"]]}, human_settings=people, is_direct_questioning_allowed=True
    )
    ids = []
    async with at_work(desk) as made:
        for n in (1, 2, 3):

            async def asks_anew() -> bool:
                rows = await panels.rows_of(desk.database, started, "pending")
                return any(r["outcome"] is None and r["pending_id"] not in ids for r in rows)

            await until(asks_anew)
            row = await desk.waits_for(started)
            ids.append(row["pending_id"])
            assert f"{n}?" in row["card"]
            await answers.answer(
                desk.database, desk.caller, run_id=started.run_id, question_id=row["pending_id"], text=f"{n}!", new_id=desk.new_id,
                tell=desk.tell,
            )  # fmt: skip
        await until(lambda: desk.has_ended(started))
        answered = [entry for entry in made.model.requests[-1].view if isinstance(entry, OwnCall)]
    assert [(call.name, call.result) for call in answered] == [("ask", f"owner answers: {n}!") for n in (1, 2, 3)]


async def test_a_paused_run_keeps_the_gate_it_started_with(desk: Desk) -> None:
    """B09: what was gated at the start is gated for the run's whole life, whatever the function says now."""
    started = await desk.start([ASK_TO_PAY])

    @function_tool()
    async def pay(amount: int, context: CallContext) -> str:
        """Pay, no longer gated."""
        desk.log.append(("pay", context.idempotency_key))
        return f"paid {amount}"

    async with crew(desk.database, desk.new_id, functions={"pay": pay}) as made:
        desk.tell = made.tell
        await until(lambda: desk.is_waiting(started))
        assert desk.log == []
        await desk.decide(started)
        await until(lambda: desk.has_ended(started))
    assert [name for name, _ in desk.log] == ["pay"]


async def test_a_pause_for_what_was_answered_meanwhile_is_claimed_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B08, B17: woken for nothing while an approval is open, and approved before it waits again, the run does not stay paused."""
    started = await desk.start([ASK_TO_PAY])
    async with at_work(desk):
        await until(lambda: desk.is_waiting(started))
    append_plan = Drive._append_plan
    decided: list[int] = []

    async def decided_meanwhile(self: Drive, firm: Any, plan: Any) -> bool:
        if plan.wait is not None and not decided:
            decided.append(1)
            await panels.execute(
                desk.database,
                """update pending set outcome = 'Approved', answered_at = folkmoot_now(), answered_by = $1, answered_by_name = 'owner',
                   answer = '{}'""",
                desk.caller.user_id,
            )
        return await append_plan(self, firm, plan)

    monkeypatch.setattr(Drive, "_append_plan", decided_meanwhile)
    await panels.execute(desk.database, "update process set ready_at = folkmoot_now()")
    async with at_work(desk):
        await until(lambda: desk.has_ended(started))
    assert decided and [name for name, _ in desk.log] == ["pay"]
