"""A client of the Gemini API in the form that pydantic-ai's model asks: what it built is posted as it is, in the names of the wire.

The SDK validates every part of every content and converts it word by word, which takes ten times the CPU of all the rest and changes
nothing but the names' spelling. Its types of replies and of errors are used, so that the library reads them. Deliberately absent: uploads,
Vertex, retries, the environment.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import httpx2
from google.genai import errors
from google.genai.types import GenerateContentResponse, HttpOptions, HttpResponse

from folkmoot.llm.ready_body import error_body, ready_request

Json = Any

_API = "v1beta"
# What of the library's configuration stands beside the contents; all else of it is the generation's.
_BESIDE = ("system_instruction", "tools", "tool_config", "safety_settings", "cached_content", "service_tier", "labels")
_OURS = ("http_options",)
# Objects of a tool or a conversation, whose names are not the protocol's.
_AS_THEY_ARE = frozenset(("args", "response", "parameters_json_schema", "response_json_schema"))


class ReadyContentClient:
    """What the library asks of a client, for one URL and key on a shared pool. `key` null: no key is sent. It never retries.

    No `Client` of the SDK: making one costs a tenth of a second, for connections that would never be used.
    """

    vertexai = False

    def __init__(self, *, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        self.aio = _Aio(_Models(url=url, key=key, http=http))
        # Where the library reads the address that it writes beside each reply.
        self._api_client = _ApiClient(HttpOptions(base_url=url, headers={}))


class _ApiClient:
    def __init__(self, options: HttpOptions) -> None:
        self._http_options = options


class _Aio:
    def __init__(self, models: _Models) -> None:
        self.models = models


class _Models:
    def __init__(self, *, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        self._url = url.rstrip("/")
        self._headers = {"content-type": "application/json", **({"x-goog-api-key": key} if key is not None else {})}
        self._http = http

    async def generate_content(self, *, model: str, contents: Json, config: Json) -> GenerateContentResponse:
        url = f"{self._url}/{_API}/models/{model}:generateContent"
        response = await self._http.send(self._request(url, contents, config))
        if response.status_code != 200:
            errors.APIError.raise_error(response.status_code, _told(response), response)
        return _reply(response.json(), response)

    async def generate_content_stream(
        self, *, model: str, contents: Json, config: Json
    ) -> AsyncIterator[GenerateContentResponse]:
        url = f"{self._url}/{_API}/models/{model}:streamGenerateContent?alt=sse"
        return self._chunks(self._request(url, contents, config))

    async def _chunks(self, request: httpx2.Request) -> AsyncIterator[GenerateContentResponse]:
        response = await self._http.send(request, stream=True)
        try:
            if response.status_code != 200:
                await response.aread()
                errors.APIError.raise_error(response.status_code, _told(response), response)
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    yield _reply(json.loads(line[5:]), response)
        finally:
            await response.aclose()

    def _request(self, url: str, contents: Json, config: Json) -> httpx2.Request:
        milliseconds = config.get("http_options", {}).get("timeout")
        within = None if milliseconds is None else milliseconds / 1000
        return ready_request(self._http, url, _body(contents, config), headers=self._headers, timeout=within)


def _body(contents: Json, config: Json) -> Json:
    """The request as it goes over the wire."""
    set_ = {name: value for name, value in config.items() if value is not None and name not in _OURS}
    beside = {name: set_.pop(name) for name in _BESIDE if name in set_}
    return _wired({"contents": contents, **beside, "generation_config": set_})


def _wired(value: Json) -> Json:
    """A value in the names of the wire."""
    if isinstance(value, dict):
        return {
            _camel(name): part if name in _AS_THEY_ARE else _wired(part)
            for name, part in value.items()
            if part is not None
        }
    if isinstance(value, list):
        return [_wired(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.value if isinstance(value, Enum) else value


def _camel(name: str) -> str:
    known = _CAMEL.get(name)
    if known is None:
        first, *rest = name.split("_")
        known = _CAMEL[name] = first + "".join(part.capitalize() for part in rest)
    return known


_CAMEL: dict[str, str] = {}


def _reply(told: Json, response: httpx2.Response) -> GenerateContentResponse:
    if isinstance(told, dict) and "error" in told:
        errors.APIError.raise_error(0, told, response)
    made = GenerateContentResponse.model_validate(told)
    made.sdk_http_response = HttpResponse(headers=dict(response.headers))
    return made


def _told(response: httpx2.Response) -> Json:
    told = error_body(response)
    return told if isinstance(told, dict | list) else {"error": {"code": response.status_code, "message": ""}}
