"""The command `folkmoot` as somebody types it: real processes on a test's database, with pipes or on a terminal.

Deliberately absent: anything that looks inside; what a user cannot see is asked of the database. Processes are ended by their own id.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from forked import start

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
PATIENCE_SECONDS = 60.0
# everything soon, so that nothing is waited for
SETTINGS = {
    "FOLKMOOT_LEASE_SECONDS": "2", "FOLKMOOT_PING_SECONDS": "0.3", "FOLKMOOT_SWEEP_SECONDS": "0.3", "FOLKMOOT_POLL_SECONDS": "0.3",
    "FOLKMOOT_DRAIN_SECONDS": "20", "FOLKMOOT_RETRY_SECONDS": "0.01",
}  # fmt: skip

TALK = """\
kind: AiModel
namespace: team
name: small
version: {provider: scripted, modelName: talk, path: talk.script.yaml}
---
kind: Agent
namespace: team
name: clerk
version: {model: small, prompts: ["You take notes."]}
---
kind: Interaction
namespace: team
name: talk
version:
  type: RoundRobin
  agents:
    - {name: Ann, agent: clerk}
    - {name: Ben, agent: clerk}
  isSolutionProposalAllowed: true
  humanSettings: {chatMode: Observing}
  maximumRounds: 2
  inputsPrompt:
    - {name: topic, isRequired: true}
    - {name: count, dataType: Integer}
  prompt: "Talk about %%topic%%."
"""
# Ben proposes, Ann agrees
AGREED = """\
rules:
  - when: {offered: agree}
    reply: {calls: [{name: agree, arguments: {}}]}
  - when: {participant: Ann}
    reply: {text: "Tea, as ever."}
  - reply: {calls: [{name: propose_solution, arguments: {solution: "Tea it is."}}]}
"""
# Ann holds the floor for longer than any test waits
SLOW = """\
rules:
  - when: {participant: Ann}
    reply: {text: "I am thinking it over at length.", delay: 60s}
  - reply: {text: "Nothing."}
"""


@dataclass(frozen=True)
class Done:
    """How a process ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass
class Shell:
    """`home` holds a user's files and is where commands are typed; the database is a test's own."""

    home: Path
    dsn: str | None
    begun: list[subprocess.Popen[str]] = field(default_factory=list)

    def environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        """None of the settings and keys of whoever runs the tests."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        own = {"HOME": str(self.home), "PYTHONPATH": str(ROOT / "src"), "FOLKMOOT_DATA_DIR": str(self.home / "data")}
        named = {"FOLKMOOT_DATABASE_URL": self.dsn} if self.dsn is not None else {}
        return {**kept, **own, **named, **SETTINGS, **(env or {})}

    def write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.write_text(text, encoding="utf-8")
        return path

    def talk(self, script: str = AGREED, **replaced: str) -> str:
        """The name of a file with the talk, and its script beside it. `replaced`: texts that stand in place of others, in pairs."""
        self.write("talk.script.yaml", script)
        text = TALK
        if replaced:
            assert replaced["old"] in text
            text = text.replace(replaced["old"], replaced["new"])
        return self.write("talk.yaml", text).name

    def run(
        self,
        *arguments: str,
        typed: str | None = None,
        seconds: float = PATIENCE_SECONDS,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """The command to its end. `typed`: what is piped into it; nothing otherwise. `env`: further variables."""
        process = self.start(*arguments, stdin=subprocess.PIPE if typed is not None else subprocess.DEVNULL, env=env)
        out, err = process.communicate(typed, timeout=seconds)
        return Done(process.returncode, out, err)

    def start(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[str]:  # fmt: skip
        process = start(
            [*arguments], env=self.environment(env), cwd=self.home, stdin=stdin, stdout=stdout, stderr=stderr, text=True, encoding="utf-8",
        )  # fmt: skip
        self.begun.append(process)
        return process

    @contextmanager
    def terminal(
        self, *arguments: str, shows_data: bool = False, env: Mapping[str, str] | None = None
    ) -> Iterator[Terminal]:
        """The command on a terminal of its own; stdout leads into a file, as with `> stdout`, unless the terminal `shows_data`."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        file = self.home / "stdout"
        with file.open("w", encoding="utf-8") as out:
            process = start(
                [*arguments], env=self.environment({"TERM": "xterm", **(env or {})}), cwd=self.home, stdin=theirs,
                stdout=theirs if shows_data else out, stderr=theirs, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
            )  # fmt: skip
        os.close(theirs)
        terminal = Terminal(process, ours, file)
        try:
            yield terminal
        finally:
            process.kill()
            process.wait()
            terminal.close()

    def close(self) -> None:
        for process in self.begun:
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            process.communicate()


@dataclass
class Terminal:
    """What a user at a terminal sees and types."""

    process: subprocess.Popen[bytes]
    ours: int
    stdout: Path
    seen: str = ""
    _is_open: bool = True

    def type(self, text: str) -> None:
        os.write(self.ours, text.encode())

    def until(self, pattern: str, seconds: float = PATIENCE_SECONDS) -> str:
        """All that was shown, once `pattern` is in it."""
        self._read(lambda: re.search(pattern, self.seen) is not None, seconds)
        assert re.search(pattern, self.seen), self.seen
        return self.seen

    def end(self, seconds: float = PATIENCE_SECONDS) -> Done:
        """How the command ended; `err` is all that the terminal showed."""
        if self._is_open:
            self._read(lambda: False, seconds)
        code = self.process.wait(seconds)
        return Done(code, self.stdout.read_text(encoding="utf-8"), self.seen)

    def close(self) -> None:
        """As somebody closes the window."""
        if self._is_open:
            self._is_open = False
            os.close(self.ours)

    def _read(self, is_enough: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not is_enough() and (left := until - time.monotonic()) > 0:
            if select.select([self.ours], [], [], left)[0]:
                try:
                    chunk = os.read(self.ours, 65536)
                except OSError:  # the last who had it open is gone
                    return
                self.seen += chunk.decode("utf-8", "replace")


def lines_until(process: subprocess.Popen[str], text: str) -> list[str]:
    """The lines of stderr up to the first with `text`; the process goes on."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if text in line:
            return lines
    raise AssertionError(f"it ended before it said {text!r}: {''.join(lines)}")
