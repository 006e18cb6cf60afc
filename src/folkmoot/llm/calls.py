"""One call of a provider through its library: streamed where somebody reads along, with its failures classed.

pydantic-ai's model classes are the codecs; a client is kept per key and place, on one pool of connections. Deliberately absent: retries,
order of keys, tools' execution, leniency with arguments (they are passed on as they came), and what one provider alone does.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import Model as LibraryModel
from pydantic_ai.settings import ModelSettings

from folkmoot.domain.model_calls import ModelFailure, ModelReply, ModelRequest, OnText
from folkmoot.llm.failures import failure_of, may_have_counted
from folkmoot.llm.place import Place, place_of
from folkmoot.llm.pool import Pool
from folkmoot.llm.profiles import Profile
from folkmoot.llm.replies import Progress, outcome_of
from folkmoot.llm.sending import Sender, Sending
from folkmoot.llm.tiers import heard_tiers
from folkmoot.llm.token_counts import estimated_usage

Make = Callable[[Place, httpx2.AsyncClient], "LibraryModel[Any]"]
Adjust = Callable[["LibraryModel[Any]", ModelSettings], None]

_WHOLE_REPLY_SECONDS = 600.0
# A reply that may be longer than this is streamed even if nobody reads along, so that no connection is idle for minutes.
_MOST_TOKENS_IN_ONE_PIECE = 16_000
_KEPT_CLIENTS = 64
# What the libraries trip over where a server sends what is no chat reply at all.
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, AssertionError)


class ProviderModel:
    """Asks the models of one provider's protocol. `make`: the library's model for a place; `adjust`: changes settings for one model."""

    def __init__(self, pool: Pool, *, profile: Profile, make: Make, adjust: Adjust | None = None) -> None:
        self._pool = pool
        self._profile = profile
        self._make = make
        self._adjust = adjust
        self._sender = Sender(profile)
        self._models: OrderedDict[tuple[str, str, str, str | None], LibraryModel[Any]] = OrderedDict()

    async def ask(self, request: ModelRequest, on_text: OnText | None) -> ModelReply | ModelFailure:
        place = place_of(request, protocol=self._profile.protocol, silence_seconds=self._pool.silence_seconds)
        if isinstance(place, ModelFailure):
            return place
        sent = self._sender.sending(request)
        progress = Progress(on_text or _nobody, is_shim=sent.is_shim)
        tiers: list[str] = []
        hearing = heard_tiers.set(tiers)
        try:
            response = await self._response(self._model(place), sent, None if on_text is None else progress)
        except (AgentRunError, UserError, httpx2.HTTPError, httpx2.StreamError, *_UNREADABLE) as error:
            is_lost = may_have_counted(error)
            lost = estimated_usage(sent.messages, sent.parameters, progress.written) if is_lost else None
            return replace(failure_of(error, place), usage=lost)
        finally:
            heard_tiers.reset(hearing)
        outcome = outcome_of(response, request, sent, place=place, profile=self._profile)
        return replace(outcome, service_tier=tiers[-1]) if tiers and isinstance(outcome, ModelReply) else outcome

    async def close(self) -> None:
        self._models.clear()

    async def _response(self, model: LibraryModel[Any], sent: Sending, progress: Progress | None) -> ModelResponse:
        settings = sent.settings
        if self._adjust is not None:
            self._adjust(model, settings)
        if progress is None and settings.get("max_tokens", 0) <= _MOST_TOKENS_IN_ONE_PIECE:
            # In one piece: a stream's events take most of a call's CPU, for readers that are not there.
            settings["timeout"] = _WHOLE_REPLY_SECONDS
            return await model_request(
                model, sent.messages, model_settings=settings, model_request_parameters=sent.parameters
            )
        async with model_request_stream(
            model, sent.messages, model_settings=settings, model_request_parameters=sent.parameters
        ) as stream:
            async for event in stream:
                if progress is not None:
                    progress.take(event)
            return stream.get()

    def _model(self, place: Place) -> LibraryModel[Any]:
        key = (place.provider, place.model_name, place.url, place.key)
        known = self._models.get(key)
        if known is not None:
            self._models.move_to_end(key)
            return known
        made = self._models[key] = self._make(place, self._pool.http)
        if len(self._models) > _KEPT_CLIENTS:
            self._models.popitem(last=False)
        return made


def _nobody(_: str) -> None:
    """Reads along for nobody."""
