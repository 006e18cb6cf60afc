"""A stream of bytes cut into lines, never more of one in memory than a limit.

Of a longer line its ends are kept, in which the id of the request that it answers may stand. Deliberately absent: I/O.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_ENDS = 512
# Some servers write the id first, others last.
_FIRST = re.compile(rb'^\{(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_LAST = re.compile(rb',\s*"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Oversized:
    """A line that was not kept. `request_id`: of the request that it answers, if that could be seen."""

    size: int
    request_id: int | None


@dataclass(slots=True)
class Lines:
    """The lines of one stream. `limit_bytes` may be raised at any time."""

    limit_bytes: int
    _parts: list[bytes] = field(default_factory=list)
    _size: int = 0
    _head: bytes | None = None
    _tail: bytes = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversized]:
        """The lines that end in this piece, without their ends."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            self._add(part)
            yield self._taken()
        self._add(rest)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._head is None and self._size > self.limit_bytes:
            whole = b"".join((*self._parts, part))
            self._head, self._tail = whole[:_ENDS], whole[-_ENDS:]
            self._parts.clear()
        elif self._head is not None:
            self._tail = (self._tail + part)[-_ENDS:]
        elif part:
            self._parts.append(part)

    def _taken(self) -> bytes | Oversized:
        line: bytes | Oversized
        if self._head is None:
            line = b"".join(self._parts)
        else:
            match = _FIRST.search(self._head) or _LAST.search(self._tail)
            line = Oversized(self._size, int(match.group(1)) if match is not None else None)
        self._parts, self._size, self._head, self._tail = [], 0, None, b""
        return line
