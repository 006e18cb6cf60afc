"""Messages signed as Standard Webhooks has it, both ways. The library's own clock decides what is fresh: five minutes either way."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from datetime import UTC, datetime

from standardwebhooks import Webhook

from folkmoot.channels.channel import ChannelRefused, Forged
from folkmoot.domain.channels import InboundRequest

_ID, _TIMESTAMP, _SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_PREFIX = "whsec_"
_LONGEST_ID = 200
_LEAST_BYTES = 24  # of a secret, as Standard Webhooks has it
_NO_SECRET = (
    "the channel's signing secret is no Standard Webhooks secret: it begins with 'whsec_', and base64 of 24 bytes or more follows. "
    "`folkmoot secrets set` takes another one"
)


def signed_headers(secret: str, *, message_id: str, now: datetime, body: bytes) -> Mapping[str, str]:
    """Raises ChannelRefused where the secret is none."""
    moment = now.astimezone(UTC)
    if (signer := _webhook(secret)) is None:
        raise ChannelRefused(f"Nothing can be signed: {_NO_SECRET}.")
    signature = signer.sign(message_id, moment, body.decode())
    return {_ID: message_id, _TIMESTAMP: str(int(moment.timestamp())), _SIGNATURE: signature}


def verified_id(secret: str, request: InboundRequest) -> str:
    """The id of a message whose signature and time are right. Raises Forged."""
    if (verifier := _webhook(secret)) is None:
        raise Forged("Nothing can be verified: the channel's secret is no Standard Webhooks secret.")
    try:
        verifier.verify(request.body, dict(request.headers), json_parse=False)
    except Exception as error:  # the library raises more than its own where a header is malformed
        raise Forged(f"The message cannot be verified ({error}); sign it with the channel's secret, now.") from None
    message_id = request.headers[_ID]
    if len(message_id) > _LONGEST_ID:
        raise Forged(f"The header {_ID} is longer than {_LONGEST_ID} characters.")
    return message_id


def _webhook(secret: str) -> Webhook | None:
    """Null where the secret is none, or so short that it could be guessed."""
    if not secret.startswith(_PREFIX):
        return None
    try:
        if len(b64decode(secret.removeprefix(_PREFIX), validate=True)) < _LEAST_BYTES:
            return None
    except ValueError:
        return None
    return Webhook(secret)
