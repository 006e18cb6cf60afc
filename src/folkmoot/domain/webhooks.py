"""Endpoints of programs that are told of what happens, and the messages to them.

Deliberately absent: how a message is signed and sent (`runtime.outbox`), and an endpoint's secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from folkmoot.domain.web_addresses import web_address
from folkmoot.kernel.errors import Fault


class WebhookKind(StrEnum):
    """What can be told of. Both are of everything that waits for a person; the message says of which kind it is."""

    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_DECIDED = "approval.decided"


class MessageStatus(StrEnum):
    WAITING = "Waiting"
    DELIVERED = "Delivered"
    GIVEN_UP = "GivenUp"


@dataclass(frozen=True, slots=True)
class Webhook:
    """`disabled_at`: since the endpoint said that it is gone."""

    tenant_id: UUID
    webhook_id: UUID
    url: str
    kinds: tuple[WebhookKind, ...]
    created_by: UUID
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True, slots=True)
class WebhookMessage:
    """One message and how far it got. `ready_at`: when it is tried next."""

    message_id: UUID
    kind: str
    created_at: datetime
    ready_at: datetime | None
    attempts: int
    delivered_at: datetime | None
    given_up_at: datetime | None
    last_error: str | None

    @property
    def status(self) -> MessageStatus:
        if self.delivered_at is not None:
            return MessageStatus.DELIVERED
        return MessageStatus.GIVEN_UP if self.given_up_at is not None else MessageStatus.WAITING


@dataclass(frozen=True, slots=True)
class MessageCursor:
    """The last message of a page; the next page begins after it."""

    created_at: datetime
    message_id: UUID


def faults_of_webhook(url: str, kinds: tuple[str, ...]) -> tuple[Fault, ...]:
    """What keeps an endpoint from being told anything; whether its address is let through is seen when it is called."""
    faults: list[Fault] = []
    parts = web_address(url)
    if parts is None:
        faults.append(Fault("/url", "Give a URL that begins with https:// or http://, of at most 2,000 characters."))
    elif parts.username is not None or parts.password is not None:
        faults.append(Fault("/url", "The URL holds a user or password; leave them out: messages are signed."))
    if not kinds:
        faults.append(Fault("/kinds", f"Name at least one kind: {', '.join(WebhookKind)}."))
    return tuple(faults)
