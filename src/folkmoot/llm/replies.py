"""From what a provider answered to our reply: text as it comes, calls as they came, usage by kind, or why it is none.

Deliberately absent: leniency. Arguments are handed on unread, and a reply that was cut is a failure.
"""

from __future__ import annotations

import json

from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
)

from folkmoot.domain.model_calls import (
    FailureClass,
    ModelFailure,
    ModelReply,
    ModelRequest,
    OnText,
    ReplyCall,
    Usage,
)
from folkmoot.llm.place import Place
from folkmoot.llm.profiles import Profile
from folkmoot.llm.replays import replay_of
from folkmoot.llm.sending import Sending
from folkmoot.llm.shim import read_reply, said_so_far
from folkmoot.llm.token_counts import estimated_usage, usage_of, written_text

_WINDOW_FULL = "model_context_window_exceeded"


class Progress:
    """What has come of a reply so far: its text is passed on as it comes, and measured in case the rest never does."""

    def __init__(self, on_text: OnText, *, is_shim: bool) -> None:
        self._on_text = on_text
        self._is_shim = is_shim
        self._passed_on = 0
        self.written = ""

    def take(self, event: ModelResponseStreamEvent) -> None:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            self.written += event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            self.written += event.delta.content_delta
        else:
            return
        text = said_so_far(self.written) if self._is_shim else self.written
        if len(text) > self._passed_on:
            self._on_text(text[self._passed_on :])
            self._passed_on = len(text)


def outcome_of(
    response: ModelResponse, request: ModelRequest, sent: Sending, *, place: Place, profile: Profile
) -> ModelReply | ModelFailure:
    """The reply, or why what came is none."""
    details = response.provider_details or {}
    told = usage_of(response.usage)
    usage = told or _estimated(response, sent)
    at = f"{place.shown_url} (model '{place.model_name}')"
    if response.finish_reason == "content_filter":
        return ModelFailure(FailureClass.CONTENT_FILTERED, f"{at} filtered the prompt or the reply.", usage=usage)
    if "finish_reason" not in details and (told is None or profile.tells_end):
        # A stream may break off without any error; what it held is no reply, and a cut call least of all.
        message = f"The reply from {at} ended before it was whole."
        return ModelFailure(FailureClass.UNAVAILABLE, message, usage=_estimated(response, sent))
    if details.get("finish_reason") == _WINDOW_FULL:
        message = f"The conversation left no room for the reply in the context of {at}."
        return ModelFailure(FailureClass.CONTEXT_TOO_LONG, message, usage=usage)
    text = "\n\n".join(part.content for part in response.parts if isinstance(part, TextPart) and part.content)
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    calls = tuple(ReplyCall(sent.names.get(part.tool_name, part.tool_name), _arguments(part)) for part in parts)
    if response.finish_reason == "length" and parts and _is_cut_unseen(parts[-1]):
        message = f"The reply reached its limit of tokens inside a call of {calls[-1].name}: raise maxTokens."
        return ModelFailure(FailureClass.INVALID_REQUEST, message, usage=usage)
    if sent.is_shim:
        text, calls = read_reply(text)
    tier = details.get("service_tier")
    replay = replay_of(request, response.parts)
    return ModelReply(text, calls, usage, replay, tier if isinstance(tier, str) else None)


def _estimated(response: ModelResponse, sent: Sending) -> Usage:
    return estimated_usage(sent.messages, sent.parameters, written_text(response))


def _is_cut_unseen(part: ToolCallPart) -> bool:
    """Whether a call that was cut does not look it: no arguments may mean 'none needed', and an object was closed for us."""
    return not isinstance(part.args, str) or not part.args.strip()


def _arguments(part: ToolCallPart) -> str:
    if part.args is None or isinstance(part.args, str):
        return part.args or ""
    return json.dumps(part.args, ensure_ascii=False)
