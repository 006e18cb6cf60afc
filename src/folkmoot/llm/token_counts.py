"""Tokens of a call by kind: the provider's own counts, or a guess from characters where it told nothing.

Deliberately absent: prices, windows, and counting with a tokenizer (its data would have to be fetched at run time).
"""

from __future__ import annotations

from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.usage import RequestUsage

from folkmoot.domain.model_calls import Usage

# UTF-8 bytes, not characters: a CJK character is about one token and three bytes, an English word's four letters one token.
_BYTES_PER_TOKEN = 4


def usage_of(counted: RequestUsage) -> Usage | None:
    """The provider's counts with every token in one kind only; null if it told nothing."""
    if not counted.input_tokens and not counted.output_tokens:
        return None
    reasoning = min(counted.details.get("reasoning_tokens", 0), counted.output_tokens)
    fresh = counted.input_tokens - counted.cache_read_tokens - counted.cache_write_tokens
    return Usage(
        input=max(fresh, 0),
        cached_input=counted.cache_read_tokens,
        cache_write=counted.cache_write_tokens,
        output=counted.output_tokens - reasoning,
        reasoning=reasoning,
    )


def estimated_usage(sent: Iterable[ModelMessage], written: str) -> Usage:
    """A guess for a call whose counts never came: `sent` went out, `written` is what came back of the reply."""
    sent_bytes = sum(_bytes(text) for message in sent for text in _texts(message))
    return Usage(input=_tokens(sent_bytes), output=_tokens(_bytes(written)), estimated=True)


def written_text(response: ModelResponse) -> str:
    """All that a reply holds, as one text to be measured."""
    return "".join(_texts(response))


def _tokens(size: int) -> int:
    return -(-size // _BYTES_PER_TOKEN)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _texts(message: ModelMessage) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            yield part.tool_name
            yield part.args_as_json_str()
            continue
        content = getattr(part, "content", None)
        if isinstance(content, str):
            yield content
