"""OpenAI, and every server that speaks its chat protocol.

Deliberately absent: the call itself (`calls`), and the Responses protocol.
"""

from __future__ import annotations

from typing import Any

import httpx2
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings

from folkmoot.llm.calls import ProviderModel
from folkmoot.llm.function_schemas import as_object
from folkmoot.llm.openai_client import ReadyBodyClient
from folkmoot.llm.place import Place
from folkmoot.llm.pool import Pool
from folkmoot.llm.profiles import Profile

OPENAI = Profile("OpenAI", schema=as_object, has_models_without_tools=True)


def adapter(pool: Pool) -> ProviderModel:
    """Asks chat models."""
    return ProviderModel(pool, profile=OPENAI, make=_made, adjust=_adjust)


def _made(place: Place, http: httpx2.AsyncClient) -> LibraryModel[Any]:
    client = ReadyBodyClient(url=place.url, key=place.key, http=http)
    if place.provider == "openai":
        return OpenAIChatModel(place.model_name, provider=OpenAIProvider(openai_client=client), profile=_AS_SENT)
    # Of the two names for the longest reply, the older one is known to all.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False, json_schema_transformer=None)
    provider = OpenAICompatibleProvider(place.provider, openai_client=client, profile=profile)
    return OpenAIChatModel(place.model_name, provider=provider)


def _adjust(model: LibraryModel[Any], settings: ModelSettings) -> None:
    if model.profile.get("openai_supports_reasoning", False) and model.profile.get(
        "thinking_enabled_by_default", False
    ):
        # Models that reason take none; the library would drop them with a warning.
        settings.pop("temperature", None)
        settings.pop("top_p", None)


# Schemas are made fit by us, once; the library would walk them at every call.
_AS_SENT = OpenAIModelProfile(json_schema_transformer=None)
