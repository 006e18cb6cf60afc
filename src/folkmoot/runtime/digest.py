"""The hash that binds a call's record to its final arguments."""

from __future__ import annotations

import hashlib


def digest(text: str) -> bytes:
    """SHA-256 of the text in UTF-8; lone surrogates are hashed as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
