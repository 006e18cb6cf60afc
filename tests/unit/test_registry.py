"""Finding a model's adapter, saying what a model lacks, and what this machine could offer."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic_ai.providers import infer_provider_class

from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.providers import PROVIDERS, Protocol
from folkmoot.kernel.errors import ModelUnavailable
from folkmoot.llm import registry
from folkmoot.llm.model_file import MODEL_NAME
from folkmoot.llm.registry import Models, offers

SCRIPTED = ModelChoice("scripted", "rules", script={"rules": []})
URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def models(tmp_path: Path) -> Models:
    return Models(data_dir=tmp_path)


async def test_each_provider_has_one_adapter(models: Models) -> None:
    openai = models.adapter_of(ModelChoice("openai", "a"))
    assert models.adapter_of(ModelChoice("openai-compatible", "b", base_url=URL)) is openai
    assert models.adapter_of(ModelChoice("deepseek", "b")) is openai
    assert models.adapter_of(ModelChoice("anthropic", "b")) is not models.adapter_of(ModelChoice("google", "b"))
    assert models.adapter_of(SCRIPTED) is models.adapter_of(SCRIPTED) is not openai
    assert models.adapter_of(ModelChoice("local", MODEL_NAME)) is not openai
    await models.close()


async def test_closed_registry_can_be_used_again(models: Models) -> None:
    before = models.adapter_of(SCRIPTED)
    await models.close()
    await models.close()
    assert models.adapter_of(SCRIPTED) is not before


def test_unknown_provider_is_refused_with_the_known_ones(models: Models) -> None:
    with pytest.raises(
        ModelUnavailable,
        match="'acme'; there are: openai, openai-compatible, anthropic, google, local, scripted, alibaba",
    ):
        models.adapter_of(ModelChoice("acme", "x"))


def test_missing_package_is_named(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.delitem(sys.modules, "folkmoot.llm.local", raising=False)
    with pytest.raises(ModelUnavailable, match="pip install 'xllamacpp'"):
        models.adapter_of(ModelChoice("local", MODEL_NAME))


@pytest.mark.parametrize("provider", [name for name, known in PROVIDERS.items() if known.package])
def test_provider_with_a_package_of_its_own_names_it_where_it_is_missing(
    models: Models, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setitem(sys.modules, f"pydantic_ai.models.{provider}", None)
    with pytest.raises(ModelUnavailable, match=re.escape(f"pip install 'pydantic-ai-slim[{provider}]'")):
        models.adapter_of(ModelChoice(provider, "x"))


def test_addresses_are_those_that_the_library_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that moves is seen when the library is updated."""
    without = {"openai", "openai-compatible", "anthropic", "google", "xai"}
    for known in PROVIDERS.values():
        if known.protocol is not Protocol.OPENAI or known.base_url is None or known.name in without:
            continue
        provider = infer_provider_class(known.name)
        arguments = {"base_url": known.base_url} if known.name == "ollama" else {"api_key": "k"}
        made = provider(openai_client=None, **arguments)  # type: ignore[call-arg]
        assert made.base_url.rstrip("/") == known.base_url, known.name


@pytest.mark.parametrize(
    "choice, part",
    [
        (ModelChoice("vllm", "x"), "no baseUrl"),
        (ModelChoice("groq", "x", api_key_variable="MY_KEY"), "pip install 'pydantic-ai-slim[groq]'"),
        (ModelChoice("acme", "x"), "no model provider 'acme'"),
        (ModelChoice("openai-compatible", "x"), "no baseUrl"),
        (ModelChoice("local", MODEL_NAME), "folkmoot model pull"),
        (ModelChoice("local", "mine"), "has no path"),
        (ModelChoice("local", "mine", path="/nowhere/mine.gguf"), "correct its path"),
        (ModelChoice("scripted", "rules"), "no script"),
    ],
)
def test_lack_is_told_before_any_call(models: Models, choice: ModelChoice, part: str) -> None:
    assert part in (models.lack_of(choice) or "")


@pytest.mark.parametrize(
    "choice",
    [
        ModelChoice("openai", "gpt-4o", api_key_variable="MY_KEY"),
        ModelChoice("openai-compatible", "x", base_url=URL),
        ModelChoice("ollama", "x"),
        SCRIPTED,
    ],
)
def test_model_that_lacks_nothing_is_let_through(models: Models, choice: ModelChoice) -> None:
    assert models.lack_of(choice) is None


def test_pulled_file_is_found(models: Models, tmp_path: Path) -> None:
    file = tmp_path / "models" / f"{MODEL_NAME}.gguf"
    file.parent.mkdir()
    file.write_bytes(b"GGUF")
    assert models.lack_of(ModelChoice("local", MODEL_NAME)) is None


def test_scripted_runs_load_no_model_library() -> None:
    """A worker with scripted runs alone starts fast."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from folkmoot.domain.model_calls import ModelChoice\n"
        "from folkmoot.llm.registry import Models\n"
        "Models(data_dir=Path('.')).adapter_of(ModelChoice('scripted', 'x'))\n"
        "print([name for name in ('pydantic_ai', 'openai', 'anthropic', 'google.genai', 'httpx2', 'xllamacpp') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONPATH": "src"}
    )
    assert done.stdout.strip() == "[]"


# Offers.


@asynccontextmanager
async def something_answers(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    monkeypatch.setattr(registry, "_OLLAMA", server.sockets[0].getsockname()[:2])
    async with server:
        yield


def an_answer(body: object, status: str = "200 OK") -> bytes:
    return f"HTTP/1.0 {status}\r\ncontent-type: application/json\r\n\r\n{json.dumps(body)}".encode()


async def test_key_in_the_environment_is_offered_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OLLAMA", ("127.0.0.1", 9))
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        (sentence,) = await offers({name: "sk-secret"}.get)
        assert name in sentence and "sk-secret" not in sentence
    assert await offers(lambda name: None) == []


async def test_ollama_on_this_machine_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with something_answers(an_answer({"models": [{"name": "llama3"}]}), monkeypatch):
        (sentence,) = await offers(lambda name: None)
    assert "Ollama" in sentence and "llama3" in sentence


@pytest.mark.parametrize(
    "answer",
    [
        an_answer({"models": []}, "404 Not Found"),
        an_answer([]),
        an_answer({"models": 3}),
        b"HTTP/1.0 200 OK\r\n\r\n{oops",
        b"",
    ],
)
async def test_something_else_on_that_port_is_not_offered(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async with something_answers(answer, monkeypatch):
        assert await offers(lambda name: None) == []


async def test_port_that_stays_silent_does_not_hold_anybody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    monkeypatch.setattr(registry, "_OLLAMA", server.sockets[0].getsockname()[:2])
    async with server:
        async with asyncio.timeout(5):
            assert await offers(lambda name: None) == []
