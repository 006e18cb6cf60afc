"""Where a call goes: read from the request's access, checked before anything is sent, and shown without secrets.

Deliberately absent: the choice of a key (the runtime makes it), and any connection.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from folkmoot.domain.model_calls import FailureClass, ModelFailure, ModelRequest
from folkmoot.domain.web_addresses import http_url

_UNFIT_KEY = re.compile(r"[^\x21-\x7e]")


@dataclass(frozen=True, slots=True)
class Place:
    """`model_name`: as this place calls the model. `shown_key`: what a sentence calls the key; empty: no key was sent."""

    provider: str
    protocol: str
    model_name: str
    url: str
    key: str | None
    shown_key: str
    silence_seconds: float

    @property
    def shown_url(self) -> str:
        parts = urlsplit(self.url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def place_of(request: ModelRequest, *, protocol: str, silence_seconds: float) -> Place | ModelFailure:
    """Where the call goes and with which key; a ModelFailure where its URL is missing or is none."""
    name, access = request.model.model_name, request.access
    if access is None or access.base_url is None:
        return _invalid(f"Model '{name}' has no baseUrl: set the server's URL, ending in /v1.")
    if http_url(access.base_url) is None:
        return _invalid(f"The baseUrl of model '{name}' is no http or https URL: correct it.")
    key = access.key.reveal() if access.key is not None else None
    if key is not None and _UNFIT_KEY.search(key):
        message = f"The key from {access.shown_key or 'this credential'} holds blanks or characters that no header may hold: correct it."
        return ModelFailure(FailureClass.AUTHENTICATION, message)
    return Place(
        request.model.provider, protocol, access.model_name, access.base_url, key, access.shown_key, silence_seconds
    )


def _invalid(message: str) -> ModelFailure:
    return ModelFailure(FailureClass.INVALID_REQUEST, message)
