"""A server that was started apart, over TCP with a password: FOLKMOOT_DATABASE_URL's case (decisions.md, 2)."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from folkmoot.kernel.errors import Unreachable
from folkmoot.store.database import Database, applied, migrations, upgrade
from folkmoot.store.embedded.account import server_account
from folkmoot.store.embedded.binaries import installed_wheel, programs_for

PASSWORD = "correct horse"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server with scram-sha-256 on 127.0.0.1, whose owner is `keeper`."""
    account = server_account()
    folder = Path(tempfile.mkdtemp(prefix="folkmoot-apart-", dir="/tmp"))
    folder.chmod(0o777)
    (folder / "password").write_text(PASSWORD, encoding="utf-8")
    (folder / "password").chmod(0o644)
    programs = programs_for(account, wheel=installed_wheel(), copies=folder)
    made = account.run(
        [programs.path("initdb"), "-D", folder / "pg", "-U", "keeper", "-A", "scram-sha-256", "--pwfile", folder / "password", "-N"]
    )  # fmt: skip
    assert made.returncode == 0, made.stdout
    with socket.create_server(("127.0.0.1", 0)) as free:
        number: int = free.getsockname()[1]
    command = [programs.path("postgres"), "-D", folder / "pg", "-p", number, "-k", "", "-h", "127.0.0.1", "-F"]
    process = account.spawn([str(part) for part in command], output=subprocess.DEVNULL, pass_fds=())
    yield number
    process.send_signal(signal.SIGINT)
    process.wait(30)
    shutil.rmtree(folder)


async def opened(url: str) -> Database:
    """A server that has just been started may still be starting."""
    for _ in range(200):
        try:
            return await Database.open(url)
        except Unreachable as error:
            if "refused the user" in str(error) or not isinstance(
                error.__cause__, ConnectionRefusedError | asyncpg.CannotConnectNowError
            ):
                raise
            with socket.socket() as waiting:
                waiting.settimeout(0.05)
                waiting.connect_ex(("127.0.0.1", int(url.rsplit(":", 1)[1].split("/")[0])))
    raise AssertionError("the server did not start")


async def test_a_server_started_apart_is_used_over_tcp_with_a_password(port: int) -> None:
    database = await opened(f"postgresql://keeper:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{port}/postgres")
    assert await upgrade(database) == [name for name, _ in migrations()]
    async with database.reader() as reader:
        assert await applied(reader) == [name for name, _ in migrations()]
    await database.close()
    with pytest.raises(Unreachable, match="refused the user or password") as refused:
        await opened(f"postgresql://keeper:wrong@127.0.0.1:{port}/postgres")
    assert "wrong" not in str(refused.value)
    with pytest.raises(Unreachable, match="does not exist"):
        await opened(f"postgresql://keeper:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{port}/nowhere")
