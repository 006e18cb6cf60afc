"""The addresses that carry a run's token and a request's secret: `local+token.secret@domain`, and the ids of mails."""

from __future__ import annotations

import re
from email.headerregistry import Address
from uuid import UUID

# 20 and a plus and a token's 26 and a dot and a secret's 16 are 64: as long as a mailbox's local part may be
LONGEST_LOCAL = 20
_TOKEN, _SECRET = "[a-z2-7]{26}", "[a-z2-7]{16}"
_MESSAGE_ID = re.compile(rf"<folkmoot\.[0-9a-f]{{32}}\.({_TOKEN})@[^<>@\s]{{1,255}}>", re.IGNORECASE)


def reply_address(address: str, *, token: str, secret: str | None) -> str:
    local, _, domain = address.rpartition("@")
    return f"{local}+{token}.{secret}@{domain}" if secret else f"{local}+{token}@{domain}"


def embedded_in(headers: list[str], *, address: str) -> tuple[str, str | None] | None:
    """The token and the secret, if it has one, of the first address of ours in these headers; those with a secret first."""
    local, _, domain = address.rpartition("@")
    ours = re.compile(
        rf"(?<![\w.+-]){re.escape(local)}\+({_TOKEN})(?:\.({_SECRET}))?@{re.escape(domain)}(?![\w.-]*\w)", re.IGNORECASE
    )
    found = [match for header in headers for match in ours.finditer(header)]
    for match in sorted(found, key=lambda match: match[2] is None):
        return match[1].lower(), match[2].lower() if match[2] else None
    return None


def message_id(id_: UUID, *, token: str, address: str) -> str:
    """The same at each attempt; it carries the token, for replies that lose the address."""
    return f"<folkmoot.{id_.hex}.{token}@{address.rpartition('@')[2]}>"


def token_in_ids(headers: list[str]) -> str | None:
    """The token of the mail that is answered: that named last."""
    found = [match[1].lower() for header in headers for match in _MESSAGE_ID.finditer(header)]
    return found[-1] if found else None


def one_address(text: str) -> Address | None:
    """`person@example.org`, and nothing beside it; in ASCII, as not every server on the way takes more."""
    if (
        len(text) > 320
        or not text.isascii()
        or any(ord(character) < 33 or character in ",;<>\x7f" for character in text)
    ):
        return None
    try:
        found = Address(addr_spec=text)
    except Exception:  # the parser raises what it likes
        return None
    return found if found.username and found.domain else None
