"""What a mail that came in says: which request it answers, who wrote it, yes or no and why. Pure; nothing in it is believed.

Token and secret are read from the addresses that it was sent to, else the token from the mails that it answers; never from its text.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import EmailPolicy
from typing import Any

from folkmoot.channels.mail.addresses import embedded_in, one_address, token_in_ids
from folkmoot.channels.mail.decisions import Decision, read_decision
from folkmoot.channels.mail.html_text import text_of_html
from folkmoot.channels.mail.letters import TOKEN_HEADER, one_line
from folkmoot.domain.channels import ReceivedAnswer

# What is read of a mail: what a person writes stands at its top, and the rest of a large one is attachments and quotations.
MOST_BYTES = 1_048_576
_MOST_LINES = 20_000
_MOST_HEADER_BYTES = 65_536
# The library's parsers of headers and of parts within parts take time in the square of what is made to be slow.
_MOST_PARSED = 300  # characters of a header
_MOST_PART_HEADERS = 100
_PART_HEADER = re.compile(rb"^content-", re.IGNORECASE | re.MULTILINE)
_MOST_CHARACTERS = 100_000
_LONGEST_ID = 250
_RECIPIENTS = ("x-original-to", "delivered-to", "envelope-to", "to", "cc")
_MACHINES = frozenset({"bulk", "auto_reply", "list", "junk"})


class MailUnreadable(ValueError):
    """Not even who it is for can be read."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What is needed to answer a mail: its id and subject; and in a mailbox its number there, which is good for one validity."""

    message_id: str
    subject: str
    uid: int | None = None
    validity: int | None = None

    def as_text(self) -> str:
        return json.dumps([self.message_id, self.subject, self.uid, self.validity])

    @staticmethod
    def of(text: str | None) -> Origin | None:
        return Origin(*json.loads(text)) if text else None


def read_mail(
    raw: bytes, *, reply_to: str, own: str, uid: int | None = None, validity: int | None = None
) -> ReceivedAnswer:
    """`reply_to`: the address that answers go to; `own`: the one that mails are sent from. Raises MailUnreadable."""
    raw = _top(raw)
    mail = _parsed(raw)
    headers = _Headers(mail)
    embedded = embedded_in(headers.all(*_RECIPIENTS), address=reply_to)
    token, secret = embedded or (token_in_ids([*headers.all("references"), *headers.all("in-reply-to")]), None)
    sender = _sender(mail)
    message_id = headers.first("message-id")
    is_fit = len(message_id) <= _LONGEST_ID and message_id.isascii() and message_id.isprintable()
    known = message_id if is_fit else ""
    decision = _decision(mail)
    return ReceivedAnswer(
        inbound_id=known or f"sha256:{hashlib.sha256(raw).hexdigest()}",
        token=token,
        secret=secret,
        sender=sender,
        is_proven=False,
        answer=decision.answer,
        reason=decision.reason,
        unread=decision.unread,
        is_automatic=_is_automatic(headers, is_own=sender == own.lower()),
        reply_to=Origin(known, one_line(_subject(mail)), uid, validity).as_text(),
    )


class _Bounded(EmailPolicy):
    """The library's default, which reads no header beyond a length."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return super().header_fetch_parse(name, value[:_MOST_PARSED])


_POLICY = _Bounded()


def _top(raw: bytes) -> bytes:
    """As much of a mail as is read, with plain line ends."""
    lines = raw[:MOST_BYTES].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", _MOST_LINES)
    return b"\n".join(lines[:_MOST_LINES])


def _parsed(raw: bytes) -> EmailMessage:
    if len(raw.partition(b"\n\n")[0]) > _MOST_HEADER_BYTES:
        raise MailUnreadable(f"The mail's headers are longer than {_MOST_HEADER_BYTES:,} bytes.")
    if len(_PART_HEADER.findall(raw)) > _MOST_PART_HEADERS:
        raise MailUnreadable(f"The mail has more than {_MOST_PART_HEADERS} headers of parts.")
    try:
        mail = message_from_bytes(raw, policy=_POLICY)
    except Exception as error:  # whatever the parser meets, nesting without end included
        raise MailUnreadable(f"The mail cannot be read: {type(error).__name__}.") from None
    if not isinstance(mail, EmailMessage) or not mail.keys():
        raise MailUnreadable("It is no mail: it has no headers.")
    return mail


class _Headers:
    """Headers as they came, unfolded: the parsers of single headers fail on some."""

    def __init__(self, mail: EmailMessage) -> None:
        self._found = [(name.lower(), " ".join(str(value).split())) for name, value in mail.raw_items()]

    def all(self, *names: str) -> list[str]:
        return [value for wanted in names for name, value in self._found if name == wanted]

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def _sender(mail: EmailMessage) -> str:
    """The one address in From; who it names has not been proven. Empty: there is none, several, or one that cannot be a user's."""
    try:
        found = [address.addr_spec for header in mail.get_all("from", []) for address in header.addresses]
    except Exception:  # a header that the parser fails on
        return ""
    return found[0].lower() if len(found) == 1 and one_address(found[0]) else ""


def _subject(mail: EmailMessage) -> str:
    try:
        return str(mail.get("subject", ""))
    except Exception:  # a header that the parser fails on
        return ""


def _is_automatic(headers: _Headers, *, is_own: bool) -> bool:
    submitted = headers.first("auto-submitted").partition(";")[0].strip().lower()
    return (
        submitted not in ("", "no")
        or headers.first("precedence").lower() in _MACHINES
        or bool(headers.all("x-autoreply", "x-autorespond"))
        or headers.first("return-path") == "<>"
        or headers.first("content-type").lower().startswith("multipart/report")
        or (is_own and bool(headers.all(TOKEN_HEADER.lower())))
    )


def _decision(mail: EmailMessage) -> Decision:
    plain = _text_of(mail, "plain")
    if plain is not None and plain.strip():
        return read_decision(plain)
    source = _text_of(mail, "html")
    if source is None:
        return Decision(None, unread="a mail without text")
    return read_decision(text_of_html(source))


def _text_of(mail: EmailMessage, kind: str) -> str | None:
    try:
        part = mail.get_body((kind,))
        if not isinstance(part, EmailMessage):
            return None
        return str(part.get_content(errors="replace"))[:_MOST_CHARACTERS]
    except Exception:  # an unknown character set, a broken encoding, nesting without end
        return None
