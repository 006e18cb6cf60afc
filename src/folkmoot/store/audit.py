"""The audit log: who did what, written in the transaction of the deed, so that neither is there without the other.

Deliberately absent: changing or deleting an entry, and values of secrets, which no caller may put into `detail`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from folkmoot.domain.audit import AuditCursor, AuditEntry, AuditFilter
from folkmoot.domain.tenancy import Caller, User
from folkmoot.store.codecs import json_text, json_value, safe, safe_json
from folkmoot.store.database import Reader, Writer, queries

_sql: Any = queries("audit")
ORCHESTRATOR = "Orchestrator"  # who is named where nobody did it
CLOCK = "clock"  # by which way that came
RUN = "run"  # what participants of runs start and stop


def channel_of(caller: Caller) -> str:
    """The way something came in: a channel's name, 'run' where a run does it for its user, 'api' where a key was used, else 'command'."""
    if caller.over is not None:
        return caller.over
    if caller.acts_by is not None:
        return RUN
    return "api" if caller.key_id is not None else "command"


async def note(
    writer: Writer, caller: Caller, *, action: str, subject_kind: str, subject_id: UUID | None = None,
    detail: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Write down that `caller` did `action` ('run.started') to a subject ('run', its id), in the caller's open transaction.

    `detail`: a small JSON object, such as names; never a secret's value.
    """
    await note_all(writer, caller, action=action, subject_kind=subject_kind, subjects=[(subject_id, detail or {})])


async def note_all(
    writer: Writer, caller: Caller, *, action: str, subject_kind: str, subjects: Sequence[tuple[UUID | None, Mapping[str, Any]]]
) -> None:  # fmt: skip
    """The same of several subjects, each with its detail."""
    rows = [
        {
            "tenant_id": caller.tenant_id, "user_id": caller.user_id, "user_name": safe(caller.user_name), "key_id": caller.key_id,
            "channel": channel_of(caller), "action": action, "subject_kind": subject_kind, "subject_id": subject_id,
            "detail": json_text(dict(detail)),
        }
        for subject_id, detail in subjects
    ]  # fmt: skip
    await _sql.insert_entry(writer.connection, rows)


async def note_of_clock(
    writer: Writer, tenant_id: UUID, *, action: str, subject_kind: str, subject_id: UUID, detail: Mapping[str, Any]
) -> None:
    """Write down what nobody did, but followed from something else by itself."""
    row = {
        "tenant_id": tenant_id, "user_id": None, "user_name": ORCHESTRATOR, "key_id": None, "channel": CLOCK, "action": action,
        "subject_kind": subject_kind, "subject_id": subject_id, "detail": json_text(dict(detail)),
    }  # fmt: skip
    await _sql.insert_entry(writer.connection, [row])


async def note_over(
    writer: Writer, tenant_id: UUID, *, user: User | None, channel: str, action: str, subject_kind: str, subject_id: UUID,
    detail: Mapping[str, Any],
) -> None:  # fmt: skip
    """Write down what came over a channel and did not count. `user` null: it is not known who tried."""
    row = {
        "tenant_id": tenant_id, "user_id": user.user_id if user else None, "user_name": safe(user.name) if user else "somebody", "key_id": None,
        "channel": channel, "action": action, "subject_kind": subject_kind, "subject_id": subject_id, "detail": json_text(safe_json(dict(detail))),
    }  # fmt: skip
    await _sql.insert_entry(writer.connection, [row])


async def page(
    reader: Reader, tenant_id: UUID, *, wanted: AuditFilter, after: AuditCursor | None, limit: int
) -> list[AuditEntry]:
    """Entries under a filter, the newest first, those after the cursor."""
    async with reader.one_moment():
        await reader.plan_anew()
        rows = _sql.entries(
            reader.connection,
            tenant_id=tenant_id,
            user_id=wanted.user_id,
            action=safe(wanted.action) if wanted.action is not None else None,
            subject_kind=safe(wanted.subject_kind) if wanted.subject_kind is not None else None,
            subject_id=wanted.subject_id,
            since=wanted.since,
            before=wanted.before,
            after_at=after.at if after else None,
            after_id=after.audit_id if after else None,
            limit=limit,
        )
        return [_entry(row) async for row in rows]


def _entry(row: Any) -> AuditEntry:
    values = dict(row.items())
    return AuditEntry(**{**values, "detail": json_value(values["detail"])})
