"""Who did what: an entry of the audit log.

Names stay as they were at the time. Deliberately absent: secret values, texts of conversations, keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """`channel`: the way it came in, such as 'api' or 'command'. `action`: noun and verb, such as 'run.started'."""

    tenant_id: UUID
    audit_id: UUID
    at: datetime
    user_id: UUID | None
    user_name: str
    key_id: UUID | None
    channel: str
    action: str
    subject_kind: str
    subject_id: UUID | None
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Null: any."""

    user_id: UUID | None = None
    action: str | None = None
    subject_kind: str | None = None
    subject_id: UUID | None = None
    since: datetime | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuditCursor:
    """The last entry of a page; the next page begins after it."""

    at: datetime
    audit_id: UUID
