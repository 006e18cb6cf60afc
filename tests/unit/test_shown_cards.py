"""Programs are told of what waits in the API's shape, with nothing hidden in it (F33)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from folkmoot.api.mapping.pending import pending_work
from folkmoot.domain.inbox import InboxEntry, PendingEntry
from folkmoot.domain.pending import Pending, PendingKind
from folkmoot.domain.shown_text import is_hidden
from folkmoot.store.append_parameters import _pending

HOSTILE = "pay\u202e\u200b\U000e0041\ud83d\x00\x1b 5"
CALL = {
    "toolCallId": str(UUID(int=1)),
    "functionName": HOSTILE,
    "argumentsJson": f'{{"to": "{HOSTILE}"}}',
    "agentId": str(UUID(int=2)),
    "agentName": HOSTILE,
}
CARDS: dict[PendingKind, dict[str, Any]] = {
    PendingKind.APPROVAL: {
        **CALL, "description": HOSTILE, "connector": HOSTILE, "operation": HOSTILE, "operationVersion": 3, "server": HOSTILE,
        "argumentsHash": "00", "deferred": [CALL],
    },
    PendingKind.VOTE: {"proposer": HOSTILE, "text": HOSTILE, "isSolution": True, "turnId": str(UUID(int=3))},
    PendingKind.QUESTION: {"asker": HOSTILE, "question": HOSTILE},
    PendingKind.TURN: {"round": 2},
}  # fmt: skip


@pytest.mark.parametrize("kind", PendingKind)
def test_what_a_webhook_is_told_is_what_the_api_shows(kind: PendingKind) -> None:
    """F33: of what is kept, which is the card without what the database cannot hold."""
    _, pending_id, _, kept, _, told = _pending(0, Pending(UUID(int=4), kind, CARDS[kind], b"hash"), None)
    entry = PendingEntry(UUID(int=5), Pending(pending_id, kind, json.loads(kept)), datetime.now(UTC), None, None)
    shown = json.loads(pending_work(InboxEntry(entry, "panel", "main")).model_dump_json())
    assert json.loads(told) == {name: shown[name] for name in ("approval", "vote", "question", "turn", "chatItemId")}
    assert not any(is_hidden(character) for character in told)
    assert shown[kind.lower()] is not None
