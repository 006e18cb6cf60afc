"""Cursors of pages: what `next` says and `after` takes. Opaque to those who pass them on.

Deliberately absent: trust. Whatever cannot be read as a cursor of that list is refused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any, TypeVar
from uuid import UUID

from folkmoot.domain.apps import AppCursor
from folkmoot.domain.audit import AuditCursor
from folkmoot.domain.inbox import InboxCursor
from folkmoot.domain.usage import CallCursor, UsageGroup
from folkmoot.domain.webhooks import MessageCursor
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services.agent_run_reading import RunMessageCursor
from folkmoot.services.runs import RunCursor

T = TypeVar("T")


def run_cursor(cursor: RunCursor) -> str:
    return _written([cursor.created_at.isoformat(), str(cursor.run_id)])


def read_run_cursor(text: str | None) -> RunCursor | None:
    return _read(text, lambda parts: RunCursor(_moment(parts[0]), UUID(parts[1])))


def app_cursor(cursor: AppCursor) -> str:
    return _written([cursor.created_at.isoformat(), str(cursor.run_id)])


def read_app_cursor(text: str | None) -> AppCursor | None:
    return _read(text, lambda parts: AppCursor(_moment(parts[0]), UUID(parts[1])))


def inbox_cursor(cursor: InboxCursor) -> str:
    return _written([cursor.asked_at.isoformat(), str(cursor.pending_id)])


def read_inbox_cursor(text: str | None) -> InboxCursor | None:
    return _read(text, lambda parts: InboxCursor(_moment(parts[0]), UUID(parts[1])))


def audit_cursor(cursor: AuditCursor) -> str:
    return _written([cursor.at.isoformat(), str(cursor.audit_id)])


def read_audit_cursor(text: str | None) -> AuditCursor | None:
    return _read(text, lambda parts: AuditCursor(_moment(parts[0]), UUID(parts[1])))


def message_cursor(cursor: MessageCursor) -> str:
    return _written([cursor.created_at.isoformat(), str(cursor.message_id)])


def read_message_cursor(text: str | None) -> MessageCursor | None:
    return _read(text, lambda parts: MessageCursor(_moment(parts[0]), UUID(parts[1])))


def usage_cursor(group: UsageGroup) -> str:
    ids = (group.namespace_id, group.interaction_id, group.root_id, group.run_id)
    words = (group.agent, group.provider, group.model, group.credential)
    return _written([group.day.isoformat() if group.day else None, *(str(id_) if id_ else None for id_ in ids), *words])


def read_usage_cursor(text: str | None) -> UsageGroup | None:
    """The group after which a page begins, without its names."""
    return _read(text, _group)


def call_cursor(cursor: CallCursor) -> str:
    return _written([cursor.started_at.isoformat(), str(cursor.model_call_id)])


def read_call_cursor(text: str | None) -> CallCursor | None:
    return _read(text, lambda parts: CallCursor(_moment(parts[0]), UUID(parts[1])))


def feed_cursor(moment: datetime) -> str:
    return _written([moment.isoformat()])


def read_feed_cursor(text: str | None) -> datetime | None:
    """The moment up to which the reader of a feed knows everything."""
    return _read(text, lambda parts: _moment(parts[0]))


def agent_run_cursor(id_: int) -> str:
    return _written([id_])


def read_agent_run_cursor(text: str | None) -> int | None:
    """The number of the run after which a page begins."""
    return _read(text, lambda parts: _number(parts[0], below=2**63))


def run_message_cursor(cursor: RunMessageCursor) -> str:
    return _written([cursor.created_at.isoformat(), str(cursor.message_id)])


def read_run_message_cursor(text: str | None) -> RunMessageCursor | None:
    return _read(text, lambda parts: RunMessageCursor(_moment(parts[0]), UUID(parts[1])))


def name_cursor(name: str) -> str:
    return _written([name])


def read_name_cursor(text: str | None) -> str:
    """The name after which a page begins; '' for the first."""
    return _read(text, lambda parts: _text(parts[0])) or ""


def number_cursor(number: int) -> str:
    return _written([number])


def read_number_cursor(text: str | None) -> int | None:
    """A version's number; null for the first page."""
    return _read(text, lambda parts: _number(parts[0]))


def _written(parts: list[Any]) -> str:
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode("ascii")


def _read(text: str | None, parse: Callable[[list[Any]], T]) -> T | None:
    if text is None:
        return None
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        return parse(json.loads(base64.b64decode(padded, altchars=b"-_", validate=True)))
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        message = "This is no cursor of this list: pass on what the page before gave as `next`, or leave it out."
        raise BadInput(f"'after': {message}", (Fault("", message),)) from None


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(value)
    return moment.astimezone(UTC)  # an OverflowError for what only another offset can hold


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _group(parts: list[Any]) -> UsageGroup:
    day, *rest = parts
    namespace, interaction, root, run = (UUID(part) if part is not None else None for part in rest[:4])
    agent, provider, model, credential = (_text(part) if part is not None else None for part in rest[4:])
    moment = date.fromisoformat(day) if day is not None else None
    return UsageGroup(moment, namespace, interaction, root, run, agent, provider, model, credential)


def _number(value: Any, *, below: int = 2**31) -> int:
    if type(value) is not int or not 1 <= value < below:
        raise ValueError(value)
    return value
