"""A whole worker in this process, with scripted models and real functions, against a real database."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import panels
import pytest
from crews import Crew, Listening, crew, until
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.model_calls import OtherText
from folkmoot.domain.run_status import RunStatus
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.transcript import Transcript
from folkmoot.runtime.worker import Worker
from folkmoot.store import runs
from folkmoot.store.appends import Append
from folkmoot.store.database import Database, Listener
from folkmoot.tools.functions import CallContext, FunctionTools, function_tool

PANEL: dict[str, Any] = {
    "rules": [
        {"when": {"offered": "agree", "participant": "Cid"}, "reply": {"calls": [{"name": "disagree", "arguments": {"reason": "No."}}]}},
        {"when": {"offered": "agree"}, "reply": {"calls": [{"name": "agree"}]}},
        {"when": {"participant": "Ann", "turn": 1}, "reply": {"text": "We could keep it.", "usage": {"input": 70, "output": 5}}},
        {"when": {"participant": "Ben", "turn": 1}, "reply": {"calls": [{"name": "call_vote", "arguments": {"topic": "Keep it?"}}]}},
        {"when": {"participant": "Cid", "turn": 1}, "reply": {"calls": [{"name": "propose_solution", "arguments": {"solution": "keep"}}]}},
    ]
}  # fmt: skip
PANEL_SETTINGS = {"is_voting_allowed": True, "is_solution_proposal_allowed": True, "maximum_rounds": 3}


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    fault_points.disarm_all()


def ended(database: Database, started: Started) -> Any:
    return lambda: panels.has_ended(database, started)


def tell_run(made: Crew, started: Started) -> None:
    made.tell({"to": "run", "run": str(started.run_id)})


async def gapless(database: Database, started: Started) -> list[Any]:
    """The conversation, after a look at its sequences and ids."""
    conversation = await panels.items_of(database, started)
    row = await panels.row_of(database, started)
    assert [stored.sequence for stored in conversation] == list(range(1, row["last_sequence"] + 1))
    assert len({stored.item.item_id for stored in conversation}) == len(conversation)
    return conversation


# the ordinary way


async def test_panel_runs_to_its_end(database: Database, new_id: NewId) -> None:
    """Architecture: one claim, no hand-back; B45: one row with usage for each call that was made."""
    resolved = panels.interaction(new_id, PANEL, **PANEL_SETTINGS)
    started = await panels.start(database, new_id, resolved)
    async with crew(database, new_id) as made:
        await until(ended(database, started))
        row = await panels.row_of(database, started)
        assert (row["status"], row["output"], row["claim_number"], row["worker_id"]) == ("Completed", "keep", 1, None)
        await gapless(database, started)
        calls = await panels.rows_of(database, started, "model_call")
        assert Counter(call["participant"] for call in calls) == Counter(made.model.asked)
        assert len({call["model_call_id"] for call in calls}) == len(calls) == len(made.model.requests) == 7
        assert all(call["ended_at"] and call["usage"] and not call["error_class"] for call in calls)


async def test_many_runs_go_side_by_side(database: Database, new_id: NewId) -> None:
    """One worker, more runs than slots: all end, each in a claim of its own."""
    resolved = panels.interaction(new_id, PANEL, **PANEL_SETTINGS)
    started = [await panels.start(database, new_id, resolved) for _ in range(12)]
    async with crew(database, new_id, slots=5):
        for one in started:
            await until(ended(database, one))
            assert (await panels.row_of(database, one))["output"] == "keep"
            await gapless(database, one)


async def test_worker_with_fewer_slots_than_runs_takes_the_next_at_once(database: Database, new_id: NewId) -> None:
    """With more runs ready than slots the next is claimed when one ends, not at the next look."""
    for _ in range(60):
        await panels.start(database, new_id)
    async with crew(database, new_id, slots=5, poll_seconds=1000.0, sweep_seconds=1000.0):

        async def all_ended() -> bool:
            return not await panels.fetch(database, "select from process where ended_at is null")

        await until(all_ended, seconds=10)


async def test_message_during_a_model_call_is_seen_at_the_next_call(database: Database, new_id: NewId) -> None:
    """Conversation.md 8: a message never interrupts a model call, and is seen from the next call on."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model) as made:
        await until(lambda: model.asked == ["Ann"])
        await panels.post(database, started, new_id, "Mind the budget.")
        tell_run(made, started)
        model.held["Ann"].set()
        await until(ended(database, started))
    assert not model.cancelled and model.asked == ["Ann", "Ben", "Cid"]
    said = OtherText("Pat", "Mind the budget.")
    assert [said in request.view for request in model.requests] == [False, True, True]
    conversation = await gapless(database, started)
    assert panels.texts(conversation)[:2] == ["Pat: Mind the budget.", "Ann: I have nothing to add."]


