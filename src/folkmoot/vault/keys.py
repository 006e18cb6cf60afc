"""The keys that seal: 32 bytes each, as base64, told apart by an id that says nothing of the key.

Deliberately absent: where they come from (`bootstrap`), and the key itself in any error.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field

from folkmoot.kernel.errors import SecretFault

KEY_BYTES = 32
ID_BYTES = 8
_FORM = "Write it as base64 of 32 bytes, as `openssl rand -base64 32` prints it; several are parted by commas, the first seals."


@dataclass(frozen=True, slots=True)
class SealingKey:
    """`key_id` is a hash's beginning: it marks what was sealed, and gives nothing away."""

    key_id: bytes
    material: bytes = field(repr=False)


def key_of(material: bytes) -> SealingKey:
    return SealingKey(hashlib.sha256(b"folkmoot sealing key" + material).digest()[:ID_BYTES], material)


def read_keys(text: str, *, source: str) -> tuple[SealingKey, ...]:
    """The keys of a setting or a file, the sealing one first. Raises SecretFault that names `source` and shows nothing of the text."""
    parts = [part.strip() for part in text.split(",")]
    keys = tuple(dict.fromkeys(_read(part, source) for part in parts if part))
    if not keys:
        raise SecretFault(f"{source} holds no key. {_FORM}")
    return keys


def write_key(material: bytes) -> str:
    """As `read_keys` takes it."""
    return base64.b64encode(material).decode("ascii")


def _read(text: str, source: str) -> SealingKey:
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        material = base64.b64decode(padded.replace(b"-", b"+").replace(b"_", b"/"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise SecretFault(f"{source} holds something that is not base64. {_FORM}") from None
    if len(material) != KEY_BYTES:
        raise SecretFault(f"{source} holds a key of {len(material)} bytes. {_FORM}")
    return key_of(material)
