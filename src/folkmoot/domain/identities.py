"""Whose an address is in the app of a channel: what makes a sender a user.

An address decides who may approve. Deliberately absent: proof that a message is from its address, which is a channel's to give.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from folkmoot.domain.shown_text import HIDDEN_CATEGORIES

EMAIL = "email"
MOST_ADDRESS_CHARACTERS = 320


@dataclass(frozen=True, slots=True)
class Identity:
    """A user has one address in each app, and an address is one user's."""

    user_id: UUID
    app: str
    address: str
    created_by: UUID
    created_at: datetime


def normal_address(app: str, address: str) -> str:
    """In the one spelling in which addresses are kept and looked for: without blanks around it, of mail in lower case."""
    trimmed = address.strip()
    return trimmed.lower() if app == EMAIL else trimmed


def problem_of_address(app: str, address: str) -> str | None:
    """A sentence about what keeps a normal address from being kept."""
    if not 1 <= len(address) <= MOST_ADDRESS_CHARACTERS:
        return f"An address has 1 to {MOST_ADDRESS_CHARACTERS} characters; correct it."
    if any(unicodedata.category(character) in HIDDEN_CATEGORIES for character in address):
        return "An address holds no invisible or control characters; leave them out."
    name, at, host = address.rpartition("@")
    if app == EMAIL and (not (name and at and host) or any(character.isspace() for character in address)):
        return "This is no mail address; write it alone, such as ann@example.com."
    return None
