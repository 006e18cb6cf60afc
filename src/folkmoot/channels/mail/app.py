"""`email`: the app. Mails go out over SMTP; replies come in over IMAP, or as signed requests of a mail service.

A mail proves nobody: an answer counts by the request's secret, which is in the address that a request's reply goes to. A machine's mail is
never answered. Deliberately absent: SPF, DKIM and the like, which are the receiving server's to judge.
"""

from __future__ import annotations

import asyncio
import binascii
import logging
import socket
from base64 import b64decode
from collections.abc import Callable, Mapping
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Any, TypeVar

from folkmoot.channels.channel import ChannelDown, ChannelRefused, ChannelWorld, SecretNames
from folkmoot.channels.http import NotJson, read_json
from folkmoot.channels.mail.addresses import LONGEST_LOCAL, one_address, reply_address
from folkmoot.channels.mail.letters import letter, one_line, outcome_letter
from folkmoot.channels.mail.mailbox import Found, Mailbox, mark_seen, unseen
from folkmoot.channels.mail.reading import MOST_BYTES, MailUnreadable, Origin, read_mail
from folkmoot.channels.mail.smtp import Server, send_mail
from folkmoot.channels.signing import verified_id
from folkmoot.domain.channels import (
    AnswerOutcome,
    ChannelSetup,
    Delivery,
    HttpProblem,
    InboundRequest,
    OutcomeKind,
    OutgoingMessage,
    ReceivedAnswer,
    Reception,
)

T = TypeVar("T")

_log = logging.getLogger("folkmoot.channels")

SMTP_PASSWORD, IMAP_PASSWORD, INBOUND = "smtpPassword", "imapPassword", "inbound"
_HOST: dict[str, Any] = {"type": "string", "pattern": "^[A-Za-z0-9_.:-]{1,253}$"}
_PORT: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": 65535}
_SECURITY: dict[str, Any] = {"enum": ["none", "starttls", "tls"]}
_USER: dict[str, Any] = {"type": "string", "pattern": "^[\\x20-\\x7e]{1,320}$"}
_IMAP_PORTS = {"none": 143, "starttls": 143, "tls": 993}
_LOOK_SECONDS = 60.0
_UNTOLD = frozenset({OutcomeKind.IGNORED, OutcomeKind.NOT_FOUND})


class MailChannel:
    app = "email"
    settings_schema: Mapping[str, Any] = {
        "type": "object",
        "required": ["from", "smtpHost", "smtpPort", "smtpSecurity", "replyAddress"],
        "dependentRequired": {"imapHost": ["imapUser"]},
        "additionalProperties": False,
        "properties": {
            "from": {"type": "string", "pattern": "^[^\\x00-\\x1f]*[^\\s@<>]+@[^\\s@<>]+>?$", "maxLength": 320},
            "replyAddress": {
                "type": "string",
                "pattern": f"^[A-Za-z0-9_.-]{{1,{LONGEST_LOCAL}}}@[A-Za-z0-9.-]{{1,190}}$",
            },
            "smtpHost": _HOST,
            "smtpPort": _PORT,
            "smtpSecurity": _SECURITY,
            "smtpUser": _USER,
            "imapHost": _HOST,
            "imapPort": _PORT,
            "imapSecurity": _SECURITY,
            "imapUser": _USER,
            "imapFolder": {"type": "string", "pattern": '^[\\x20-\\x21\\x23-\\x5b\\x5d-\\x7e]{1,200}$'},
        },
    }  # fmt: skip
    secret_names = SecretNames(optional=frozenset({SMTP_PASSWORD, IMAP_PASSWORD, INBOUND}))
    polls = True

    def __init__(self, world: ChannelWorld) -> None:
        self._world = world

    async def send(self, setup: ChannelSetup, message: OutgoingMessage) -> Delivery:
        if message.to is None:
            raise ChannelRefused("The run's owner has no address in 'email'; give the user one.")
        to = one_address(message.to)
        if to is None:
            raise ChannelRefused(f"'{one_line(message.to)}' is no address of a mailbox; correct the user's.")
        mail = letter(
            message, sender=_sender(setup), to=to, reply_to=setup.settings["replyAddress"], now=setup.now
        )  # fmt: skip
        await send_mail(self._world, _server(setup), mail, sender=_sender(setup).addr_spec, to=to.addr_spec)
        return Delivery(str(mail["Message-ID"]))

    async def receive(self, setup: ChannelSetup, request: InboundRequest | None) -> Reception:
        if request is None:
            return await self._look(setup)
        secret = setup.secrets.get(INBOUND)
        if secret is None:
            return Reception(http=HttpProblem(404, f"The channel takes no mails here; give it a secret '{INBOUND}'."))
        verified_id(secret, request)
        try:
            raw = _raw(request)
            return Reception((await asyncio.to_thread(_read, setup, raw),))  # it may take half a second
        except (NotJson, MailUnreadable) as error:
            return Reception(http=HttpProblem(400, str(error)))

    async def tell(self, setup: ChannelSetup, received: ReceivedAnswer, outcome: AnswerOutcome) -> None:
        """A short reply to a user of the tenant; none to a machine, or about a mail that belongs to no run.

        Anybody can put anybody's address into From, so whoever is not known is never written to.
        """
        if received.is_automatic or not outcome.is_known or outcome.kind in _UNTOLD:
            return
        origin = Origin.of(received.reply_to)
        to = one_address(received.sender or "")
        if received.token is None or origin is None or to is None:
            return
        # who may try again is given back what they sent
        secret = received.secret if outcome.kind is OutcomeKind.NOT_UNDERSTOOD else None
        mail = outcome_letter(
            outcome,
            sender=_sender(setup),
            to=to,
            reply_to=reply_address(setup.settings["replyAddress"], token=received.token, secret=secret),
            about=origin.message_id,
            subject=origin.subject,
            now=setup.now,
        )
        await send_mail(self._world, _server(setup), mail, sender=_sender(setup).addr_spec, to=to.addr_spec)

    async def taken(self, setup: ChannelSetup, received: tuple[ReceivedAnswer, ...]) -> None:
        box = _mailbox(setup)
        origins = [origin for answer in received if (origin := Origin.of(answer.reply_to)) is not None]
        mails = [(o.uid, o.validity) for o in origins if o.uid is not None and o.validity is not None]
        if box is not None and mails:
            tls = self._world.tls()
            await self._in_thread(box, lambda connection: mark_seen(box, connection, tls, mails))

    async def _look(self, setup: ChannelSetup) -> Reception:
        """What answers a run; other mails and those that cannot be read are marked as seen at once. What was read before a mailbox
        fails, or takes too long, is not lost."""
        box = _mailbox(setup)
        if box is None:
            return Reception()
        tls = self._world.tls()
        answers: list[ReceivedAnswer] = []

        def take(found: Found) -> bool:
            try:
                answer = _read(setup, found.raw, found)
            except MailUnreadable:
                return False
            if answer.token is not None:
                answers.append(answer)
            return answer.token is not None

        try:
            await self._in_thread(
                box, lambda connection: unseen(box, connection, tls, limit_bytes=MOST_BYTES, take=take)
            )  # fmt: skip
        except ChannelDown as error:
            if not answers:
                raise
            _log.warning("Some answers were read, and then no more: %s", error)
        return Reception(tuple(reversed(answers)))

    async def _in_thread(self, box: Mailbox, work: Callable[[socket.socket], T]) -> T:
        """The library blocks; when the time is up or the caller is gone, its connection is cut, and the thread ends."""
        try:
            connection = await self._world.connect(box.host, box.port)
        except Exception as error:  # whatever a network may do, a refused address included
            raise ChannelDown(f"The mailbox at {box.host} cannot be reached: {str(error)[:300]}") from error
        twin = connection.dup()
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await asyncio.to_thread(work, connection)
        except TimeoutError:
            raise ChannelDown(f"The mailbox at {box.host} takes longer than {_LOOK_SECONDS:.0f} s.") from None
        finally:
            _cut(twin)


