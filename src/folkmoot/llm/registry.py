"""Finds the adapter of a model, and says beforehand what a model lacks and which ones this machine could offer.

Adapters that load a big library are imported when the first run asks for them, so that a worker with scripted runs alone
starts fast. Deliberately absent: choosing a model (the definition does), and reading the environment (`read_key` does).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folkmoot.domain.model_calls import Model, ModelChoice
from folkmoot.kernel.errors import ModelUnavailable
from folkmoot.llm.model_file import lack_of_file
from folkmoot.llm.scripted import ScriptedModel

ReadKey = Callable[[str], str | None]

_OPENAI_KEY = "OPENAI_API_KEY"
_OLLAMA = ("127.0.0.1", 11434)
_OFFER_SECONDS = 0.3
_REQUIRED_DISTRIBUTIONS = {"pydantic_ai": "pydantic-ai-slim[openai]", "openai": "openai", "xllamacpp": "xllamacpp"}


class Models:
    """The adapters of one process, one per provider; each is made at its first use. `data_dir`: where the local model's file is."""

    def __init__(self, *, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._adapters: dict[str, Model] = {}
        self._makers: dict[str, Callable[[], Model]] = {
            "openai": self._make_openai,
            "openai-compatible": self._make_openai,
            "local": self._make_local,
            "scripted": ScriptedModel,
        }

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(self._makers)

    def adapter_of(self, choice: ModelChoice) -> Model:
        """The adapter that can ask `choice`. Errors: ModelUnavailable (unknown provider, its package is not installed)."""
        adapter = self._adapters.get(choice.provider)
        if adapter is None:
            adapter = self._adapters[choice.provider] = self._maker_of(choice.provider)()
        return adapter

    def lack_of(self, choice: ModelChoice) -> str | None:
        """A sentence about what `choice` lacks before any call (provider, URL, file, script; keys are looked for elsewhere), or null."""
        if choice.provider not in self._makers:
            return self._unknown(choice.provider)
        if choice.provider == "openai-compatible" and not choice.base_url:
            return f"Model '{choice.model_name}' of provider openai-compatible has no baseUrl: set the server's URL, ending in /v1."
        if choice.provider == "local":
            return lack_of_file(choice.model_name, choice.path, self._data_dir)
        if choice.provider == "scripted" and choice.script is None:
            return f"Scripted model '{choice.model_name}' has no script: set `path` to a file of rules."
        return None

    async def close(self) -> None:
        adapters, self._adapters = list(self._adapters.values()), {}
        for adapter in adapters:
            await adapter.close()

    def _maker_of(self, provider: str) -> Callable[[], Model]:
        maker = self._makers.get(provider)
        if maker is None:
            raise ModelUnavailable(self._unknown(provider))
        return maker

    def _unknown(self, provider: str) -> str:
        return f"There is no model provider '{provider}'; there are: {', '.join(self._makers)}."

    def _make_openai(self) -> Model:
        # Both names share one adapter, and so one pool of connections.
        made: Model = _adapter_module("openai").adapter(_adapter_module("pool").Pool())
        return self._adapters.setdefault("openai-compatible", self._adapters.setdefault("openai", made))

    def _make_local(self) -> Model:
        made: Model = _adapter_module("local").LocalModel(data_dir=self._data_dir)
        return made


async def offers(read_key: ReadKey) -> list[str]:
    """A sentence for each further model this machine could use. Nothing is used unasked; only loopback is looked at."""
    found = []
    if read_key(_OPENAI_KEY):
        found.append(
            f"{_OPENAI_KEY} is set: MODEL=openai:NAME would use that key with OpenAI. It is not used unless you say so."
        )
    names = await _ollama_models()
    if names is not None:
        known = f" It has: {', '.join(names[:5])}." if names else " It has no model yet."
        url = f"http://{_OLLAMA[0]}:{_OLLAMA[1]}/v1"
        found.append(
            f"An Ollama answers on this machine: an openai-compatible model with baseUrl {url} would use it.{known}"
        )
    return found


async def _ollama_models() -> list[str] | None:
    """Names of the models of an Ollama on this machine; null where none answers in time."""
    try:
        async with asyncio.timeout(_OFFER_SECONDS):
            return await _read_tags()
    except (OSError, TimeoutError, ValueError, EOFError):
        return None


async def _read_tags() -> list[str]:
    reader, writer = await asyncio.open_connection(*_OLLAMA)
    try:
        writer.write(f"GET /api/tags HTTP/1.0\r\nHost: {_OLLAMA[0]}\r\n\r\n".encode())
        await writer.drain()
        status = await reader.readline()
        if b" 200" not in status:
            raise ValueError("not an Ollama")
        head_and_body = await reader.read()
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    answer: Any = json.loads(head_and_body.partition(b"\r\n\r\n")[2])
    match answer:
        case {"models": [*models]}:
            return [str(model["name"]) for model in models if isinstance(model, dict) and "name" in model]
    raise ValueError("not an Ollama")


def _adapter_module(name: str) -> Any:
    try:
        return importlib.import_module(f"folkmoot.llm.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _REQUIRED_DISTRIBUTIONS:
            raise
        wanted = _REQUIRED_DISTRIBUTIONS[missing]
        raise ModelUnavailable(
            f"This provider needs the package {wanted}, which is not installed: pip install '{wanted}'."
        ) from error
