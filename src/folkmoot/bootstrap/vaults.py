"""The vault's keys: from a setting, from a file, or from one that the embedded installation makes for itself.

The database keeps a text that was sealed with its key; with another key nothing starts and nothing is changed. Deliberately absent:
the way from one key to another (`services.secrets.rotate`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from folkmoot.kernel.errors import SecretFault
from folkmoot.settings import Settings
from folkmoot.store import secrets
from folkmoot.store.database import Database
from folkmoot.vault.keys import KEY_BYTES, SealingKey, read_keys, write_key
from folkmoot.vault.masks import OF_PROCESS
from folkmoot.vault.sealing import Vault

KEY_FILE = "secret.key"
RandomBytes = Callable[[int], bytes]


def known_keys(found: Settings, data_dir: Path) -> tuple[SealingKey, ...]:
    """The keys that there are, the sealing one first; none where none was set or made. Raises SecretFault for what is no key."""
    if found.secret_key is not None:
        return _read(found.secret_key, source="FOLKMOOT_SECRET_KEY")
    if found.secret_key_file is not None:
        return _read(_text_of(found.secret_key_file), source=f"FOLKMOOT_SECRET_KEY_FILE ({found.secret_key_file})")
    own = data_dir / KEY_FILE
    if found.database_url is None and own.exists():
        return _read(_text_of(own), source=str(own))
    return ()


async def open_vault(found: Settings, data_dir: Path, database: Database, *, random_bytes: RandomBytes) -> Vault:
    """The vault of a migrated database. Raises SecretFault, having changed nothing, where its keys are not the database's.

    Without a key the embedded database gets one, once, in its data directory; with a server of somebody else's there is then
    nothing to seal with, and the first who needs it is told.
    """
    keys = known_keys(found, data_dir)
    async with database.reader() as reader:
        check = await secrets.check(reader)
    if not keys and found.database_url is None:
        keys = known_keys(found, data_dir)  # another process may have made it between the two looks
    if not keys and found.database_url is None:
        if check is not None:
            raise SecretFault(
                f"The key for the secrets of this database is missing: there is no {data_dir / KEY_FILE}. Put it back from your backup, or "
                "set FOLKMOOT_SECRET_KEY to it. Nothing was changed."
            )
        _make_file(data_dir / KEY_FILE, random_bytes)
        keys = known_keys(found, data_dir)
    vault = Vault(keys, random_bytes=random_bytes)
    if vault.has_keys:
        if check is None:
            async with database.writer() as writer:
                check = await secrets.ensure_check(writer, make=vault.make_check)
        vault.check(check)
    return vault


def _read(text: str, *, source: str) -> tuple[SealingKey, ...]:
    keys = read_keys(text, source=source)
    for part in text.split(","):
        OF_PROCESS.add(part.strip())
    return keys


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "it is not text"
        raise SecretFault(
            f"The key for secrets cannot be read from {file}: {reason}. Correct the path or its rights."
        ) from error


def _make_file(file: Path, random_bytes: RandomBytes) -> None:
    """Whole or not at all, and never over another: of several processes at once one makes it."""
    half = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        handle = os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            os.write(handle, f"{write_key(random_bytes(KEY_BYTES))}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
        os.link(half, file)
    except FileExistsError:
        pass
    except OSError as error:
        raise SecretFault(
            f"The key for secrets cannot be written to {file}: {error.strerror}. Make room or give the right, or set FOLKMOOT_SECRET_KEY."
        ) from error
    finally:
        half.unlink(missing_ok=True)
