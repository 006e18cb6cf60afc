"""Webhooks as lists show them, with a secret that was just made, and their messages."""

from __future__ import annotations

from typing import Any

from folkmoot.domain.webhooks import Webhook, WebhookMessage
from folkmoot.vault.texts import SecretText
from folkmoot.wire import webhooks as wire


def webhook(of: Webhook) -> wire.Webhook:
    return wire.Webhook(**_fields(of))


def webhook_with_secret(of: Webhook, secret: SecretText) -> wire.WebhookWithSecret:
    """With the secret's text, which is shown this once."""
    return wire.WebhookWithSecret(**_fields(of), secret=secret.reveal())


def message(of: WebhookMessage) -> wire.WebhookMessage:
    return wire.WebhookMessage(
        id=of.message_id, kind=of.kind, status=wire.WebhookMessageStatus(of.status), date_created=of.created_at, attempts=of.attempts,
        date_next_attempt=of.ready_at, date_delivered=of.delivered_at, last_error=of.last_error,
    )  # fmt: skip


def _fields(of: Webhook) -> dict[str, Any]:
    return {
        "id": of.webhook_id,
        "tenant_id": of.tenant_id,
        "user_created_by_id": of.created_by,
        "date_created": of.created_at,
        "date_updated": of.updated_at,
        "url": of.url,
        "kinds": tuple(wire.WebhookKind(kind) for kind in of.kinds),
        "date_disabled": of.disabled_at,
    }
