"""The command's process, loaded once and forked for each call: what takes most of a short call's time is loading, not working.

Run as a program, it reads a call a line (JSON: arguments, env, cwd, out, err), and answers with the process's id and then its exit
code. Deliberately absent: anything that the command does; a fork goes through its `main` as a process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from folkmoot.cli import commands
from folkmoot.cli.main import main


class Forks:
    """The caller's side. The loaded process ends when its stdin does, so it outlives nobody."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="folkmoot-forks-")
        self._process = subprocess.Popen(
            [sys.executable, __file__], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._answers = b""

    def run(
        self, arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path, seconds: float
    ) -> tuple[int, str, str]:
        """Exit code, stdout and stderr. Raises TimeoutExpired, and ends the process, after `seconds`."""
        out, err = (Path(self._folder.name) / name for name in ("out", "err"))
        call = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd), "out": str(out), "err": str(err)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(call).encode() + b"\n")
        until = time.monotonic() + seconds
        pid = self._answer(until)
        try:
            code = self._answer(until)
        except subprocess.TimeoutExpired:
            os.kill(pid, 9)
            self._answer(time.monotonic() + 10)
            raise
        return code, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8")

    def _answer(self, until: float) -> int:
        assert self._process.stdout is not None
        while b"\n" not in self._answers:
            if not select.select([self._process.stdout], [], [], max(until - time.monotonic(), 0))[0]:
                raise subprocess.TimeoutExpired("folkmoot", until)
            chunk = os.read(self._process.stdout.fileno(), 4096)
            assert chunk, "the loaded process has ended"
            self._answers += chunk
        line, _, self._answers = self._answers.partition(b"\n")
        return int(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._folder.cleanup()


def serve() -> None:
    for module in commands.MODULES.values():
        importlib.import_module(f"folkmoot.cli.{module}")
    waiting = b""
    while chunk := os.read(0, 65536):
        waiting += chunk
        while b"\n" in waiting:
            line, _, waiting = waiting.partition(b"\n")
            call = json.loads(line)
            pid = os.fork()
            if pid == 0:
                become(call)
            os.write(1, b"%d\n" % pid)
            os.write(1, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def become(call: dict[str, Any]) -> NoReturn:
    """The command itself, as somebody typed it there."""
    write = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, opened in enumerate(
        (os.open(os.devnull, os.O_RDONLY), os.open(call["out"], write), os.open(call["err"], write))
    ):
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(call["env"])
    os.chdir(call["cwd"])
    sys.argv[1:] = call["arguments"]
    main()
    raise AssertionError("the command leaves by itself")


if __name__ == "__main__":
    serve()
