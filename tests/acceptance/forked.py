"""The command's processes, forked from one that has loaded it: what takes most of a short call's time is loading, not working.

`Forked` is a `Popen` whose process was forked. A process of its own in every other way: its id, signals, pipes, terminal and
exit code. Run as a program, this module is the loaded process: it takes a call a connection (JSON: arguments, env, cwd; with
it the three streams), and answers with the process's id and then its exit code.
Deliberately absent: anything that the command does; a fork goes through its `main`.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import weakref
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
# what commands load when they are called, beside their own modules
LOADED_LATER = ("folkmoot.api.app", "folkmoot.bootstrap.serving", "folkmoot.bootstrap.working", "uvicorn")
# what Python itself reads when it starts, which the loaded one did before the call was known
READ_AT_START = ("LANG", "LC_ALL", "PYTHONUTF8", "PYTHONIOENCODING")
_loaded: list[Loaded] = []


class Loaded:
    """The test's side of the loaded process, which ends with whoever began it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="folkmoot-forks-")
        self._path = str(Path(self._folder.name) / "calls")
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._path], env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n", "the loaded process has ended"

    def call(self, streams: list[int], **call: Any) -> socket.socket:
        """`call` as `become` takes it. What is returned says the process's id on a line, and on the next its exit code."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.connect(self._path)
        text = json.dumps(call).encode()
        socket.send_fds(connection, [len(text).to_bytes(8, "big")], streams)
        connection.sendall(text)
        return connection

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._folder.cleanup()


class Forked(subprocess.Popen[Any]):
    """`args`: those of the command `folkmoot`. With `start_new_session` a terminal that is its stdin becomes its own."""

    def __init__(self, args: list[str], **kwargs: Any) -> None:
        self._answers: socket.socket | None = None
        self._words = b""
        self._asking = threading.Lock()
        super().__init__(args, **kwargs)

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        # the order of CPython's own
        cwd, env = rest[4], rest[5]
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite = rest[9:15]
        starts_session = rest[20]
        if not _loaded:
            _loaded.append(Loaded())
            atexit.register(_loaded[0].close)
        streams = [ours if ours != -1 else number for number, ours in enumerate((p2cread, c2pwrite, errwrite))]
        try:
            self._answers = _loaded[0].call(
                streams, arguments=args, env=dict(os.environ if env is None else env), cwd=str(cwd or Path.cwd()),
                starts_session=starts_session,
            )  # fmt: skip
            weakref.finalize(self, self._answers.close)
            pid = self._answer(None)
            assert pid is not None
            self.pid, self._child_created = pid, True
        finally:
            self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _answer(self, seconds: float | None) -> int | None:
        """The next number that the loaded process says of this one; null where it says none in that time."""
        assert self._answers is not None
        while b"\n" not in self._words:
            if not select.select([self._answers], [], [], seconds)[0]:
                return None
            chunk = self._answers.recv(4096)
            assert chunk, "the loaded process has ended"
            self._words += chunk
        line, _, self._words = self._words.partition(b"\n")
        return int(line)

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        return self._ended_within(0)

    def _wait(self, timeout: float | None) -> int:
        code = self._ended_within(timeout)
        if code is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        assert self._answers is not None
        while self.returncode is None:
            if not select.select([self._answers], [], [], seconds)[0]:
                return None
            with self._asking:  # a thread may wait for it while another looks
                if self.returncode is None:
                    self.returncode = self._answer(0)
        return self.returncode


def start(arguments: list[str], **kwargs: Any) -> subprocess.Popen[Any]:
    """The command as a process, with `Popen`'s words: from nothing once for each command in a session, and after that forked."""
    env = kwargs.get("env") or os.environ
    is_own = any(env.get(name) != os.environ.get(name) for name in READ_AT_START)
    if is_own or is_first(arguments[0] if arguments else ""):
        return subprocess.Popen([sys.executable, "-m", "folkmoot", *arguments], **kwargs)
    return Forked(arguments, **kwargs)


def is_first(name: str) -> bool:
    ground = Path(os.environ["TESTS_GROUND"])
    ground.mkdir(exist_ok=True)
    try:
        (ground / f"started.{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def serve(path: str) -> None:
    """Forks a process for each call, and says how each ended, until stdin ends; with it end those that still run."""
    load()
    gc.collect()
    gc.freeze()
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(told)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    listening.listen(64)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    callers: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([0, heard, listening], [], [])
        if heard in ready:
            os.read(heard, 4096)
            say_ended(callers)
        if listening in ready:
            caller, _ = listening.accept()
            pid = fork(caller)
            callers[pid] = caller
            caller.sendall(b"%d\n" % pid)
        if 0 in ready:
            for pid in callers:
                os.kill(pid, signal.SIGKILL)
            return


def load() -> None:
    """All that a command would load by and by."""
    from folkmoot.cli import commands
    from folkmoot.store import database

    for module in commands.MODULES.values():
        importlib.import_module(f"folkmoot.cli.{module}")
    for name in LOADED_LATER:
        importlib.import_module(name)
    for point in entry_points(group="folkmoot.channels"):
        point.load()
    for file in (ROOT / "src" / "folkmoot" / "store" / "sql").glob("*.sql"):
        database.read_file(file.stem)


def say_ended(callers: dict[int, socket.socket]) -> None:
    while callers:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        caller = callers.pop(pid)
        with caller, suppress(BrokenPipeError):  # whoever asked may have gone
            caller.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def fork(caller: socket.socket) -> int:
    length, streams, _, _ = socket.recv_fds(caller, 8, 3)
    text = b""
    while len(text) < int.from_bytes(length, "big"):
        text += caller.recv(65536)
    pid = os.fork()
    if pid == 0:
        become(json.loads(text), streams)
    for stream in streams:
        os.close(stream)
    return pid


def become(call: dict[str, Any], streams: list[int]) -> NoReturn:
    """The command itself, as somebody typed it there."""
    from folkmoot.cli.main import main

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 1024)
    if call["starts_session"]:
        os.setsid()
        if os.isatty(0):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # line by line where it is a terminal, as at any start
    sys.stdin, sys.stdout, sys.stderr = (open(number, how, closefd=False) for number, how in enumerate("rww"))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(call["env"])
    os.chdir(call["cwd"])
    sys.argv[1:] = call["arguments"]
    main()
    raise AssertionError("the command leaves by itself")


if __name__ == "__main__":
    serve(sys.argv[1])