# stops and limits


async def test_stop_cancels_the_call_under_way_and_counts_it(database: Database, new_id: NewId) -> None:
    """B13, B45: a stop does not wait for the model; the call counts, its usage estimated and marked."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model) as made:
        await until(lambda: model.asked == ["Ann"])
        assert await panels.stop(database, started) is RunStatus.RUNNING
        tell_run(made, started)
        await until(ended(database, started))
        await until(lambda: len(model.cancelled) == 1)
    row = await panels.row_of(database, started)
    assert (row["status"], row["output"], row["failure_details"]) == ("Stopped", None, None)
    conversation = await gapless(database, started)
    assert conversation[-1].item.detail == items.Ended(items.EndReason.STOPPED)
    (call,) = await panels.rows_of(database, started, "model_call")
    assert call["error_class"] == "Lost" and '"estimated": true' in call["usage"] and call["ended_at"] is not None


async def stop_without_a_notification(database: Database, new_id: NewId, *, seconds: float) -> bool:
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model):
        await until(lambda: model.asked == ["Ann"])
        await panels.stop(database, started)
        try:
            await until(ended(database, started), seconds=seconds)
        except TimeoutError:
            return False
    return True


async def test_lost_notification_of_a_stop_costs_a_poll_interval(database: Database, new_id: NewId) -> None:
    """F24: the worker compares the signals of what it holds, so that no stop waits for a long model call."""
    assert await stop_without_a_notification(database, new_id, seconds=20)


async def test_control_lost_notification_loses_the_stop_without_the_comparison(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_comparison(worker: Worker) -> None:
        pass

    monkeypatch.setattr(Worker, "_compare", no_comparison)
    assert not await stop_without_a_notification(database, new_id, seconds=2)


async def test_time_limit_fails_the_run_and_cancels_what_is_under_way(database: Database, new_id: NewId) -> None:
    """Kernel.md 'Time': reached, the run is Failed and says so; in-flight model calls are cancelled."""
    limited = panels.interaction(new_id, duration_auto_termination=timedelta(minutes=5))
    started = await panels.start(database, new_id, limited)
    model = Listening()
    model.held["Ben"] = asyncio.Event()
    async with crew(database, new_id, model=model, lease_seconds=10_000):
        await until(lambda: model.asked == ["Ann", "Ben"])
        await panels.shift_clock(database, 301)
        await until(ended(database, started))
        await until(lambda: [request.participant for request in model.cancelled] == ["Ben"])
    row = await panels.row_of(database, started)
    assert row["status"] == "Failed" and "time limit of 0:05:00" in row["failure_details"]
    assert (await gapless(database, started))[-1].item.detail == items.Ended(items.EndReason.TIME)


async def test_time_limit_of_seconds_needs_no_sweep(database: Database, new_id: NewId) -> None:
    """The drive wakes at the limit by itself."""
    limited = panels.interaction(new_id, duration_auto_termination=timedelta(seconds=1))
    started = await panels.start(database, new_id, limited)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, sweep_seconds=1000, poll_seconds=1000):
        await until(ended(database, started))
    assert (await panels.row_of(database, started))["status"] == "Failed"


# models that fail


async def test_rate_limited_model_is_asked_again(database: Database, new_id: NewId) -> None:
    """Decisions 9: backoff; the attempts are recorded, and only the last one's reply is in the conversation."""
    script = {
        "rules": [{"when": {"participant": "Ben"}, "fail": {"class": "RateLimited", "times": 2}}, *panels.TALK["rules"]]
    }
    started = await panels.start(database, new_id, panels.interaction(new_id, script))
    async with crew(database, new_id) as made:
        await until(ended(database, started))
    assert [(r.participant, r.attempt) for r in made.model.requests if r.participant == "Ben"] == [
        ("Ben", n) for n in (1, 2, 3)
    ]
    calls = await panels.rows_of(database, started, "model_call")
    assert Counter(c["error_class"] for c in calls) == {"RateLimited": 2, None: 3}
    assert len(panels.texts(await gapless(database, started))) == 3


