"""Lines typed while something else goes on. Deliberately absent: a prompt, and what a line means.

Standard input is read where it stands ready and never made non-blocking: a terminal shares that mode with everything else that
writes to it, the shell included. A command in the background leaves what is typed to the shell.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import AsyncIterator

_CHUNK_BYTES = 65_536
_LONGEST_BYTES = 4_000_000
_AGAIN_SECONDS = 0.5


async def typed_lines() -> AsyncIterator[str]:
    """Each line of standard input as it comes, without blanks around; ends with the input, or if it cannot be waited for.

    A line beyond all bounds ends the typing.
    """
    source = _source()
    if source is None:
        return
    rest = b""
    while len(rest) <= _LONGEST_BYTES:
        await _ready(source)
        if _is_in_background(source):
            await asyncio.sleep(_AGAIN_SECONDS)
            continue
        chunk = _read(source)
        *lines, rest = (rest + chunk).split(b"\n") if chunk else (rest, b"")
        for line in lines:
            text = line.decode("utf-8", "replace").strip()
            if text:
                yield text
        if not chunk:
            return


def is_terminal() -> bool:
    """Whether somebody may sit there and type."""
    source = _source()
    return source is not None and os.isatty(source)


def _source() -> int | None:
    """Standard input if it is a terminal, a pipe or a socket; a plain file, /dev/null or nothing is no place where anybody types."""
    try:
        source = sys.stdin.fileno()
        mode = os.fstat(source).st_mode
    except (OSError, ValueError, AttributeError):
        return None
    return source if os.isatty(source) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


async def _ready(source: int) -> None:
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    loop.add_reader(source, is_ready.set)
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(source)


def _read(source: int) -> bytes:
    try:
        return os.read(source, _CHUNK_BYTES)
    except OSError:  # the terminal is gone
        return b""


def _is_in_background(source: int) -> bool:
    try:
        return os.tcgetpgrp(source) != os.getpgrp()
    except OSError:  # no terminal, or not the one that controls this process
        return False
