"""Opens, shares and stops the server of a data directory.

Invariant: every decision about the server (does it run, start it, am I the last user, stop it) is taken under `start.lock`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import asyncpg

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded.account import server_account
from folkmoot.store.embedded.binaries import installed_wheel, programs_for
from folkmoot.store.embedded.cluster import SUPERUSER, make_cluster_if_new, start_command, write_configuration
from folkmoot.store.embedded.faults import from_os_error, from_output
from folkmoot.store.embedded.locks import FileLock, held
from folkmoot.store.embedded.places import PORT, Places, existing_places, make_server_folder, prepare_places
from folkmoot.store.embedded.processes import Postmaster, clear_lock_files, find_postmaster, left_behind, send

DATABASE = "folkmoot"
T = TypeVar("T")

_LOCK_SECONDS = 120.0
_SILENT_SECONDS = 60.0
_RECOVERY_SECONDS = 900.0
_FAST_STOP_SECONDS = 60.0
_IMMEDIATE_STOP_SECONDS = 10.0
_SELF_STOP_SECONDS = 1.0
_KILLED_STOP_SECONDS = 5.0
_CONNECT_SECONDS = 5.0
_POLL_SECONDS = 0.005
_LONGEST_POLL_SECONDS = 0.25
_LOG_TAIL_BYTES = 4096
_ROLE_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")

# The least that does: test databases are cloned (CREATEDB), a role of its own stands under row-level security (CREATEROLE), and
# workers do not (BYPASSRLS). It may create trusted extensions (pg_trgm); pgvector's is none, and would need the superuser.
_ROLE_RIGHTS = "LOGIN NOSUPERUSER CREATEDB CREATEROLE BYPASSRLS"


class EmbeddedServer:
    """One use of a running server. `dsn` is for asyncpg; `pid` is the postmaster's when it was opened."""

    __slots__ = ("_places", "_use", "data_dir", "dsn", "pid")

    def __init__(self, places: Places, use: FileLock, *, dsn: str, pid: int) -> None:
        self._places = places
        self._use: FileLock | None = use
        self.data_dir = places.data_dir
        self.dsn = dsn
        self.pid = pid

    async def close(self) -> None:
        """Gives this use back; the last one stops the server and waits until it has ended. May be called twice."""
        use, self._use = self._use, None
        if use is None:
            return
        try:
            async with held(self._places.start_lock, within_seconds=_LOCK_SECONDS):
                use.release()
                if use.try_exclusive():
                    await _stop(self._places)
        except OSError as error:
            raise from_os_error(error, place=self.data_dir) from error
        finally:
            use.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def open_server(data_dir: Path, *, owner: str = "folkmoot") -> EmbeddedServer:
    """A running server on `data_dir`, made and started if need be, with the role `owner` and the database `folkmoot`.

    Returns when it takes connections. DatabaseFault if that cannot be had, with what to do.
    """
    if not _ROLE_NAME.fullmatch(owner):
        raise DatabaseFault(f"'{owner}' cannot own the database: name a role in lower-case letters, digits and '_'.")
    try:
        places = await _in_thread(lambda: prepare_places(data_dir, server_account()))
        async with held(places.start_lock, within_seconds=_LOCK_SECONDS):
            use = FileLock(places.users_lock)
            try:
                if not use.try_shared():
                    raise DatabaseFault(
                        f"{places.users_lock} is locked by a program that is not Folkmoot: end that program."
                    )
                postmaster = await _ensure_running(places, owner=owner)
            except BaseException:
                use.close()
                raise
    except OSError as error:
        raise from_os_error(error, place=data_dir) from error
    host = quote(str(postmaster.socket_dir), safe="")
    dsn = f"postgresql://{owner}@/{DATABASE}?host={host}&port={PORT}&sslmode=disable"
    return EmbeddedServer(places, use, dsn=dsn, pid=postmaster.pid)


async def stop_server(data_dir: Path) -> None:
    """Stops the server of `data_dir` whoever uses it, and waits until it has ended. Nothing to do is no error."""
    try:
        places = await _in_thread(lambda: existing_places(data_dir, server_account()))
        if not places.control.is_dir():
            return
        async with held(places.start_lock, within_seconds=_LOCK_SECONDS):
            await _stop(places)
    except OSError as error:
        raise from_os_error(error, place=data_dir) from error


async def _ensure_running(places: Places, *, owner: str) -> Postmaster:
    while (postmaster := _find(places)) is not None:
        if await _is_ready(postmaster, places, child=None, owner=owner):
            return postmaster
    await _end_remains(places)
    started: list[subprocess.Popen[bytes]] = []  # Filled in the thread: known also if the wait for it is cancelled.
    try:
        await _in_thread(lambda: started.append(_start(places)))
        postmaster = Postmaster(started[0].pid, places.socket_dir)
        if await _is_ready(postmaster, places, child=started[0], owner=owner):
            return postmaster
        said = await _in_thread(lambda: _said_since_start(places))
        raise from_output(said, doing="start", place=places.data_dir, log=places.log)
    except BaseException:
        for child in started:
            if child.poll() is None:
                send(child.pid, signal.SIGINT)  # Nobody uses what was started for a caller that gave up.
        raise


