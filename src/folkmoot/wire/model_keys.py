"""The tenant's keys of models, and which stack runs take that name none. Deliberately absent: values."""

from pydantic import Field

from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.formats import Datetime, Flag, Name, Page, RequestShape, ResponseShape, Text, Uuid, Whole


class ModelKey(ResponseShape):
    """A secret that is a provider's key, for every run without a credential stack; the lowest `priority` is tried first.

    `credentialId` null: the server at `baseUrl` needs none. `credentialName` null: the secret was deleted, or there is none.
    """

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    name: str
    provider: str
    credential_id: str | None
    credential_name: str | None
    base_url: str | None
    model_name_overrides: dict[str, str]
    is_own_license: bool
    priority: int


class ModelKeyPage(Page[ModelKey]):
    """A page of keys."""


class ModelKeyRequest(RequestShape):
    """A key. `credential`: the secret, as `namespace/name` (a bare name is one of `default`), or its id.

    The key goes to `baseUrl`, else to the provider's own address, and nowhere else. `modelNameOverrides`: our names to theirs.
    """

    name: Name
    provider: Name
    credential: LinkText | None = None
    base_url: Text | None = None
    model_name_overrides: dict[Text, Text] = Field(default_factory=dict)
    is_own_license: Flag = False
    priority: Whole = 0


class DefaultCredentialStack(ResponseShape):
    """The stack of runs that name none; null: there is no default here."""

    credential_stack_id: Uuid | None
    credential_stack: str | None


class DefaultCredentialStackRequest(RequestShape):
    """The stack of runs that name none, as `name` or `namespace/name`; null: none from now on."""

    credential_stack: LinkText | None
