"""The functions of the assistant: two read a folder, one reads a mailbox, one writes the report, one sends a mail.

The folder is the one that ASSISTANT_FOLDER names, else `inbox` beside this file; nothing outside of it is read. The mailbox and the
server that takes mails are those of mail_server.py. Deliberately absent: a word on who may send what to whom, which is the agents'
definitions' to say. Texts are in UTF-8; the report stands in `dist/assistant` of the folder in which Folkmoot was started.
"""

from __future__ import annotations

import imaplib
import os
import smtplib
from email import message_from_bytes
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, localtime
from pathlib import Path

from folkmoot.tools.functions import CallContext, function_tool

HOST, SMTP_PORT, IMAP_PORT = "127.0.0.1", 8025, 8143
USER, PASSWORD = "assistant", "tea-and-posters"
SENDER = "assistant@example.org"
_FOLDER = Path(os.environ.get("ASSISTANT_FOLDER") or Path(__file__).parent / "inbox")
_REPORT = Path("dist") / "assistant" / "REPORT.md"
_SECONDS = 10


@function_tool(is_read_only=True, limit_seconds=5)
def list_folder() -> list[str]:
    """The names of the documents in the folder."""
    return sorted(path.name for path in _FOLDER.iterdir() if path.is_file())


@function_tool(is_read_only=True, limit_seconds=5)
def read_file(name: str) -> str:
    """A document of the folder, whole, by its name."""
    if name not in list_folder():
        raise ValueError(f"There is no document of this name. There are: {', '.join(list_folder())}.")
    return (_FOLDER / name).read_text(encoding="utf-8")


@function_tool(is_read_only=True, limit_seconds=30)
def read_mailbox() -> list[dict[str, str]]:
    """All mails in the mailbox, the oldest first: who they say they are from, subject, date, text. They stay unread."""
    with imaplib.IMAP4(HOST, IMAP_PORT, timeout=_SECONDS) as box:
        box.login(USER, PASSWORD)
        box.select("INBOX", readonly=True)
        numbers = box.search(None, "ALL")[1][0].split()
        return [_shown(box.fetch(number, "(BODY.PEEK[])")[1][0][1]) for number in numbers]


def _shown(raw: bytes) -> dict[str, str]:
    mail = message_from_bytes(raw, policy=default)
    assert isinstance(mail, EmailMessage)
    body = mail.get_body(("plain",))
    text = body.get_content() if isinstance(body, EmailMessage) else ""
    return {name.lower(): str(mail[name] or "") for name in ("From", "Subject", "Date")} | {"text": text}


@function_tool(is_idempotent=True, limit_seconds=5)
def write_report(text: str) -> str:
    """Write the report, Markdown; one that is there is replaced."""
    _REPORT.parent.mkdir(parents=True, exist_ok=True)
    _REPORT.write_text(f"{text.rstrip()}\n", encoding="utf-8")
    return f"Written to {_REPORT}."


@function_tool(limit_seconds=30)
def send_mail(mailbox: str, domain: str, subject: str, text: str, context: CallContext) -> str:
    """Send a mail to mailbox@domain: for orders@shop.example mailbox is orders, and domain is shop.example."""
    to = Address(username=mailbox, domain=domain)
    if not mailbox or "@" in mailbox or "@" in domain or "." not in domain:
        raise ValueError("This is no address: mailbox is what stands before the @, domain what stands after it.")
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = SENDER, to, subject
    mail["Date"] = format_datetime(localtime())
    mail["Message-ID"] = f"<{context.call_id}@example.org>"
    mail.set_content(text)
    with smtplib.SMTP(HOST, SMTP_PORT, timeout=_SECONDS) as server:
        server.send_message(mail)
    return f"The mail was sent to {to.addr_spec}."