async def test_a_provider_that_asks_for_ages_is_asked_again_in_a_day(database: Database, new_id: NewId) -> None:
    """platform.md: waits are bounded, and no number of a provider's is too large for the record."""
    fails = {"class": "RateLimited", "retryAfter": "9999999d", "times": 1}
    script = {"rules": [{"when": {"participant": "Ann"}, "fail": fails}, *panels.TALK["rules"]]}
    started = await panels.start(database, new_id, panels.interaction(new_id, script))

    async def has_failed() -> bool:
        return bool(await panels.fetch(database, "select from model_call where error_class is not null"))

    async with crew(database, new_id):
        await until(has_failed)
    (call,) = await panels.rows_of(database, started, "model_call")
    assert (call["not_before"] - call["ended_at"]).total_seconds() == pytest.approx(86_400, abs=1)


async def test_backoff_outlives_the_worker(database: Database, new_id: NewId) -> None:
    """B02: 'not before' is in the database: a worker that takes over neither asks at once nor starts counting anew."""
    script = {
        "rules": [
            {"when": {"participant": "Ann"}, "fail": {"class": "RateLimited", "retryAfter": "1h", "times": 1}},
            *panels.TALK["rules"],
        ]
    }
    started = await panels.start(database, new_id, panels.interaction(new_id, script))

    async def has_failed_once() -> bool:
        return [c["error_class"] for c in await panels.rows_of(database, started, "model_call")] == ["RateLimited"]

    async with crew(database, new_id):
        await until(has_failed_once)
    async with crew(database, new_id) as second:

        async def is_claimed_again() -> bool:
            # not by its claim number: the first worker may have claimed it once more while it drained, and given it back
            return (await panels.row_of(database, started))["worker_id"] is not None

        await until(is_claimed_again)
        await second.drain()
        assert second.model.asked == [] and not (await panels.row_of(database, started))["is_suspect"]
    await panels.shift_clock(database, 3601)
    async with crew(database, new_id) as third:
        await until(ended(database, started))
    assert [(r.participant, r.attempt) for r in third.model.requests] == [("Ann", 2), ("Ben", 1), ("Cid", 1)]


async def test_refused_key_fails_the_run_with_a_sentence(database: Database, new_id: NewId) -> None:
    """An authentication failure is not tried again, and says whose model it was."""
    script = {"rules": [{"when": {"participant": "Ben"}, "fail": {"class": "Authentication"}}, *panels.TALK["rules"]]}
    started = await panels.start(database, new_id, panels.interaction(new_id, script))
    async with crew(database, new_id) as made:
        await until(ended(database, started))
    row = await panels.row_of(database, started)
    assert row["status"] == "Failed" and row["failure_details"].startswith("Ben's model could not be asked")
    assert made.model.asked == ["Ann", "Ben"]


# letting go


async def test_drain_finishes_the_step_and_hands_the_run_back(database: Database, new_id: NewId) -> None:
    """F14, B60: no new claims, the step under way is finished, nothing more is begun, no suspicion remains."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model) as made:
        await until(lambda: model.asked == ["Ann"])
        made.worker.drain()
        late = await panels.start(database, new_id)
        model.held["Ann"].set()
        await asyncio.wait_for(made.task, 20)
    assert model.asked == ["Ann"] and not model.cancelled
    row = await panels.row_of(database, started)
    assert (row["status"], row["worker_id"], row["claimed_at"], row["is_suspect"]) == ("Running", None, None, False)
    assert row["crash_count"] == 0 and row["ready_at"] is not None
    assert (await panels.row_of(database, late))["status"] == "New"
    calls = await panels.rows_of(database, started, "model_call")
    assert [c["participant"] for c in calls if c["voided_at"] is None] == ["Ann"]
    assert await panels.fetch(database, "select 1 from worker") == []
    async with crew(database, new_id) as second:
        await until(ended(database, started))
        await until(ended(database, late))
    assert second.model.asked.count("Ann") == 1  # the late run's; not this one's again
    assert len(panels.texts(await gapless(database, started))) == 3


@pytest.mark.parametrize("is_told_twice", [False, True])
async def test_drain_that_takes_too_long_gives_up_what_is_under_way(
    database: Database, new_id: NewId, is_told_twice: bool
) -> None:
    """F02, F14, B45: handed back at once; the call is lost, counted, estimated and marked; asked again, one message."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, drain_seconds=1000 if is_told_twice else 0.1) as made:
        await until(lambda: model.asked == ["Ann"])
        made.worker.drain()
        if is_told_twice:
            await asyncio.sleep(0)
            made.task.cancel()
        await asyncio.wait({made.task}, timeout=20)
        assert made.task.done() and len(model.cancelled) == 1
    row = await panels.row_of(database, started)
    assert (row["worker_id"], row["is_suspect"]) == (None, False) and row["ready_at"] is not None
    async with crew(database, new_id) as second:
        await until(ended(database, started))
    assert (second.model.asked[0], second.model.requests[0].attempt) == ("Ann", 2)
    assert len(panels.texts(await gapless(database, started))) == 3
    calls = [c for c in await panels.rows_of(database, started, "model_call") if c["participant"] == "Ann"]
    assert sorted(c["error_class"] or "" for c in calls) == ["", "Lost"]
    assert all('"estimated": true' in c["usage"] for c in calls if c["error_class"])


