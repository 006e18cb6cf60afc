"""What an agent run's append moves beside items and facts: its phase, its payload, and the request for its owner's consent.

Told from the state after the append, and from what its calls have used. Deliberately absent: writing it (`store.agent_runs`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from decimal import Decimal

from folkmoot.agentloop.payload import payload
from folkmoot.domain.budgets import Amounts
from folkmoot.domain.model_calls import NEVER_MADE
from folkmoot.domain.pending import Pending
from folkmoot.domain.runs import ClaimedRun
from folkmoot.engine.protocol import Protocol
from folkmoot.kernel.tokens import token_of
from folkmoot.runtime.transcript import Transcript
from folkmoot.runtime.workshop import DatabaseClock, Workshop
from folkmoot.store.appends import AgentChange, Append, ConsentAsked, ModelCallEnded

_SECRET_BYTES = 10  # 16 characters


def change_of(
    workshop: Workshop, claimed: ClaimedRun, transcript: Transcript, clock: DatabaseClock, append: Append, ahead: Protocol | None
) -> AgentChange:  # fmt: skip
    """`ahead`: the protocol after all of the append; null: it adds no items."""
    loop = transcript.seating.definition.loop
    assert loop is not None
    state = (ahead or transcript.protocol).loop
    pending = append.pause.pending if append.pause is not None else None
    seconds = claimed.worked.total_seconds() + clock.now_timestamp() - claimed.now.timestamp()
    used = with_calls(transcript.used, append.model_calls_ended)
    told = payload(
        loop, state, pending_call=str(pending.pending_id) if pending is not None else None, used=used,
        budget=transcript.seating.definition.budget, working_seconds=seconds,
    )  # fmt: skip
    consent = _consent(workshop, claimed, transcript, pending) if pending is not None else None
    return AgentChange(state.phase, workshop.new_id(), told, consent)


def _consent(workshop: Workshop, claimed: ClaimedRun, transcript: Transcript, pending: Pending) -> ConsentAsked:
    message_id, agent = workshop.new_id(), transcript.seating.names[0]
    secret = token_of(workshop.random_bytes(_SECRET_BYTES))
    sealed = workshop.seal_consent(claimed.claim.tenant_id, message_id, secret)
    digest = hashlib.sha256(secret.encode()).digest() if sealed is not None else None
    return ConsentAsked(workshop.new_id(), workshop.new_id(), message_id, agent, digest, sealed)


def with_calls(used: Amounts, ended: Sequence[ModelCallEnded]) -> Amounts:
    """What is used with some more calls of models."""
    tokens, money, calls = used.tokens, used.money, used.calls
    for call in ended:
        if call.error_class in NEVER_MADE:
            continue
        calls += 1
        money += call.cost or Decimal(0)
        if call.usage is not None:
            usage = call.usage
            tokens += usage.input + usage.cached_input + usage.cache_write + usage.output + usage.reasoning
    return Amounts(tokens, money, calls)
