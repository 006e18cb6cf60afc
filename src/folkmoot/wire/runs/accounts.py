"""What a run used and with whose credentials. Deliberately absent: secrets; a credential is an id."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.formats import Datetime, Flag, Name, RequestShape, ResponseShape, Text, Uuid, Whole

TokenKind = Literal["Input", "CachedInput", "CacheWrite", "Output", "Reasoning"]
CredentialStackSource = Literal["Start", "Interaction", "Namespace", "Tenant", "Parent"]


class ModelFailureReason(StrEnum):
    """Why a call of a model failed."""

    AUTHENTICATION = "Authentication"
    RATE_LIMITED = "RateLimited"
    OVERLOADED = "Overloaded"
    QUOTA_EXHAUSTED = "QuotaExhausted"
    CONTEXT_TOO_LONG = "ContextTooLong"
    CONTENT_FILTERED = "ContentFiltered"
    INVALID_REQUEST = "InvalidRequest"
    TIMEOUT = "Timeout"
    UNAVAILABLE = "Unavailable"


class TokenUsageCount(ResponseShape):
    """How many tokens of one kind."""

    type: TokenKind
    count: int


class InteractionProcessTokenUsage(ResponseShape):
    """What a turn used of one model with one key; it grows as the turn goes, until `finished`."""

    turn_id: Uuid
    date: Datetime
    provider: str
    model: str
    agent_name: str | None
    agent_id: Uuid | None
    usages: tuple[TokenUsageCount, ...]
    finished: bool
    credential_id: str | None
    is_own_license: bool
    tier: str | None


class InteractionProcessCredential(ResponseShape):
    """A credential that the run was given; the one with the lowest `priority` is tried first."""

    provider: str
    base_url: str | None
    model_name_overrides: dict[str, str]
    credential_id: str | None
    is_own_license: bool
    priority: int


class InteractionProcessCredentialFailure(ResponseShape):
    """A key that failed and is rested for `retryAfterSeconds`."""

    credential_id: str
    provider: str
    failure_reason: ModelFailureReason
    detail: str
    date_utc: Datetime
    retry_after_seconds: int | None


class CredentialStackSnapshotEntry(ResponseShape):
    """An entry of the stack as it was when the run started."""

    id: Uuid
    credential_id: str | None
    provider: str
    base_url: str | None
    model_name_overrides: dict[str, str]
    is_own_license: bool
    priority: int


class CredentialStackSnapshot(ResponseShape):
    """The credential stack that the run took, and where it was named."""

    stack_id: Uuid
    stack_name: str
    stack_version: int
    source: CredentialStackSource
    resolved_at_utc: Datetime
    entries: tuple[CredentialStackSnapshotEntry, ...]
    passes_to_children: bool


class InteractionProcessCredentialRequest(RequestShape):
    """A credential for this run; the one with the lowest `priority` is tried first."""

    provider: Name
    base_url: Text | None = None
    model_name_overrides: dict[Text, Text] = Field(default_factory=dict)
    credential_id: LinkText | None = None
    is_own_license: Flag = False
    priority: Whole = 0
