"""The mails that are sent: what they say, how they thread, and where an answer to them goes. Pure.

What a model wrote is text: it is escaped in HTML, and cannot make a header. Every mail says that a machine sent it.
"""

from __future__ import annotations

from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape

from folkmoot.channels.mail.addresses import message_id, reply_address
from folkmoot.domain.channels import AnswerOutcome, MessageKind, OutgoingMessage

TOKEN_HEADER = "X-Folkmoot-Token"
_LONGEST_SUBJECT = 200
# as long as a line may be: a long id that is folded is no id any more
_POLICY = SMTP.clone(max_line_length=998, cte_type="7bit")
# A mail program that quotes without any mark puts this first, and not what a model wrote.
_OPENING = "An agent of yours asks for your consent."
_HOW = (
    "How to answer: reply to this mail with APPROVE or DECLINE alone on the first line. Below DECLINE you may say why; "
    "an APPROVE with more below it than a name is not counted. "
    "Nothing is read of what your mail program quotes."
)


def letter(message: OutgoingMessage, *, sender: Address, to: Address, reply_to: str, now: datetime) -> EmailMessage:
    """`reply_to`: the address that answers go to, into which token and secret are put."""
    is_request = message.kind is MessageKind.CONSENT_REQUESTED
    opening, how = ([_OPENING], [_HOW]) if is_request else ([], [])
    link = [f"{'Or open' if is_request else 'Open'} {message.link}"] if message.link else []
    made = _mail(message.title, [*opening, message.text, *how, *link], sender=sender, to=to, now=now)
    made["Message-ID"] = message_id(message.message_id, token=message.token, address=reply_to)
    made["Reply-To"] = reply_address(reply_to, token=message.token, secret=message.secret if is_request else None)
    made[TOKEN_HEADER] = one_line(message.token)
    if message.request_reference:
        _thread(made, message.request_reference)
    made.set_boundary(f"folkmoot-{message.message_id.hex}")
    return made


def outcome_letter(
    outcome: AnswerOutcome, *, sender: Address, to: Address, reply_to: str, about: str, subject: str, now: datetime
) -> EmailMessage:
    """The short reply to whoever answered. `about`: the id of their mail; `reply_to`: as it is to be."""
    title = subject if subject.lower().startswith("re:") else f"Re: {subject}"
    made = _mail(title, [outcome.words], sender=sender, to=to, now=now)
    made["Reply-To"] = reply_to
    if about:
        _thread(made, about)
    made.replace_header("Auto-Submitted", "auto-replied")
    return made


def one_line(text: str) -> str:
    """Fit for a header: no line ends or other controls, and not too long."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= _LONGEST_SUBJECT else f"{flat[: _LONGEST_SUBJECT - 2]} …"


def _mail(title: str, paragraphs: list[str], *, sender: Address, to: Address, now: datetime) -> EmailMessage:
    made = EmailMessage(policy=_POLICY)
    made["Subject"] = one_line(title)
    made["From"] = sender
    made["To"] = to
    made["Date"] = format_datetime(now)
    made["Auto-Submitted"] = "auto-generated"
    made.set_content("\n\n".join(paragraphs) + "\n", charset="utf-8")
    made.add_alternative(_html(paragraphs), subtype="html", charset="utf-8")
    return made


def _html(paragraphs: list[str]) -> str:
    shown = "".join(
        f'<div style="white-space: pre-wrap; margin: 0 0 1em">{escape(text)}</div>\n' for text in paragraphs
    )
    return f"<!doctype html>\n<html><body>\n{shown}</body></html>\n"


def _thread(made: EmailMessage, reference: str) -> None:
    made["In-Reply-To"] = one_line(reference)
    made["References"] = one_line(reference)