async def test_stop_during_a_drain_still_wins(database: Database, new_id: NewId) -> None:
    """B60: a stop during shutdown still wins, and does not wait for the model."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, drain_seconds=1000) as made:
        await until(lambda: model.asked == ["Ann"])
        made.worker.drain()
        await panels.stop(database, started)
        tell_run(made, started)
        await asyncio.wait_for(made.task, 20)
    assert (await panels.row_of(database, started))["status"] == "Stopped" and len(model.cancelled) == 1


async def test_suspect_goes_on_beside_others_once_it_came_through_a_step(database: Database, new_id: NewId) -> None:
    """State.md 'Crashes and suspects': apart until its next item by a worker; then handed back, and the process ends."""
    started = await panels.start(database, new_id)
    lost = await panels.register(database, new_id)
    await panels.claim(database, lost)
    await panels.execute(
        database, "update process set worker_id = null, claim_id = null, ready_at = now(), is_suspect = true"
    )
    async with crew(database, new_id) as ordinary:
        async with crew(database, new_id, is_apart=True) as apart:
            await asyncio.wait_for(apart.task, 20)
        assert apart.model.asked == []  # the opening was its step
        await until(ended(database, started))
        assert ordinary.model.asked == ["Ann", "Ben", "Cid"]
    calls = await panels.rows_of(database, started, "model_call")
    assert Counter((c["participant"], c["voided_at"] is None) for c in calls)["Ann", True] == 1
    assert all(c["error_class"] is None for c in calls)


async def test_suspect_finishes_what_is_under_way_before_it_is_handed_back(database: Database, new_id: NewId) -> None:
    """A call beside the first one that came through is not cut off: its outcome would be unknown for nothing."""
    shop, model = Shop(), Listening()
    model.held["Ann"] = asyncio.Event()
    read = {"name": "read", "arguments": {"text": "a"}}
    started = await panels.start(database, new_id, shop.interaction(new_id, [read, PAY]))
    async with crew(database, new_id, model=model, functions=shop.functions) as first:
        await until(lambda: model.asked == ["Ann"])
        first.worker.drain()
        model.held["Ann"].set()
        await asyncio.wait_for(first.task, 20)
    await panels.execute(database, "update process set is_suspect = true")

    async def is_read() -> bool:
        return any(call["outcome"] for call in await panels.rows_of(database, started, "call"))

    async with crew(database, new_id, functions=shop.functions, is_apart=True) as apart:
        await until(is_read)
        shop.gate.set()
        await asyncio.wait_for(apart.task, 20)
    assert results(await gapless(database, started)) == [("read", "read a"), ("pay", "paid 1")]
    row = await panels.row_of(database, started)
    assert (row["status"], row["worker_id"], row["is_suspect"]) == ("Running", None, False)


async def test_watcher_is_told_that_a_lost_reply_is_void(database: Database, new_id: NewId) -> None:
    """F02: a reader who saw partial text gets an event of a higher attempt of the same step, from its beginning."""

    class Halting(Listening):
        async def ask(self, request: Any, on_text: Any) -> Any:
            if on_text is not None:
                on_text("I have")
            return await super().ask(request, on_text)

    heard: list[dict[str, Any]] = []
    listener = Listener(database, heard.append)
    await listener.start()
    model, run_id = Halting(), new_id()
    model.held["Ann"] = asyncio.Event()

    def is_watching(made: Crew) -> bool:
        made.tell({"to": "watch", "run": str(run_id)})
        return made.worker._workshop.watched.is_watched(run_id)

    def texts_of(attempt: int) -> list[tuple[int, str]]:
        return [(m["offset"], m["text"]) for m in heard if m.get("attempt") == attempt and m["participant"] == "Ann"]

    async with crew(database, new_id, model=model, drain_seconds=0.1) as first:
        await until(lambda: is_watching(first))
        started = await panels.start(database, new_id, run_id=run_id)
        await until(lambda: model.asked == ["Ann"])
        async with crew(database, new_id) as second:
            await until(lambda: is_watching(second))
            first.worker.drain()
            await until(ended(database, started))
            await until(lambda: len(texts_of(2)) >= 2)
    assert texts_of(1)[-1] == (0, "I have") and texts_of(2)[0] == (0, "")
    steps = {message["step"] for message in heard if message.get("participant") == "Ann"}
    assert len(steps) == 1
    await listener.close()


# faults of ours, and of the database


async def test_driver_error_hands_the_run_back_and_is_forgotten_with_the_next_item(
    database: Database, new_id: NewId
) -> None:
    """State.md 'Crashes and suspects': backoff, then again; only errors in a row count."""
    started = await panels.start(database, new_id)
    remaining = 3

    def break_down() -> None:
        nonlocal remaining
        remaining -= 1
        if remaining >= 0:
            raise RuntimeError("out of paper")

    fault_points.arm("after_model_call", break_down)
    async with crew(database, new_id):
        await until(ended(database, started))
    row = await panels.row_of(database, started)
    assert (row["status"], row["driver_errors"], row["claim_number"]) == ("Completed", 0, 4)
    assert len(panels.texts(await gapless(database, started))) == 3


async def test_errors_that_are_not_in_a_row_do_not_fail_the_run(database: Database, new_id: NewId) -> None:
    """After 5 in a row: an item in between begins the count anew, also within one claim."""
    resolved = panels.interaction(new_id, maximum_rounds=3)
    started = await panels.start(database, new_id, resolved)
    reached = 0

    def break_down() -> None:
        nonlocal reached
        reached += 1
        if reached % 3:  # twice, then it goes through
            raise RuntimeError("out of paper")

    fault_points.arm("after_model_call", break_down)
    async with crew(database, new_id):
        await until(ended(database, started))
    assert (await panels.row_of(database, started))["status"] == "Completed" and reached == 27


async def fails_after_five(database: Database, new_id: NewId, started: Started, **options: Any) -> str:
    async with crew(database, new_id, **options):
        await until(ended(database, started))
    row = await panels.row_of(database, started)
    assert row["status"] == "Failed" and row["claim_number"] == 5
    conversation = await gapless(database, started)
    assert conversation[-1].item.detail == items.Ended(items.EndReason.FAILURE)
    details: str = row["failure_details"]
    return details


async def test_driver_errors_in_a_row_fail_the_run(database: Database, new_id: NewId) -> None:
    """State.md 'Crashes and suspects': after 5 in a row the run is Failed and says so."""
    started = await panels.start(database, new_id)

    def break_down() -> None:
        raise RuntimeError("out of paper")

    fault_points.arm("after_model_call", break_down)
    assert "5 times in a row" in (words := await fails_after_five(database, new_id, started))
    assert "RuntimeError: out of paper" in words


async def test_adapter_that_raises_like_an_outage_is_not_taken_for_one(database: Database, new_id: NewId) -> None:
    """An OSError from a model's adapter is a fault of the adapter: it must not be tried for ever without a pause."""

    class Broken(Listening):
        async def ask(self, request: Any, on_text: Any) -> Any:
            raise FileNotFoundError("no model file")

    started = await panels.start(database, new_id)
    assert "no model file" in await fails_after_five(database, new_id, started, model=Broken())


