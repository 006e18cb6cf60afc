"""Drives one claimed run: read, decide, perform, commit, again, until it ends or is handed back.

One transaction per outcome: what the outcome adds is firm; what the engine decides from it (the next floor, the next model
call's row, the end) is soft, and is decided again if others wrote in between. No row touched: the claim is no more, and
everything is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from folkmoot.domain.calls import DelegateTarget, SwarmTarget
from folkmoot.domain.items import EndReason, Item, Summary
from folkmoot.domain.model_calls import (
    FailureClass,
    Held,
    ModelFailure,
    ModelReply,
)
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import ClaimedRun, Facts
from folkmoot.engine import decide, record, time_limits
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.step import AskModel, End, RunCall, Wait
from folkmoot.kernel import fault_points
from folkmoot.kernel.errors import LeaseLost
from folkmoot.runtime import agent_runs, ended_calls, perform
from folkmoot.runtime.arrivals import Arrivals
from folkmoot.runtime.ended_calls import priced
from folkmoot.runtime.plans import Firm, Plan, planned
from folkmoot.runtime.transcript import Transcript
from folkmoot.runtime.under_way import UnderWay
from folkmoot.runtime.workshop import DatabaseClock, Workshop
from folkmoot.services import agent_rights, trees
from folkmoot.store import appends, runs
from folkmoot.store.appends import Append, HandBack, ModelCallEnded, Pause


class Drive:
    """One claim of one run, until it ends, waits for a person, or is handed back.

    `nudge` makes it look at its signals; `drain` lets it go at the next step boundary.

    `is_apart`: the run is a suspect in a process of its own; it is handed back after the first step that it came through.
    """

    def __init__(
        self,
        workshop: Workshop,
        claimed: ClaimedRun,
        *,
        stopped_by: str | None,
        driver_errors: int,
        is_apart: bool = False,
    ) -> None:
        self.claim = claimed.claim
        self.signal_number = claimed.signal_number
        self._workshop = workshop
        self._claimed = claimed
        self._driver_errors = driver_errors
        self._is_apart = is_apart
        self._stopped_by = stopped_by
        self._clock = DatabaseClock(claimed.now)
        self._transcript = Transcript(
            claimed.claim, claimed.last_sequence, cost_of=partial(priced, workshop, self._clock)
        )
        self._unsent: list[UUID] = []  # model calls whose rows are written, or may be, and which were not sent yet
        self._held: dict[str, float] = {}  # steps that no key was free for, and when it is worth to look again
        self._arrivals = Arrivals()
        self._under_way = UnderWay(self._arrivals)
        self._is_draining = False
        self._is_over = False
        self._ended_as: RunStatus | None = None
        self._has_written = False
        self._wake_at: float | None = None
        self._decided_at = 0.0

    @property
    def driver_errors(self) -> int:
        """Unexpected errors in a row, up to this claim's first item."""
        return 0 if self._has_written else self._driver_errors

    def nudge(self) -> None:
        self._arrivals.put(None)

    def drain(self) -> None:
        self._is_draining = True
        self.nudge()

    async def run(self) -> None:
        """Until the run has ended or is handed back.

        Raises LeaseLost where the claim is no more, or the worker's own deadline has passed; whoever is still its holder
        then gives it back by `parting`.
        """
        timer: asyncio.TimerHandle | None = None
        try:
            fault_points.reach("after_claim")
            async with self._workshop.database.reader() as reader:
                await self._transcript.load(reader)
            await self._commit(Firm(model_calls_ended=self._transcript.lose_calls()))
            while not self._is_over:
                timer = self._set_timer(timer)
                arrived = await self._arrivals.next()
                if isinstance(arrived, Exception):
                    raise arrived
                await (self._look() if arrived is None else self._take(arrived))
            await self._stop_below()
            fault_points.reach("before_release")
        finally:
            if timer is not None:
                timer.cancel()
            await self._under_way.cancel()

    def parting(self, *, ready_in_seconds: float = 0.0, driver_errors: int | None = None) -> Append:
        """What gives the run back after `run` has raised. Model calls that were under way count as lost."""
        return Append(
            self.claim, self.signal_number, hand_back=HandBack(ready_in_seconds), driver_errors=driver_errors,
            model_calls_ended=self._lost_calls(is_firm=True), model_calls_voided=self._unsent,
        )  # fmt: skip

    async def fail(self, words: str) -> None:
        """End the run for a fault of ours, closing what is open; also one that could not even be read."""
        new_id, protocol = self._workshop.new_id, self._transcript.protocol
        while True:
            closed = decide.ending(protocol, EndReason.FAILURE, words, new_id=new_id, facts=self._facts())
            assert closed.end is not None
            append = Append(
                self.claim, self.signal_number, closed.items, end=_end(closed.end), model_calls_voided=self._unsent,
                model_calls_ended=self._lost_calls(is_firm=False), ends_under=self._claimed.parent_id,
            )  # fmt: skip
            append.calls_asked, append.calls_ended = self._transcript.call_changes(closed.items, 0)
            appended = await self._workshop.appender.append(append)
            if appended.is_whole:
                return self._tell_parent()
            self.signal_number = appended.signal_number

    def _lost_calls(self, *, is_firm: bool) -> list[ModelCallEnded]:
        return [self._transcript.lost_call(begun, is_firm=is_firm) for begun in self._under_way.model_calls.values()]

    # deciding

    def _facts(self) -> Facts:
        self._decided_at = self._clock.now_timestamp()
        now = datetime.fromtimestamp(self._decided_at, UTC)
        claimed = self._claimed
        return self._transcript.facts(
            now, work_deadline=claimed.work_deadline, stopped_by=self._stopped_by, ran_out=claimed.ran_out,
            under_way={key: begun.model_call_id for key, begun in self._under_way.model_calls.items()},
        )  # fmt: skip

    def _decide(self, ahead: Protocol, firm: Firm) -> Plan:
        """What follows from a state. `ahead` is taken over and folded on. Nobody is waited for while something is under way."""
        facts, seating, new_id = self._facts(), self._transcript.seating, self._workshop.new_id
        with self._transcript.ahead_with(firm.items) as on_item:
            plan = planned(seating, ahead, facts, new_id, on_item=on_item)
            if self._under_way and not plan.cuts:
                plan.wait = None
            self._plan_model_calls(plan, [*firm.items, *plan.items])
        return plan

    def _plan_model_calls(self, plan: Plan, unread: Sequence[Item]) -> None:
        """A row for each model call that begins now; the time of the next one that has to wait."""
        for step in plan.steps:
            if not isinstance(step, AskModel) or (step.key in self._under_way and not plan.cuts):
                continue
            not_before = max(step.not_before or 0.0, self._held.get(step.key, 0.0))
            if not_before > self._clock.now_timestamp():
                plan.wake_at = min(plan.wake_at or not_before, not_before)
                continue
            plan.begun.append(self._transcript.begun(step, self._workshop.new_id(), unread=unread))

    # committing

    @property
    def _lets_go(self) -> bool:
        """Whether nothing more is begun. A stop is carried out even so."""
        return (self._is_draining or (self._is_apart and self._has_written)) and self._stopped_by is None

    async def _commit(self, firm: Firm) -> None:
        """Commit an outcome with what follows from it, and start what can go on; again while others write in between."""
        while not self._is_over:
            if self._lets_go:
                return await self._let_go(firm)
            ahead = self._transcript.protocol.copy()
            for item in firm.items:
                ahead.advance(self._transcript.seating, item)
            # What follows from a summary shows once it stands in its view.
            is_summary = any(isinstance(item.body, Summary) for item in firm.items)
            plan = Plan([], None, (), ahead) if is_summary else self._decide(ahead, firm)
            is_whole = await self._append_plan(firm, plan)
            firm = Firm()
            if self._is_over or self._lets_go or is_summary:
                continue
            if is_whole and await self._start(plan):
                return

    async def _append_plan(self, firm: Firm, plan: Plan) -> bool:
        """Whether all of it was written. Nothing to write counts as written."""
        new = [*firm.items, *plan.items]
        voided = firm.model_calls_voided
        if not (new or firm.model_calls_ended or voided or plan.begun or plan.end or plan.wait):
            return True
        ended = list(firm.model_calls_ended)
        if plan.end is not None:
            ended += self._lost_calls(is_firm=False)
        elif plan.cuts:
            ended += [self._transcript.cut_call(begun) for begun in self._under_way.model_calls.values()]
        append = Append(
            self.claim, self.signal_number, new, len(firm.items), _end(plan.end) if plan.end else None,
            self._pause(plan.wait, plan.protocol) if plan.wait else None,
            driver_errors=0 if new and self.driver_errors else None, model_calls_begun=plan.begun, model_calls_ended=ended,
            model_calls_voided=voided, ends_under=self._claimed.parent_id if plan.end is not None else None,
        )  # fmt: skip
        if new:
            append.calls_asked, append.calls_ended = self._transcript.call_changes(new, len(firm.items))
        self._unsent = [begun.model_call_id for begun in plan.begun]
        is_whole = await self._append(append, ahead=plan.protocol)
        if not is_whole:
            self._unsent = []
        self._is_over = is_whole and (plan.end is not None or plan.wait is not None)
        self._ended_as = append.end.status if is_whole and append.end is not None else None
        if is_whole and plan.cuts:
            for begun in self._under_way.cut_off():
                self._transcript.note_cut(begun)
        if is_whole and plan.wait is not None:
            fault_points.reach("after_pause")
            watched, sequence = self._workshop.watched, self._transcript.sequence
            if plan.wait.pending is not None:
                watched.paused(self.claim.tenant_id, self.claim.run_id, sequence=sequence)
            else:
                watched.appended(self.claim.run_id, sequence)
        if is_whole and plan.end is not None:
            self._tell_parent()
        return is_whole

    def _pause(self, wait: Wait, protocol: Protocol) -> Pause:
        """A wait for sub-runs is time at work: it is over when the time is, or when something is to be cut for the last turn."""
        is_at_work = wait.status is RunStatus.PENDING_SUB_INTERACTIONS
        ready_by = self._claimed.work_deadline if is_at_work else None
        if ready_by is not None:
            cut = time_limits.next_cut(self._transcript.seating.definition, protocol, ready_by)
            if cut is not None and cut.timestamp() > self._decided_at:
                ready_by = cut
        return Pause(wait.status, wait.pending, wait.awaits, ready_by)

    def _tell_parent(self) -> None:
        """After a sub-run's end: the worker of its parent; and all workers, since it may have been waiting for this."""
        parent_id = self._claimed.parent_id
        if parent_id is not None:
            self._workshop.watched.tell({"to": "run", "run": str(parent_id)})
            self._workshop.watched.tell({"to": "workers"})

    async def _stop_below(self) -> None:
        """Once the run has ended: what it started is asked to stop, unless it is Completed."""
        if self._ended_as in (None, RunStatus.COMPLETED) or not self._transcript.seating.definition.starts_runs:
            return
        await trees.stop_below(
            self._workshop.database, tenant_id=self.claim.tenant_id, ended_id=self.claim.run_id, tell=self._workshop.watched.tell
        )  # fmt: skip

    async def _append(self, append: Append, *, ahead: Protocol | None = None) -> bool:
        """Commit, and take in what was written: by others in between, then by us. Whether the soft part was."""
        if self._transcript.seating.loop is not None:
            append.agent = agent_runs.change_of(
                self._workshop, self._claimed, self._transcript, self._clock, append, ahead
            )
        appended = await self._workshop.appender.append(append)
        self._clock.set(appended.now)
        await self._read_on(appended.before)
        if appended.signal_number != self.signal_number:
            await self._read_sub_runs()
        self.signal_number, self._stopped_by = appended.signal_number, appended.stopped_by
        if append.agent is not None:
            self._transcript.used = agent_runs.with_calls(self._transcript.used, append.model_calls_ended)
        if self._transcript.take(append, is_whole=appended.is_whole, ahead=ahead):
            self._has_written = True
            self._workshop.watched.appended(self.claim.run_id, self._transcript.sequence)
        return appended.is_whole

    async def _read_on(self, upto: int) -> None:
        if upto > self._transcript.sequence:
            async with self._workshop.database.reader() as reader:
                await self._transcript.read_on(reader, upto=upto)

    async def _read_sub_runs(self) -> None:
        if self._transcript.has_swarm:
            async with self._workshop.database.reader() as reader:
                await self._transcript.read_sub_runs(reader)

    async def _let_go(self, firm: Firm) -> None:
        """Commit what came in, begin nothing, and hand the run back when nothing is under way."""
        self._wake_at = None
        back = None if self._under_way else HandBack()
        voided = [*self._unsent, *firm.model_calls_voided]
        if back is not None or voided or firm.items or firm.model_calls_ended:
            append = Append(
                self.claim, self.signal_number, firm.items, len(firm.items), hand_back=back,
                model_calls_ended=firm.model_calls_ended, model_calls_voided=voided,
            )  # fmt: skip
            append.calls_asked, append.calls_ended = self._transcript.call_changes(firm.items, len(firm.items))
            await self._append(append)
            self._unsent = []
        self._is_over = back is not None

    # performing

    async def _start(self, plan: Plan) -> bool:
        """Start the steps that are not under way. False: others wrote before a call could begin; decide again."""
        self._wake_at = plan.wake_at
        calls = [step for step in plan.steps if isinstance(step, RunCall) and step.key not in self._under_way]
        if plan.begun or calls:
            self._workshop.must_act("nothing is begun")
        by_key = {step.key: step for step in plan.steps if isinstance(step, AskModel)}
        for begun in plan.begun:
            step = by_key[begun.step_key]
            request = self._transcript.request(step, trim_upto=begun.trimmed_upto)
            work = perform.ask(
                self._workshop, self.claim, step, resolved=self._transcript.seating.definition, request=request,
                model_call_id=begun.model_call_id,
            )  # fmt: skip
            self._under_way.ask(begun, work)
        self._unsent = []
        return await self._begin_calls(calls) if calls else True

    async def _begin_calls(self, calls: list[RunCall]) -> bool:
        """Record the calls as begun, in a commit of its own just before they are sent."""
        calls = await self._allowed(calls)
        if not calls:
            return True
        ids = [UUID(step.call.call_id) for step in calls]
        if not await self._append(Append(self.claim, self.signal_number, calls_begun=ids)):
            return False
        for step in calls:
            self._under_way.begin(step.key, perform.call(self._workshop, self.claim, step))
        return True

    async def _allowed(self, calls: list[RunCall]) -> list[RunCall]:
        """Those that are made. Where an agent's owner may have no tools used any more, none is: each has that for its result."""
        loop = self._transcript.seating.loop
        if loop is None:
            return calls
        refusal = await agent_rights.refusal_of_call(self._workshop.database, self.claim.tenant_id, loop)
        if refusal is None:
            return calls
        refused = [step for step in calls if not self._transcript.has_begun(step.call.call_id)]
        for step in refused:
            self._under_way.begin(step.key, perform.refused(step, f"This call was not made. {refusal}"))
        # one that had begun was allowed then: it is sent again where that does no harm, and of a delegation the answer is read
        return [step for step in calls if step not in refused]

    async def _take(self, arrived: perform.Asked | Sequence[perform.Called]) -> None:
        """Record a model's reply, or results in one commit, unless the step was cut."""
        if isinstance(arrived, perform.Asked):
            if self._under_way.take(arrived):
                await self._take_reply(arrived)
            return
        called = [done for done in arrived if self._under_way.take(done)]
        if called:
            await self._take_results(called)

    async def _take_results(self, called: Sequence[perform.Called]) -> None:
        seating, protocol, new_id = self._transcript.seating, self._transcript.protocol, self._workshop.new_id
        made: list[Item] = []
        for done in called:
            if done.result.is_under_way:  # a delegated run was started, and is waited for
                continue
            made += record.items_of_result(seating, protocol, done.step, result=done.result, new_id=new_id)
        if any(
            isinstance(done.step.tool.target, SwarmTarget | DelegateTarget) for done in called
        ):  # some may have been started or stopped
            await self._read_sub_runs()
        await self._commit(Firm(made))

    async def _take_reply(self, done: perform.Asked) -> None:
        seating, protocol, new_id = self._transcript.seating, self._transcript.protocol, self._workshop.new_id
        step, call_id, outcome = done.step, done.model_call_id, done.outcome
        self._held.pop(step.key, None)
        if isinstance(outcome, Held):  # nothing was sent, so nothing counts as tried
            self._held[step.key] = self._clock.now_timestamp() + outcome.wait_seconds
            return await self._commit(Firm(model_calls_voided=[call_id]))
        if isinstance(outcome, ModelReply) and (fault := record.fault_of_reply(step, outcome)) is not None:
            outcome = ModelFailure(FailureClass.UNUSABLE, fault, usage=outcome.usage)
        if isinstance(outcome, ModelFailure):
            failed = ended_calls.failed(
                self._workshop, self._clock, self._transcript, step, call_id=call_id, failure=outcome, key_rests=done.key_rests
            )  # fmt: skip
            return await self._commit(Firm(model_calls_ended=[failed]))
        made = record.items_of_reply(seating, protocol, step, reply=outcome, model_call_id=call_id, new_id=new_id)
        ended = ended_calls.answered(
            self._workshop, self._clock, self._transcript, step, call_id=call_id, reply=outcome
        )
        await self._commit(Firm(made, [ended]))

    # waiting

    async def _look(self) -> None:
        """Something happened outside, or time has come: read the signals, and decide again."""
        async with self._workshop.database.reader() as reader:
            signals = await runs.signals(reader, self.claim)
        if signals is None:
            raise LeaseLost(f"Another claim of run {self.claim.run_id} exists.")
        self._clock.set(signals.now)
        await self._read_on(signals.last_sequence)
        await self._read_sub_runs()
        self.signal_number, self._stopped_by = signals.signal_number, signals.stopped_by
        await self._commit(Firm())

    def _set_timer(self, timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
        """Wake at the time limit, when something is to be cut for the last turn, or when a model may be asked again."""
        if timer is not None:
            timer.cancel()
        deadline = self._claimed.work_deadline
        due = [t for t in (self._wake_at, deadline.timestamp() if deadline else None) if t is not None]
        cut = time_limits.next_cut(self._transcript.seating.definition, self._transcript.protocol, deadline)
        if cut is not None and cut.timestamp() > self._decided_at:  # else it was decided on already
            due.append(cut.timestamp())
        if not due or self._lets_go:
            return None
        delay = max(0.0, min(due) - self._clock.now_timestamp()) + 0.001
        return asyncio.get_running_loop().call_later(delay, self.nudge)


def _end(end: End) -> appends.End:
    return appends.End(end.status, end.output, end.failure)
