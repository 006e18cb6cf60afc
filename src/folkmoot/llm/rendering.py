"""From a participant's view to a provider's messages.

What every provider accepts: one system message first, neighbours of one role merged, every call followed by its result,
and never the assistant's own words last. Views only grow, so what was rendered is kept and a long conversation costs each
turn what is new. Deliberately absent: trimming, tokens, and other participants' calls (no view has them).
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as RequestMessage

from folkmoot.domain.model_calls import (
    Entry,
    ModelChoice,
    ModelRequest,
    OtherText,
    OwnCall,
    OwnText,
    Replay,
    SystemText,
)
from folkmoot.llm.headings import headed

Json = Any

NUDGE = "It is your turn."
OPENING = "The conversation begins."

_REPLAYED = TypeAdapter(list[ThinkingPart])
_FUNCTION_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_FUNCTION_NAME = 64
_KEPT_VIEWS = 64
_SHORTEST_KEPT_VIEW = 16


class Renderer:
    """Renders requests; what it keeps is a cache and changes nothing about the result."""

    def __init__(self) -> None:
        # By identity, since a view is a growing list. The view is held, so that its id cannot become another one's.
        self._kept: OrderedDict[tuple[int, str, str, str | None], tuple[Sequence[Entry], _Conversation]] = OrderedDict()

    def messages(self, request: ModelRequest) -> list[ModelMessage]:
        """The request as messages. They share parts with later results: read them, never change them."""
        conversation = self._conversation(request)
        conversation.extend(request.view, request.view_length, request.replays)
        return conversation.messages(request.instruction)

    def _conversation(self, request: ModelRequest) -> _Conversation:
        model, view = request.model, request.view
        if request.view_length < _SHORTEST_KEPT_VIEW:
            return _Conversation(model)
        key = (id(view), model.provider, model.model_name, model.base_url)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            # A request from before the view grew cannot use what was rendered after it.
            return kept[1] if kept[1].length <= request.view_length else _Conversation(model)
        conversation = _Conversation(model)
        self._kept[key] = (view, conversation)
        if len(self._kept) > _KEPT_VIEWS:
            self._kept.popitem(last=False)
        return conversation


def replay_of(model: ModelChoice, parts: Sequence[ModelResponsePart]) -> Json:
    """What of a reply its items do not hold, as plain JSON data; null if there is nothing."""
    thoughts = [part for part in parts if isinstance(part, ThinkingPart)]
    if not thoughts:
        return None
    return {"base_url": model.base_url, "parts": _REPLAYED.dump_python(thoughts, mode="json")}


class _Conversation:
    """The first `length` entries of one view as messages: closed ones, and the exchange that may still grow.

    An exchange is what the assistant said and called, then results, then others' words; the first one has system text instead.
    """

    def __init__(self, model: ModelChoice) -> None:
        self.length = 0
        self._model = model
        self._closed: list[ModelMessage] = []
        self._system: list[str] = []
        self._said: list[ModelResponsePart] = []
        self._results: list[ModelRequestPart] = []
        self._heard: list[str] = []
        self._calls_of: UUID | None = None
        self._replayed: set[UUID] = set()

    def extend(self, view: Sequence[Entry], length: int, replays: dict[UUID, Replay]) -> None:
        for index in range(self.length, length):
            entry = view[index]
            if isinstance(entry, OwnText):
                self._add_own_text(entry, replays)
            elif isinstance(entry, OwnCall):
                self._add_own_call(entry, replays)
            elif isinstance(entry, OtherText):
                self._heard.append(headed(entry.speaker, entry.text))
            else:
                self._add_system_text(entry)
        self.length = length

    def messages(self, instruction: str | None) -> list[ModelMessage]:
        heard = self._heard if instruction is None else [*self._heard, headed(None, instruction)]
        if not heard and not self._results:
            heard = [headed(None, NUDGE)]
        return [*self._closed, *_exchange(self._system, self._said, self._results, heard)]

    def _add_system_text(self, entry: SystemText) -> None:
        if not entry.text.strip():
            return
        if self._closed or self._said or self._heard:
            # Few providers accept a system message later on.
            self._heard.append(headed(None, entry.text))
        else:
            self._system.append(entry.text)

    def _add_own_text(self, entry: OwnText, replays: dict[UUID, Replay]) -> None:
        if not entry.text.strip():
            return
        joins_calls = self._results and entry.model_call_id is not None and entry.model_call_id == self._calls_of
        if self._heard or (self._results and not joins_calls):
            self._close()
        self._open(entry.model_call_id, replays)
        at = next((n for n, part in enumerate(self._said) if isinstance(part, ToolCallPart)), len(self._said))
        before = self._said[at - 1] if at else None
        if isinstance(before, TextPart):
            self._said[at - 1] = TextPart(f"{before.content}\n\n{entry.text}")
        else:
            self._said.insert(at, TextPart(entry.text))

    def _add_own_call(self, entry: OwnCall, replays: dict[UUID, Replay]) -> None:
        is_sibling = entry.model_call_id is not None and entry.model_call_id == self._calls_of
        if self._heard or (self._results and not is_sibling):
            self._close()
        self._open(entry.model_call_id, replays)
        name = _FUNCTION_NAME.sub("_", entry.name)[:_LONGEST_FUNCTION_NAME] or "unnamed"
        self._said.append(ToolCallPart(name, _sendable(entry.arguments_json), tool_call_id=entry.call_id))
        result = ToolReturnPart(name, entry.result, tool_call_id=entry.call_id)
        result.outcome = "failed" if entry.is_error else "success"
        self._results.append(result)
        self._calls_of = entry.model_call_id

    def _open(self, model_call_id: UUID | None, replays: dict[UUID, Replay]) -> None:
        """Begin the assistant's words, if they have not begun, and put back what belongs to that reply."""
        if not self._closed and not self._said:
            # The first words must be somebody else's.
            self._heard = self._heard or [headed(None, OPENING)]
            self._close()
        if model_call_id is None or model_call_id in self._replayed:
            return
        self._replayed.add(model_call_id)
        replay = replays.get(model_call_id)
        if replay is not None and self._is_ours(replay):
            self._said.extend(_REPLAYED.validate_python(replay.parts["parts"]))

    def _is_ours(self, replay: Replay) -> bool:
        """Reasoning goes back to the provider, place and model that made it, and to nobody else."""
        model = self._model
        return (
            replay.provider == model.provider
            and replay.model_name == model.model_name
            and isinstance(replay.parts, dict)
            and replay.parts.get("base_url") == model.base_url
        )

    def _close(self) -> None:
        self._closed.extend(_exchange(self._system, self._said, self._results, self._heard))
        self._system, self._said, self._results, self._heard = [], [], [], []
        self._calls_of = None


def _exchange(
    system: list[str], said: list[ModelResponsePart], results: list[ModelRequestPart], heard: list[str]
) -> list[ModelMessage]:
    parts: list[ModelRequestPart] = [SystemPromptPart("\n\n".join(system))] if system else []
    parts += results
    if heard:
        parts.append(UserPromptPart("\n\n".join(heard)))
    messages: list[ModelMessage] = [ModelResponse(list(said))] if said else []
    return [*messages, RequestMessage(parts)] if parts else messages


def _sendable(arguments_json: str) -> str:
    """Arguments as they may go back to a provider: many refuse a history whose arguments are no JSON object."""
    if not arguments_json.strip():
        return "{}"
    try:
        if isinstance(json.loads(arguments_json), dict):
            return arguments_json
    except (ValueError, RecursionError):
        pass
    return json.dumps({"unreadable": arguments_json}, ensure_ascii=False)
