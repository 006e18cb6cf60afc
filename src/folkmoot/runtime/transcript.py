"""A claim's copy of its run: the conversation folded into the protocol and every view, and the facts beside the items.

Read from the database at a claim and where others wrote; carried on by what this worker appends. Deliberately absent:
decisions (`engine`) and commits (`drive`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from folkmoot.domain import items
from folkmoot.domain.approvals import final_call
from folkmoot.domain.budgets import Amounts
from folkmoot.domain.calls import CallFact, CallState
from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import (
    FailureClass,
    ModelCallFact,
    ModelChoice,
    ModelReply,
    ModelRequest,
    Purpose,
    Replay,
    Sampling,
    Usage,
)
from folkmoot.domain.operations import OperationTarget
from folkmoot.domain.pending import Decision
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.runs import CUT_WORDS, Claim, Facts
from folkmoot.engine import estimates
from folkmoot.engine.protocol import Protocol
from folkmoot.engine.seating import Seating
from folkmoot.engine.step import AskModel
from folkmoot.engine.views import Views
from folkmoot.runtime.prompt_sizes import PromptSizes
from folkmoot.store import budgets, conversations, runs, swarms
from folkmoot.store.appends import Append, CallAsked, CallEnded, ModelCallBegun, ModelCallEnded
from folkmoot.store.database import Reader

_PAGE = 500
_LOST_WORDS = "The worker that made this call is gone; its reply was not read."


CostOf = Callable[[ModelChoice, Usage, str | None], Decimal | None]


class Transcript:
    """`sequence`: of the last item in the copy. Before `load` there is an empty protocol, and nothing else.

    `cost_of`: what a model's call costs now, by its usage and service tier.
    """

    seating: Seating
    views: Views
    sizes: PromptSizes

    def __init__(self, claim: Claim, sequence: int, *, cost_of: CostOf) -> None:
        self.protocol = Protocol()
        self.sequence = 0
        self._upto = sequence
        self._claim = claim
        self._cost_of = cost_of
        self._model_calls: dict[str, tuple[ModelCallFact, ...]] = {}
        self._calls: dict[str, CallFact] = {}
        self._decisions: dict[str, Decision] = {}
        self._replays: dict[UUID, Replay] = {}
        self._sub_runs: dict[UUID, RunStatus] = {}
        self.used = Amounts()  # by an agent run and all that it delegated

    async def load(self, reader: Reader) -> None:
        """Everything up to the claim. Nobody else writes facts while the claim holds."""
        tenant_id, run_id = self._claim.tenant_id, self._claim.run_id
        self.seating = Seating(await runs.resolved(reader, tenant_id, run_id=run_id))
        self.views = Views(
            self.seating.main_names, gated=self.seating.gated, finishing_tool=self.seating.finishing_tool
        )
        self.sizes = PromptSizes(self.seating, self.views)
        if not self._upto:
            return
        await self.read_sub_runs(reader)
        while self.sequence < self._upto:
            await self.read_on(reader, upto=min(self.sequence + _PAGE, self._upto))
        noted = await conversations.noted_model_calls(reader, tenant_id, run_id=run_id)
        for fact in noted.unsettled:
            self.note_failure(fact)
        self._replays = noted.replays
        if self.sizes.are_cut:
            for prompted in await conversations.prompted(reader, tenant_id, run_id=run_id):
                self.sizes.take(prompted)
        open_calls = await conversations.open_calls(reader, tenant_id, run_id=run_id)
        self._calls = {call_id: self._fact_of(call_id, has_begun=c.has_begun) for call_id, c in open_calls.items()}
        self._decisions = {call_id: c.decision for call_id, c in open_calls.items() if c.decision is not None}
        if self.seating.loop is not None:
            self.used = (await budgets.subtree(reader, tenant_id, top=run_id)).used

    @property
    def has_swarm(self) -> bool:
        """Whether the run may start others, so that their states are facts."""
        return self.seating.definition.starts_runs

    async def read_sub_runs(self, reader: Reader) -> None:
        """After the signal was read: one that ends later moves it again, and so nothing is decided on what is too old."""
        if self.has_swarm:
            self._sub_runs = await swarms.statuses(reader, self._claim.tenant_id, run_id=self._claim.run_id)

    async def read_on(self, reader: Reader, *, upto: int) -> None:
        """Take in the items up to the one with sequence `upto`, which others wrote."""
        tenant_id, run_id = self._claim.tenant_id, self._claim.run_id
        page = await conversations.items_between(reader, tenant_id, run_id=run_id, after=self.sequence, upto=upto)
        self._publish([stored.item for stored in page])
        self.sequence = upto

    def take(self, append: Append, *, is_whole: bool, ahead: Protocol | None) -> int:
        """Take in what was written of an append, all of it or its firm part; the number of its items.

        `ahead`: the protocol after all of it, where it has been folded already.
        """
        written = append.items if is_whole else append.items[: append.firm]
        if is_whole and ahead is not None:
            self.protocol = ahead
            for item in written:
                self.views.add(item)
        else:
            self._publish(written)
        self.sequence += len(written)
        for asked in append.calls_asked:
            if not (is_whole and asked.closed_as):
                self._calls[str(asked.call_id)] = CallFact(str(asked.call_id), CallState.ASKED)
        for ended in append.calls_ended:
            if is_whole or ended.is_firm:
                self._calls.pop(str(ended.call_id), None)
        if is_whole:
            for call_id in append.calls_begun:
                self._calls[str(call_id)] = CallFact(str(call_id), CallState.BEGUN)
        return len(written)

    def _publish(self, new: Sequence[Item]) -> None:
        for item in new:
            self.protocol.advance(self.seating, item)
            self.views.add(item)

    # the facts beside the items

    def facts(
        self, now: datetime, *, work_deadline: datetime | None, stopped_by: str | None, ran_out: RunStatus | None,
        under_way: Mapping[str, UUID],
    ) -> Facts:  # fmt: skip
        is_cut = self.protocol.is_opened and self.sizes.are_cut
        prompts = self.sizes.facts() if is_cut else None
        return Facts(
            now, work_deadline, stopped_by, self._model_calls, self._calls, self._decisions, ran_out, prompts, under_way,
            self._sub_runs,
        )  # fmt: skip

    def note_failure(self, fact: ModelCallFact) -> None:
        self._model_calls[fact.step_key] = (*self._model_calls.get(fact.step_key, ()), fact)

    def waits_of(self, step: AskModel) -> int:
        """How many of the step's failures were waited out before it was tried again."""
        return len([fact for fact in self._model_calls.get(step.key, ()) if fact.not_before is not None])

    def note_reply(self, step: AskModel, call_id: UUID, reply: ModelReply) -> None:
        self._model_calls.pop(step.key, None)
        self.sizes.note_reply(step, call_id, reply.usage)
        if reply.replay is not None:
            model = self.seating.model_of(step)
            self._replays[call_id] = Replay(model.provider, model.model_name, reply.replay)

    def lose_calls(self) -> list[ModelCallEnded]:
        """Model calls of former claims that have no end: their replies are lost, and count as calls."""
        ended: list[ModelCallEnded] = []
        for key, facts in self._model_calls.items():
            for fact in facts:
                if fact.failure is None:
                    ended.append(self._lost(fact.model_call_id, fact.model, fact.estimated_tokens, is_firm=True))
            self._model_calls[key] = tuple(
                ModelCallFact(f.model_call_id, key, FailureClass.LOST, _LOST_WORDS) if f.failure is None else f
                for f in facts
            )
        return ended

    def lost_call(self, begun: ModelCallBegun, *, is_firm: bool, words: str = _LOST_WORDS) -> ModelCallEnded:
        """A model call under way whose reply will not be read."""
        model = (begun.participant, begun.provider, begun.model)
        return self._lost(begun.model_call_id, model, begun.estimated_tokens, is_firm=is_firm, words=words)

    def cut_call(self, begun: ModelCallBegun) -> ModelCallEnded:
        """A model call under way that is cut for the last turn."""
        return self.lost_call(begun, is_firm=False, words=CUT_WORDS)

    def note_cut(self, begun: ModelCallBegun) -> None:
        self.note_failure(ModelCallFact(begun.model_call_id, begun.step_key, FailureClass.LOST, CUT_WORDS))

    def _lost(
        self, call_id: UUID, model: tuple[str, str, str], estimated_tokens: int | None, *, is_firm: bool, words: str = _LOST_WORDS
    ) -> ModelCallEnded:  # fmt: skip
        """`model`: whose it is, its provider and its name."""
        usage = estimates.usage_of_lost(estimated_tokens or 0)
        participant, *named = model
        asked = (m for m in self.seating.models_of(participant) if [m.provider, m.model_name] == named)
        found = next(asked, None)
        cost = self._cost_of(found, usage, None) if found is not None else None
        return ModelCallEnded(
            call_id, usage, error_class=FailureClass.LOST.value, error_message=words, cost=cost, is_firm=is_firm
        )

    def _fact_of(self, call_id: str, *, has_begun: bool) -> CallFact:
        """A call that began under a former claim is lost, but for an idempotent one, which is simply made again."""
        is_idempotent = False
        for turn in self.protocol.open_turns:
            for open_call in turn.open_calls:
                if open_call.call.call_id == call_id:
                    tool = self.seating.tools[turn.seat].get(open_call.call.name)
                    is_idempotent = tool is not None and (tool.is_idempotent or tool.is_read_only)
        return CallFact(
            call_id, CallState.BEGUN if has_begun else CallState.ASKED, lost=has_begun and not is_idempotent
        )

    def has_begun(self, call_id: str) -> bool:
        """Whether a call was begun before, under whatever claim."""
        fact = self._calls.get(call_id)
        return fact is not None and fact.state is CallState.BEGUN

    def call_changes(self, new: Sequence[Item], firm: int) -> tuple[list[CallAsked], list[CallEnded]]:
        """Tool calls that these items ask for and close, for the facts beside them. The first `firm` items are firm."""
        asked: dict[str, CallAsked] = {}
        ended: list[CallEnded] = []
        for n, item in enumerate(new, 1):
            body, detail = item.body, item.detail
            if isinstance(body, items.ToolCall) and isinstance(detail, items.Called) and detail.leaves:
                asked[body.tool_call_id] = self._asked(item, body)
            elif isinstance(body, items.ToolResult):
                outcome = _outcome(body, detail)
                if body.tool_call_id in self._calls:
                    ended.append(CallEnded(UUID(body.tool_call_id), outcome, is_firm=n <= firm))
                elif (open_call := asked.get(body.tool_call_id)) is not None:
                    asked[body.tool_call_id] = replace(open_call, closed_as=outcome)
        return list(asked.values()), ended

    def _asked(self, item: Item, body: items.ToolCall) -> CallAsked:
        tool = self.seating.tools[self.seating.seat_of(item.author)][body.function_name]
        version = tool.target.operation_version if isinstance(tool.target, OperationTarget) else 1
        final = final_call(tool, body.arguments_json)
        return CallAsked(UUID(body.tool_call_id), item.model_call_id, body.function_name, version, final.hash)

    @contextmanager
    def ahead_with(self, unread: Sequence[Item]) -> Iterator[Callable[[Item], None]]:
        """Within the block the views hold what is about to be written, so that prompts are measured with it; more may be added.

        Where nobody has to look so closely, nothing is done.
        """
        if not self.sizes.look_ahead:
            yield lambda _: None
            return
        with self.views.looking_ahead():
            for item in unread:
                self.views.add(item)
            yield self.views.add

    def begun(self, step: AskModel, call_id: UUID, *, unread: Sequence[Item]) -> ModelCallBegun:
        """The row of a model call that begins now. `unread`: items that are written with it."""
        model = self.seating.model_of(step)
        prompt = self.sizes.of(step, unread=() if self.sizes.look_ahead else unread)
        self.sizes.note_begun(call_id, prompt.guessed)
        return ModelCallBegun(
            call_id, step.turn_id, step.key, step.participant, model.provider, model.model_name, step.purpose.value, prompt.guessed,
            prompt.tokens, prompt.trim_upto,
        )  # fmt: skip

    def request(self, step: AskModel, *, trim_upto: int) -> ModelRequest:
        """What a step's model is asked. `trim_upto`: old results up to this sequence are trimmed first."""
        seat = self.seating.participants[step.seat]
        sampling = seat.sampling
        if step.purpose is Purpose.ROUTE:
            entries, sampling = self.sizes.read(step), Sampling()
        elif step.cover is not None:
            entries = self.sizes.read(step)
            own = seat.sampling if seat.compaction_model is None else Sampling()
            sampling = replace(own, max_tokens=step.cover.reply_tokens)
        else:
            entries = self.sizes.entries(step, trim_upto=trim_upto)
        return ModelRequest(
            self.seating.model_of(step), sampling, step.participant, entries, len(entries), step.instruction,
            step.offered, step.required, step.purpose, step.turn, step.call, step.attempt, self._replays,
        )  # fmt: skip


def _outcome(body: items.ToolResult, detail: items.Detail | None) -> str:
    if isinstance(detail, items.UnknownOutcome):
        return "unknown"
    return "error" if body.is_error else "done"
