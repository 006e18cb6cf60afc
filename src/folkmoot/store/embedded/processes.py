"""The server's processes: which one is the postmaster, and those that a killed postmaster left behind.

Invariant: a pid from a file is believed only if the process of that number is a postgres of ours on this very cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_POSTMASTER_PID = "postmaster.pid"


@dataclass(frozen=True, slots=True)
class Postmaster:
    pid: int
    socket_dir: Path


def find_postmaster(pgdata: Path, *, uid: int, socket_dir: Path) -> Postmaster | None:
    """The running server of a cluster; None if postmaster.pid is missing, empty, stale or names a foreign process.

    `socket_dir` stands in while a server that is starting has not written its own into the file.
    """
    try:
        lines = (pgdata / _POSTMASTER_PID).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return None
    if not lines or not lines[0].strip().isdecimal():
        return None
    pid = int(lines[0])
    if not _is_postmaster(pid, pgdata, uid):
        return None
    return Postmaster(pid, Path(lines[4]) if len(lines) > 4 and lines[4] else socket_dir)


def clear_lock_files(pgdata: Path, socket_dir: Path) -> None:
    """Removes a postmaster.pid and a socket that belong to no server of ours.

    PostgreSQL refuses to start on an empty one, or where the number in it is now somebody else's or a zombie's.
    """
    for path in (pgdata / _POSTMASTER_PID, *socket_dir.glob(".s.PGSQL.*")):
        path.unlink(missing_ok=True)


def left_behind(*folders: Path) -> list[int]:
    """Processes that work in one of the cluster's folders, as all of PostgreSQL's do. Empty where there is no /proc."""
    wanted = {os.path.realpath(folder) for folder in folders}
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()] if _PROC.is_dir() else []
    return [pid for pid in pids if _working_folder(pid) in wanted and _program(pid) in ("postgres", "initdb")]


def send(pid: int, what: signal.Signals) -> None:
    """Sends a signal; a process that has ended meanwhile is no error."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return


def _is_postmaster(pid: int, pgdata: Path, uid: int) -> bool:
    if not _PROC.is_dir():
        listing = ["ps", "-o", "uid=,command=", "-p", str(pid)]
        done = subprocess.run(listing, check=False, capture_output=True, text=True)
        owner, _, command = done.stdout.strip().partition(" ")
        return owner == str(uid) and "postgres" in command and f"-D {pgdata}" in command
    try:
        owner_uid = (_PROC / str(pid)).stat().st_uid
        command_line = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    # A zombie has no command line, and so is none: it has ended, its parent has not looked yet.
    if owner_uid != uid or os.path.basename(command_line[0]) != b"postgres" or b"-D" not in command_line:
        return False
    return command_line[command_line.index(b"-D") + 1] == os.fsencode(pgdata) or _working_folder(pid) == str(pgdata)


def _working_folder(pid: int) -> str | None:
    try:
        return os.readlink(_PROC / str(pid) / "cwd")
    except OSError:
        return None


def _program(pid: int) -> str | None:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return None
