"""Providers that need a package of their own, which is not installed with Folkmoot: through the library's model class, if it is there.

Not held to the conformance suite, since their packages are not among ours. Deliberately absent: the shared pool of connections (their
SDKs bring their own), and marks, names and schemas beyond what every protocol takes.
"""

from __future__ import annotations

import importlib
from typing import Any
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.settings import ModelSettings

from folkmoot.domain.providers import PROVIDERS
from folkmoot.kernel.errors import ModelUnavailable
from folkmoot.llm.calls import ProviderModel
from folkmoot.llm.function_schemas import as_object
from folkmoot.llm.place import Place
from folkmoot.llm.pool import Pool
from folkmoot.llm.profiles import Profile

_CLASSES = {
    "bedrock": ("BedrockConverseModel", "BedrockProvider"),
    "cohere": ("CohereModel", "CohereProvider"),
    "groq": ("GroqModel", "GroqProvider"),
    "huggingface": ("HuggingFaceModel", "HuggingFaceProvider"),
    "mistral": ("MistralModel", "MistralProvider"),
}


def adapter(pool: Pool, provider: str) -> ProviderModel:
    """Asks the models of one such provider. Errors: ModelUnavailable (its package is not installed)."""
    package = PROVIDERS[provider].package
    model_name, provider_name = _CLASSES[provider]
    try:
        model_class = getattr(importlib.import_module(f"pydantic_ai.models.{provider}"), model_name)
        provider_class = getattr(importlib.import_module(f"pydantic_ai.providers.{provider}"), provider_name)
    except ImportError as error:
        raise ModelUnavailable(
            f"The provider '{provider}' needs the package {package}, which is not installed: pip install '{package}'."
        ) from error

    def made(place: Place, _: httpx2.AsyncClient) -> LibraryModel[Any]:
        library: LibraryModel[Any] = model_class(
            place.model_name, provider=provider_class(api_key=place.key or "none", **_place_of(place))
        )
        return library

    profile = Profile(provider.capitalize(), schema=as_object, needs_functions_for_calls=provider == "bedrock")
    return ProviderModel(pool, profile=profile, make=made, adjust=_adjust)


def _place_of(place: Place) -> dict[str, str]:
    if place.provider == "cohere":
        # Its SDK takes no URL from us.
        return {}
    if place.provider == "bedrock":
        # bedrock-runtime.REGION.amazonaws.com
        region = (urlsplit(place.url).hostname or "").split(".")[1:2]
        return {"base_url": place.url, "region_name": region[0] if region else "us-east-1"}
    return {"base_url": place.url}


def _adjust(_: LibraryModel[Any], settings: ModelSettings) -> None:
    settings["max_retries"] = 0
