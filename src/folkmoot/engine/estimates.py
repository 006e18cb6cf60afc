"""Token counts guessed from characters, for calls whose provider told nothing or whose reply was lost. Marked as estimated."""

from __future__ import annotations

from collections.abc import Iterable

from folkmoot.domain.model_calls import Entry, OwnCall, Usage

_CHARACTERS_PER_TOKEN = 4
_MESSAGE_OVERHEAD = 4


def tokens_of(text: str) -> int:
    """About four characters a token; outside ASCII about one character a token."""
    if text.isascii():
        return len(text) // _CHARACTERS_PER_TOKEN + 1
    wide = sum(1 for character in text if ord(character) > 0x2E7F)
    return wide + (len(text) - wide) // _CHARACTERS_PER_TOKEN + 1


def usage_of_lost(view: Iterable[Entry], instruction: str | None) -> Usage:
    """What a call whose reply was lost is taken to have cost: its prompt."""
    total = tokens_of(instruction) if instruction else 0
    for entry in view:
        text = f"{entry.arguments_json}{entry.result}" if isinstance(entry, OwnCall) else entry.text
        total += tokens_of(text) + _MESSAGE_OVERHEAD
    return Usage(input=total, estimated=True)
