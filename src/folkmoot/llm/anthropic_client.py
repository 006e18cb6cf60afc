"""Anthropic's SDK client, made lean: the body goes out as it was built, with our headers and nothing from the environment.

Deliberately absent: every other resource of the SDK, its credentials' files, and its retries.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import httpx2
from anthropic import APIStatusError, AsyncAnthropic, AsyncStream, NotGiven, Omit, not_given
from anthropic.types.beta import BetaMessage, BetaRawMessageStreamEvent
from pydantic import ValidationError

from folkmoot.llm.ready_body import encoded, error_body, ready_request
from folkmoot.llm.tiers import hear_tier

# The SDK looks for a key elsewhere if it is given none; a server that wants none is sent none.
_NO_KEY = "none"
_VERSION = "2023-06-01"


class ReadyMessagesClient(AsyncAnthropic):
    """A client for one URL and key on a shared pool. `key` null: no key is sent. It never retries."""

    def __init__(self, *, url: str, key: str | None, http: httpx2.AsyncClient) -> None:
        super().__init__(api_key=key or _NO_KEY, base_url=url, http_client=http, timeout=http.timeout, max_retries=0)
        # Headers from ANTHROPIC_CUSTOM_HEADERS, which the SDK lets win over all that a subclass gives.
        self._custom_headers = {}
        self._sends_key = key is not None
        self.http = http

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        headers: dict[str, str | Omit] = {
            "Accept": "application/json",
            "Content-Type": "application/json",
            "anthropic-version": _VERSION,
        }
        return headers | self.key_headers

    @property
    def key_headers(self) -> dict[str, str | Omit]:
        """The headers that carry the key, or that say that there is none; nothing of the environment passes by them."""
        return {"x-api-key": self.api_key if self._sends_key and self.api_key else Omit(), "Authorization": Omit()}

    @cached_property
    def beta(self) -> Any:
        return _Beta(self)


class _Beta:
    def __init__(self, client: ReadyMessagesClient) -> None:
        self.messages = _Messages(client)


class _Messages:
    def __init__(self, client: ReadyMessagesClient) -> None:
        self._client = client

    async def create(
        self,
        *,
        stream: bool = False,
        timeout: float | httpx2.Timeout | NotGiven | None = not_given,
        extra_headers: dict[str, str] | None = None,
        extra_body: Any = None,
        betas: list[str] | Omit | NotGiven = not_given,
        **fields: Any,
    ) -> BetaMessage | _Heard:
        headers: dict[str, str | Omit] = {**(extra_headers or {}), **self._client.key_headers}
        if isinstance(betas, list) and betas:
            headers["anthropic-beta"] = ",".join(betas)
        body = {name: value for name, value in fields.items() if not isinstance(value, Omit | NotGiven)}
        body |= {"stream": True} if stream else {}
        if extra_body and not isinstance(extra_body, Omit | NotGiven):
            body |= extra_body
        if not stream:
            return await self._whole(body, headers, timeout)
        options: Any = {"headers": headers}
        if not isinstance(timeout, NotGiven):
            options["timeout"] = timeout
        made: AsyncStream[BetaRawMessageStreamEvent] = await self._client.post(
            "/v1/messages",
            content=encoded(body),
            options=options,
            cast_to=BetaMessage,
            stream=True,
            stream_cls=AsyncStream[BetaRawMessageStreamEvent],
        )
        return _Heard(made)

    async def _whole(self, body: dict[str, Any], headers: dict[str, str | Omit], timeout: object) -> BetaMessage:
        client = self._client
        sent = {n: v for n, v in (client.default_headers | headers).items() if isinstance(v, str)}
        url = f"{str(client.base_url).rstrip('/')}/v1/messages"
        response = await client.http.send(ready_request(client.http, url, body, headers=sent, timeout=timeout))
        if response.status_code != 200:
            told = error_body(response)
            raise APIStatusError(str(told), response=response, body=told)
        made = _message(response.json())
        hear_tier(made.usage.service_tier)
        return made


def _message(told: Any) -> BetaMessage:
    """As the SDK reads it: by its types where it keeps to them, which is fast, and loosely where it does not."""
    try:
        return BetaMessage.model_validate(told)
    except ValidationError:
        return BetaMessage.construct(**told)


class _Heard:
    """A stream whose first event tells the tier, which the library does not hand on."""

    def __init__(self, stream: AsyncStream[BetaRawMessageStreamEvent]) -> None:
        self._stream = stream

    def __aiter__(self) -> _Heard:
        return self

    async def __anext__(self) -> BetaRawMessageStreamEvent:
        event = await self._stream.__anext__()
        if event.type == "message_start":
            hear_tier(getattr(getattr(event.message, "usage", None), "service_tier", None))
        return event

    async def __aenter__(self) -> _Heard:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._stream.close()
