"""Webhooks and their messages. Deliberately absent: a secret anywhere but in the two responses that make one."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from folkmoot.wire.formats import Datetime, Page, RequestShape, ResponseShape, Uuid


class WebhookKind(StrEnum):
    """What a webhook can be told of."""

    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"


class WebhookMessageStatus(StrEnum):
    """How far a message got."""

    WAITING = "Waiting"
    DELIVERED = "Delivered"
    GIVEN_UP = "GivenUp"


class Webhook(ResponseShape):
    """An endpoint. `dateDisabled`: since it answered that it is gone; it is told nothing any more."""

    id: Uuid
    tenant_id: Uuid
    user_created_by_id: Uuid
    date_created: Datetime
    date_updated: Datetime
    url: str
    kinds: tuple[WebhookKind, ...]
    date_disabled: Datetime | None


class WebhookPage(Page[Webhook]):
    """A page of webhooks."""


class WebhookWithSecret(Webhook):
    """A webhook whose secret was just made. `secret` is shown here and never again."""

    secret: str


class WebhookRequest(RequestShape):
    """Makes a webhook."""

    url: Annotated[str, Field(min_length=1, max_length=2000)]
    kinds: Annotated[tuple[WebhookKind, ...], Field(min_length=1, max_length=20)]


class WebhookMessage(ResponseShape):
    """A message. `id` is its `webhook-id`, the same at every attempt; `dateNextAttempt` null: it is not tried any more."""

    id: Uuid
    kind: str
    status: WebhookMessageStatus
    date_created: Datetime
    attempts: int
    date_next_attempt: Datetime | None
    date_delivered: Datetime | None
    last_error: str | None


class WebhookMessagePage(Page[WebhookMessage]):
    """A page of messages."""
