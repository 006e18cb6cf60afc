"""What is recorded of a model call that has ended: what it used and cost, or why it failed and when it may be tried again.

Deliberately absent: items of the reply (`engine.record`), and commits (`drive`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

from folkmoot.domain.costs import cost_of
from folkmoot.domain.model_calls import WAITED_OUT, ModelCallFact, ModelChoice, ModelFailure, ModelReply, Usage
from folkmoot.engine.step import AskModel
from folkmoot.runtime.options import LONGEST_WAIT_SECONDS, backoff_seconds
from folkmoot.runtime.transcript import Transcript
from folkmoot.runtime.workshop import DatabaseClock, Workshop
from folkmoot.store.appends import ModelCallEnded


def priced(
    workshop: Workshop, clock: DatabaseClock, model: ModelChoice, usage: Usage, service_tier: str | None
) -> Decimal | None:
    """What a call costs at the prices of this moment; null where one is not known."""
    now = datetime.fromtimestamp(clock.now_timestamp(), UTC)
    prompt_tokens = usage.input + usage.cached_input + usage.cache_write
    prices = workshop.prices_of(model, now, prompt_tokens=prompt_tokens, service_tier=service_tier)
    return cost_of(usage, prices)


def answered(
    workshop: Workshop, clock: DatabaseClock, transcript: Transcript, step: AskModel, *, call_id: UUID, reply: ModelReply
) -> ModelCallEnded:  # fmt: skip
    transcript.note_reply(step, call_id, reply)
    cost = priced(workshop, clock, _model_of(transcript, step), reply.usage, reply.service_tier)
    return ModelCallEnded(call_id, reply.usage, reply.replay, reply.service_tier, cost=cost)


def failed(
    workshop: Workshop, clock: DatabaseClock, transcript: Transcript, step: AskModel, *, call_id: UUID, failure: ModelFailure,
    key_rests: bool,
) -> ModelCallEnded:  # fmt: skip
    """`key_rests`: another key may be free now, so that nothing is waited for."""
    wait: float | None = None
    if failure.failure in WAITED_OUT and not key_rests:
        # What befell other keys was not waited for, and makes no wait longer.
        wait = backoff_seconds(workshop.options, transcript.waits_of(step) + 1, workshop.chance())
        wait = max(wait, min(failure.retry_after_seconds or 0.0, LONGEST_WAIT_SECONDS))
    not_before = clock.now_timestamp() + wait if wait is not None else None
    guessed = transcript.sizes.note_failure(step, call_id, failure.failure)
    transcript.note_failure(ModelCallFact(call_id, step.key, failure.failure, failure.message, not_before, guessed))
    usage, model = failure.usage, _model_of(transcript, step)
    return ModelCallEnded(
        call_id, usage, error_class=failure.failure.value, error_message=failure.message, wait_seconds=wait,
        cost=priced(workshop, clock, model, usage, None) if usage is not None else None,
    )  # fmt: skip


def _model_of(transcript: Transcript, step: AskModel) -> ModelChoice:
    return transcript.seating.model_of(step)