async def test_run_that_cannot_be_read_is_failed_and_not_held_for_ever(database: Database, new_id: NewId) -> None:
    """An unreadable definition fails the run after 5 errors, though nothing of it could be loaded."""
    started = await panels.start(database, new_id)
    await panels.execute(database, "update resolved_definition set body = '{}'")
    assert "ValidationError" in await fails_after_five(database, new_id, started)


async def test_append_that_the_database_refuses_is_an_error_of_the_run(database: Database, new_id: NewId) -> None:
    """A refusal is no outage: it is counted, and the run is Failed; others go on."""
    started = await panels.start(database, new_id)
    other = await panels.start(database, new_id)
    refuse = f"alter table model_call add check (run_id <> '{started.run_id}' or participant <> 'Ben')"
    await panels.execute(database, refuse)
    assert "CheckViolationError" in await fails_after_five(database, new_id, started)
    assert (await panels.row_of(database, other))["status"] == "Completed"


async def test_run_goes_on_when_all_connections_are_cut(database: Database, new_id: NewId) -> None:
    """F20: whatever was under way, nothing is written twice and nothing is lost that was committed."""
    script = {"rules": [{"reply": {"text": "I have nothing to add.", "delay": "10ms"}}]}
    started = await panels.start(database, new_id, panels.interaction(new_id, script, maximum_rounds=8))
    beside = await Database.open(database.dsn, connections=1)
    cut = """select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""

    async with crew(database, new_id):
        for sequence in (6, 12, 18, 24):

            async def has_come_so_far(sequence: int = sequence) -> bool:
                return bool((await panels.row_of(beside, started))["last_sequence"] >= sequence)

            await until(has_come_so_far)
            await panels.fetch(beside, cut)
        await until(ended(beside, started))
    row = await panels.row_of(beside, started)
    assert row["status"] == "Completed" and row["driver_errors"] == 0
    said = panels.texts(await gapless(beside, started))
    assert said == [f"{name}: I have nothing to add." for _ in range(8) for name in ("Ann", "Ben", "Cid")]
    assert not row["is_suspect"]
    await beside.close()


# the lease and the claim


async def test_run_is_given_back_when_the_own_deadline_passes_and_the_lease_does_not(
    database: Database, new_id: NewId
) -> None:
    """F11: without a ping acknowledged in time nothing is begun; the run is not held by a worker that does not drive it."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, own_deadline_seconds=1.0) as made:
        await until(lambda: model.asked == ["Ann"])
        holder = await database.connect()
        await holder.execute("begin; select from worker for update")
        await until(lambda: not made.worker.is_ready)
        model.held["Ann"].set()

        async def is_given_back() -> bool:
            return (await panels.row_of(database, started))["worker_id"] is None

        await until(is_given_back)
        assert model.asked == ["Ann"]
        await holder.execute("rollback")
        await until(ended(database, started))
        await holder.close()
    row = await panels.row_of(database, started)
    assert (row["status"], row["claim_number"]) == ("Completed", 2)
    calls = await panels.rows_of(database, started, "model_call")
    assert sum(c["voided_at"] is not None for c in calls) == 1 and all(c["error_class"] is None for c in calls)


