"""One call through the shim: the prompt, the schema that forces the reply's shape, and the sampling that keeps a small model on its feet.

The same for a model in this process and for one behind a URL. Deliberately absent: sending it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from folkmoot.domain.model_calls import ModelRequest
from folkmoot.llm.shim import all_options, narrowed
from folkmoot.llm.shim_prompt import SMALL_BUDGET, ChatMessage, budget_for, chat_messages

Json = Any

SMALL_WINDOW_TOKENS = 2048

_SMALL_SAY_CHARACTERS = 240
_SAY_CHARACTERS = 1600
_TEMPERATURE = 0.3
_REPLY_TOKENS = 400
# llama.cpp's own fields. The second group keeps a small model from copying the examples, and others, word for word.
_SMALL_SAMPLING = {
    "repeat_penalty": 1.15,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 2,
    "dry_penalty_last_n": 1024,
}


@dataclass(frozen=True, slots=True)
class ShimCall:
    """`extra`: fields of llama.cpp's server beyond the OpenAI protocol; empty for models that are not small."""

    messages: list[ChatMessage]
    schema: Json
    temperature: float
    top_p: float | None
    seed: int
    max_tokens: int
    extra: dict[str, Json]


def shim_call(request: ModelRequest, *, small: bool, window_tokens: int) -> ShimCall:
    """What to send for a request; the same request gives the same call."""
    narrow = narrowed if small else all_options
    options = narrow(request, say_characters=_SMALL_SAY_CHARACTERS if small else _SAY_CHARACTERS)
    sampling = request.sampling
    return ShimCall(
        messages=chat_messages(request, options, SMALL_BUDGET if small else budget_for(window_tokens)),
        schema=options.schema,
        temperature=_TEMPERATURE if sampling.temperature is None else sampling.temperature,
        top_p=sampling.top_p,
        seed=_seed(request),
        max_tokens=_REPLY_TOKENS if sampling.max_tokens is None else sampling.max_tokens,
        extra=dict(_SMALL_SAMPLING) if small else {},
    )


def _seed(request: ModelRequest) -> int:
    """Fixed by the request, so that a restart changes nothing; another one for each call, so that a retry may differ."""
    return ((request.sampling.seed or 0) * 1_000_003 + request.call * 101 + request.attempt) % 2**31
