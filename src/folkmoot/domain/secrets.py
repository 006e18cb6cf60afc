"""A secret as it is known by: its name and its dates.

Deliberately absent: its value, which is opened only where it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Secret:
    """`updated_at`: when its value was last replaced."""

    tenant_id: UUID
    secret_id: UUID
    namespace: str
    name: str
    created_by: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """With what the vault can open."""

    about: Secret
    sealed: bytes = field(repr=False)