async def claim_whose_answer_is_lost(database: Database, new_id: NewId, *, seconds: float) -> bool:
    async with crew(database, new_id, slots=1) as made:
        await until(lambda: made.worker.is_ready)
        (row,) = await panels.fetch(database, "select worker_id from worker")
        claimed: list[Any] = []
        while not claimed:  # the worker itself may be first, and then it is another run's turn
            started = await panels.start(database, new_id)
            async with database.reader() as reader:
                # as the worker itself claims; and then the answer does not arrive
                claimed = await runs.claim(reader, row["worker_id"], batch=1, suspects=False)
        try:
            await until(ended(database, started), seconds=seconds)
        except TimeoutError:
            return False
    return True


async def test_claim_whose_answer_was_lost_is_given_back(database: Database, new_id: NewId) -> None:
    """F20: a claim that committed while its connection was cut is found by comparing, not held while the worker lives."""
    assert await claim_whose_answer_is_lost(database, new_id, seconds=20)


async def test_control_claim_whose_answer_was_lost_stays_without_the_comparison(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_comparison(worker: Worker) -> None:
        pass

    monkeypatch.setattr(Worker, "_compare", no_comparison)
    assert not await claim_whose_answer_is_lost(database, new_id, seconds=2)


async def test_worker_taken_for_dead_drops_everything_and_begins_anew(database: Database, new_id: NewId) -> None:
    """State.md, lease: a ping without a row; the other claim's run is left alone, new runs are taken under a new row."""
    started = await panels.start(database, new_id)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, lease_seconds=60, sweep_seconds=1000) as made:
        await until(lambda: model.asked == ["Ann"])
        (before,) = await panels.fetch(database, "select worker_id from worker")
        await panels.shift_clock(database, 61)
        await until(lambda: len(model.cancelled) == 1)

        async def has_a_new_row() -> bool:
            rows = await panels.fetch(database, "select worker_id from worker where lease_until > folkmoot_now()")
            return bool(rows and rows[0]["worker_id"] != before["worker_id"])

        await until(has_a_new_row)
        model.held.clear()
        await until(ended(database, started))
        assert not made.task.done()
    assert len(panels.texts(await gapless(database, started))) == 3


