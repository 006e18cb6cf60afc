"""Seals a value for one row of one tenant, and opens it there alone (AES-256-GCM).

What was sealed carries the id of its key and a nonce; tenant, kind and row are bound to it without being in it, so that moved to
another row it does not open. Deliberately absent: the database, and any default key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from folkmoot.kernel.errors import SecretFault
from folkmoot.vault.keys import ID_BYTES, SealingKey
from folkmoot.vault.masks import OF_PROCESS, Mask
from folkmoot.vault.texts import SecretText

_FORM = b"\x01"
_NONCE_BYTES = 12
_HEAD = len(_FORM) + ID_BYTES + _NONCE_BYTES
_NOBODY = UUID(int=0)
_CHECKED = "folkmoot"
_HOW = "Set FOLKMOOT_SECRET_KEY, or FOLKMOOT_SECRET_KEY_FILE, to the key that sealed the secrets of this database"


@dataclass(frozen=True, slots=True)
class Place:
    """The row that a value belongs to. `kind` is the noun of its table."""

    tenant_id: UUID
    kind: str
    row_id: UUID

    def bound(self, head: bytes) -> bytes:
        return head + self.tenant_id.bytes + self.row_id.bytes + self.kind.encode()


_CHECK = Place(_NOBODY, "vault_check", _NOBODY)


class Vault:
    """Holds the keys of this process: the first seals, all open. Without keys it can do neither, and says so when asked."""

    def __init__(
        self, keys: Sequence[SealingKey], *, random_bytes: Callable[[int], bytes], mask: Mask = OF_PROCESS
    ) -> None:
        self._keys = {key.key_id: AESGCM(key.material) for key in keys}
        self._first = keys[0].key_id if keys else None
        self._random_bytes = random_bytes
        self._mask = mask

    @property
    def has_keys(self) -> bool:
        return self._first is not None

    @property
    def sealing_key_id(self) -> str:
        """Which key seals now. Raises SecretFault where there is none."""
        return self._sealing().hex()

    def seal(self, value: SecretText, place: Place, *, is_of_one_use: bool = False) -> bytes:
        """The value for this place. `is_of_one_use`: it is made for one message, and there are many such. Raises SecretFault without a key."""
        self._mask.add(value.reveal(), is_of_one_use=is_of_one_use)
        return self._sealed(value.reveal(), place)

    def open(self, sealed: bytes, place: Place, *, is_of_one_use: bool = False) -> SecretText:
        """The value that was sealed for this place. Raises SecretFault for another key, another place, or other bytes."""
        if not self._keys:
            raise SecretFault(f"A secret cannot be opened: there is no key. {_HOW}.")
        cipher = self._cipher_of(sealed)
        if cipher is None:
            raise SecretFault(f"A secret was sealed with another key than those that are set. {_HOW}.")
        text = _opened(cipher, sealed, place)
        if text is None:
            raise SecretFault(
                "A sealed secret was altered, or moved from another row, and does not open. Set its value again."
            )
        self._mask.add(text, is_of_one_use=is_of_one_use)
        return SecretText(text)

    def make_check(self) -> bytes:
        """What the database keeps to know the key by."""
        return self._sealed(_CHECKED, _CHECK)

    def check(self, sealed: bytes) -> None:
        """Raises SecretFault unless one of the keys made this."""
        cipher = self._cipher_of(sealed)
        if cipher is not None and _opened(cipher, sealed, _CHECK) == _CHECKED:
            return
        raise SecretFault(
            f"The key for secrets is not the one that this database was begun with; nothing was changed. {_HOW}."
        )

    def _sealed(self, text: str, place: Place) -> bytes:
        key_id = self._sealing()
        head, nonce = _FORM + key_id, self._random_bytes(_NONCE_BYTES)
        return head + nonce + self._keys[key_id].encrypt(nonce, text.encode(), place.bound(head))

    def _cipher_of(self, sealed: bytes) -> AESGCM | None:
        is_ours = len(sealed) > _HEAD and sealed.startswith(_FORM)
        return self._keys.get(sealed[len(_FORM) : len(_FORM) + ID_BYTES]) if is_ours else None

    def _sealing(self) -> bytes:
        if self._first is None:
            raise SecretFault(
                "There is no key to seal secrets with. Set FOLKMOOT_SECRET_KEY to base64 of 32 bytes (`openssl rand -base64 32`), or "
                "FOLKMOOT_SECRET_KEY_FILE to a file that holds it."
            )
        return self._first


def _opened(cipher: AESGCM, sealed: bytes, place: Place) -> str | None:
    """Null where it does not belong to this place, or was altered."""
    head, nonce = sealed[: len(_FORM) + ID_BYTES], sealed[len(_FORM) + ID_BYTES : _HEAD]
    try:
        return cipher.decrypt(nonce, sealed[_HEAD:], place.bound(head)).decode()
    except InvalidTag:
        return None
