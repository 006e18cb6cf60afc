"""Everything that this process logs, for tests of what must never be in it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from folkmoot.vault.masks import MaskingFormatter


@contextmanager
def all_logs() -> Iterator[io.StringIO]:
    """Whatever anybody logs in the block, down to the smallest, as an installation writes it."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(MaskingFormatter("%(name)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield out
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
