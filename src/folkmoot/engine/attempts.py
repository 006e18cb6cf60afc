"""How often a model call is tried, and which failures no further attempt mends. Deliberately absent: waiting (`runtime`)."""

from __future__ import annotations

from folkmoot.domain.contexts import PromptFact
from folkmoot.domain.model_calls import OF_KEYS, FailureClass, ModelCallFact
from folkmoot.domain.runs import Facts
from folkmoot.engine import compaction

# how often a call is tried in all before the run fails, by the class of its last failure
ATTEMPTS = {
    FailureClass.RATE_LIMITED: 200,  # a key that is limited rests, ever longer, and many keys may be tried in turn
    FailureClass.OVERLOADED: 40,
    FailureClass.TIMEOUT: 5,
    FailureClass.UNAVAILABLE: 5,
    FailureClass.LOST: 1_000_000,  # the worker's fault, not the model's: crashes are counted elsewhere
    **dict.fromkeys(OF_KEYS, 200),  # with the next key; where there is none left, the failure is another one
}


def failures_of(facts: Facts, step_key: str) -> list[ModelCallFact]:
    """The failed tries of a step, oldest first."""
    return [fact for fact in facts.model_calls.get(step_key, ()) if fact.failure is not None]


def is_final(failures: list[ModelCallFact], prompt: PromptFact | None) -> bool:
    """Whether the last failure is one that no further attempt mends."""
    last = failures[-1].failure
    assert last is not None
    if last is FailureClass.CONTEXT_TOO_LONG:
        return not compaction.may_retry(failures, prompt)
    # A prompt that was refused and made smaller, and what befell other keys, are not held against what came after.
    aside = {FailureClass.LOST, FailureClass.CONTEXT_TOO_LONG, *(OF_KEYS if last not in OF_KEYS else ())}
    return len([f for f in failures if f.failure not in aside]) >= ATTEMPTS.get(last, 1)
