"""The examples as their README has them: its own lines, typed in a clone's folder, with real servers and a person who decides."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_openai import fake_openai
from shell import EXAMPLES, ROOT, Shell, lines_until

SERVER = "filesystem-mcp"
PORT = "8090"
CUSTOMER = "c-1001"


@dataclass
class Example:
    """A clone with an example in it, and the lines of its README, each of which is typed once."""

    shell: Shell
    sections: dict[str, list[str]]
    env: dict[str, str]

    def take(self, section: str, run_id: str = "RUN") -> str:
        """The section's next line, with the run that it is about."""
        return self.sections[section].pop(0).replace("RUN", run_id)

    def arguments(self, section: str, run_id: str = "RUN") -> list[str]:
        """The same of a line that is `folkmoot` and its arguments."""
        command, *arguments = shlex.split(self.take(section, run_id))
        assert command == "folkmoot"
        return arguments

    def type(self, section: str, run_id: str = "RUN") -> str:
        """Give the next line to a shell, and return what it wrote to stdout."""
        line = self.take(section, run_id)
        environment = self.shell.environment(self.env)
        environment["PATH"] = f"{self.shell.home / 'bin'}:{environment['PATH']}"
        done = subprocess.run(
            ["sh", "-c", line], env=environment, cwd=self.shell.home, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, section: str, run_id: str = "RUN") -> str:
        """The same of a line that is `folkmoot` and its arguments, which need no shell."""
        done = self.shell.run(*self.arguments(section, run_id), env=self.env)
        assert done.code == 0, done.err
        return done.out

    def start_and_wait(self, arguments: list[str]) -> tuple[subprocess.Popen[str], str]:
        """A run without a terminal that waits for its approval, and its id."""
        process = self.shell.start(*arguments, env=self.env)
        told = lines_until(process, "To answer: folkmoot runs approve ")[-1].split()
        return process, told[told.index("approve") + 1]


