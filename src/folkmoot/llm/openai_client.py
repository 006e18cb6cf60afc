"""The SDK's client, made lean: the chat body goes out as it was built, with our headers and nothing from the environment.

The SDK walks every message through its parameter types before it sends them, which takes most of a call's CPU and changes
nothing, since pydantic-ai has built the body by those types. Deliberately absent: every other resource of the SDK.
"""

from __future__ import annotations

from typing import Any

import httpx2
from openai import NOT_GIVEN, AsyncOpenAI, AsyncStream, NotGiven, Omit, RequestOptions
from openai.types.chat import ChatCompletion, ChatCompletionChunk

# The SDK refuses to be made without a key; a server that wants none is sent none.
_NO_KEY = "none"


class ReadyBodyClient(AsyncOpenAI):
    """A client for one URL and key on a shared pool. `key` null: no Authorization header. It never retries."""

    def __init__(self, *, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        super().__init__(base_url=url, api_key=key or _NO_KEY, http_client=http, timeout=http.timeout, max_retries=0)
        self._sends_key = key is not None

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
        options: RequestOptions = {"headers": {**(extra_headers or {}), **self._client.authorization}}
        if extra_body:
            options["extra_json"] = extra_body
        if not isinstance(timeout, NotGiven):
            options["timeout"] = timeout
        body = {name: value for name, value in fields.items() if not isinstance(value, Omit | NotGiven)}
        return await self._client.post(
            "/chat/completions",
            body={**body, "stream": stream},
            options=options,
            cast_to=ChatCompletion,
            stream=stream,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )
