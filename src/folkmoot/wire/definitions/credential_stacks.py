"""Credential stacks: which keys calls take, in which order, and what comes when they are used up. Deliberately absent: values."""

from typing import Literal

from pydantic import Field

from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import Flag, Name, Page, RequestShape, ResponseShape, Text, Uuid, Whole

WhenUsedUp = Literal["Next", "Wait", "Fail"]
CallPurpose = Literal["Agent", "Compaction", "Router", "Weaver", "Vet"]


class CredentialStackEntry(ResponseShape):
    """A key: a secret by its id (null: the server needs none), and the only place that it is sent to."""

    name: str
    provider: str
    credential_id: Uuid | None
    base_url: str | None
    model_name_overrides: dict[str, str]
    is_own_license: bool
    priority: int


class CredentialStackRule(ResponseShape):
    """Which entries the calls take that match; null matches all. `entries`: names, in order; none: all by priority."""

    participant: str | None
    model: str | None
    provider: str | None
    purpose: CallPurpose | None
    entries: tuple[str, ...]
    when_used_up: WhenUsedUp


class CredentialStackVersion(DefinitionVersion):
    """One version of a stack. Without rules every call takes all entries by priority."""

    description: str | None
    entries: tuple[CredentialStackEntry, ...]
    rules: tuple[CredentialStackRule, ...]
    passes_to_children: bool


class CredentialStack(DefinitionResource):
    """A stack and its newest version, disabled or not."""

    latest_version: CredentialStackVersion


class CredentialStackPage(Page[CredentialStack]):
    """A page of stacks."""


class CredentialStackVersionPage(Page[CredentialStackVersion]):
    """A page of versions, the newest first."""


class CredentialStackEntryRequest(RequestShape):
    """A key: the secret by `credential` (`name` or `namespace/name`) or `credentialId`; neither: the server needs none.

    The key goes to `baseUrl`, else to the provider's own address, and nowhere else. `modelNameOverrides`: our names to theirs.
    """

    name: Name
    provider: Name
    credential_id: Uuid | None = None
    credential: LinkText | None = None
    base_url: Text | None = None
    model_name_overrides: dict[Text, Text] = Field(default_factory=dict)
    is_own_license: Flag = False
    priority: Whole = 0


class CredentialStackRuleRequest(RequestShape):
    """Which entries the calls take that match; what is left out matches all. `entries`: names, in order; none: all by priority."""

    participant: Name | None = None
    model: Text | None = None
    provider: Name | None = None
    purpose: CallPurpose | None = None
    entries: tuple[Name, ...] = ()
    when_used_up: WhenUsedUp = "Next"


class CredentialStackVersionRequest(RequestShape):
    """A new version of a stack."""

    description: Text | None = None
    entries: tuple[CredentialStackEntryRequest, ...]
    rules: tuple[CredentialStackRuleRequest, ...] = ()
    passes_to_children: Flag = False


class CredentialStackRequest(RequestShape):
    """Creates a stack with its first version."""

    name: Name
    version: CredentialStackVersionRequest
