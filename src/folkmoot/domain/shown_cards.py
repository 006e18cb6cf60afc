"""Cards of what waits, as people and their programs are shown them: the API's names, and text that cannot deceive (F33).

One shape for the API, its feeds and webhooks. Deliberately absent: what a card means to the engine, which makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from folkmoot.domain.pending import PendingKind
from folkmoot.domain.shown_text import ShownText, shown, shown_json


@dataclass(frozen=True, slots=True)
class ShownCard:
    """`fields`: `approval`, `vote`, `question` and `turn`, as JSON; all but one are null. `is_cut`: a text is shown in part."""

    fields: dict[str, Any]
    is_cut: bool


def shown_card(kind: PendingKind, card: Mapping[str, Any], *, limit: int | None = None) -> ShownCard:
    """`limit`: how many characters of a text are shown; null: all."""
    shower = _Shower(limit)
    fields = {
        "approval": _approval(card, shower) if kind is PendingKind.APPROVAL else None,
        "vote": _vote(card, shower) if kind is PendingKind.VOTE else None,
        "question": _question(card, shower) if kind is PendingKind.QUESTION else None,
        "turn": {"round": card.get("round", 0)} if kind is PendingKind.TURN else None,
    }
    return ShownCard(fields, shower.has_cut)


def shown_call(card: Mapping[str, Any], *, limit: int | None = None) -> dict[str, Any]:
    """The call that an approval is about."""
    return _call(card, _Shower(limit))


def deferred_calls(card: Mapping[str, Any], *, limit: int | None = None) -> list[dict[str, Any]]:
    """The calls that wait behind it."""
    return _deferred(card, _Shower(limit))


class _Shower:
    """Shows texts, and knows whether one was cut. `limit` null: nothing is."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self.has_cut = False

    def text(self, value: Any) -> str:
        return self._noted(shown(str(value), limit=self._limit))

    def text_or_null(self, value: Any) -> str | None:
        return None if value is None else self.text(value)

    def json(self, value: Any) -> str:
        return self._noted(shown_json(str(value), limit=self._limit))

    def _noted(self, made: ShownText) -> str:
        self.has_cut = self.has_cut or made.is_cut
        return made.text


def _call(card: Mapping[str, Any], shower: _Shower) -> dict[str, Any]:
    return {
        "toolCallId": card["toolCallId"],
        "functionName": shower.text(card["functionName"]),
        "argumentsJson": shower.json(card["argumentsJson"]),
        "agentId": card["agentId"],
        "agentName": shower.text(card["agentName"]),
    }


def _deferred(card: Mapping[str, Any], shower: _Shower) -> list[dict[str, Any]]:
    return [_call(call, shower) for call in card.get("deferred", ())]


def _approval(card: Mapping[str, Any], shower: _Shower) -> dict[str, Any]:
    return {
        **_call(card, shower),
        "argumentsHash": card["argumentsHash"],
        "description": shower.text(card.get("description") or ""),
        "connector": shower.text_or_null(card.get("connector")),
        "operation": shower.text_or_null(card.get("operation")),
        "operationVersion": card.get("operationVersion"),
        "server": shower.text_or_null(card.get("server")),
        "deferredToolCalls": _deferred(card, shower),
    }


def _vote(card: Mapping[str, Any], shower: _Shower) -> dict[str, Any]:
    return {
        "proposer": shower.text(card["proposer"]),
        "text": shower.text(card["text"]),
        "isSolution": bool(card["isSolution"]),
    }


def _question(card: Mapping[str, Any], shower: _Shower) -> dict[str, Any]:
    return {"asker": shower.text(card["asker"]), "question": shower.text(card["question"])}
