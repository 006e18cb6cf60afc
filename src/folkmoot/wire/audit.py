"""The audit log. Deliberately absent: secret values and texts of conversations."""

from typing import Any

from folkmoot.wire.formats import Datetime, Page, ResponseShape, Uuid


class AuditEntry(ResponseShape):
    """Who did what. `userCreatedById` is who did it, null for the clock; `dateCreated` when. `detail` depends on the action."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid | None
    date_created: Datetime
    date_updated: Datetime
    user_name: str
    key_id: Uuid | None
    channel: str
    action: str
    subject_kind: str
    subject_id: Uuid | None
    detail: dict[str, Any]


class AuditPage(Page[AuditEntry]):
    """A page of the audit log, the newest first."""
