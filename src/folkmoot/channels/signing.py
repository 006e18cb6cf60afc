"""Messages signed as Standard Webhooks has it, both ways. The library's own clock decides what is fresh: five minutes either way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook

from folkmoot.channels.channel import ChannelRefused, Forged
from folkmoot.domain.channels import InboundRequest

_ID, _TIMESTAMP, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_LONGEST_ID = 200


def signed_headers(secret: str, *, message_id: str, now: datetime, body: bytes) -> Mapping[str, str]:
    """Raises ChannelRefused where the secret is none."""
    moment = now.astimezone(UTC)
    try:
        signature = Webhook(secret).sign(message_id, moment, body.decode())
    except Exception:  # not base64, or nothing
        raise ChannelRefused(
            "The channel's signing secret is no Standard Webhooks secret; give one that begins with 'whsec_'."
        ) from None
    return {_ID: message_id, _TIMESTAMP: str(int(moment.timestamp())), _SIGNATURE: signature}


def verified_id(secret: str, request: InboundRequest) -> str:
    """The id of a message whose signature and time are right. Raises Forged."""
    try:
        verifier = Webhook(secret)
    except Exception:  # not base64, or nothing
        raise Forged("Nothing can be verified: the channel's secret is no Standard Webhooks secret.") from None
    try:
        verifier.verify(request.body, dict(request.headers), json_parse=False)
    except Exception as error:  # the library raises more than its own where a header is malformed
        raise Forged(f"The message cannot be verified ({error}); sign it with the channel's secret, now.") from None
    message_id = request.headers[_ID]
    if len(message_id) > _LONGEST_ID:
        raise Forged(f"The header {_ID} is longer than {_LONGEST_ID} characters.")
    return message_id
