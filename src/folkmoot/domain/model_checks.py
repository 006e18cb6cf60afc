"""What must hold when a version of an AI model is saved: a provider that exists, a URL without secrets, a path where one is due.

Deliberately absent: whether the model answers, and whether its file or key is there; a start sees to that.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import urlsplit

from folkmoot.domain.definitions import AiModelVersion
from folkmoot.domain.providers import HERE, PROVIDERS
from folkmoot.domain.schema_documents import step
from folkmoot.domain.schema_reports import shortened
from folkmoot.kernel.errors import Fault

_MAX_TEXT = 1_024
# A name that is no key's would let a definition send any secret of the server's environment to a URL of its choice.
_KEY_VARIABLE = re.compile(r"(?!FOLKMOOT_)[A-Z_a-z][A-Z_a-z0-9]{0,120}(KEY|TOKEN)")


def faults_of_model(version: AiModelVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved; () if nothing does."""
    return (
        *_provider_faults(version),
        *_url_faults(version),
        *_path_faults(version),
        *_size_faults(version),
        *_price_faults(version),
    )


def _provider_faults(version: AiModelVersion) -> Iterator[Fault]:
    provider = version.provider
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        yield Fault("/provider", f"There is no provider '{shortened(provider, 60)}'; there are: {known}.")
    if not _is_plain(version.model_name):
        yield Fault("/modelName", f"The model's name must be 1 to {_MAX_TEXT:,} visible characters; correct it.")
    variable = version.api_key_variable
    if variable is not None and not _KEY_VARIABLE.fullmatch(variable):
        message = (
            "This must be the name of an environment variable that holds the provider's key: letters, digits and '_', "
            "ending in KEY or TOKEN, and none of Folkmoot's own. Never put the key itself here."
        )
        yield Fault("/apiKeyVariable", message)


def _url_faults(version: AiModelVersion) -> Iterator[Fault]:
    url = version.base_url
    if url is None:
        known = PROVIDERS.get(version.provider)
        if known is not None and known.needs_base_url:
            yield Fault(
                "/baseUrl",
                f"A model of provider '{version.provider}' needs the server's URL, such as http://127.0.0.1:8080/v1.",
            )
        return
    if version.provider in HERE:
        yield Fault("/baseUrl", f"A model of provider '{version.provider}' has no URL; leave it out.")
        return
    problem = url_problem(url)
    if problem is not None:
        yield Fault("/baseUrl", problem)


def url_problem(url: str) -> str | None:
    """Why a server's URL is none, or null. The URL itself is not repeated: it may hold a password."""
    example = "Write it like https://models.example/v1."
    if not _is_plain(url) or any(character.isspace() for character in url):
        return f"The URL holds blanks or control characters, or is empty or too long. {example}"
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return f"The URL's host or port cannot be read. {example}"
    if parts.scheme not in ("http", "https") or not has_host:
        return f"The URL must begin with http:// or https:// and name a host. {example}"
    if "@" in parts.netloc:
        return "The URL holds a user name or password; take it out and name the key's environment variable in apiKeyVariable."
    if "?" in url or "#" in url:
        return f"The URL must end with its path: leave out '?' and '#' and what follows. {example}"
    return None


def _path_faults(version: AiModelVersion) -> Iterator[Fault]:
    path = version.path
    if path is None:
        if version.provider == "scripted":
            yield Fault("/path", "A scripted model needs the path of its script, a YAML file of rules.")
        return
    if version.provider in PROVIDERS and version.provider not in HERE:
        yield Fault("/path", f"A model of provider '{version.provider}' has no file; leave the path out.")
    elif not _is_plain(path):
        yield Fault("/path", f"The path must be 1 to {_MAX_TEXT:,} visible characters; correct it.")


def _size_faults(version: AiModelVersion) -> Iterator[Fault]:
    if version.context_window is not None and version.context_window < 1:
        yield Fault("/contextWindow", "The context window is a number of tokens, at least 1.")
    if version.largest_response is not None and version.largest_response < 1:
        yield Fault(
            "/largestResponse", "The largest response is a number of tokens, at least 1; null where it is not known."
        )


def _price_faults(version: AiModelVersion) -> Iterator[Fault]:
    for kind, price in (version.prices or {}).items():
        if price is not None and not (math.isfinite(price) and price >= 0):
            yield Fault(
                step("/prices", kind),
                "A price is a number of 0 or more per million tokens; null where it is not known.",
            )


def _is_plain(text: str) -> bool:
    return 0 < len(text.strip()) <= len(text) <= _MAX_TEXT and not any(
        unicodedata.category(c) in ("Cc", "Cs") for c in text
    )
