"""Run by part m in a process of its own: CPU of one model call, through our adapter, the bare SDK and bare httpx2, against one server.

    python -m bench.called_model anthropic URL CALLS

Prints one JSON line of milliseconds per call, medians of ten rounds. The subjects take turns, so that a slow moment of the machine meets all of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx2
from anthropic import AsyncAnthropic
from google.genai import Client
from google.genai.types import HttpOptions
from openai import AsyncOpenAI

from folkmoot.domain.model_calls import (
    Access,
    Entry,
    Model,
    ModelChoice,
    ModelReply,
    ModelRequest,
    OfferedTool,
    OtherText,
    OwnCall,
    OwnText,
    Purpose,
    Sampling,
    SystemText,
)
from folkmoot.llm.anthropic import adapter as anthropic
from folkmoot.llm.google import adapter as google
from folkmoot.llm.openai import adapter as openai
from folkmoot.llm.pool import Pool
from folkmoot.vault.texts import SecretText

Json = Any
Call = Callable[[], Awaitable[Any]]

_ROUNDS = 10
_LONGER = 400
_WORDS = "The second option costs less and keeps what was agreed last week. " * 5
_CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
_TOOLS = (OfferedTool("get_weather", "Weather of a city.", _CITY), OfferedTool("get_time", "Time in a city.", _CITY))
_KEY = "sk-bench"
_ADAPTERS: dict[str, Callable[[Pool], Model]] = {"openai": openai, "anthropic": anthropic, "google": google}
_URL_OF = {
    "openai": "{}/chat/completions",
    "anthropic": "{}/v1/messages",
    "google": "{}/v1beta/models/bench:generateContent",
}


def _view(messages: int) -> list[Entry]:
    """A conversation of so many messages: a third of the turns with a call and its result."""
    view: list[Entry] = [SystemText("You are Ann."), OtherText(None, "The task.")]
    written, n = 2, 0
    while written < messages:
        n += 1
        view.append(OwnText(_WORDS, UUID(int=n)))
        written += 2
        if n % 3 == 1 and written < messages:
            view.append(OwnCall(f"c{n}", "get_weather", '{"city": "Oslo"}', "rain", False, UUID(int=n)))
            written += 1
        view.append(OtherText("Ben", _WORDS))
    return view


def _asking(provider: str, url: str, view: list[Entry]) -> ModelRequest:
    return ModelRequest(
        model=ModelChoice(provider, "bench", base_url=url), sampling=Sampling(max_tokens=500), participant="Ann", view=view,
        view_length=len(view), instruction=None, offered=_TOOLS, required=False, purpose=Purpose.TURN, turn=1, call=1, attempt=1,
        access=Access("bench", url, SecretText(_KEY)),
    )  # fmt: skip


def _ours(model: Model, provider: str, url: str, view: list[Entry], *, is_read: bool) -> Call:
    async def call() -> None:
        outcome = await model.ask(_asking(provider, url, view), (lambda _: None) if is_read else None)
        if not isinstance(outcome, ModelReply):
            raise RuntimeError(f"The fake server refused a call: {outcome.message}")

    return call


def _sdk(provider: str, url: str, http: httpx2.AsyncClient, body: Json) -> Call:
    if provider == "openai":
        chat = AsyncOpenAI(base_url=url, api_key=_KEY, http_client=http, max_retries=0).chat.completions
        return lambda: chat.create(**body)
    if provider == "anthropic":
        messages = AsyncAnthropic(base_url=url, api_key=_KEY, http_client=http, max_retries=0).messages
        return lambda: messages.create(**body)
    client = Client(vertexai=False, api_key=_KEY, http_options=HttpOptions(base_url=url, httpx_async_client=http))
    config = {
        "system_instruction": body["systemInstruction"],
        "tools": body["tools"],
        "tool_config": body["toolConfig"],
    }
    config |= body["generationConfig"]
    return lambda: client.aio.models.generate_content(model="bench", contents=body["contents"], config=config)


def _bare(url: str, http: httpx2.AsyncClient, body: Json) -> Call:
    headers = {
        "authorization": f"Bearer {_KEY}",
        "x-api-key": _KEY,
        "x-goog-api-key": _KEY,
        "anthropic-version": "2023-06-01",
    }

    async def call() -> Json:
        return (await http.post(url, json=body, headers=headers)).json()

    return call


async def _measure(provider: str, url: str, calls: int) -> dict[str, float]:
    pool = Pool()
    model = _ADAPTERS[provider](pool)
    view, longer = _view(45), _view(45 + _LONGER)
    sent: list[Json] = []

    async def keep(request: httpx2.Request) -> None:
        sent.append(json.loads(request.content))

    pool.http.event_hooks["request"].append(keep)
    await _ours(model, provider, url, view, is_read=False)()
    pool.http.event_hooks["request"].clear()
    subjects: dict[str, Call] = {
        "ours": _ours(model, provider, url, view, is_read=False),
        "ours_streamed": _ours(model, provider, url, view, is_read=True),
        "ours_longer": _ours(model, provider, url, longer, is_read=False),
        "sdk": _sdk(provider, url, pool.http, sent[0]),
        "httpx2": _bare(_URL_OF[provider].format(url), pool.http, sent[0]),
    }
    # As a worker sets its collector; for all subjects alike.
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
    a_round = max(calls // _ROUNDS, 1)
    spent: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(_ROUNDS + 1):
        for name, call in subjects.items():
            began = time.process_time()
            for _ in range(a_round):
                await call()
            spent[name].append((time.process_time() - began) * 1000 / a_round)
    await model.close()
    await pool.close()
    # The first round warms up.
    return {name: statistics.median(rounds[1:]) for name, rounds in spent.items()}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
