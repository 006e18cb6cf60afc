"""OpenAI and every server that speaks its chat protocol: one call, streamed where somebody reads along, with its failures classed.

pydantic-ai's model class is the codec; the pool of connections is shared by all keys and URLs. Deliberately absent:
retries, order of keys, tools' execution, and leniency with arguments (they are passed on as they came).
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from folkmoot.domain.model_calls import FailureClass, ModelChoice, ModelFailure, ModelReply, ModelRequest, OnText
from folkmoot.llm.openai_client import ReadyBodyClient
from folkmoot.llm.openai_failures import Place, failure_of, is_http_url, may_have_counted
from folkmoot.llm.openai_reply import Progress, outcome_of
from folkmoot.llm.openai_request import Sending, sending
from folkmoot.llm.rendering import Renderer
from folkmoot.llm.token_counts import estimated_usage

_CONNECT_SECONDS = 10.0
_WHOLE_REPLY_SECONDS = 600.0
_KEPT_CLIENTS = 64
_MOST_CONNECTIONS = 1000
# What the libraries trip over where a server sends what is no chat reply at all.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError)


class OpenAiModel:
    """Asks chat models. `silence_seconds`: how long a provider may send nothing before the call counts as timed out."""

    def __init__(self, *, silence_seconds: float = 120.0) -> None:
        self._silence_seconds = silence_seconds
        self._renderer = Renderer()
        self._http: httpx2.AsyncClient | None = None
        self._models: OrderedDict[tuple[str, str, str, str | None], OpenAIChatModel] = OrderedDict()

    async def ask(self, request: ModelRequest, on_text: OnText | None) -> ModelReply | ModelFailure:
        place = self._place(request)
        if isinstance(place, ModelFailure):
            return place
        sent = sending(request, self._renderer)
        progress = Progress(on_text or _nobody, is_shim=sent.is_shim)
        try:
            model = self._model(request.model, place)
            response = await (_whole(model, sent) if on_text is None else _streamed(model, sent, progress))
        except (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, *_UNREADABLE) as error:
            lost = estimated_usage(sent.messages, progress.written) if may_have_counted(error) else None
            return replace(failure_of(error, place), usage=lost)
        return outcome_of(response, request, sent, place)

    async def close(self) -> None:
        self._models.clear()
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    def _place(self, request: ModelRequest) -> Place | ModelFailure:
        """Where the call goes and with which key."""
        name, access = request.model.model_name, request.access
        if access is None or access.base_url is None:
            return _invalid(f"Model '{name}' has no baseUrl: set the server's URL, ending in /v1.")
        if not is_http_url(access.base_url):
            return _invalid(f"The baseUrl of model '{name}' is no http or https URL: correct it.")
        key = access.key.reveal() if access.key is not None else None
        return Place(access.model_name, access.base_url, key, access.shown_key, self._silence_seconds)

    def _model(self, choice: ModelChoice, place: Place) -> OpenAIChatModel:
        key = (choice.provider, place.model_name, place.url, place.key)
        known = self._models.get(key)
        if known is not None:
            self._models.move_to_end(key)
            return known
        client = ReadyBodyClient(url=place.url, key=place.key, http=self._pool())
        made = OpenAIChatModel(place.model_name, provider=_provider(choice.provider, client))
        self._models[key] = made
        if len(self._models) > _KEPT_CLIENTS:
            self._models.popitem(last=False)
        return made

    def _pool(self) -> httpx2.AsyncClient:
        if self._http is None:
            self._http = httpx2.AsyncClient(
                timeout=httpx2.Timeout(self._silence_seconds, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(
                    max_connections=_MOST_CONNECTIONS, max_keepalive_connections=_MOST_CONNECTIONS // 4
                ),
            )
        return self._http


async def _streamed(model: OpenAIChatModel, sent: Sending, progress: Progress) -> ModelResponse:
    async with model_request_stream(
        model, sent.messages, model_settings=sent.settings, model_request_parameters=sent.parameters
    ) as stream:
        async for event in stream:
            progress.take(event)
        return stream.get()


async def _whole(model: OpenAIChatModel, sent: Sending) -> ModelResponse:
    """The reply in one piece: a stream's events take most of a call's CPU, for readers that are not there."""
    settings = sent.settings.copy()
    settings["timeout"] = _WHOLE_REPLY_SECONDS
    return await model_request(model, sent.messages, model_settings=settings, model_request_parameters=sent.parameters)


def _nobody(_: str) -> None:
    """Reads along for nobody."""


def _invalid(message: str) -> ModelFailure:
    return ModelFailure(FailureClass.INVALID_REQUEST, message)


def _provider(name: str, client: AsyncOpenAI) -> OpenAIProvider | OpenAICompatibleProvider:
    if name == "openai":
        return OpenAIProvider(openai_client=client)
    # Of the two names for the longest reply, the older one is known to all.
    profile = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
    return OpenAICompatibleProvider(name, openai_client=client, profile=profile)
