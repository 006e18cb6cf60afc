"""What was sent to a server as a secret, taken out of what it answers and of what is told of it: one rule for all that is called.

Deliberately absent: secrets that this server was not sent; those that the process knows are masked behind (`vault.masks`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from folkmoot.vault.masks import SHORTEST

SHOWN_INSTEAD = "[secret]"


class SentSecrets:
    """The values of a call's headers, or of a command's variables: each whole and in the parts that a server may give back.

    Of a header what follows its first word, without a scheme, and its last word; of several lines, such as a key file's, each.
    All of it as it is, as JSON and as a URL would write it. Parts of less than 6 characters stay: they would take ordinary words out.
    """

    def __init__(self, values: Iterable[str]) -> None:
        parts = {part for value in values for part in _parts(value) if len(part) >= SHORTEST}
        self._forms = sorted({form for part in parts for form in _forms(part)}, key=len, reverse=True)
        self.longest = max((len(form) for form in self._forms), default=0)

    def masked(self, text: str) -> str:
        # The longest first, lest a part leave the rest of the whole.
        for form in self._forms:
            text = text.replace(form, SHOWN_INSTEAD)
        return text


def _parts(value: str) -> Iterator[str]:
    yield value
    yield value.partition(" ")[2]
    yield value.rpartition(" ")[2]
    yield from (line.strip() for line in value.splitlines())


def _forms(part: str) -> Iterator[str]:
    yield part
    yield json.dumps(part)[1:-1]
    yield quote(part, safe="", errors="surrogatepass")
    yield quote(part, errors="surrogatepass")