def make(world: ChannelWorld) -> MailChannel:
    return MailChannel(world)


def _cut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # it is closed on the other side
        pass
    finally:
        connection.close()


def _sender(setup: ChannelSetup) -> Address:
    name, address = parseaddr(setup.settings["from"])
    found = one_address(address)
    if found is None:
        raise ChannelRefused("The channel's setting 'from' is no address; give 'Name <mailbox@example.org>'.")
    return Address(display_name=one_line(name), addr_spec=found.addr_spec)


def _server(setup: ChannelSetup) -> Server:
    settings = setup.settings
    user, password = settings.get("smtpUser"), setup.secrets.get(SMTP_PASSWORD)
    if user is not None and password is None:
        raise ChannelRefused(f"The channel has a setting 'smtpUser' and no secret '{SMTP_PASSWORD}'; give it.")
    return Server(
        host=settings["smtpHost"],
        port=settings["smtpPort"],
        security=settings["smtpSecurity"],
        user=user,
        password=password if user is not None else None,
        greets_as=settings["replyAddress"].rpartition("@")[2],
    )


def _mailbox(setup: ChannelSetup) -> Mailbox | None:
    settings = setup.settings
    if "imapHost" not in settings:
        return None
    password = setup.secrets.get(IMAP_PASSWORD)
    if password is None:
        raise ChannelRefused(f"The channel has a setting 'imapHost' and no secret '{IMAP_PASSWORD}'; give it.")
    security = settings.get("imapSecurity", "tls")
    return Mailbox(
        host=settings["imapHost"],
        port=settings.get("imapPort", _IMAP_PORTS[security]),
        security=security,
        user=settings["imapUser"],
        password=password,
        folder=settings.get("imapFolder", "INBOX"),
    )


def _read(setup: ChannelSetup, raw: bytes, found: Found | None = None) -> ReceivedAnswer:
    return read_mail(
        raw,
        reply_to=setup.settings["replyAddress"],
        own=parseaddr(setup.settings["from"])[1],
        uid=found.uid if found else None,
        validity=found.validity if found else None,
    )


def _raw(request: InboundRequest) -> bytes:
    """The mail itself, or JSON that holds it in base64. Raises NotJson."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return request.body
    body = read_json(request.body)
    try:
        return b64decode(body["message"], validate=True)
    except (KeyError, TypeError, ValueError, binascii.Error):
        raise NotJson('give {"message": "…"}, the mail in base64') from None