def clone(shell: Shell, name: str, port: str = PORT) -> Example:
    """The repository's files that the example needs, as a fresh clone has them once `make setup` has been run."""
    home = shell.home
    shutil.copytree(EXAMPLES / name, home / "examples" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (home / "examples" / name).iterdir():
        file.write_text(file.read_text(encoding="utf-8").replace(PORT, port), encoding="utf-8")
    for file in ("CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / file, home)
    command(home / "bin" / "folkmoot", f'{sys.executable} -m folkmoot "$@"')
    command(home / ".venv" / "bin" / "python", f'{sys.executable} "$@"')
    readme = (home / "examples" / name / "README.md").read_text(encoding="utf-8")
    # an embedded database has its own key of secrets, a test's database has none
    made = Example(shell, lines_of(readme), {"FOLKMOOT_SECRET_KEY": base64.b64encode(os.urandom(32)).decode()})
    once = made.sections.pop("Once")
    assert once[0] == "make setup"
    for line in once[1:]:
        if line.startswith("export "):
            variable, _, value = line.removeprefix("export ").partition("=")
            made.env[variable] = value
        elif line.startswith("mkdir "):
            subprocess.run(shlex.split(line), cwd=home, check=True)
        else:
            assert re.match(r"alias folkmoot=|\.venv/bin/python -m pip install ", line), line
    return made


def command(path: Path, line: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexec {line}\n", encoding="utf-8")
    path.chmod(0o755)


def lines_of(readme: str) -> dict[str, list[str]]:
    """The lines in the fences of each section that has any."""
    found = {}
    for section in re.split(r"^## ", readme, flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        if blocks:
            found[section.splitlines()[0]] = "".join(blocks).splitlines()
    return found


def is_all_typed(example: Example) -> bool:
    return not any(example.sections.values())


# the release panel


def filesystem_server() -> Path:
    for folder in (Path(sys.executable).parent, ROOT / "tests" / "peers" / "venv" / "bin"):
        if (folder / SERVER).exists():
            return folder / SERVER
    pytest.skip(f"'{SERVER}' is not set up: make peers")


def test_the_release_panel_reads_a_repository_and_writes_what_a_person_approves(shell: Shell) -> None:
    """Reading asks nobody, writing waits; approved from elsewhere, the run that is open on a terminal goes on."""
    server = filesystem_server()
    example = clone(shell, "release-panel")
    (shell.home / ".venv" / "bin" / SERVER).symlink_to(server)
    run = example.arguments("Run it")
    notes = shell.home / "dist" / "release" / "RELEASE_NOTES.md"
    with shell.terminal(*run, env=example.env) as terminal:
        seen = terminal.until("Type approve, or reject and why")
        assert "The changelog has 0.1.0." in seen and "The README asks for Python 3.11" in seen
        assert seen.count("needs an approval") == 1 and not notes.exists()
        run_id = re.findall(r"run ([0-9a-f-]{36})", seen)[0]
        assert run_id in example.run("Answer from somewhere else")
        example.run("Answer from somewhere else", run_id)
        done = terminal.end()
    assert done.code == 0 and json.loads(done.out)["isWritten"] is True
    assert example.type("Run it") == notes.read_text(encoding="utf-8")
    assert notes.read_text(encoding="utf-8").startswith("# Folkmoot 0.1.0\n")
    assert is_all_typed(example)


# the support desk


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return str(listening.getsockname()[1])


@contextmanager
def shop(example: Example) -> Iterator[Path]:
    """The service, listening; the file in which it shows its requests."""
    key, *words = shlex.split(example.take("Start the shop"))
    name, _, value = key.partition("=")
    log = example.shell.home / "requests.log"
    with log.open("w", encoding="utf-8") as requests:
        process = subprocess.Popen(
            words, cwd=example.shell.home, env=example.shell.environment({name: value}), stdout=requests, stderr=subprocess.PIPE, text=True
        )  # fmt: skip
    try:
        lines_until(process, "Uvicorn running on")
        yield log
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def test_the_support_desk_refunds_once_what_a_person_approves(shell: Shell) -> None:
    """B50: for whom it works is in the calls and in the card, and in nothing that a model is sent."""
    example = clone(shell, "support-desk", free_port())
    with shop(example) as log:
        example.type("Set up the desk")
        example.run("Set up the desk")
        offered = example.run("Set up the desk")
        assert re.search(r"listOrders .* go at once", offered) and re.search(
            r"refundOrder .* wait for approval", offered
        )
        run = example.arguments("Run it")
        process, run_id = example.start_and_wait([*run, "--json"])
        assert f'"customerId": "{CUSTOMER}"' in example.run("Run it")
        assert "POST" not in log.read_text(encoding="utf-8")
        example.run("Run it", run_id)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        ended = json.loads(out)
        assert json.loads(ended["output"])["refunded"] == 48
        # all that the participants were told and said
        conversation = json.dumps(ended["context"])
        assert {"name": "customer", "value": CUSTOMER} in ended["inputs"]
        assert CUSTOMER not in conversation and "Six cups" in conversation and "Kettle" not in conversation
        again = shell.run(*run, env=example.env)
        assert again.code == 0 and json.loads(again.out)["refunded"] == 0
        assert is_all_typed(example)

        with fake_openai() as (url, seen):
            shell.run(*run, "--model", f"openai-compatible:no-arguments@{url}", env=example.env)
        sent = json.dumps(seen.bodies)
        assert "Where are my cups?" in sent and "refundOrder" not in sent and "refund" in sent
        assert CUSTOMER not in sent and "customerId" not in sent
    requests = log.read_text(encoding="utf-8")
    assert requests.count("POST") == 1 and "c-1002" not in requests


def test_the_definitions_of_the_examples_have_no_faults(shell: Shell) -> None:
    for folder in (path for path in sorted(EXAMPLES.iterdir()) if path.is_dir()):
        done = shell.run("check", str(folder))
        assert done.code == 0, done.err
