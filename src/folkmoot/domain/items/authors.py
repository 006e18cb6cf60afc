"""Who writes items."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class AuthorKind(StrEnum):
    AGENT = "Agent"
    HUMAN = "Human"
    ORCHESTRATOR = "Orchestrator"


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote an item. `id`: the agent's or user's id; null for the orchestrator."""

    kind: AuthorKind
    name: str
    id: UUID | None = None


ORCHESTRATOR = Author(AuthorKind.ORCHESTRATOR, "Orchestrator")
