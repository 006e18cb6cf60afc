"""Token counts guessed from characters: of a prompt before it is sent, and of a call whose provider told nothing.

A guess is corrected by what providers count (`context`); it needs no tokenizer, whose data would have to be fetched. Letters take
about four characters a token, digits and punctuation (and so JSON and code) about two, CJK one, other scripts two.
"""

from __future__ import annotations

import re

from folkmoot.domain.items import Item
from folkmoot.domain.model_calls import Entry, OwnCall, Usage

MESSAGE_TOKENS = 4  # what a message takes beside its text

_LETTERS_PER_TOKEN = 4
_SIGNS_PER_TOKEN = 2
_SIGNS = b"0123456789!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\n\t"
_WIDE = re.compile("[\u2e80-\uffff\U00010000-\U0010ffff]")
_OTHER = re.compile("[\u0080-\u2e7f]")


def tokens_of(text: str) -> int:
    """About how many tokens a text has; at least 1."""
    data = text.encode("utf-8", "surrogatepass")
    signs = len(data) - len(data.translate(None, _SIGNS))
    if len(data) == len(text):
        return (len(text) - signs) // _LETTERS_PER_TOKEN + signs // _SIGNS_PER_TOKEN + 1
    wide, other = len(_WIDE.findall(text)), len(_OTHER.findall(text))
    letters = len(text) - signs - wide - other
    return letters // _LETTERS_PER_TOKEN + (signs + other) // _SIGNS_PER_TOKEN + wide + 1


def entry_tokens(entry: Entry) -> int:
    """What an entry of a view takes in a prompt."""
    if isinstance(entry, OwnCall):
        return tokens_of(entry.name) + tokens_of(entry.arguments_json) + tokens_of(entry.result) + 2 * MESSAGE_TOKENS
    return tokens_of(entry.text) + MESSAGE_TOKENS


def item_tokens(item: Item) -> int:
    """About what an item adds to the prompt of whoever sees all of it."""
    body = item.body
    return MESSAGE_TOKENS + sum(
        tokens_of(value) for name in body.__slots__ if isinstance(value := getattr(body, name), str)
    )


def usage_of_lost(prompt_tokens: int) -> Usage:
    """What a call whose reply was lost is taken to have cost: its prompt."""
    return Usage(input=prompt_tokens, estimated=True)
