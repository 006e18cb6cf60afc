"""The mail of the example, on loopback: a server that takes mails (SMTP) and keeps them for those who read them (IMAP), and Olga's reply.

    python mail_server.py --show                   serve until Ctrl-C, and show each mail that comes
    python mail_server.py reply approve            answer the newest request for Olga's consent, as her mail program would
    python mail_server.py reply decline "Why not"

There is one user with a folder for each address: INBOX for assistant@example.org, which has the mails in `mails` at the start, and
`approvals`, `olga` and so on for others, by what stands before the `+` and the `@`. No mail leaves this machine, whoever it is to.
Deliberately absent: encryption, real accounts, and a disk; a restart forgets.
"""

from __future__ import annotations

import argparse
import asyncio
import imaplib
import smtplib
import sys
from argparse import Namespace
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, localtime, make_msgid
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope
from proxyprotocol.noop import ProxyProtocolNoop
from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer
from pymap.parsing.message import AppendMessage
from pysasl.hashing import BuiltinHash

HOST, SMTP_PORT, IMAP_PORT = "127.0.0.1", 8025, 8143
USER, PASSWORD = "assistant", "tea-and-posters"
OWNER = "olga@example.org"
MAILS = Path(__file__).parent / "mails"


@dataclass
class PostOffice:
    """Takes each mail that comes over SMTP, shows it if it is to, and puts it into the folder of whom it is to."""

    folders: Any
    is_shown: bool

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        for address in envelope.rcpt_tos:
            await self.put(folder_of(address), envelope.content)
        if self.is_shown:
            print(shown(envelope.content), flush=True)
        return "250 OK"

    async def put(self, folder: str, raw: bytes) -> None:
        with suppress(ValueError):  # it is there
            if folder != "INBOX":
                await self.folders.add_mailbox(folder)
        mailbox = await self.folders.get_mailbox(folder)
        await mailbox.append(AppendMessage(raw, datetime.now(UTC), frozenset()))


def folder_of(address: str) -> str:
    name = address.lower().partition("@")[0].partition("+")[0]
    return "INBOX" if name == USER else name


def read(raw: bytes) -> EmailMessage:
    mail = message_from_bytes(raw, policy=default)
    assert isinstance(mail, EmailMessage)
    return mail


def text_of(mail: EmailMessage) -> str:
    body = mail.get_body(("plain",))
    return str(body.get_content()).strip() if isinstance(body, EmailMessage) else ""


def shown(raw: bytes) -> str:
    """Who it is from and to, what it is about, and its text; what cannot be printed is written out."""
    mail = read(raw)
    lines = [f"{name}: {mail[name]}" for name in ("From", "To", "Subject")] + ["", *text_of(mail).splitlines()]
    printable = ["".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in lines]
    return "\n".join(["--- mail", *(f"  {line}".rstrip() for line in printable), ""])


async def serve(*, is_shown: bool) -> None:
    arguments = Namespace(
        demo_data=False, demo_user=USER, demo_password=PASSWORD, host=[HOST], port=str(IMAP_PORT), passlib_cfg=None,
        cert=None, key=None, tls=False, inherited_sockets=None, proxy_protocol=None, debug=False,
    )  # fmt: skip
    backend, config = await DictBackend.init(arguments, hash_context=BuiltinHash(rounds=1))
    config.apply_context()
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        await backend.start(stack)
        session = await stack.enter_async_context(backend.login.demo_user_identity.new_session())
        office = PostOffice(session.mailbox_set, is_shown)
        for file in sorted(MAILS.glob("*.eml")):
            await office.put("INBOX", file.read_bytes())
        await office.folders.add_mailbox("approvals")
        imap = ProxyProtocolReader(ProxyProtocolNoop()).get_callback(IMAPServer(backend.login, config))
        await stack.enter_async_context(await asyncio.start_server(imap, HOST, IMAP_PORT))
        smtp = await loop.create_server(lambda: SMTP(office, loop=loop, enable_SMTPUTF8=False), HOST, SMTP_PORT)
        await stack.enter_async_context(smtp)
        print(f"Mail is taken at {HOST}:{SMTP_PORT} and read at {HOST}:{IMAP_PORT}. Ctrl-C ends it.", flush=True)
        await asyncio.Event().wait()


def reply(word: str, reason: str) -> str:
    """Answer the newest request as a person does: the word on the first line, the reason below, to where the mail says."""
    request = newest_request()
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = OWNER, request["Reply-To"], f"Re: {request['Subject']}"
    mail["Date"], mail["Message-ID"] = format_datetime(localtime()), make_msgid(domain="example.org")
    mail["In-Reply-To"] = str(request["Message-ID"])
    quoted = "\n".join(f"> {line}" for line in text_of(request).splitlines())
    answer = "\n".join([word.upper(), *([reason] if reason else [])])
    mail.set_content(f"{answer}\n\n{request['From']} wrote:\n{quoted}\n")
    with smtplib.SMTP(HOST, SMTP_PORT, timeout=10) as server:
        server.send_message(mail)
    return f"Replied {word.upper()} to '{request['Subject']}'."


def newest_request() -> EmailMessage:
    with imaplib.IMAP4(HOST, IMAP_PORT, timeout=10) as box:
        box.login(USER, PASSWORD)
        numbers: list[bytes] = []
        if box.select(folder_of(OWNER), readonly=True)[0] == "OK":
            # what came of a reply has the request's subject, too, with a "Re:" before it
            numbers = box.search(None, "SUBJECT", '"asks for your consent"', "NOT", "SUBJECT", '"Re:"')[1][0].split()
        if not numbers:
            sys.exit("Olga was asked nothing yet. The request is shown where the mail server runs.")
        return read(box.fetch(numbers[-1], "(BODY.PEEK[])")[1][0][1])


def main() -> None:
    parser = argparse.ArgumentParser(description="The mail of the example, on loopback.")
    parser.add_argument("--show", action="store_true", help="show each mail that comes")
    replying = parser.add_subparsers(dest="command").add_parser("reply", help="answer the newest request for consent")
    replying.add_argument("word", choices=("approve", "decline"))
    replying.add_argument("reason", nargs="?", default="")
    given = parser.parse_args()
    try:
        if given.command == "reply":
            print(reply(given.word, given.reason))
        else:
            asyncio.run(serve(is_shown=given.show))
    except ConnectionRefusedError:
        sys.exit("No mail server runs. Start it in another terminal: mail_server.py --show")
    except imaplib.IMAP4.error as error:
        sys.exit(f"Another mail server answers at {HOST}:{IMAP_PORT}: {error}")
    except OSError as error:
        sys.exit(f"The mail server cannot go on: {error}. Does one run already?")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
