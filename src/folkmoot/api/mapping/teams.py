"""What a run's routers decided, whom they gave turns to, and the dispatch whose gated call a run waits about.

Deliberately absent: dispatches under way otherwise; their items are in threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from folkmoot.domain.items import Floor, StoredItem
from folkmoot.domain.shown_text import shown
from folkmoot.wire import runs as wire
from folkmoot.wire.formats import VersionReference


def routing_decisions(items: Iterable[StoredItem]) -> Iterator[wire.InteractionRoutingDecision]:
    """Each decision of the chains that led to a turn's agent, with the date at which that turn was opened."""
    for stored in items:
        detail = stored.item.detail
        if not isinstance(detail, Floor):
            continue
        for made in detail.router:
            chosen = made.chosen_id
            yield wire.InteractionRoutingDecision(
                date=stored.date,
                participant_name=detail.participant,
                router=VersionReference(id=made.router_id, version=made.router_version),
                chosen=VersionReference(id=chosen, version=made.chosen_version or 0) if chosen is not None else None,
                reason=made.reason,
                is_fallback=made.is_fallback,
                depth=made.depth,
            )


def agents_of_turns(items: Iterable[StoredItem]) -> dict[UUID, UUID]:
    """Whom routers gave a turn to, by the turn's id."""
    opened = ((stored.item.turn_id, stored.item.detail) for stored in items if isinstance(stored.item.detail, Floor))
    return {turn_id: detail.agent for turn_id, detail in opened if turn_id is not None and detail.agent is not None}


def managed_dispatch(
    card: Mapping[str, Any], began_at: datetime | None, *, limit: int | None = None
) -> wire.InteractionProcessManagedDispatch | None:
    """Of a gated call's card; null where the call is no dispatch's. `limit`: how many characters of its message are shown."""
    dispatch = card.get("managedDispatch")
    if dispatch is None or began_at is None:
        return None
    return wire.InteractionProcessManagedDispatch(
        id=UUID(dispatch["id"]),
        agent_name=dispatch["agentName"],
        message=shown(dispatch["message"], limit=limit).text,
        thread_id=dispatch["threadId"],
        record_thread_id=dispatch["recordThreadId"],
        mode=dispatch["mode"],
        date_started=began_at,
    )
