"""Anthropic's Messages protocol.

System text stands apart, roles alternate, functions are declared wherever a history holds calls, and the stable part of a prompt is
marked for the cache. Deliberately absent: the call itself (`calls`), thinking that nobody asked for, and the provider's own tools.
"""

from __future__ import annotations

from typing import Any

import httpx2
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models.anthropic import AnthropicModel, AnthropicModelSettings
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings

from folkmoot.llm.anthropic_client import ReadyMessagesClient
from folkmoot.llm.calls import ProviderModel
from folkmoot.llm.function_schemas import as_object
from folkmoot.llm.place import Place
from folkmoot.llm.pool import Pool
from folkmoot.llm.profiles import Profile

ANTHROPIC = Profile(
    "Anthropic",
    schema=as_object,
    marks_cache=True,
    needs_functions_for_calls=True,
    tells_end=True,
    highest_temperature=1.0,
    takes_seed=False,
    takes_both_samplings=False,
    default_max_tokens=4096,
)
_MARKS = AnthropicModelSettings(anthropic_cache_instructions=True, anthropic_cache_tool_definitions=True)


def adapter(pool: Pool) -> ProviderModel:
    """Asks models by Anthropic's protocol."""
    return ProviderModel(pool, profile=ANTHROPIC, make=_made, adjust=_adjust)


def _made(place: Place, http: httpx2.AsyncClient) -> LibraryModel[Any]:
    # The path goes on with the protocol's version, which many write as the URL's end.
    url = place.url.rstrip("/").removesuffix("/v1")
    client = ReadyMessagesClient(url=url, key=place.key, http=http)
    provider = AnthropicProvider(anthropic_client=client)
    return AnthropicModel(place.model_name, provider=provider, profile=ModelProfile(json_schema_transformer=None))


def _adjust(model: LibraryModel[Any], settings: ModelSettings) -> None:
    settings.update(_MARKS)
    if model.profile.get("anthropic_disallows_sampling_settings", False):
        # The newest models take none; the library would drop them with a warning.
        settings.pop("temperature", None)
        settings.pop("top_p", None)
