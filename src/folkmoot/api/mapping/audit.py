"""Entries of the audit log as the wire shows them."""

from __future__ import annotations

from folkmoot.domain.audit import AuditEntry
from folkmoot.wire import audit as wire


def entry(found: AuditEntry) -> wire.AuditEntry:
    """An entry never changes: its two dates are one."""
    return wire.AuditEntry(
        id=found.audit_id,
        tenant_id=found.tenant_id,
        user_created_by_id=found.user_id,
        date_created=found.at,
        date_updated=found.at,
        user_name=found.user_name,
        key_id=found.key_id,
        channel=found.channel,
        action=found.action,
        subject_kind=found.subject_kind,
        subject_id=found.subject_id,
        detail=dict(found.detail),
    )
