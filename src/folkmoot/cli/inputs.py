"""What is typed on the command line, read: inputs and models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from folkmoot.bootstrap.installation import read_script
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.providers import PROVIDERS
from folkmoot.kernel.errors import BadInput
from folkmoot.llm.model_file import MODEL_NAME

_OLLAMA = "http://127.0.0.1:11434/v1"
_FORM = (
    "A model is written as provider:name, such as openai:NAME, anthropic:NAME, google:NAME, local:smollm2-135m-instruct, local:/path/to/file.gguf, ollama:NAME, "
    "openai-compatible:NAME@URL or scripted:FILE."
)


def read_inputs(values: list[str]) -> tuple[tuple[str, str], ...]:
    """name=value pairs; name=@file takes the file's text."""
    pairs: list[tuple[str, str]] = []
    for text in values:
        name, mark, value = text.partition("=")
        if not mark or not name:
            raise BadInput(f"'{text[:80]}' is no input; write it as name=value, or name=@file.")
        if value.startswith("@"):
            value = _text_of(name, value[1:])
        pairs.append((name, value))
    return tuple(pairs)


def _text_of(name: str, path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is no UTF-8 text"
        raise BadInput(
            f"The input '{name}' cannot be read from '{path[:200]}': {reason}. Correct the path; a text that begins with @ goes into a file."
        ) from error


def model_of(text: str | None) -> ModelChoice | None:
    """The model that `provider:name` names, with its script where it is scripted; null for null."""
    if text is None:
        return None
    provider, mark, name = text.partition(":")
    if not mark or not name:
        raise BadInput(f"'{text[:80]}' names no model. {_FORM}")
    match provider:
        case "ollama":
            return ModelChoice("openai-compatible", name, base_url=_OLLAMA)
        case "openai-compatible":
            # a model's name may hold an @ of its own
            at = max(name.rfind("@http://"), name.rfind("@https://"))
            if at < 1:
                raise BadInput(f"'{text[:80]}' lacks the server's URL. {_FORM}")
            return ModelChoice("openai-compatible", name[:at], base_url=name[at + 1 :])
        case "local":
            return _local(name)
        case "scripted":
            return ModelChoice("scripted", Path(name).stem, path=name, script=_script_of(name))
    known = PROVIDERS.get(provider)
    if known is None or known.base_url is None:
        raise BadInput(f"There is no provider '{provider[:40]}' that a name alone is enough for. {_FORM}")
    return ModelChoice(provider, name, context_window=128_000)


def _local(name: str) -> ModelChoice:
    if name.endswith(".gguf"):
        return ModelChoice("local", Path(name).stem, path=str(Path(name).expanduser().absolute()))
    if name != MODEL_NAME:
        raise BadInput(
            f"There is no local model '{name[:80]}'; there is {MODEL_NAME}, or name a file that ends in .gguf."
        )
    return ModelChoice("local", name)


def _script_of(path: str) -> Any:
    try:
        return read_script(path)
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not UTF-8"
        raise BadInput(f"The script '{path[:200]}' cannot be read: {reason}. Correct the path.") from error
