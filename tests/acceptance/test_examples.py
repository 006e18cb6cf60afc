"""The examples as their README has them: its own lines, typed in a clone's folder, with real servers and a person who decides."""

from __future__ import annotations

import asyncio
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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from fake_openai import fake_openai
from shell import EXAMPLES, ROOT, Done, Shell, lines_until

from folkmoot.store.database import Database

SERVER = "filesystem-mcp"
PORT = "8090"
CUSTOMER = "c-1001"
SMTP, IMAP, WEB = "8025", "8143", "8080"
PRINTER, OWNER = "orders@ada-press.example", "olga@example.org"


@dataclass(frozen=True)
class Waiting:
    """A run that waits, in the process of a command; the runs that ask, itself or some below it."""

    process: subprocess.Popen[str]
    run_id: str
    asking: list[str]

    def end(self) -> Done:
        out, err = self.process.communicate(timeout=60)
        return Done(self.process.returncode, out, err)


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

    def start_and_wait(self, arguments: list[str], *, kind: str = "approve", count: int = 1) -> Waiting:
        """A run without a terminal that waits for so many answers of a kind, its id, and those of the runs that ask."""
        process = self.shell.start(*arguments, env=self.env)
        run_id = lines_until(process, "run ")[-1].split()[-1]
        told = [lines_until(process, f"To answer: folkmoot runs {kind} ")[-1].split() for _ in range(count)]
        return Waiting(process, run_id, [words[words.index(kind) + 1] for words in told])


