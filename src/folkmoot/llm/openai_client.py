"""The SDK's client, made lean: the chat body goes out as it was built, with our headers and nothing from the environment.

The SDK walks every message through its parameter types before it sends them, which takes most of a call's CPU and changes
nothing, since pydantic-ai has built the body by those types. Deliberately absent: every other resource of the SDK.
"""

from __future__ import annotations

from typing import Any

import httpx2
from openai import (
    NOT_GIVEN,
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    AsyncStream,
    NotGiven,
    Omit,
    RequestOptions,
)
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import ValidationError

from folkmoot.llm.ready_body import encoded, error_body, ready_request

# The SDK refuses to be made without a key; a server that wants none is sent none.
_NO_KEY = "none"


class ReadyBodyClient(AsyncOpenAI):
    """A client for one URL and key on a shared pool. `key` null: no Authorization header. It never retries."""

    def __init__(self, *, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        super().__init__(base_url=url, api_key=key or _NO_KEY, http_client=http, timeout=http.timeout, max_retries=0)
        self._sends_key = key is not None
        self.http = http

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        headers: dict[str, str | Omit] = {"Accept": "application/json", "Content-Type": "application/json"}
        return headers | self.authorization

    @property
    def authorization(self) -> dict[str, str | Omit]:
        """The header that carries the key, or that says that there is none."""
        return {"Authorization": f"Bearer {self.api_key}" if self._sends_key else Omit()}

    @property
    def chat(self) -> Any:
        return _Chat(self)


class _Chat:
    def __init__(self, client: ReadyBodyClient) -> None:
        self.completions = _Completions(client)


class _Completions:
    def __init__(self, client: ReadyBodyClient) -> None:
        self._client = client

    async def create(
        self,
        *,
        stream: bool = False,
        timeout: float | httpx2.Timeout | NotGiven | None = NOT_GIVEN,
        extra_headers: dict[str, str] | None = None,
        extra_body: Any = None,
        **fields: Any,
    ) -> ChatCompletion | AsyncStream[ChatCompletionChunk]:
        body = {name: value for name, value in fields.items() if not isinstance(value, Omit | NotGiven)}
        body |= {"stream": stream, **(extra_body or {})}
        if not stream:
            return await self._whole(body, extra_headers or {}, timeout)
        options: RequestOptions = {"headers": {**(extra_headers or {}), **self._client.authorization}}
        if not isinstance(timeout, NotGiven):
            options["timeout"] = timeout
        made: AsyncStream[ChatCompletionChunk] = await self._client.post(
            "/chat/completions",
            content=encoded(body),
            options=options,
            cast_to=ChatCompletion,
            stream=True,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )
        return made

    async def _whole(self, body: dict[str, Any], headers: dict[str, str], timeout: object) -> ChatCompletion:
        client = self._client
        sent = {n: v for n, v in (client.default_headers | headers).items() if isinstance(v, str)}
        url = f"{str(client.base_url).rstrip('/')}/chat/completions"
        request = ready_request(client.http, url, body, headers=sent, timeout=timeout)
        try:
            response = await client.http.send(request)
        except httpx2.TimeoutException as error:
            raise APITimeoutError(request=request) from error
        except httpx2.TransportError as error:
            raise APIConnectionError(request=request) from error
        if response.status_code != 200:
            told = error_body(response)
            inner = told.get("error", told) if isinstance(told, dict) else told
            raise APIStatusError(str(inner), response=response, body=inner)
        return _completion(response.json())


def _completion(told: Any) -> ChatCompletion:
    """As the SDK reads it: by its types where it keeps to them, which is fast, and loosely where it does not."""
    try:
        return ChatCompletion.model_validate(told)
    except ValidationError:
        return ChatCompletion.construct(**told)
