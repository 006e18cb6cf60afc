"""Routers: who takes a participant's turn. A router is a definition with candidates, rules, a model and a fallback; a run pins it.

Rules are tried in order, then the model chooses, then the fallback is taken. Deliberately absent: the choosing (`engine.routing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.references import Reference

MAX_DEPTH = 8  # routers in a chain


class CandidateKind(StrEnum):
    AGENT = "Agent"
    ROUTER = "Router"


@dataclass(frozen=True, slots=True)
class RouterCandidate:
    """One of `agent` and `router` is set. `name`: what rules, the model and the fallback call it; null: the definition's own.
    `description`: when to choose it; null: as the definition describes itself."""

    agent: Reference | None = None
    router: Reference | None = None
    name: str | None = None
    description: str | None = None

    @property
    def kind(self) -> CandidateKind:
        return CandidateKind.ROUTER if self.agent is None else CandidateKind.AGENT

    @property
    def link(self) -> Reference:
        return self.agent or self.router or Reference()

    @property
    def called(self) -> str | None:
        """Null: the definition's name is not known yet."""
        return self.name if self.name is not None else self.link.name


@dataclass(frozen=True, slots=True)
class RouterRule:
    """Chooses a candidate where all that is set matches; a rule with nothing set always does.

    `input_value`: of the run input `input`, as text. `turn_number`: of the participant's own turns, from 1. `last_author`: who
    spoke last, a participant's name or Human.
    """

    candidate: str
    participant: str | None = None
    input: str | None = None
    input_value: str | None = None
    thread: str | None = None
    turn_number: int | None = None
    last_author: str | None = None


@dataclass(frozen=True, slots=True)
class RouterVersion:
    """`model` null: nobody chooses where no rule does, and the fallback is taken. `prompt`: what the model is told beside the candidates."""

    candidates: tuple[RouterCandidate, ...]
    fallback: str
    rules: tuple[RouterRule, ...] = ()
    model: Reference | None = None
    prompt: str | None = None
    description: str | None = None


# What a run is pinned to.


@dataclass(frozen=True, slots=True)
class PinnedCandidate:
    name: str
    kind: CandidateKind
    definition_id: UUID
    version: int
    description: str | None = None


@dataclass(frozen=True, slots=True)
class PinnedRouter:
    """`model` null: only rules and the fallback choose."""

    router_id: UUID
    name: str
    version: int
    candidates: tuple[PinnedCandidate, ...]
    fallback: str
    rules: tuple[RouterRule, ...] = ()
    model: ModelChoice | None = None
    prompt: str | None = None

    def candidate(self, name: str) -> PinnedCandidate | None:
        return next((candidate for candidate in self.candidates if candidate.name == name), None)
