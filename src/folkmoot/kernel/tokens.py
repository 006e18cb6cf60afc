"""Opaque tokens, made of random bytes that are handed in. Deliberately absent: what they open, and any randomness of its own."""

from __future__ import annotations

import base64

TOKEN_BYTES = 16  # 128 bits: 26 characters


def token_of(random: bytes) -> str:
    """Lower-case letters and digits, without padding: fit for addresses, headers and paths."""
    return base64.b32encode(random).decode().rstrip("=").lower()
