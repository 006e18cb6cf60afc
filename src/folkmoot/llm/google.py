"""The Gemini API.

System text stands apart, a function's name begins with a letter, schemas keep to fewer words, and calls carry the signature of the
thought that led to them. Deliberately absent: the call itself (`calls`), Vertex, and the provider's own tools.
"""

from __future__ import annotations

from typing import Any, cast

import httpx2
from google.genai import Client
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.google import GoogleProvider

from folkmoot.llm.calls import ProviderModel
from folkmoot.llm.function_schemas import for_gemini
from folkmoot.llm.google_client import ReadyContentClient
from folkmoot.llm.place import Place
from folkmoot.llm.pool import Pool
from folkmoot.llm.profiles import Profile

GOOGLE = Profile("Gemini", schema=for_gemini, tells_end=True)


def adapter(pool: Pool) -> ProviderModel:
    """Asks models by the Gemini API."""
    return ProviderModel(pool, profile=GOOGLE, make=_made)


def _made(place: Place, http: httpx2.AsyncClient) -> LibraryModel[Any]:
    # The path goes on with the protocol's version, which many write as the URL's end.
    url = place.url.rstrip("/").removesuffix("/v1beta")
    provider = GoogleProvider(client=cast(Client, ReadyContentClient(url=url, key=place.key, http=http)))
    return GoogleModel(place.model_name, provider=provider, profile=ModelProfile(json_schema_transformer=None))
