"""The adapters that the conformance suite holds to one behaviour, each with a fake server that speaks its provider's protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fake_anthropic import fake_anthropic
from fake_google import fake_google
from fake_openai import fake_openai
from fake_words import CUT_ARGUMENTS, Seen
from model_requests import KEY

from folkmoot.domain.model_calls import (
    OURS,
    FailureClass,
    Model,
    ModelChoice,
    ModelFailure,
    ModelReply,
    ModelRequest,
    ReplyCall,
)
from folkmoot.llm.anthropic import adapter as anthropic_adapter
from folkmoot.llm.google import adapter as google_adapter
from folkmoot.llm.openai import adapter as openai_adapter
from folkmoot.llm.pool import Pool
from folkmoot.llm.scripted import ScriptedModel

CALLS = (ReplyCall("look", '{"city":"Oslo"}'), ReplyCall("look", '{"city":"Rome"}'))
FAILURES = [kind for kind in FailureClass if kind not in (FailureClass.TIMEOUT, *OURS)]
WAITS = {FailureClass.RATE_LIMITED: 17.0, FailureClass.OVERLOADED: 3.0}
HTTP_PROVIDERS = ("openai", "openai-compatible", "anthropic", "google")
Server = tuple[str, Seen]

_FAKES: dict[str, Callable[..., Any]] = {
    "openai": fake_openai, "openai-compatible": fake_openai, "anthropic": fake_anthropic, "google": fake_google,
}  # fmt: skip
_ADAPTERS: dict[str, Callable[[Pool], Model]] = {
    "openai": openai_adapter, "openai-compatible": openai_adapter, "anthropic": anthropic_adapter, "google": google_adapter,
}  # fmt: skip


@dataclass
class Subject:
    """An adapter with a way to have it play something: `text`, `calls`, a class of failure, or `held` (never ends).

    `is_read`: somebody reads along, so that the reply is streamed. `seen` is what its server sees; empty for one without a server.
    """

    provider: str
    model: Model
    play: Callable[..., ModelChoice]
    is_read: bool = True
    seen: Seen = field(default_factory=Seen)
    pool: Pool | None = None

    async def outcome(self, request: ModelRequest, pieces: list[str] | None = None) -> ModelReply | ModelFailure:
        gathered = pieces if pieces is not None else []
        return await self.model.ask(request, gathered.append if self.is_read else None)

    async def ask(self, request: ModelRequest, pieces: list[str] | None = None) -> ModelReply:
        outcome = await self.outcome(request, pieces)
        assert isinstance(outcome, ModelReply), outcome
        return outcome

    async def fail(self, request: ModelRequest) -> ModelFailure:
        outcome = await self.outcome(request)
        assert isinstance(outcome, ModelFailure), outcome
        assert outcome.message.endswith(".")
        assert KEY not in outcome.message
        return outcome

    async def close(self) -> None:
        self.seen.held.set()
        await self.model.close()
        if self.pool is not None:
            await self.pool.close()


@contextmanager
def subject_of(
    provider: str, *, is_read: bool = True, silence_seconds: float = 10.0, **settings: Any
) -> Iterator[Subject]:
    """The adapter of a provider with its server. `settings`: fields of Seen."""
    if provider == "scripted":
        yield Subject(provider, ScriptedModel(), scripted_play, is_read)
        return
    with _FAKES[provider](**settings) as server:
        pool = Pool(silence_seconds=silence_seconds)

        def play(name: str, **changes: Any) -> ModelChoice:
            return fake_model(server, name, provider=provider, **changes)

        yield Subject(provider, _ADAPTERS[provider](pool), play, is_read, server[1], pool)


def fake_model(server: Server, play: str, **changes: Any) -> ModelChoice:
    values: dict[str, Any] = {"base_url": server[0], "api_key_variable": "FAKE_KEY"} | changes
    return ModelChoice(values.pop("provider", "openai-compatible"), play, **values)


def scripted_play(play: str) -> ModelChoice:
    calls = [{"name": call.name, "arguments": call.arguments_json} for call in CALLS]
    usage = {"input": 36, "cachedInput": 64, "output": 13, "reasoning": 7}
    rules: dict[str, Any] = {
        "text": {"reply": {"text": "Tea is fine.", "usage": usage}},
        "calls": {"reply": {"text": "Let me look.", "calls": calls, "usage": usage}},
        "quoted": {"reply": {"text": 'I would call {"name": "agree", "arguments": {}} TERMINATE'}},
        "broken": {"reply": {"calls": [{"name": "look", "arguments": CUT_ARGUMENTS}]}},
        "empty": {"reply": {}},
        "uncounted": {"reply": {"text": "Tea is fine."}},
        "held": {"reply": {"text": "late", "delay": "1h"}},
    }
    for kind in FAILURES:
        wait = {"retryAfter": WAITS[kind]} if kind in WAITS else {}
        rules[kind.value] = {"fail": {"class": kind.value, **wait}}
    return ModelChoice("scripted", "rules", script={"rules": [rules[play]]})
