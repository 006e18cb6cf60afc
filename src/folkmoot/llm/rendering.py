"""From a participant's view to a provider's messages.

What every provider accepts: one system message first, neighbours of one role merged, every call followed by its result,
and never the assistant's own words last. Views only grow, so what was rendered is kept and a long conversation costs each
turn what is new. Deliberately absent: trimming, tokens, and other participants' calls (no view has them).
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import ModelRequest as RequestMessage

from folkmoot.domain.model_calls import (
    Entry,
    ModelRequest,
    OtherText,
    OwnCall,
    OwnText,
    Replay,
    SystemText,
)
from folkmoot.llm.function_names import safe_function_name
from folkmoot.llm.headings import headed
from folkmoot.llm.replays import Replayed, is_made_by, maker_of

Json = Any
Maker = tuple[str, str, str | None]

NUDGE = "It is your turn."
OPENING = "The conversation begins."

_KEPT_VIEWS = 256
_SHORTEST_KEPT_VIEW = 16


@dataclass(frozen=True, slots=True)
class Rendered:
    """`messages` share parts with later results: read them, never change them. `called`: the functions that they hold calls of, as sent."""

    messages: list[ModelMessage]
    called: tuple[str, ...]


class Renderer:
    """Renders requests; what it keeps is a cache and changes nothing about the result. `marks_cache`: what stays for the next call is marked."""

    def __init__(self, *, marks_cache: bool = False) -> None:
        self._marks_cache = marks_cache
        # By identity, since a view is a growing list. The view is held, so that its id cannot become another one's.
        self._kept: OrderedDict[tuple[int, Maker], tuple[Sequence[Entry], _Conversation]] = OrderedDict()

    def render(self, request: ModelRequest) -> Rendered:
        conversation = self._conversation(request)
        conversation.extend(request.view, request.view_length, request.replays)
        messages = conversation.messages(request.instruction, marks_cache=self._marks_cache)
        return Rendered(messages, tuple(conversation.called))

    def _conversation(self, request: ModelRequest) -> _Conversation:
        maker, view = maker_of(request), request.view
        if request.view_length < _SHORTEST_KEPT_VIEW:
            return _Conversation(maker)
        key = (id(view), maker)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            # A request from before the view grew cannot use what was rendered after it.
            return kept[1] if kept[1].length <= request.view_length else _Conversation(maker)
        conversation = _Conversation(maker)
        self._kept[key] = (view, conversation)
        if len(self._kept) > _KEPT_VIEWS:
            self._kept.popitem(last=False)
        return conversation


class _Conversation:
    """The first `length` entries of one view as messages: closed ones, and the exchange that may still grow.

    An exchange is what the assistant said and called, then results, then others' words; the first one has system text instead.
    """

    def __init__(self, maker: Maker) -> None:
        self.length = 0
        self.called: dict[str, None] = {}
        self._maker = maker
        self._closed: list[ModelMessage] = []
        self._system: list[str] = []
        self._said: list[ModelResponsePart] = []
        self._results: list[ModelRequestPart] = []
        self._heard: list[str] = []
        self._calls_of: UUID | None = None
        self._replayed: set[UUID] = set()
        self._replay_of: UUID | None = None
        self._replay: Replayed | None = None

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

    def messages(self, instruction: str | None, *, marks_cache: bool) -> list[ModelMessage]:
        passing = [] if instruction is None else [headed(None, instruction)]
        if not passing and not self._heard and not self._results:
            passing = [headed(None, NUDGE)]
        if not marks_cache:
            return [*self._closed, *_exchange(self._system, self._said, self._results, [*self._heard, *passing])]
        # What is said for this call alone stands apart, behind the mark: the next prompt begins with all that is before it.
        last: list[UserContent] = [_joined(self._heard)] if self._heard else []
        last += [CachePoint(), *passing] if self._heard or self._results or self._said else passing
        return [*self._closed, *_exchange(self._system, self._said, self._results, [], last)]

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
        replayed = self._open(entry.model_call_id, replays)
        at = next((n for n, part in enumerate(self._said) if isinstance(part, ToolCallPart)), len(self._said))
        before = self._said[at - 1] if at else None
        if isinstance(before, TextPart):
            # A signature vouches for the words that it came with alone, so the merged ones go without.
            self._said[at - 1] = TextPart(f"{before.content}\n\n{entry.text}")
        else:
            self._said.insert(at, replayed.text(entry.text) if replayed is not None else TextPart(entry.text))

    def _add_own_call(self, entry: OwnCall, replays: dict[UUID, Replay]) -> None:
        is_sibling = entry.model_call_id is not None and entry.model_call_id == self._calls_of
        if self._heard or (self._results and not is_sibling):
            self._close()
        replayed = self._open(entry.model_call_id, replays)
        name, arguments = safe_function_name(entry.name), _sendable(entry.arguments_json)
        self.called[name] = None
        self._said.append(
            replayed.call(name, arguments, entry.call_id)
            if replayed is not None
            else ToolCallPart(name, arguments, tool_call_id=entry.call_id)
        )
        result = ToolReturnPart(name, entry.result, tool_call_id=entry.call_id)
        result.outcome = "failed" if entry.is_error else "success"
        self._results.append(result)
        self._calls_of = entry.model_call_id

    def _open(self, model_call_id: UUID | None, replays: dict[UUID, Replay]) -> Replayed | None:
        """Begin the assistant's words, if they have not begun, and put back what belongs to that reply, which is given."""
        if not self._closed and not self._said:
            # The first words must be somebody else's.
            self._heard = self._heard or [headed(None, OPENING)]
            self._close()
        if model_call_id is None:
            return None
        if model_call_id == self._replay_of:
            return self._replay
        if model_call_id in self._replayed:
            return None
        self._replayed.add(model_call_id)
        replay = replays.get(model_call_id)
        self._replay_of, self._replay = model_call_id, None
        if replay is not None and is_made_by(replay, self._maker):
            self._replay = Replayed(replay.parts)
            self._said.extend(self._replay.thoughts)
        return self._replay

    def _close(self) -> None:
        self._closed.extend(_exchange(self._system, self._said, self._results, self._heard))
        self._system, self._said, self._results, self._heard = [], [], [], []
        self._calls_of = None


def _exchange(
    system: list[str],
    said: list[ModelResponsePart],
    results: list[ModelRequestPart],
    heard: list[str],
    last: list[UserContent] | None = None,
) -> list[ModelMessage]:
    """`last`: what is heard, in parts, in place of `heard`."""
    parts: list[ModelRequestPart] = [SystemPromptPart("\n\n".join(system))] if system else []
    parts += results
    if heard or last:
        parts.append(UserPromptPart(last or _joined(heard)))
    messages: list[ModelMessage] = [ModelResponse(list(said))] if said else []
    return [*messages, RequestMessage(parts)] if parts else messages


def _joined(heard: list[str]) -> str:
    return "\n\n".join(heard)


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
