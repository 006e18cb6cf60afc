"""API keys. Deliberately absent: the key's text anywhere but in the one response that makes it."""

from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import Datetime, Name, Page, RequestShape, ResponseShape, Uuid
from folkmoot.wire.rights import Right


class ApiKey(ResponseShape):
    """A key as lists show it. `prefix` is its beginning, enough to tell keys apart and too little to use.

    It acts as the user `userId`, with what that user's role may, narrowed to `scopes` where they are not null. Where somebody else
    made it (`userCreatedById`), it may no more than their role now, and is revoked when they are removed.
    """

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    user_id: Uuid
    name: str
    prefix: str
    scopes: tuple[Right, ...] | None
    date_expires: Datetime | None
    date_last_used: Datetime | None
    date_revoked: Datetime | None


class ApiKeyPage(Page[ApiKey]):
    """A page of keys."""


class CreatedApiKey(ApiKey):
    """A key that was just made. `key` is shown here and never again."""

    key: str


class ApiKeyRequest(RequestShape):
    """Makes a key. `dateExpires` null: it does not expire. `scopes` null: all that its user may. `userId` null: one's own."""

    name: Name
    date_expires: Datetime | None = None
    scopes: Annotated[tuple[Right, ...], Field(min_length=1, max_length=len(Right))] | None = None
    user_id: Uuid | None = None
