"""Tokens of a call by kind: the provider's own counts, or a guess from characters where it told nothing.

Deliberately absent: prices, windows, and counting with a tokenizer (its data would have to be fetched at run time).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from folkmoot.domain.model_calls import Usage

# What tokenizers make one token of, roughly: a word of up to seven Latin letters, three digits, a few marks (JSON and code are full
# of them), one character of a script that is written without spaces, a few letters of any other, a line's end with its indent.
_TOKEN = re.compile(
    r"[A-Za-z]{1,7}|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,3}|[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff]"
    r"|[^\x00-\x7f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U0001f000-\U0003ffff\s]{1,3}|\s*\n\s*|[ \t]{2,}"
)
_TOKENS_AROUND_A_MESSAGE = 4
# Where a provider counts what it thought, by the names that the library gives it.
_REASONING = ("reasoning_tokens", "thinking_tokens", "thoughts_tokens")


def usage_of(counted: RequestUsage) -> Usage | None:
    """The provider's counts with every token in one kind only; null if it told nothing."""
    if not counted.input_tokens and not counted.output_tokens:
        return None
    reasoning = min(max(counted.details.get(name, 0) for name in _REASONING), counted.output_tokens)
    fresh = counted.input_tokens - counted.cache_read_tokens - counted.cache_write_tokens
    return Usage(
        input=max(fresh, 0),
        cached_input=counted.cache_read_tokens,
        cache_write=counted.cache_write_tokens,
        output=counted.output_tokens - reasoning,
        reasoning=reasoning,
    )


def estimated_usage(sent: Iterable[ModelMessage], parameters: ModelRequestParameters, written: str) -> Usage:
    """A guess for a call whose counts never came: `sent` went out with the functions of `parameters`; `written` is what came back of the
    reply."""
    prompt = sum(_TOKENS_AROUND_A_MESSAGE + sum(tokens_in(text) for text in _texts(message)) for message in sent)
    for tool in parameters.function_tools:
        prompt += (
            tokens_in(tool.name) + tokens_in(tool.description or "") + tokens_in(_as_json(tool.parameters_json_schema))
        )
    if parameters.output_object is not None:
        prompt += tokens_in(_as_json(parameters.output_object.json_schema))
    return Usage(input=prompt, output=tokens_in(written), estimated=True)


def tokens_in(text: str) -> int:
    """About how many tokens a text is, by no provider's tokenizer."""
    return len(_TOKEN.findall(text))


def written_text(response: ModelResponse) -> str:
    """All that a reply holds, as one text to be measured."""
    return "".join(_texts(response))


def _texts(message: ModelMessage) -> Iterable[str]:
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            yield part.tool_name
            yield part.args_as_json_str()
            continue
        content = getattr(part, "content", None)
        if isinstance(content, str):
            yield content
        elif isinstance(part, UserPromptPart):
            yield from (piece for piece in part.content if isinstance(piece, str))


def _as_json(schema: object) -> str:
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
