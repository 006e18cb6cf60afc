"""Servers of mail on loopback, for tests: SMTP that keeps what it is given, and IMAP with one mailbox.

And one of IMAP that fails after a few mails, as no real one can be made to. Deliberately absent: anything of ours.
"""

from __future__ import annotations

import asyncio
import ssl
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope
from proxyprotocol.noop import ProxyProtocolNoop
from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer
from pymap.parsing.message import AppendMessage
from pymap.parsing.specials.flag import Seen
from pysasl.hashing import BuiltinHash


@dataclass
class PostOffice:
    """An SMTP server's handler: keeps what it is given, or answers with the next of `refusals`."""

    port: int = 0
    got: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.refusals:
            return self.refusals.pop(0)
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        found = message_from_bytes(envelope.content, policy=default)
        assert isinstance(found, EmailMessage)
        self.got.append(found)
        self.envelopes.append((envelope.mail_from or "", envelope.rcpt_tos))
        return "250 OK"


def authenticated(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=(data.login, data.password) == (b"moot", b"pass"), handled=False)


@asynccontextmanager
async def post_office(port: int = 0, *, tls: ssl.SSLContext | None = None, **more: Any) -> AsyncIterator[PostOffice]:
    office = PostOffice()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(office, loop=loop, enable_SMTPUTF8=False, **more), "127.0.0.1", port, ssl=tls
    )
    office.port = server.sockets[0].getsockname()[1]
    try:
        yield office
    finally:
        server.close()
        await server.wait_closed()


@dataclass
class Post:
    """A mailbox on an IMAP server."""

    port: int
    mailbox: Any

    async def put(self, raw: bytes) -> None:
        await self.mailbox.append(AppendMessage(raw, datetime(2026, 3, 1, tzinfo=UTC), frozenset()))

    async def seen(self) -> list[bool]:
        return [Seen in found.permanent_flags async for found in self.mailbox.messages()]


@asynccontextmanager
async def mailbox(*, cert: Path | None = None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Post]:
    arguments = Namespace(
        demo_data=False, demo_user="moot", demo_password="pass", host=["127.0.0.1"], port="0", passlib_cfg=None,
        cert=str(cert) if cert else None, key=str(cert) if cert else None, tls=cert is not None,
        inherited_sockets=None, proxy_protocol=None, debug=False,
    )  # fmt: skip
    backend, config = await DictBackend.init(arguments, hash_context=BuiltinHash(rounds=1))
    config.apply_context()
    async with AsyncExitStack() as stack:
        await backend.start(stack)
        entered = await stack.enter_async_context(backend.login.demo_user_identity.new_session())
        box = await entered.mailbox_set.get_mailbox("INBOX")
        called = ProxyProtocolReader(ProxyProtocolNoop()).get_callback(IMAPServer(backend.login, config))
        server = await asyncio.start_server(called, "127.0.0.1", 0, ssl=tls)
        try:
            yield Post(server.sockets[0].getsockname()[1], box)
        finally:
            server.close()


@asynccontextmanager
async def scripted_mailbox(mails: list[bytes], *, uids: int, hangs: bool, flood: bytes = b"") -> AsyncIterator[int]:
    """An IMAP server that lists `uids` mails, gives as many as there are, and then sends `flood` and hangs or hangs up."""
    left, ends = list(mails), asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"* OK ready\r\n")
        with suppress(ConnectionError):
            while line := await reader.readline():
                tag, command, *more = line.split()
                if command == b"CAPABILITY":
                    writer.write(b"* CAPABILITY IMAP4rev1\r\n")
                elif more[:1] == [b"SEARCH"]:
                    writer.write(b"* SEARCH " + b" ".join(b"%d" % uid for uid in range(1, uids + 1)) + b"\r\n")
                elif more[:1] == [b"FETCH"]:
                    if not left:
                        writer.write(flood)
                        await writer.drain()
                        if hangs:
                            await ends.wait()
                        break
                    raw = left.pop(0)
                    writer.write(b"* 1 FETCH (UID 1 BODY[]<0> {%d}\r\n%b)\r\n" % (len(raw), raw))
                writer.write(tag + b" OK done\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            ends.set()
