"""Links between definitions, by name or by id. Deliberately absent: what they lead to; that takes the store."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class Reference:
    """A link to another definition, by `name` (in `namespace`, else the referring one's) or by `definition_id`.

    `version` null means the latest enabled one when the run starts.
    """

    name: str | None = None
    namespace: str | None = None
    definition_id: UUID | None = None
    version: int | None = None

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        base = str(self.definition_id) if self.definition_id else f"{place}{self.name}"
        return f"{base}@{self.version}" if self.version else base


@dataclass(frozen=True, slots=True)
class VersionLink:
    """A version of a definition, and one of its own kind that it links to: null if it links to none. `linked_version` null: the latest
    enabled one."""

    definition_id: UUID
    title: str
    number: int
    linked_id: UUID | None
    linked_version: int | None