def clone(shell: Shell, name: str, ports: Mapping[str, str] = MappingProxyType({})) -> Example:
    """The repository's files that the example needs, as a fresh clone has them once `make setup` has been run. `ports`: free ones in place of those
    that the example names."""
    home = shell.home
    shutil.copytree(EXAMPLES / name, home / "examples" / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (path for path in (home / "examples" / name).rglob("*") if path.is_file()):
        text = file.read_text(encoding="utf-8")
        for named, free in ports.items():
            text = text.replace(named, free)
        file.write_text(text, encoding="utf-8")
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
    rejected = example.start_and_wait(run)
    assert (
        shell.run("runs", "reject", rejected.run_id, "--reason", "Name the commands, too.", env=example.env).code == 0
    )
    assert json.loads(rejected.end().out)["isWritten"] is False


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
    example = clone(shell, "support-desk", {PORT: free_port()})
    with shop(example) as log:
        example.type("Set up the desk")
        example.run("Set up the desk")
        offered = example.run("Set up the desk")
        assert re.search(r"listOrders .* go at once", offered) and re.search(
            r"refundOrder .* wait for approval", offered
        )
        run = example.arguments("Run it")
        rejected = example.start_and_wait(run)
        assert shell.run("runs", "reject", rejected.run_id, env=example.env).code == 0
        assert json.loads(rejected.end().out)["refunded"] == 0
        waiting = example.start_and_wait([*run, "--json"])
        assert f'"customerId": "{CUSTOMER}"' in example.run("Run it")
        assert "POST" not in log.read_text(encoding="utf-8")
        example.run("Run it", waiting.run_id)
        done = waiting.end()
        assert done.code == 0, done.err
        ended = json.loads(done.out)
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


# the research team


def results_of(context: dict[str, list[dict[str, Any]]], thread: str | None = None) -> list[dict[str, Any]]:
    return [each for each in context["toolResult"] if thread in (None, each["threadId"])]


def test_the_research_team_works_side_by_side_and_writes_what_a_person_approves(shell: Shell) -> None:
    """B05, B12, B38: two of three work at once; the third's report is written once, if approved; who writes it was chosen, with a reason."""
    example = clone(shell, "research-team")
    report = shell.home / "dist" / "research" / "REPORT.md"
    waiting = example.start_and_wait([*example.arguments("Run it"), "--json"])
    first = waiting.run_id
    assert waiting.asking == [first] and first in example.run("Run it") and not report.exists()
    example.run("Run it", first)
    done = waiting.end()
    assert done.code == 0, done.err
    ended = json.loads(done.out)
    answer = json.loads(ended["output"])
    assert answer["answer"] == "yes" and answer["isReportWritten"] is True
    assert example.type("Run it") == report.read_text(encoding="utf-8") != ""

    said = ended["context"]
    begun = [each["sequence"] for each in said["orchestratorMessage"] if each["threadId"] != "main"]
    assert max(begun[:2]) < results_of(said)[0]["sequence"]
    assert [each["result"] for each in results_of(said, "main")[2:]] == ["The report is written."]
    assert sum("Written to" in each["result"] for each in results_of(said)) == 1
    (decision,) = ended["routingDecisions"]
    assert (decision["participantName"], decision["isFallback"]) == ("Wim", False) and decision["reason"]

    waiting = example.start_and_wait([*example.arguments("For other readers"), "--json"])
    example.run("For other readers", waiting.run_id)
    ended = json.loads(waiting.end().out)
    assert json.loads(ended["output"])["isReportWritten"] is False
    assert [each["reason"] for each in ended["routingDecisions"]] == ["Rule 1: input readers council."]
    assert "council" not in report.read_text(encoding="utf-8")

    shown = shell.run(*example.arguments("Afterwards", first), env=example.env).err
    assert re.search(r"=> to Cal: .*55\.0", shown) and "writers chose plain-writer" in shown
    assert re.search(r"^Wim +3 ", example.run("Afterwards", first), re.MULTILINE)
    assert is_all_typed(example)


# a run for each document


def statuses_in(drawn: str) -> list[str]:
    """What a drawn tree says of each run, the one at the top first."""
    return re.findall(r"reading/[a-z-]+: (.+?)  [0-9a-f-]{36}$", drawn, re.MULTILINE)


async def stop_while_held(example: Example, line: list[str], waiting: Waiting, below: str) -> None:
    """Stop the run at the top while the row of one below is locked, until the command has said that it is stopped."""
    database = await Database.open(example.shell.dsn or "", connections=1)
    try:
        async with database.writer() as holding:
            await holding.connection.execute("select from process where run_id = $1 for update", UUID(below))
            assert example.shell.run(*line, env=example.env).code == 0
            lines_until(waiting.process, "Stopped.")
    finally:
        await database.close()


def test_a_run_for_each_document_is_awaited_and_stopped_with_the_one_at_the_top(shell: Shell) -> None:
    """B10, B13: three sub-runs, their results in one answer; what they ask is answered from beside; a stop goes down before the command ends."""
    example = clone(shell, "map-reduce")
    done = shell.run(*example.arguments("Run it"), env=example.env)
    assert done.code == 0 and json.loads(done.out)["documents"] == 3
    run_id = re.findall(r"^run ([0-9a-f-]{36})$", done.err, re.MULTILINE)[0]
    assert statuses_in(example.run("Run it", run_id)) == ["Completed"] * 4
    assert len(example.run("Run it", run_id).splitlines()) == 1 + 4

    section = "Questions, and a stop"
    waiting = example.start_and_wait(example.arguments(section), kind="answer", count=3)
    assert statuses_in(example.run(section, waiting.run_id))[1:] == ["PendingHuman, asks 1"] * 3
    asked = example.run(section)
    assert all(run in asked for run in waiting.asking) and "of seeds.txt?" in asked
    example.run(section, waiting.asking[0])
    assert shell.run("runs", "watch", waiting.asking[0], env=example.env).code == 0
    asyncio.run(stop_while_held(example, example.arguments(section, waiting.run_id), waiting, waiting.asking[1]))
    assert waiting.end() == Done(1, "", "")
    root, *below = statuses_in(example.run(section, waiting.run_id))
    assert root == "Stopped" and sorted(below) == ["Completed", "Stopped", "Stopped"]
    assert shell.run("inbox", "--json", env=example.env).out == ""
    assert is_all_typed(example)


# the assistant


@dataclass
class Mails:
    """The example's mail server, and what it has shown so far."""

    process: subprocess.Popen[str]
    seen: str = ""

    def until(self, text: str) -> str:
        """All that was shown, once `text` is in it."""
        assert self.process.stdout is not None
        while text not in self.seen:
            line = self.process.stdout.readline()
            assert line, f"it ended before it showed {text!r}: {self.seen}"
            self.seen += line
        return self.seen


@contextmanager
def mail_server(example: Example) -> Iterator[Mails]:
    process = subprocess.Popen(
        shlex.split(example.take("Start the mail")), cwd=example.shell.home, env=example.shell.environment(None), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        mails = Mails(process)
        mails.until("Ctrl-C ends it")
        yield mails
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()


def office(shell: Shell) -> Example:
    return clone(shell, "assistant", {port: free_port() for port in (SMTP, IMAP, WEB)})


def test_the_assistant_asks_its_owner_by_mail_and_sends_once_what_a_reply_approves(shell: Shell) -> None:
    """B16: in one process, with real servers of mail. The request is the root's, over its channel, and names the specialist that asks."""
    example = office(shell)
    report = shell.home / "dist" / "assistant" / "REPORT.md"
    with mail_server(example) as mails:
        example.type("Set up")
        assert OWNER in example.run("Set up")
        process = shell.start(*example.arguments("Run it"), env=example.env)
        asked = mails.until("How to answer:")
        assert f"To: {OWNER}" in asked and "The specialist mailer, working for assistant" in asked
        assert '"domain": "ada-press.example"' in asked and "To: ben@" not in asked and PRINTER not in asked
        assert report.exists()
        assert "Replied APPROVE" in example.type("Run it")
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and "120 posters are ordered from Ada Press" in out, err
        assert re.search(r"^   approved, by owner at \S+ over email\.$", err, re.MULTILINE)
        assert example.type("Run it") == report.read_text(encoding="utf-8")
        seen = mails.until("Subject: assistant: the run 1 is completed")
        assert seen.count(f"To: {PRINTER}\n") == seen.count("To: ben@example.org\n") == 1
        assert "Done: you approved" in seen and "Subject: assistant: send_mail approved" in seen
        assert "fair-prices" not in seen, "a stranger's mail is no instruction"
    assert not example.sections["Set up"] and not example.sections["Run it"]


def test_the_assistant_goes_on_without_what_a_reply_declines_on_a_server(shell: Shell) -> None:
    """Nobody has the run open: the server sends, reads the reply, and goes on. The mail has a link to its pages."""
    example = office(shell)
    section = "With a server"
    setting, *words = shlex.split(example.take(section))
    name, _, url = setting.partition("=")
    with mail_server(example) as mails:
        example.type("Set up")
        example.run("Set up")
        serving = {**example.env, name: url, "FOLKMOOT_PORT": url.rpartition(":")[2]}
        lines_until(shell.start(*words[1:], env=serving), "listening on")
        run_id = example.run(section).strip()
        asked = mails.until(f"{url}/web/consent/")
        assert "How to answer:" in asked
        assert "Replied DECLINE" in example.type(section)
        assert "Nothing was ordered" in example.run(section, run_id)
        payload = json.loads(example.run(section, run_id))
        assert payload["verification"]["isMet"] and payload["budget"]["modelCalls"]["limit"] == 40
        seen = mails.until(f"Subject: assistant: the run {run_id} is completed")
        assert f"To: {PRINTER}" not in seen and "The posters are not ordered" in seen
        assert "Reason: Ask a third printer first." in seen
    assert not example.sections[section]


def test_the_mail_server_of_the_assistant_is_the_one_that_the_tests_use() -> None:
    """Its requirements are pinned as the tests' own are, with the same hashes."""
    pinned = (EXAMPLES / "assistant" / "requirements.txt").read_text(encoding="utf-8").splitlines()[1:]
    locked = (ROOT / "requirements-dev.lock").read_text(encoding="utf-8")
    assert pinned and [line for line in pinned if line.rstrip(" \\") not in locked] == []


def test_the_definitions_of_the_examples_have_no_faults(shell: Shell) -> None:
    for folder in (path for path in sorted(EXAMPLES.iterdir()) if path.is_dir()):
        done = shell.run("check", str(folder))
        assert done.code == 0, done.err