# tool calls


@function_tool(is_read_only=True)
async def look(text: str) -> str:
    """Look something up."""
    return f"seen {text}"


class Shop:
    """Functions with a log; `pay` waits on its gate the first time."""

    def __init__(self, *, is_idempotent: bool = False) -> None:
        self.log: list[tuple[str, str, str]] = []
        self.gate = asyncio.Event()
        self.reading = asyncio.Event()
        shop = self

        @function_tool(is_idempotent=is_idempotent)
        async def pay(amount: int, context: CallContext) -> str:
            """Pay."""
            shop.log.append(("pay", context.idempotency_key, str(amount)))
            if amount == 1:
                await shop.gate.wait()
            return f"paid {amount}"

        @function_tool(is_read_only=True)
        async def read(text: str, context: CallContext) -> str:
            """Read."""
            shop.log.append(("read", context.idempotency_key, text))
            return f"read {text}"

        self.functions: dict[str, Any] = {"pay": pay, "read": read}

    def interaction(self, new_id: NewId, calls: list[dict[str, Any]]) -> Any:
        tools = FunctionTools.discover(self.functions)
        offered = tuple(tools.offered(name) for name in tools.names)
        script = {
            "rules": [{"when": {"participant": "Ann", "call": 1}, "reply": {"calls": calls}}, *panels.TALK["rules"]]
        }
        return panels.interaction(new_id, script, names=("Ann",), tools={"Ann": offered})


PAY = {"name": "pay", "arguments": {"amount": 1}}


def results(conversation: list[Any]) -> list[tuple[str, str]]:
    """Each call with its result, in the order of the calls."""
    by_id = {s.item.body.tool_call_id: s.item.body for s in conversation if isinstance(s.item.body, items.ToolResult)}
    asked = [s.item.body for s in conversation if isinstance(s.item.body, items.ToolCall)]
    assert len(by_id) == len(asked) == sum(isinstance(s.item.body, items.ToolResult) for s in conversation)
    return [(call.function_name, by_id[call.tool_call_id].result) for call in asked]


async def lose_a_call(database: Database, new_id: NewId, shop: Shop, calls: list[dict[str, Any]]) -> Started:
    """Hands a run back with `pay` under way: for the next claim, its worker is gone."""
    started = await panels.start(database, new_id, shop.interaction(new_id, calls))
    async with crew(database, new_id, functions=shop.functions, drain_seconds=0.05):
        await until(lambda: any(name == "pay" for name, _, _ in shop.log))
        await until(lambda: sum(name == "read" for name, _, _ in shop.log) == sum(c["name"] == "read" for c in calls))
    return started


async def test_tool_call_is_made_once_and_its_result_is_in_the_conversation(database: Database, new_id: NewId) -> None:
    """F03: begun before it is sent, one result, the call's id as the idempotency key."""
    shop = Shop()
    shop.gate.set()
    started = await panels.start(database, new_id, shop.interaction(new_id, [PAY]))
    async with crew(database, new_id, functions=shop.functions) as made:
        await until(ended(database, started))
    (call,) = await panels.rows_of(database, started, "call")
    assert shop.log == [("pay", str(call["call_id"]), "1")] and call["idempotency_key"] == str(call["call_id"])
    assert (call["outcome"], call["attempts"]) == ("done", 1) and call["begun_at"] is not None
    assert results(await gapless(database, started)) == [("pay", "paid 1")]
    assert made.model.asked == ["Ann", "Ann"]


async def test_lost_call_that_may_not_be_repeated_has_an_unknown_outcome(database: Database, new_id: NewId) -> None:
    """F04: it is not made again; the model is told that it may or may not have happened."""
    shop = Shop()
    started = await lose_a_call(database, new_id, shop, [PAY])
    async with crew(database, new_id, functions=shop.functions):
        await until(ended(database, started))
    assert len(shop.log) == 1
    ((_, result),) = results(await gapless(database, started))
    assert "may or may not have happened" in result
    (call,) = await panels.rows_of(database, started, "call")
    assert (call["outcome"], call["attempts"]) == ("unknown", 1)


