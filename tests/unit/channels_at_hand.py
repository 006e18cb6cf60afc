"""What tests of channels share: the world as an operator gives it, on loopback, and messages to send."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from uuid import UUID

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from folkmoot.bootstrap.channel_world import channel_world
from folkmoot.channels.channel import SLACK_API_URL, ChannelWorld
from folkmoot.domain.channels import ChannelSetup, MessageKind, OutgoingMessage
from folkmoot.tools.addresses import Guard, guarded_client

LOOPBACK = ("127.0.0.1",)
TOKEN = "abcdefghijklmnopqrstuvwxyz"
SECRET = "abcdefgh234567ab"
MESSAGE_ID = UUID("01890000-0000-7000-8000-000000000001")
CHAT_ITEM_ID = UUID("01890000-0000-7000-8000-000000000002")
TEXT = "The agent 'clerk' asks to call 'refund' with {\"amount\": 40}."


@asynccontextmanager
async def world(
    *, allow: tuple[str, ...] = LOOPBACK, slack_api_url: str = SLACK_API_URL, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ChannelWorld]:
    guard = Guard(allow)
    async with guarded_client(guard) as client:
        if tls is None:
            yield channel_world(guard, client, slack_api_url=slack_api_url)
        else:
            yield channel_world(guard, client, slack_api_url=slack_api_url, tls=lambda: tls)


def setup_of(settings: dict[str, Any], secrets: dict[str, str], *, now: datetime | None = None) -> ChannelSetup:
    return ChannelSetup(settings, secrets, now or datetime.now(UTC))


def message(kind: MessageKind = MessageKind.CONSENT_REQUESTED, **changes: Any) -> OutgoingMessage:
    parts: dict[str, Any] = {
        "message_id": MESSAGE_ID,
        "kind": kind,
        "run_id": 42,
        "token": TOKEN,
        "title": "May the clerk refund 40?",
        "text": TEXT,
        "data": {"tool": "refund", "arguments": {"amount": 40}, "chatItemId": str(CHAT_ITEM_ID)},
        "secret": SECRET if kind is MessageKind.CONSENT_REQUESTED else None,
        "link": "https://moot.example.org/runs/42?a=1&b=2",
        "to": "owner@example.org",
    }
    return OutgoingMessage(**{**parts, **changes})


@dataclass(frozen=True)
class Tls:
    """A server's context, and one that trusts it."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def tls_at(path: Path) -> Tls:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    file = path / "server.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return Tls(server, ssl.create_default_context(cadata=certificate.public_bytes(serialization.Encoding.PEM).decode()))
