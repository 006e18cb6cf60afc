"""What of a reply its items do not hold (reasoning, signatures), kept as plain JSON data and put back for its maker alone.

Deliberately absent: what a reply says and calls; that is in the items, and a replay holds none of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelResponsePart, TextPart, ThinkingPart, ToolCallPart

from folkmoot.domain.model_calls import ModelRequest, Replay

Json = Any

_THOUGHTS = TypeAdapter(list[ThinkingPart])
_SIGNATURE = "thought_signature"


def maker_of(request: ModelRequest) -> tuple[str, str, str | None]:
    """Who makes the reply: the provider, the model as the place calls it, and the place's URL."""
    model, access = request.model, request.access
    if access is None:
        return model.provider, model.model_name, model.base_url
    return model.provider, access.model_name, access.base_url


def replay_of(request: ModelRequest, parts: Sequence[ModelResponsePart]) -> Json:
    """What to keep of a reply; null if there is nothing."""
    thoughts = [part for part in parts if isinstance(part, ThinkingPart)]
    texts = [signed for part in parts if isinstance(part, TextPart) and (signed := _signature(part))]
    calls = [_signature(part) for part in parts if isinstance(part, ToolCallPart)]
    if not thoughts and not texts and not any(calls):
        return None
    _, model_name, base_url = maker_of(request)
    kept: Json = {"base_url": base_url, "model_name": model_name, "parts": _THOUGHTS.dump_python(thoughts, mode="json")}
    # Of several texts, which become one item, the last one's signature stands for all that went before.
    kept |= {"text": texts[-1]} if texts else {}
    return kept | ({"calls": calls} if any(calls) else {})


class Replayed:
    """A reply's replay while its items are put back one by one."""

    def __init__(self, kept: Json) -> None:
        self.thoughts = _THOUGHTS.validate_python(kept["parts"])
        self._text = kept.get("text")
        self._calls = list(kept.get("calls", ()))

    def text(self, content: str) -> TextPart:
        """The reply's text with its signature, which belongs to the first item that holds text."""
        signed, self._text = self._text, None
        return TextPart(content, **_details(signed))

    def call(self, name: str, arguments: str, call_id: str) -> ToolCallPart:
        signed = self._calls.pop(0) if self._calls else None
        return ToolCallPart(name, arguments, tool_call_id=call_id, **_details(signed))


def is_made_by(replay: Replay, maker: tuple[str, str, str | None]) -> bool:
    """Reasoning goes back to the provider, place and model that made it, and to nobody else."""
    provider, model_name, base_url = maker
    return (
        replay.provider == provider
        and isinstance(replay.parts, dict)
        and replay.parts.get("model_name", replay.model_name) == model_name
        and replay.parts.get("base_url") == base_url
    )


def _signature(part: TextPart | ToolCallPart) -> Json:
    signature = (part.provider_details or {}).get(_SIGNATURE)
    return {"signature": signature, "provider_name": part.provider_name} if signature else None


def _details(signed: Json) -> dict[str, Any]:
    if signed is None:
        return {}
    return {"provider_details": {_SIGNATURE: signed["signature"]}, "provider_name": signed["provider_name"]}
