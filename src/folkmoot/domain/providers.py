"""The providers of models, by name: where each is by default, and which environment variable holds the operator's key for it.

Deliberately absent: models (the catalogue's and the tenants'), and any adapter (`llm`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Provider:
    """`base_url` null: a model names its server itself, or needs none. `key_variable` null: no key is needed unless a model names one."""

    name: str
    base_url: str | None = None
    key_variable: str | None = None


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        made.name: made
        for made in (
            Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY"),
            Provider("openai-compatible"),
            Provider("local"),
            Provider("scripted"),
        )
    }
)


def key_variable(provider: str, named: str | None) -> str | None:
    """The environment variable with the operator's key: what the model names, else the provider's usual one; null if no key is needed."""
    known = PROVIDERS.get(provider)
    return named or (known.key_variable if known is not None else None)


def is_usual_way(provider: str, variable: str, url: str | None) -> bool:
    """Whether the operator's key is the provider's usual one, and goes to the provider's own address: what needs no leave."""
    known = PROVIDERS.get(provider)
    if known is None or variable != known.key_variable:
        return False
    return url is None or (known.base_url is not None and url.rstrip("/") == known.base_url.rstrip("/"))