async def lose_a_call_and_write_in_between(database: Database, new_id: NewId, shop: Shop) -> list[Any]:
    """A person's message commits between the new claim's look at the run and its first append."""
    started = await lose_a_call(database, new_id, shop, [PAY])
    shop.gate.set()

    def write_once() -> None:
        fault_points.disarm_all()
        thread = threading.Thread(target=lambda: asyncio.run(post_beside(database.dsn, started, new_id)))
        thread.start()
        thread.join()

    fault_points.arm("before_commit", write_once)
    async with crew(database, new_id, functions=shop.functions):
        await until(ended(database, started))
    return await gapless(database, started)


async def post_beside(dsn: str, started: Started, new_id: NewId) -> None:
    beside = await Database.open(dsn, connections=1)
    await panels.post(beside, started, new_id)
    await beside.close()


async def test_message_in_between_does_not_repeat_a_lost_call(database: Database, new_id: NewId) -> None:
    """F04: an 'outcome unknown' that was decided and not written is decided again, and the call is not made."""
    shop = Shop()
    conversation = await lose_a_call_and_write_in_between(database, new_id, shop)
    assert len(shop.log) == 1 and "may or may not have happened" in results(conversation)[0][1]
    assert "Pat: A word from me." in panels.texts(conversation)


async def test_control_lost_call_is_repeated_when_its_unwritten_end_is_believed(
    database: Database, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Transcript.take

    def believe(transcript: Transcript, append: Append, **kwargs: Any) -> int:
        for call in append.calls_ended:
            transcript._calls.pop(str(call.call_id), None)
        return take(transcript, append, **kwargs)

    monkeypatch.setattr(Transcript, "take", believe)
    shop = Shop()
    await lose_a_call_and_write_in_between(database, new_id, shop)
    assert len(shop.log) == 2


async def test_lost_idempotent_call_is_sent_again_with_the_same_key(database: Database, new_id: NewId) -> None:
    """F05: the same key at each attempt, one result."""
    shop = Shop(is_idempotent=True)
    started = await lose_a_call(database, new_id, shop, [PAY])
    shop.gate.set()
    async with crew(database, new_id, functions=shop.functions):
        await until(ended(database, started))
    assert len(shop.log) == 2 and len(set(shop.log)) == 1
    assert results(await gapless(database, started)) == [("pay", "paid 1")]
    (call,) = await panels.rows_of(database, started, "call")
    assert (call["outcome"], call["attempts"]) == ("done", 2)


async def test_calls_of_one_reply_are_taken_up_each_by_its_own_state(database: Database, new_id: NewId) -> None:
    """F06: one done, one under way, one not begun; order and pairing are kept."""
    shop = Shop()
    read = {"name": "read", "arguments": {"text": "a"}}
    later = {"name": "pay", "arguments": {"amount": 2}}
    started = await lose_a_call(database, new_id, shop, [read, PAY, later])
    assert Counter(name for name, _, _ in shop.log) == {"read": 1, "pay": 1}
    async with crew(database, new_id, functions=shop.functions):
        await until(ended(database, started))
    assert [(name, text) for name, _, text in shop.log if text != "a"] == [("pay", "1"), ("pay", "2")]
    found = results(await gapless(database, started))
    assert [name for name, _ in found] == ["read", "pay", "pay"]
    assert found[0][1] == "read a" and "may or may not" in found[1][1] and found[2][1] == "paid 2"
    assert len({key for _, key, _ in shop.log}) == 3


async def test_stop_closes_a_tool_call_that_is_under_way(database: Database, new_id: NewId) -> None:
    """B13, B20: every open call has its error result when the run is stopped."""
    shop = Shop()
    started = await panels.start(
        database, new_id, shop.interaction(new_id, [PAY, {"name": "pay", "arguments": {"amount": 2}}])
    )
    async with crew(database, new_id, functions=shop.functions) as made:
        await until(lambda: len(shop.log) == 1)
        await panels.stop(database, started)
        tell_run(made, started)
        await until(ended(database, started))
    assert len(shop.log) == 1
    found = results(await gapless(database, started))
    assert len(found) == 2
    outcomes = Counter(call["outcome"] for call in await panels.rows_of(database, started, "call"))
    assert outcomes == {"unknown": 1, "error": 1} and not await panels.has_open_calls(database)
