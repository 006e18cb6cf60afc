"""One call of a model: what is asked, what comes back, and the classes of failure.

A view is what one participant sees, in its own words, before any provider's form. Deliberately absent: message formats of
providers (they are in `llm`), and retries (the engine decides them from recorded facts).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID

from folkmoot.vault.texts import SecretText

Json = Any


class FailureClass(StrEnum):
    AUTHENTICATION = "Authentication"
    RATE_LIMITED = "RateLimited"
    OVERLOADED = "Overloaded"
    QUOTA_EXHAUSTED = "QuotaExhausted"
    CONTEXT_TOO_LONG = "ContextTooLong"
    CONTENT_FILTERED = "ContentFiltered"
    INVALID_REQUEST = "InvalidRequest"
    TIMEOUT = "Timeout"
    UNAVAILABLE = "Unavailable"
    LOST = "Lost"  # ours: the worker that made the call is gone, and its reply with it
    UNUSABLE = "Unusable"  # ours: a reply came, and is of no use for what was asked
    NO_CREDENTIAL = "NoCredential"  # ours: there is no key left that may be used; the message lists what became of each
    NOT_FOR_KEY = "NotForKey"  # ours: the key may not use this model, or its server does not know it; another key's may

    BUDGET_SPENT = "BudgetSpent"  # ours: the call could use more than is left of a budget; it was not made


OURS = frozenset(  # no provider fails so
    {
        FailureClass.LOST,
        FailureClass.UNUSABLE,
        FailureClass.NO_CREDENTIAL,
        FailureClass.NOT_FOR_KEY,
        FailureClass.BUDGET_SPENT,
    }
)
NEVER_MADE = frozenset({FailureClass.NO_CREDENTIAL, FailureClass.BUDGET_SPENT})  # they are no calls, and used nothing
# Another key may do better; the next is tried at once.
OF_KEYS = frozenset({FailureClass.AUTHENTICATION, FailureClass.QUOTA_EXHAUSTED, FailureClass.NOT_FOR_KEY})
WAITED_OUT = frozenset(
    {FailureClass.RATE_LIMITED, FailureClass.OVERLOADED, FailureClass.TIMEOUT, FailureClass.UNAVAILABLE}
)


class ModelPurpose(StrEnum):
    """What a participant uses a model for, as people name it. The last two come with later parts."""

    AGENT = "Agent"
    COMPACTION = "Compaction"
    ROUTER = "Router"
    WEAVER = "Weaver"
    VET = "Vet"


class Purpose(StrEnum):
    TURN = "turn"
    BALLOT = "ballot"
    ANSWER = "answer"
    COMPACTION = "compaction"
    ROUTE = "route"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call by kind. `estimated`: the provider told nothing, and these are guessed from characters."""

    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    estimated: bool = False


# The kinds by the wire's names, which scripts and prices use too.
TOKEN_KINDS: Mapping[str, str] = {
    "input": "input",
    "cachedInput": "cached_input",
    "cacheWrite": "cache_write",
    "output": "output",
    "reasoning": "reasoning",
}


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of an agent; null leaves the provider's default."""

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The model of a participant, as resolved at the start. `path`: a GGUF file (local) or a script (scripted).

    `api_key_variable`: the environment variable that holds the key; null takes the provider's usual one.
    `script`: a scripted model's rules, read when the run starts, so that the run carries them. `prices`: US dollars per million
    tokens by kind (wire names); null: as the catalogue of known models says at the call's time.
    """

    provider: str
    model_name: str
    context_window: int = 8192
    largest_response: int | None = None
    base_url: str | None = None
    api_key_variable: str | None = None
    path: str | None = None
    script: Json = None
    structured_output: bool = True
    tools: bool = True
    prices: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A function the model may call. `parameters`: JSON Schema (draft 2020-12) of the arguments."""

    name: str
    description: str
    parameters: dict[str, Json]


# What a participant sees. Views only grow.


@dataclass(frozen=True, slots=True)
class SystemText:
    text: str


@dataclass(frozen=True, slots=True)
class OtherText:
    """Somebody else's words, headed by the speaker's name when they are rendered; `speaker` null: the orchestrator's."""

    speaker: str | None
    text: str


@dataclass(frozen=True, slots=True)
class OwnText:
    text: str
    model_call_id: UUID | None


@dataclass(frozen=True, slots=True)
class OwnCall:
    """A call with its result. Calls of one reply follow each other and share `model_call_id`."""

    call_id: str
    name: str
    arguments_json: str
    result: str
    is_error: bool
    model_call_id: UUID | None


Entry = SystemText | OtherText | OwnText | OwnCall


@dataclass(frozen=True, slots=True)
class Replay:
    """What a reply held beside its items (reasoning, signatures), to be sent back only to the provider and model that made it."""

    provider: str
    model_name: str
    parts: Json


@dataclass(frozen=True, slots=True)
class Access:
    """How a model is reached for one call, read just before it, so that a changed key counts at once.

    `model_name`: as that place calls the model. `key` null: none is sent. `shown_key`: what a sentence calls the key, such as
    `the environment variable X`; empty where there is none. `credential_id` names it in the records, and is no secret.
    """

    model_name: str
    base_url: str | None = None
    key: SecretText | None = None
    shown_key: str = ""
    credential_id: str | None = None
    is_own_license: bool = False


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What a model is asked. `view` may grow after the call began: only its first `view_length` entries are meant.

    `instruction`: a last word for this call alone (a ballot's, a question's). `offered`: may be empty. `required`: one of
    the offered must be called. `turn`: the participant's turns so far, from 1; `call`: its model calls so far, from 1. `access` null: the model needs none.
    """

    model: ModelChoice
    sampling: Sampling
    participant: str
    view: Sequence[Entry]
    view_length: int
    instruction: str | None
    offered: tuple[OfferedTool, ...]
    required: bool
    purpose: Purpose
    turn: int
    call: int
    attempt: int
    replays: dict[UUID, Replay] = field(default_factory=dict)
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """`arguments_json` is the provider's text as it came; it may be empty or no JSON at all."""

    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class ModelReply:
    text: str
    calls: tuple[ReplyCall, ...]
    usage: Usage
    replay: Json = None
    service_tier: str | None = None


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """An outcome, not an exception. `message` is a sentence without secrets. `usage`: what the provider may have counted all the same.

    `is_for_this_key`: the model is not there for this key, or may not be used with it; with another key it may.
    """

    failure: FailureClass
    message: str
    retry_after_seconds: float | None = None
    usage: Usage | None = None
    is_for_this_key: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """No call was made, and none counts as tried: no key can be used before `wait_seconds` are over. `message` says why."""

    wait_seconds: float
    message: str


OnText = Callable[[str], None]


class Model(Protocol):
    """A provider's adapter. It never retries and never raises for what a provider does: it returns a ModelFailure.

    `on_text` is called with each piece of the reply's text as it comes; null: nobody reads along, and the reply may come whole.
    """

    async def ask(self, request: ModelRequest, on_text: OnText | None) -> ModelReply | ModelFailure: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ModelCallFact:
    """A recorded model call that did not bring a usable reply, or is under way (`failure` null).

    `guessed_tokens`: what its prompt was guessed to hold; null: not guessed. `estimated_tokens`: the guess as corrected then.
    `model`: whose it is, its provider and its name.
    """

    model_call_id: UUID
    step_key: str
    failure: FailureClass | None
    message: str = ""
    not_before: float | None = None  # Unix seconds by the database's clock: when the next attempt may begin
    guessed_tokens: int | None = None
    estimated_tokens: int | None = None
    model: tuple[str, str, str] = ("", "", "")
