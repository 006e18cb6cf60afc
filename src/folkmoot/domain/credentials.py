"""With which keys a run's models may be called: credentials of the run, keys of the tenant, stacks with their rules.

A credential is a secret, by its id. Deliberately absent: values, and which key a call takes (`key_choice`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit
from uuid import UUID

from folkmoot.domain.model_calls import ModelChoice, ModelPurpose, Purpose
from folkmoot.domain.providers import base_url
from folkmoot.domain.references import Reference


class WhenUsedUp(StrEnum):
    """What to do when no entry of a rule can be used now: go on to the next rule, wait for the first to be ready, or fail."""

    NEXT = "Next"
    WAIT = "Wait"
    FAIL = "Fail"


class StackSource(StrEnum):
    """Where a run's stack was named."""

    START = "Start"
    INTERACTION = "Interaction"
    NAMESPACE = "Namespace"
    TENANT = "Tenant"
    PARENT = "Parent"


# What a call is made for, as rules and overrides call it.
PURPOSES = tuple(ModelPurpose)
_OF_THEIR_OWN = {Purpose.COMPACTION: ModelPurpose.COMPACTION, Purpose.ROUTE: ModelPurpose.ROUTER}


def purpose_of(purpose: Purpose) -> ModelPurpose:
    """A participant's own turns, ballots and answers are all its agent's."""
    return _OF_THEIR_OWN.get(purpose, ModelPurpose.AGENT)


# Definitions


@dataclass(frozen=True, slots=True)
class StackEntry:
    """An entry of a stack as it is defined. `credential` null: its server needs no key. The lowest `priority` is tried first."""

    name: str
    provider: str
    credential: Reference | None = None
    base_url: str | None = None
    model_name_overrides: dict[str, str] = field(default_factory=dict)
    is_own_license: bool = False
    priority: int = 0

    def settled(self, entry_id: UUID, *, secret_id: UUID | None) -> CredentialEntry:
        """As calls take it, its secret found."""
        return CredentialEntry(
            entry_id, self.provider, secret_id, self.base_url, self.model_name_overrides, self.is_own_license, self.priority, self.name
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StackRule:
    """Which entries a call takes, for calls that match: null matches all. `entries`: by name, in order; none: all by priority."""

    participant: str | None = None
    model: str | None = None
    provider: str | None = None
    purpose: str | None = None
    entries: tuple[str, ...] = ()
    when_used_up: WhenUsedUp = WhenUsedUp.NEXT


@dataclass(frozen=True, slots=True)
class CredentialStackVersion:
    """Without rules every call takes all entries by priority. `passes_to_children`: sub-runs have it too."""

    entries: tuple[StackEntry, ...]
    rules: tuple[StackRule, ...] = ()
    passes_to_children: bool = False
    description: str | None = None


# What a run and a tenant have


@dataclass(frozen=True, slots=True)
class CredentialEntry:
    """A key that calls may take. `name`: what sentences call it, if it has one."""

    entry_id: UUID
    provider: str
    secret_id: UUID | None
    base_url: str | None = None
    model_name_overrides: dict[str, str] = field(default_factory=dict)
    is_own_license: bool = False
    priority: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class StackSnapshot:
    """A run's stack as it was when the run started, without secrets."""

    stack_id: UUID
    stack_name: str
    stack_version: int
    source: StackSource
    resolved_at: datetime
    entries: tuple[CredentialEntry, ...]
    rules: tuple[StackRule, ...] = ()
    passes_to_children: bool = False


@dataclass(frozen=True, slots=True)
class ModelKey:
    """A key of the tenant, for every run without a stack. `secret_name`: null where the secret was deleted, or there is none."""

    tenant_id: UUID
    name: str
    entry: CredentialEntry
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    secret_name: str | None = None


@dataclass(frozen=True, slots=True)
class CredentialFailure:
    """A key that failed and then rested. `key`: its secret's id, or the name of what has none."""

    key: str
    provider: str
    reason: str
    detail: str
    at: datetime
    retry_after_seconds: int


def place_of(entry: CredentialEntry) -> str | None:
    """Where the entry's key is sent: nowhere else, whatever a model says."""
    return base_url(entry.provider, entry.base_url)


def name_there(entry: CredentialEntry, model: ModelChoice) -> str | None:
    """What the entry's server calls the model; null if the entry is not for it.

    It is for a model of its provider that it names, that is at the same server, or that says of no server where it is.
    """
    if entry.provider != model.provider:
        return None
    named = entry.model_name_overrides.get(model.model_name)
    if named is not None:
        return named
    is_there = model.base_url is None or is_same_place(model.base_url, place_of(entry))
    return model.model_name if is_there else None


def is_same_place(url: str, other: str | None) -> bool:
    return other is not None and _plain(url) == _plain(other)


def _plain(url: str) -> tuple[str, str, str]:
    parts = urlsplit(url)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path.rstrip("/")


def matches(rule: StackRule, *, participant: str, model: ModelChoice, purpose: Purpose) -> bool:
    wanted = (rule.participant, rule.model, rule.provider, rule.purpose)
    given = (participant, model.model_name, model.provider, purpose_of(purpose))
    return all(want is None or want == have for want, have in zip(wanted, given, strict=True))


def by_priority(entries: Iterable[CredentialEntry]) -> list[CredentialEntry]:
    """The lowest first; of one priority in the order given."""
    return sorted(entries, key=lambda entry: entry.priority)


def entries_of(rule: StackRule, entries: Iterable[CredentialEntry]) -> list[CredentialEntry]:
    """A rule's entries in its order; where it names none, all by priority."""
    if not rule.entries:
        return by_priority(entries)
    known = {entry.name: entry for entry in entries}
    return [known[name] for name in rule.entries if name in known]
