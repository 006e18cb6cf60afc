"""Secrets: taken, and never given back. Deliberately absent: the value from every answer."""

from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import Datetime, Page, RequestShape, ResponseShape, Uuid


class Secret(ResponseShape):
    """What is known of a secret: its name, and when its value was last replaced (`dateUpdated`)."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    namespace_name: str
    name: str


class SecretPage(Page[Secret]):
    """A page of secrets."""


class SecretRequest(RequestShape):
    """Sets a secret's value: 1 to 65,536 bytes in UTF-8. It is never shown again."""

    value: Annotated[str, Field(min_length=1, max_length=65_536, json_schema_extra={"writeOnly": True}, repr=False)]
