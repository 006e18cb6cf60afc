"""A mailbox over IMAP, looked at from a thread on a connection that was made for it: what is not seen, and what is to be seen.

The library's own protocol code, over a socket that is handed in. Mails are fetched without being marked. What is read at a time is
bounded in number and size, whatever the server sends. Deliberately absent: what a mail says, and any memory between looks, which is why
a mail that is of no use is marked at once: it would be fetched at each look, and enough of them would keep all others from being read.
"""

from __future__ import annotations

import imaplib
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from folkmoot.channels.channel import ChannelDown, ChannelRefused

MOST_READ = 20  # at a look
_MOST_LOOKED_AT = 200  # of those that are of no use there may be many
MOST_BYTES_READ = 8 * 1_048_576  # of mails, at a look; the one that goes beyond it is the last
_MOST_BYTES_SENT = 16 * 1_048_576  # by a server over a connection, whatever it is asked
_LINE_BYTES = 256  # what the library needs to keep a line, however short it is
_STEP_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Mailbox:
    """`security`: none, starttls or tls."""

    host: str
    port: int
    security: str
    user: str
    password: str
    folder: str


@dataclass(frozen=True, slots=True)
class Found:
    uid: int
    validity: int
    raw: bytes


class _Imap(imaplib.IMAP4):
    """The library keeps all that a server sends until it is asked for, so that it is counted as it comes."""

    def __init__(self, box: Mailbox, connection: socket.socket, *, limit_bytes: int) -> None:
        self._connection = connection
        self._limit_bytes = limit_bytes
        self._left_bytes = _MOST_BYTES_SENT
        super().__init__(box.host, box.port)

    def _create_socket(self, timeout: float | None) -> socket.socket:
        return self._connection

    def read(self, size: int) -> bytes:
        if size > self._limit_bytes:
            raise self.abort(f"the server sends {size:,} bytes at once")
        self._count(size)
        return super().read(size)

    def readline(self) -> bytes:
        line = super().readline()
        self._count(len(line) + _LINE_BYTES)
        return line

    def _count(self, size: int) -> None:
        self._left_bytes -= size
        if self._left_bytes < 0:
            raise self.abort(f"the server sends more than {_MOST_BYTES_SENT:,} bytes")


def unseen(
    box: Mailbox, connection: socket.socket, tls: ssl.SSLContext, *, limit_bytes: int, take: Callable[[Found], bool]
) -> None:
    """Hand each unseen mail to `take`, the newest first and cut at `limit_bytes`; one that `take` gives false for is marked as seen.

    Raises ChannelDown, and ChannelRefused where the mailbox lets nobody in.
    """
    with _opened(box, connection, tls, limit_bytes=limit_bytes) as (imap, validity):
        taken = read_bytes = 0
        for uid in _unseen_uids(imap)[:_MOST_LOOKED_AT]:
            raw = _fetched(imap, uid, limit_bytes)
            if raw is None:
                continue
            read_bytes += len(raw)
            if take(Found(uid, validity, raw)):
                taken += 1
            else:
                _mark(imap, uid)
            if taken == MOST_READ or read_bytes >= MOST_BYTES_READ:
                return


def mark_seen(box: Mailbox, connection: socket.socket, tls: ssl.SSLContext, mails: Iterable[tuple[int, int]]) -> None:
    """Mark the mails of these numbers and validities; a number of another validity names another mail, and is left alone."""
    with _opened(box, connection, tls, limit_bytes=65_536) as (imap, validity):
        for uid, valid_for in mails:
            if valid_for == validity:
                _mark(imap, uid)


@contextmanager
def _opened(
    box: Mailbox, connection: socket.socket, tls: ssl.SSLContext, *, limit_bytes: int
) -> Iterator[tuple[_Imap, int]]:
    place = f"The mailbox at {box.host}"
    imap: _Imap | None = None
    connection.settimeout(_STEP_SECONDS)
    try:
        if box.security == "tls":
            connection = tls.wrap_socket(connection, server_hostname=box.host)
        imap = _Imap(box, connection, limit_bytes=limit_bytes)
        if box.security == "starttls":
            imap.starttls(tls)
        _log_in(imap, box)
        yield imap, _select(imap, box)
    except (imaplib.IMAP4.error, OSError, ValueError) as error:
        raise ChannelDown(f"{place} cannot be read: {str(error)[:300] or type(error).__name__}") from error
    finally:
        if imap is not None:
            with suppress(imaplib.IMAP4.error, OSError):
                imap.logout()
        connection.close()


def _log_in(imap: _Imap, box: Mailbox) -> None:
    if not (box.user + box.password).isascii() or not (box.user + box.password).isprintable():
        raise ChannelRefused("The user or password of the mailbox has characters that IMAP's LOGIN does not take.")
    try:
        imap.login(box.user, box.password)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error:  # its words may hold what was sent
        raise ChannelRefused(
            f"The mailbox at {box.host} does not let the user in; correct 'imapUser' or the secret 'imapPassword'."
        ) from None


def _select(imap: _Imap, box: Mailbox) -> int:
    status, _ = imap.select(f'"{box.folder}"')
    if status != "OK":
        raise ChannelRefused(f"The mailbox at {box.host} has no folder '{box.folder}'; correct 'imapFolder'.")
    _, found = imap.response("UIDVALIDITY")
    value = found[0] if found else None
    return int(value) if isinstance(value, bytes) else 0


def _unseen_uids(imap: _Imap) -> list[int]:
    _, found = imap.uid("SEARCH", "UNSEEN")
    listed = found[0] if found else None
    return sorted((int(uid) for uid in listed.split()), reverse=True) if isinstance(listed, bytes) else []


def _mark(imap: _Imap, uid: int) -> None:
    imap.uid("STORE", str(uid), "+FLAGS.SILENT", r"(\Seen)")


def _fetched(imap: _Imap, uid: int, limit_bytes: int) -> bytes | None:
    _, found = imap.uid("FETCH", str(uid), f"(BODY.PEEK[]<0.{limit_bytes}>)")
    return next((bytes(part[1]) for part in found or () if isinstance(part, tuple) and len(part) > 1), None)
