"""API keys. Deliberately absent: the key's text anywhere but in the one response that makes it."""

from folkmoot.wire.formats import Datetime, Name, Page, RequestShape, ResponseShape, Uuid


class ApiKey(ResponseShape):
    """A key as lists show it. `prefix` is its beginning, enough to tell keys apart and too little to use."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    name: str
    prefix: str
    date_expires: Datetime | None
    date_last_used: Datetime | None
    date_revoked: Datetime | None


class ApiKeyPage(Page[ApiKey]):
    """A page of keys."""


class CreatedApiKey(ApiKey):
    """A key that was just made. `key` is shown here and never again."""

    key: str


class ApiKeyRequest(RequestShape):
    """Makes a key. `dateExpires` null: it does not expire."""

    name: Name
    date_expires: Datetime | None = None