async def _is_ready(
    postmaster: Postmaster, places: Places, *, child: subprocess.Popen[bytes] | None, owner: str
) -> bool:
    """Waits until the server takes connections and has its role and database; False if it ended instead."""
    clock = asyncio.get_running_loop()
    begun = last_heard = clock.time()
    pause = _POLL_SECONDS
    while True:
        try:
            await _ensure_owner(postmaster, owner=owner)
            return True
        except asyncpg.CannotConnectNowError:
            last_heard = clock.time()  # It starts, recovers or stops: it answers, so it is given its time.
        except (OSError, asyncpg.ConnectionDoesNotExistError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError):
            pass
        except asyncpg.PostgresError as error:
            raise from_output(f"FATAL: {error}", doing="opening", place=places.data_dir, log=places.log) from error
        if child.poll() is not None if child is not None else _find(places) is None:
            return False
        if clock.time() > min(last_heard + _SILENT_SECONDS, begun + _RECOVERY_SECONDS):
            raise DatabaseFault(
                f"The database server of {places.data_dir} (process {postmaster.pid}) does not get ready: look into"
                f" {places.log}, end it with `kill -QUIT {postmaster.pid}` and start again."
            )
        await asyncio.sleep(pause)
        pause = min(pause * 1.3, _LONGEST_POLL_SECONDS)  # Each try is a line in the server's log while it recovers.


async def _ensure_owner(postmaster: Postmaster, *, owner: str) -> None:
    connection = await asyncpg.connect(
        host=str(postmaster.socket_dir),
        port=PORT,
        user=SUPERUSER,
        database="postgres",
        ssl=False,
        timeout=_CONNECT_SECONDS,
        command_timeout=_SILENT_SECONDS,
    )
    try:
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)", owner):
            await connection.execute(f'CREATE ROLE "{owner}" {_ROLE_RIGHTS}')
        if not await connection.fetchval("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", DATABASE):
            await connection.execute(f'CREATE DATABASE "{DATABASE}" OWNER "{owner}"')
    finally:
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            await connection.close(timeout=_CONNECT_SECONDS)


def _find(places: Places) -> Postmaster | None:
    return find_postmaster(places.pgdata, uid=places.account.uid, socket_dir=places.socket_dir)


def _start(places: Places) -> subprocess.Popen[bytes]:
    """Starts the server, making its cluster first if it is new. Only called while no process of a former one lives."""
    account = places.account
    programs = programs_for(account, wheel=installed_wheel(), copies=places.copies)
    server = FileLock(places.server_lock)
    try:
        if not server.try_exclusive():
            raise _remains(places)
        make_cluster_if_new(places, programs, lock_fd=server.fd)
        for folder in (places.socket_dir, places.log):
            make_server_folder(folder, account)
        clear_lock_files(places.pgdata, places.socket_dir)
        write_configuration(places)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        output = os.open(places.start_log, flags, 0o600)
        try:
            child = account.spawn(start_command(places, programs), output=output, pass_fds=(server.fd,))
        finally:
            os.close(output)
    finally:
        server.close()
    # Waited for, or it would stay a zombie while this process lives and somebody else has stopped it.
    threading.Thread(target=child.wait, name="folkmoot-postgres", daemon=True).start()
    return child


async def _stop(places: Places) -> None:
    """Fast shutdown (connections are cut, work is rolled back), and an immediate one where that does not end."""
    postmaster = _find(places)
    if postmaster is None:
        await _end_remains(places)
        return
    for how, seconds in ((signal.SIGINT, _FAST_STOP_SECONDS), (signal.SIGQUIT, _IMMEDIATE_STOP_SECONDS)):
        send(postmaster.pid, how)
        if await _has_ended(places, within_seconds=seconds):
            break
    else:
        raise DatabaseFault(
            f"The database server of {places.data_dir} (process {postmaster.pid}) does not stop: end it with"
            f" `kill -9 {postmaster.pid}`; nothing that was committed is lost."
        )
    if places.socket_dir.parent != places.data_dir:
        with contextlib.suppress(OSError):
            places.socket_dir.rmdir()


async def _end_remains(places: Places) -> None:
    """Ends the processes that a killed postmaster left at work, since a new one must not start beside them."""
    # Most see that their postmaster is gone and end by themselves. The others lose nothing: it is in the write-ahead log.
    if await _has_ended(places, within_seconds=_SELF_STOP_SECONDS):
        return
    for pid in await _in_thread(lambda: left_behind(places.pgdata, places.partial)):
        send(pid, signal.SIGKILL)
    if not await _has_ended(places, within_seconds=_KILLED_STOP_SECONDS):
        raise _remains(places)


def _remains(places: Places) -> DatabaseFault:
    return DatabaseFault(
        f"Processes of an earlier database server still use {places.data_dir} and cannot be ended from here (another"
        f" container may run them): find them with `fuser {places.server_lock}`, end them and start again."
    )


async def _has_ended(places: Places, *, within_seconds: float) -> bool:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + within_seconds
    lock = FileLock(places.server_lock)
    try:
        while _find(places) is not None or not lock.try_exclusive():
            if clock.time() >= deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True
    finally:
        lock.close()


def _said_since_start(places: Places) -> str:
    """What a server that failed to start said: first to its output and then, once it writes one, to its log."""
    begun = places.start_log.stat().st_mtime
    said = places.start_log.read_text(errors="replace")
    for log in sorted(places.log.glob("server-*.log")):
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if log.stat().st_mtime >= begun:
                file.seek(max(0, size - _LOG_TAIL_BYTES))
                said += file.read().decode(errors="replace")
    return said


async def _in_thread(work: Callable[[], T]) -> T:
    """Runs `work` in a thread and waits for it also when cancelled: the locks around it must outlast it."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait((task,))
        raise
