"""The data directory: its parts, whose it is, and whether the server's account can reach it.

Invariant: a folder that is not empty and not Folkmoot's is left as it is, and so are modes and owners of what was there before.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded.account import Account, user_name
from folkmoot.store.embedded.binaries import make_open_folders
from folkmoot.store.embedded.faults import ELSEWHERE

PORT = 5432
ROOT_HOME = Path("/var/lib/folkmoot")

# Fixed, where tempfile would ask each process's own environment: all processes must come to the same socket.
_TEMPORARY = Path("/tmp")
_SOCKET_PATH_BYTES = 100
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]+")


@dataclass(frozen=True, slots=True)
class Places:
    """A data directory as this process sees it; `data_dir` is absolute and free of symbolic links."""

    data_dir: Path
    account: Account

    @property
    def pgdata(self) -> Path:
        return self.data_dir / "pg"

    @property
    def partial(self) -> Path:
        return self.data_dir / "pg.partial"

    @property
    def log(self) -> Path:
        return self.data_dir / "log"

    @property
    def control(self) -> Path:
        return self.data_dir / "folkmoot-control"

    @property
    def start_lock(self) -> Path:
        return self.control / "start.lock"

    @property
    def users_lock(self) -> Path:
        return self.control / "users.lock"

    @property
    def server_lock(self) -> Path:
        return self.control / "server.lock"

    @property
    def start_log(self) -> Path:
        return self.control / "start.log"

    @property
    def socket_dir(self) -> Path:
        """`run` in the data directory, or a short folder below /tmp where a socket's path there would be too long."""
        run = self.data_dir / "run"
        socket = str(run / f".s.PGSQL.{PORT}.lock")
        if len(os.fsencode(socket)) < _SOCKET_PATH_BYTES and _PLAIN_PATH.fullmatch(socket):
            return run
        return _TEMPORARY / f"folkmoot-{hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]}"

    @property
    def copies(self) -> Path:
        """Where a copy of the server's programs goes if the wheel's cannot be run."""
        return ROOT_HOME if self.account.is_dropped_to else self.data_dir.parent


def default_data_dir(environment: Mapping[str, str], *, is_root: bool) -> Path:
    """/var/lib/folkmoot/data for root; below XDG_DATA_HOME, or ~/.local/share, otherwise. Nothing is made."""
    if is_root:
        return ROOT_HOME / "data"
    home = Path(environment.get("HOME", ""))
    shared = Path(environment.get("XDG_DATA_HOME", ""))
    if not shared.is_absolute():  # The XDG specification has relative ones ignored.
        shared = home / ".local" / "share"
    if not shared.is_absolute():
        raise DatabaseFault(
            "Neither XDG_DATA_HOME nor HOME is set, so there is no place for data: set FOLKMOOT_DATA_DIR."
        )
    return shared / "folkmoot" / "data"


def existing_places(data_dir: Path, account: Account) -> Places:
    """Checks a data directory and changes nothing. DatabaseFault if it is not ours, or out of the account's reach."""
    places = Places(Path(os.path.realpath(data_dir)), account)
    _check_reach(places)
    _check_owner(places)
    _check_content(places)
    return places


def prepare_places(data_dir: Path, account: Account) -> Places:
    """Checks a data directory, and makes it and its control folder where they are missing."""
    places = existing_places(data_dir, account)
    if account.is_dropped_to:
        make_open_folders(places.data_dir)
        make_open_folders(places.control)
    else:
        places.data_dir.mkdir(parents=True, exist_ok=True)
        places.control.mkdir(mode=0o700, exist_ok=True)
    return places


def make_server_folder(path: Path, account: Account) -> None:
    """Makes a folder that only the server's account may enter, or checks that it is one."""
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        found = path.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == account.uid and not found.st_mode & 0o077
        if not is_ours:
            raise DatabaseFault(
                f"{path} is not a folder of {account.name}'s that is closed to others (mode 0700), though the database"
                f" server keeps its files there: look who made it, remove it and start again, or {ELSEWHERE}."
            ) from None
        return
    if account.is_dropped_to:
        os.chown(path, account.uid, account.gid)


def _check_reach(places: Places) -> None:
    if not places.account.is_dropped_to:
        return
    closed = places.account.first_closed_folder(places.data_dir)
    if closed is not None:
        raise DatabaseFault(
            f"As root the database server runs as {places.account.name}, who may not enter {closed} on the way to"
            f" {places.data_dir}: {ELSEWHERE} (such as {ROOT_HOME / 'data'}), or open the folder (chmod a+x {closed})."
        )


def _check_owner(places: Places) -> None:
    """As root the data directory must be root's: whoever else owned it could send root's writes elsewhere by a link."""
    data_dir, account = places.data_dir, places.account
    expected = {places.pgdata: account.uid, places.control: os.geteuid()}
    if account.is_dropped_to:
        expected[data_dir] = os.geteuid()
    for path, uid in expected.items():
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        if found.st_uid != uid:
            raise DatabaseFault(
                f"{path} belongs to {user_name(found.st_uid)}, and this process runs as {user_name(os.geteuid())}:"
                f" run Folkmoot as the user that made the data, or {ELSEWHERE}."
            )


def _check_content(places: Places) -> None:
    data_dir = places.data_dir
    if not data_dir.exists():
        return
    if not data_dir.is_dir():
        raise DatabaseFault(f"{data_dir} is not a folder: remove it, or {ELSEWHERE}.")
    names = {entry.name for entry in data_dir.iterdir()} - {"lost+found"}
    if not names or places.control.name in names:
        return
    if "PG_VERSION" in names:
        raise DatabaseFault(
            f"{data_dir} is a PostgreSQL cluster of its own and not a data directory of Folkmoot's; nothing in it was"
            f" touched. Start it with its own programs and use it with FOLKMOOT_DATABASE_URL, or {ELSEWHERE}."
        )
    raise DatabaseFault(
        f"{data_dir} is not empty and holds no data of Folkmoot's (it has '{min(names)}'); nothing in it was touched:"
        f" empty it yourself, or {ELSEWHERE}."
    )
