"""With which key a model is called: chosen and read just before each call, so that a changed key counts at once; what failed rests.

A call is noted with its key before it is sent. A failure's rest is committed before the failure itself: a crash between the two has
the call made again, with a key that is awake. Deliberately absent: keeping a key, and making the call (`llm`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.key_choice import KeyNow, Resting, UsedUp, choose
from folkmoot.domain.model_calls import OF_KEYS, Access, FailureClass, Held, ModelChoice, ModelFailure
from folkmoot.domain.providers import HERE, base_url
from folkmoot.domain.runs import Claim
from folkmoot.engine.step import AskModel
from folkmoot.kernel.errors import LeaseLost, SecretFault
from folkmoot.runtime import model_keys
from folkmoot.runtime.model_keys import Candidates
from folkmoot.runtime.options import LONGEST_WAIT_SECONDS
from folkmoot.runtime.workshop import Workshop
from folkmoot.store import credentials
from folkmoot.store.credentials import KeysNow, RestSeconds
from folkmoot.vault.texts import SecretText

REFUSED_SECONDS = 600.0  # a key that is not valid, or whose secret was deleted, unless its value is set anew
QUOTA_SECONDS = 600.0  # an account without quota, where the provider does not say
NOT_FOR_KEY_SECONDS = 60.0  # a model that a key may not use, or that is not there for it: that model alone
_SPREAD = 0.25  # of a wait: those who wait for one key do not all come at once


@dataclass(frozen=True, slots=True)
class Opened:
    """How the call goes, and the key it takes; null where none is needed."""

    access: Access
    key: KeyNow | None = None


async def opened(
    workshop: Workshop, claim: Claim, *, resolved: ResolvedInteraction, step: AskModel, model: ModelChoice, model_call_id: UUID
) -> Opened | Held | ModelFailure:  # fmt: skip
    """The way to the model with the first key that can be used now, noted with the call.

    Held where the first must be waited for; a ModelFailure that is final where none is left. Raises LeaseLost where the claim is
    no more, Unreachable where the database is.
    """
    if model.provider in HERE:
        return Opened(Access(model.model_name, model.base_url))
    found = await _look(workshop, claim, resolved, model)
    candidates = model_keys.candidates(workshop, resolved, found, step=step, model=model)
    if not candidates.keys and candidates.goes_without:
        return Opened(Access(model.model_name, base_url(model.provider, model.base_url)))
    while True:
        chosen = choose(candidates.groups, found.rests, now=found.now)
        await _rest_deleted(workshop, claim, candidates, found, model=model, upto=chosen)
        match chosen:
            case Resting():
                wait = (chosen.until - found.now) * (1 + _SPREAD * workshop.chance())
                words = f"No key can be used for model '{model.model_name}' just now: {'; '.join(chosen.became)}."
                return Held(max(wait, 0.01), words)
            case UsedUp():
                return ModelFailure(FailureClass.NO_CREDENTIAL, _nothing_left(model, chosen, candidates))
        try:
            secret = _secret(workshop, claim, candidates, found, chosen)
        except SecretFault as fault:
            candidates = candidates.without(chosen, problem=f"cannot be opened ({str(fault).rstrip('.')})")
            continue
        return await _noted(workshop, claim, chosen, secret, model_call_id=model_call_id)


async def failed(
    workshop: Workshop, claim: Claim, opened: Opened, failure: ModelFailure, *, model: ModelChoice
) -> tuple[ModelFailure, bool]:
    """The failure as the engine is told of it, and whether the key rests now, so that the next can be tried at once."""
    key = opened.key
    if key is None:
        # Asked again it would fail again: there is no key that could do better.
        is_final = failure.failure in OF_KEYS
        return (replace(failure, failure=FailureClass.NO_CREDENTIAL) if is_final else failure), False
    if failure.is_for_this_key and failure.failure is FailureClass.INVALID_REQUEST:
        failure = replace(failure, failure=FailureClass.NOT_FOR_KEY)
    seconds = _seconds(workshop, failure)
    if seconds is None:
        return failure, False
    is_overloaded = failure.failure is FailureClass.OVERLOADED  # which says nothing of the key
    async with workshop.database.writer() as writer:
        await credentials.rest(
            writer, claim, key=key.rests_as, model=key.model_name if failure.is_for_this_key else "", version=key.version,
            reason=failure.failure, detail=failure.message, provider=model.provider, seconds=seconds, is_recorded=not is_overloaded,
        )  # fmt: skip
    return failure, not is_overloaded


def _seconds(workshop: Workshop, failure: ModelFailure) -> RestSeconds | None:
    """How long the key rests; null for failures that say nothing of it."""
    told = min(failure.retry_after_seconds or 0.0, LONGEST_WAIT_SECONDS)
    match failure.failure:
        case FailureClass.RATE_LIMITED | FailureClass.OVERLOADED:
            options = workshop.options
            return RestSeconds(options.backoff_first_seconds, options.backoff_longest_seconds, least=told)
        case FailureClass.QUOTA_EXHAUSTED:
            return RestSeconds(told or QUOTA_SECONDS, told or QUOTA_SECONDS)
        case FailureClass.AUTHENTICATION | FailureClass.NOT_FOR_KEY:
            usual = NOT_FOR_KEY_SECONDS if failure.is_for_this_key else REFUSED_SECONDS
            return RestSeconds(told or usual, told or usual)
    return None


async def _look(workshop: Workshop, claim: Claim, resolved: ResolvedInteraction, model: ModelChoice) -> KeysNow:
    stack = resolved.credential_stack
    entries = stack.entries if stack is not None else resolved.credentials
    ids = {entry.secret_id for entry in entries if entry.secret_id is not None and entry.provider == model.provider}
    async with workshop.database.reader() as reader:
        return await credentials.keys_now(
            reader, claim.tenant_id, provider=model.provider, secret_ids=sorted(ids), reads_tenant=stack is None
        )


async def _rest_deleted(
    workshop: Workshop, claim: Claim, candidates: Candidates, found: KeysNow, *, model: ModelChoice, upto: KeyNow | Resting | UsedUp
) -> None:  # fmt: skip
    """A key whose secret was deleted is one that failed: it is recorded where a call would have taken it, once in a rest."""
    for key in candidates.keys:
        if key is upto:
            return
        if key.version != model_keys.DELETED or any(
            r.version == key.version for r in found.rests.get(key.rests_as, ())
        ):
            continue
        async with workshop.database.writer() as writer:
            await credentials.rest(
                writer, claim, key=key.rests_as, model="", version=key.version, reason=FailureClass.AUTHENTICATION,
                detail=f"{key.shown} {key.problem}.", provider=model.provider, seconds=RestSeconds(REFUSED_SECONDS, REFUSED_SECONDS),
                is_recorded=True,
            )  # fmt: skip


def _secret(workshop: Workshop, claim: Claim, candidates: Candidates, found: KeysNow, key: KeyNow) -> SecretText | None:
    """The key's value, opened now; null for a server that needs none. Raises SecretFault."""
    if candidates.platform is key:
        return candidates.platform_value
    if key.credential_id is None:
        return None
    secret_id = UUID(key.credential_id)
    return workshop.open_secret(claim.tenant_id, secret_id, found.secrets[secret_id].sealed)


async def _noted(
    workshop: Workshop, claim: Claim, key: KeyNow, secret: SecretText | None, *, model_call_id: UUID
) -> Opened:
    if key.credential_id is not None or key.is_own_license:
        async with workshop.database.writer() as writer:
            is_ours = await credentials.note_key(
                writer, claim, model_call_id=model_call_id, credential=key.credential_id, is_own_license=key.is_own_license
            )  # fmt: skip
        if not is_ours:
            raise LeaseLost(f"Another claim of run {claim.run_id} exists; no model is called under this one.")
    shown = key.shown.removeprefix("the key in ") if secret is not None else ""
    access = Access(key.model_name, key.base_url, secret, shown, key.credential_id, key.is_own_license)
    return Opened(access, key)


def _nothing_left(model: ModelChoice, used: UsedUp, candidates: Candidates) -> str:
    """What each key became, and what could be done, in sentences."""
    if not used.became:
        return f"Model '{model.model_name}' needs a key: {candidates.missing}"
    told = f"No key is left for model '{model.model_name}' of provider {model.provider}: {'; '.join(used.became)}."
    return f"{told} {candidates.also}" if candidates.also else told
