"""Turns what the system or PostgreSQL says into a DatabaseFault: what is wrong, where, and what to do.

Invariant: no file's content but the server's own messages reaches a sentence.
"""

from __future__ import annotations

import errno
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault

ELSEWHERE = "choose another data directory with FOLKMOOT_DATA_DIR"
ANOTHER_SERVER = "use a PostgreSQL of your own with FOLKMOOT_DATABASE_URL"
_SEVERITIES = ("PANIC:", "FATAL:", "ERROR:", "error:")


def disk_full(place: Path) -> DatabaseFault:
    return DatabaseFault(f"The disk that holds {place} is full: free some space and start again, or {ELSEWHERE}.")


def read_only(place: Path) -> DatabaseFault:
    return DatabaseFault(f"The file system that holds {place} is read-only: mount it for writing, or {ELSEWHERE}.")


def from_os_error(error: OSError, *, place: Path) -> DatabaseFault:
    """The fault for an OSError met while `place` (the data directory) was prepared or used."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full(place)
    if error.errno == errno.EROFS:
        return read_only(place)
    where = error.filename or place
    if error.errno in (errno.EACCES, errno.EPERM):
        return DatabaseFault(f"This user may not read and write {where}: change its owner or mode, or {ELSEWHERE}.")
    return DatabaseFault(f"{where} cannot be used ({error.strerror or error}): put that right, or {ELSEWHERE}.")


def from_output(text: str, *, doing: str, place: Path, log: Path | None = None) -> DatabaseFault:
    """The fault for a PostgreSQL program that failed. `text` is what it printed, `doing` a noun ('start')."""
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return disk_full(place)
    if "Read-only file system" in text:
        return read_only(place)
    if "Cannot allocate memory" in text or "could not create shared memory segment" in text:
        return DatabaseFault(
            f"The database server in {place} gets no memory from the system: end other programs, or raise the limit of"
            f" shared memory, or {ANOTHER_SERVER}."
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    grave = [line for line in lines if any(severity in line for severity in _SEVERITIES)]
    said = (grave or lines or ["nothing"])[-1]
    more = f" The whole log is in {log}." if log else ""
    return DatabaseFault(
        f"The {doing} of the database server in {place} failed; PostgreSQL said: {said}."
        f" Put that right and start again, or {ELSEWHERE}.{more}"
    )
