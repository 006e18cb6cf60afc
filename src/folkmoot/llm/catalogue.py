"""The catalogue of known models: how much each holds, and what it costs at a date. From a maintained library; nothing is fetched.

A model is looked up with its provider, or with whoever serves its URL: behind an unknown server no model is known, whatever it is
called. The library's data take half a second to load, and are loaded when the first model is looked up. Deliberately absent: the
largest response, which the library does not know, and a tenant's own models (their definitions win over what is said here).
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from folkmoot.domain.costs import UNKNOWN, Prices, own_prices
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.providers import HERE

_BY_URL = "openai-compatible"
_KEPT = 4096
_NAMES = {
    "input": "input_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "output": "output_mtok",
    "reasoning": "output_reasoning_mtok",
}


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalogue says of a model; null: it does not say. `window`: in tokens."""

    window: int | None = None
    info: Any = None


_NOTHING = Known()


def window_of(provider: str, model_name: str, base_url: str | None = None) -> int | None:
    """How many tokens a model can read; null where it is not known."""
    return _known(provider, model_name, base_url).window


def prices_of(model: ModelChoice, at: datetime, *, prompt_tokens: int = 0, service_tier: str | None = None) -> Prices:
    """A model's prices at a time: those of its definition, and the catalogue's for the kinds that the definition leaves out.

    `prompt_tokens`: long prompts cost more with some. `service_tier`: as the provider told it; null: the usual one.
    """
    own = own_prices(model.prices)
    if None not in (own.input, own.cached_input, own.cache_write, own.output, own.reasoning):
        return own
    info = _known(model.provider, model.model_name, model.base_url).info
    if info is None:
        return own
    context = {"service_tier": service_tier} if service_tier else None
    return own.over(_read(info.get_prices(at, context), prompt_tokens))


def _read(listed: Any, prompt_tokens: int) -> Prices:
    found = Prices(**{kind: _price(vars(listed).get(name), prompt_tokens) for kind, name in _NAMES.items()})
    # some are charged by the request or the second: of those no tokens' price is known
    return found if found.input is not None or found.output is not None else UNKNOWN


def _price(listed: Any, prompt_tokens: int) -> Decimal | None:
    """A price that may depend on the length of the prompt: the highest step that it has passed counts for all of its tokens."""
    if listed is None or isinstance(listed, Decimal):
        return listed
    passed = [tier.price for tier in listed.tiers if prompt_tokens > tier.start]
    found: Decimal = passed[-1] if passed else listed.base
    return found


@lru_cache(maxsize=_KEPT)
def _known(provider: str, model_name: str, base_url: str | None) -> Known:
    if provider in HERE or (provider == _BY_URL and base_url is None):
        return _NOTHING
    library: Any = importlib.import_module("genai_prices.data_snapshot")
    place = (None, base_url) if base_url is not None else (provider, None)
    try:
        _, info = library.get_snapshot().find_provider_model(model_name, None, *place)
    except LookupError:
        return _NOTHING
    return Known(info.context_window, info)
