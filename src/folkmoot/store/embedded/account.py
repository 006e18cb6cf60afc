"""The account that the server runs as: this process's own, or `nobody` where this process is root.

PostgreSQL refuses to run as root, and its initdb and its peer authentication need a name for every numeric id.
Invariant: no account is made and none is changed.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded.faults import ANOTHER_SERVER

UNPRIVILEGED = "nobody"

# Nothing of this process's environment goes to the server: it may hold keys, and PG* variables would redirect it.
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}

# `test -x` asks the kernel as that account, so access lists count too, which mode bits alone would miss.
_FIRST_CLOSED = 'for folder; do [ -x "$folder" ] || { printf %s "$folder"; exit 0; }; done'


@dataclass(frozen=True, slots=True)
class Account:
    """`callers` are the system users that may connect: the server's own, root, and whoever runs this process."""

    uid: int
    gid: int
    name: str
    callers: tuple[str, ...]
    is_dropped_to: bool

    def run(
        self, command: Sequence[str | Path], *, cwd: Path | None = None, pass_fds: tuple[int, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command as this account to its end; stdout and stderr come back as one text."""
        return subprocess.run(
            [str(part) for part in command],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=_ENVIRONMENT,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.uid if self.is_dropped_to else None,
            group=self.gid if self.is_dropped_to else None,
            extra_groups=[] if self.is_dropped_to else None,
        )

    def spawn(
        self, command: Sequence[str | Path], *, output: int, pass_fds: tuple[int, ...]
    ) -> subprocess.Popen[bytes]:
        """Starts a command as this account in a session of its own, so that no terminal's Ctrl-C reaches it."""
        return subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_ENVIRONMENT,
            cwd="/",
            pass_fds=pass_fds,
            start_new_session=True,
            user=self.uid if self.is_dropped_to else None,
            group=self.gid if self.is_dropped_to else None,
            extra_groups=[] if self.is_dropped_to else None,
        )

    def first_closed_folder(self, path: Path) -> Path | None:
        """The highest existing folder on the way to `path`, itself included, that this account may not enter."""
        folders = [folder for folder in (*reversed(path.parents), path) if folder.is_dir()]
        try:
            done = self.run(["/bin/sh", "-c", _FIRST_CLOSED, "sh", *folders])
        except PermissionError as error:
            raise DatabaseFault(
                f"This process is root but may not act as {self.name} (a container without CAP_SETUID and CAP_SETGID"
                f" does this): run Folkmoot as an ordinary user, or {ANOTHER_SERVER}."
            ) from error
        return Path(done.stdout) if done.stdout else None


def server_account() -> Account:
    """The account for this process. DatabaseFault if its numeric id has no name."""
    uid = os.geteuid()
    try:
        own = pwd.getpwuid(uid)
    except KeyError:
        raise DatabaseFault(
            f"User id {uid} has no entry in the system's list of users, and PostgreSQL cannot run without a name for it:"
            f" add a line for it to /etc/passwd, run as a user that has one, or {ANOTHER_SERVER}."
        ) from None
    if uid != 0:
        return Account(uid, os.getegid(), own.pw_name, _callers(own.pw_name), is_dropped_to=False)
    try:
        other = pwd.getpwnam(UNPRIVILEGED)
    except KeyError:
        raise DatabaseFault(
            f"PostgreSQL does not run as root, and this system has no user '{UNPRIVILEGED}' to run it as:"
            f" run Folkmoot as an ordinary user, or {ANOTHER_SERVER}."
        ) from None
    return Account(other.pw_uid, other.pw_gid, other.pw_name, _callers(own.pw_name, other.pw_name), is_dropped_to=True)


def user_name(uid: int) -> str:
    """The name of a user, or 'user id N' where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user id {uid}"


def _callers(*names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*names, user_name(0))))
