"""Every command as a first-time user gives it: data on stdout, progress on stderr, `--json` wherever there is data, exit codes."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import panels
import pytest
from shell import AGREED, SLOW, Shell, lines_until

from folkmoot import __version__
from folkmoot.store.database import Database, migrations

TOPIC = ("-i", "topic=tea")
ID = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"
KEY = r"fm_[A-Za-z0-9_-]{43}"


def objects(text: str) -> list[Any]:
    """One JSON value a line."""
    return [json.loads(line) for line in text.splitlines()]


# the database


def test_upgrade_of_an_empty_database_shows_the_first_key_once_and_only_once(empty_dsn: str, tmp_path: Path) -> None:
    """spec/README.md 'Who calls'."""
    shell = Shell(tmp_path, empty_dsn)
    before = shell.run("db", "check", "--json")
    assert before.code == 1
    assert objects(before.out) == [{"isUpToDate": False, "missing": [name for name, _ in migrations()], "unknown": []}]
    first = shell.run("db", "upgrade")
    assert first.code == 0 and re.fullmatch(f"{KEY}\n", first.out)
    assert "Applied: " in first.err and "shown this once:" in first.err
    again = shell.run("db", "upgrade", "--json")
    assert again.code == 0 and objects(again.out) == [{"applied": [], "key": None}]
    after = shell.run("db", "check")
    assert (after.code, after.out) == (0, "The database is up to date.\n")


async def test_a_database_of_a_newer_version_is_told_as_that(shell: Shell, database: Database) -> None:
    await panels.execute(database, "insert into schema_migration values ('9999_later_pre.sql', now())")
    check = shell.run("db", "check")
    assert (
        check.code == 1 and "9999_later_pre.sql, which this version does not know. Use a newer Folkmoot." in check.out
    )
    assert shell.run("runs", "list").code == 4


def test_whatever_starts_on_an_empty_database_tells_the_first_key_beside_its_data(shell: Shell) -> None:
    """spec/README.md 'Who calls'. The key is not what was asked for, so it is not on stdout."""
    first = shell.run("runs", "list", "--json")
    assert (first.code, first.out) == (0, "")
    assert re.fullmatch(f"The tenant 'default' was made. Its key, shown this once: {KEY}\n", first.err)
    assert shell.run("runs", "list", "--json").err == ""


def test_a_first_user_needs_nothing_but_the_command(tmp_path: Path) -> None:
    """api.md, CLI: `folkmoot run FILE` needs no server; here with the embedded database, from nothing, twice."""
    # not below the tests' own folder: as root the server runs as another user, to whom that one is closed
    folder = Path(tempfile.mkdtemp(prefix="folkmoot-first-", dir="/tmp"))
    folder.chmod(0o755)
    shell = Shell(tmp_path, None)
    data = {"FOLKMOOT_DATA_DIR": str(folder / "share")}
    try:
        done = shell.run("run", shell.talk(), *TOPIC, env=data)
        assert (done.code, done.out) == (0, "Tea it is.\n"), done.err
        assert re.search(KEY, done.err) and done.err.endswith("Completed.\n")
        again = shell.run("run", "team/talk", *TOPIC, env=data)
        assert (again.code, again.out) == (0, "Tea it is.\n")
        assert not re.search(KEY, again.err)
        assert len(objects(shell.run("runs", "list", "--json", env=data).out)) == 2
    finally:
        shell.close()
        shutil.rmtree(folder)


# running


def test_run_of_a_file_and_of_its_name(shell: Shell) -> None:
    """Progress on stderr, the answer on stdout; the run takes the very versions that the file says."""
    done = shell.run("run", shell.talk(), *TOPIC)
    assert (done.code, done.out) == (0, "Tea it is.\n")
    lines = done.err.splitlines()
    assert lines[1:4] == [
        "+ AiModel team/small@1 created",
        "+ Agent team/clerk@1 created",
        "+ Interaction team/talk@1 created",
    ]
    assert re.fullmatch(f"run {ID}", lines[4])
    assert lines[5:] == [
        "-- The task: Talk about tea.",
        "Ann: Tea, as ever.",
        "Ben: proposes: Tea it is.",
        "Ann: agrees",
        "-- Tally: 2 for (Ben, Ann); 0 against; 0 not voting. The answer is accepted.",
        "Completed.",
    ]
    shell.write("topic.txt", "milk\n")
    named = shell.run("run", "team/talk@1", "-i", "topic=@topic.txt", "--json", "--prompts")
    (run,) = objects(named.out)
    assert (run["status"], run["output"]) == ("Completed", "Tea it is.")
    assert run["inputs"] == [{"name": "topic", "value": "milk\n"}]
    assert "You take notes." in named.err


def test_one_of_several_interactions_of_a_file_is_named(shell: Shell) -> None:
    both = shell.talk(old="kind: Interaction", new="kind: Interaction")
    text = (shell.home / both).read_text()
    interaction = text[text.index("kind: Interaction") :].replace("name: talk", "name: chat")
    shell.write(both, f"{text}---\n{interaction}")
    done = shell.run("run", both, *TOPIC)
    assert done.code == 2
    assert "It holds several interactions; name one of these with --interaction: talk, chat." in done.err
    assert shell.run("run", both, *TOPIC, "--interaction", "chat").code == 0


def test_a_model_takes_the_place_of_every_agents_own(shell: Shell) -> None:
    """--model before FOLKMOOT_MODEL, and both before the definitions."""
    file = shell.talk()
    for word in ("Milk", "Coffee"):
        shell.write(f"{word}.yaml", AGREED.replace("Tea it is.", f"{word} it is."))
    assert shell.run("run", file, *TOPIC, env={"FOLKMOOT_MODEL": "scripted:Milk.yaml"}).out == "Milk it is.\n"
    both = shell.run(
        "run", file, *TOPIC, "--model", "scripted:Coffee.yaml", env={"FOLKMOOT_MODEL": "scripted:Milk.yaml"}
    )
    assert both.out == "Coffee it is.\n"


def test_a_run_that_did_not_complete_is_exit_code_1_with_nothing_on_stdout(shell: Shell) -> None:
    file = shell.talk("rules: [{fail: {class: ContentFiltered}}]\n")
    done = shell.run("run", file, *TOPIC)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[-1].startswith("Failed: ")


# runs


def test_runs_are_listed_shown_watched_and_stopped(shell: Shell) -> None:
    done = shell.run("run", shell.talk(), *TOPIC)
    run_id = re.findall(f"^run ({ID})$", done.err, re.MULTILINE)[0]
    table = shell.run("runs", "list").out.splitlines()
    assert re.fullmatch("id +status +created +answer", table[0])
    assert re.fullmatch(rf"{run_id}  Completed  \S+  Tea it is\.", table[1])
    (row,) = objects(shell.run("runs", "list", "--json").out)
    assert (row["id"], row["output"], row["context"]["agentMessage"]) == (run_id, "Tea it is.", [])
    shown = shell.run("runs", "show", run_id)
    assert (shown.code, shown.out) == (0, "Tea it is.\n")
    assert "Ann: Tea, as ever.\n" in shown.err and shown.err.endswith("Completed.\n")
    (whole,) = objects(shell.run("runs", "show", run_id, "--json").out)
    assert [item["message"] for item in whole["context"]["agentMessage"]] == ["Tea, as ever."]
    watched = shell.run("runs", "watch", run_id, "--json")
    assert watched.code == 0 and objects(watched.out) == [whole]
    stopped = shell.run("runs", "stop", run_id)
    assert stopped.code == 1 and f"The run {run_id} is Completed and cannot be stopped." in stopped.err


def test_a_run_under_way_is_watched_spoken_to_and_stopped_from_beside(shell: Shell) -> None:
    running = shell.start("run", shell.talk(SLOW), *TOPIC)
    run_id = lines_until(running, "run ")[-1].split()[-1]
    watching = shell.start("runs", "watch", run_id, stdin=subprocess.PIPE)
    lines_until(watching, "The task:")
    assert watching.stdin is not None
    watching.stdin.write("one word from beside\n")
    watching.stdin.flush()
    lines_until(watching, "owner (person): one word from beside")
    lines_until(running, "owner (person): one word from beside")
    # one that is not there keeps none of the others from being stopped
    both = shell.run("runs", "stop", nobodys := "00000000-0000-7000-8000-000000000000", run_id, "--json")
    assert (both.code, objects(both.out)) == (3, [{"id": run_id, "status": "Running"}]) and nobodys in both.err
    for process in (watching, running):
        out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (1, "") and err.endswith("Stopped.\n")


def test_ctrl_c_ends_the_watching_and_not_the_run(shell: Shell) -> None:
    running = shell.start("run", shell.talk(SLOW), *TOPIC)
    run_id = lines_until(running, "run ")[-1].split()[-1]
    watching = shell.start("runs", "watch", run_id)
    lines_until(watching, "The task:")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(30) == 130
    assert f"{run_id}  Running" in shell.run("runs", "list").out
    running.send_signal(signal.SIGTERM)
    assert running.wait(30) == 130


# definitions


def test_apply_shows_its_diff_first_and_a_second_time_changes_nothing(shell: Shell) -> None:
    file = shell.talk()
    dry = shell.run("apply", "-f", file, "--dry-run")
    assert dry.code == 0 and dry.err.endswith("3 of 3 would change. Nothing was changed.\n")
    first = shell.run("apply", "-f", file)
    assert (
        first.out
        == dry.out
        == ("+ AiModel team/small@1 created\n+ Agent team/clerk@1 created\n+ Interaction team/talk@1 created\n")
    )
    shell.write("talk.yaml", (shell.home / file).read_text().replace("maximumRounds: 2", "maximumRounds: 3"))
    changed = objects(shell.run("apply", "-f", ".", "--json").out)
    assert [change["outcome"] for change in changed] == ["unchanged", "unchanged", "changed"]
    assert changed[2]["differences"] == [{"pointer": "/maximumRounds", "before": 2, "after": 3}]
    again = shell.run("apply", "-f", file)
    assert again.code == 0 and again.err == "0 of 3 changed.\n" and again.out.count("= ") == 3


def test_check_finds_every_fault_without_a_database(shell: Shell) -> None:
    """api.md, CLI: `check`, offline; file, line and field."""
    nowhere = {"FOLKMOOT_DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}
    good = shell.run("check", shell.talk(), env=nowhere)
    assert (good.code, good.out, good.err) == (0, "", "3 definitions, no faults.\n")
    file = shell.talk(old='prompts: ["You take notes."]', new='prompts: ["You take %%notes%%."], settings: {heat: 1}')
    shell.write("talk.yaml", (shell.home / file).read_text().replace("maximumRounds: 2", "maximumRounds: two"))
    bad = shell.run("check", ".", "--json", env=nowhere)
    assert bad.code == 2
    assert [(fault["file"], fault["line"], fault["pointer"]) for fault in objects(bad.out)] == [
        ("talk.yaml", 9, "/settings/heat"),
        ("talk.yaml", 21, "/maximumRounds"),
    ]
    told = shell.run("check", ".", env=nowhere)
    assert told.code == 2 and told.out == ""
    assert (
        told.err.startswith("folkmoot: The definitions have 2 faults. talk.yaml:9: ")
        and "\n  talk.yaml:21: " in told.err
    )


def test_check_reads_scripts_too(shell: Shell) -> None:
    done = shell.run("check", shell.talk("rules: [{when: {offred: agree}, reply: {text: x}}]\n"))
    assert done.code == 2 and "There is no field 'offred' here" in done.err


# keys


def test_keys_are_made_listed_and_revoked(shell: Shell) -> None:
    made = shell.run("keys", "create", "--name", "for tests", "--days", "3")
    assert made.code == 0 and re.fullmatch(f"{KEY}\n", made.out)
    (second,) = objects(shell.run("keys", "create", "--json").out)
    assert re.fullmatch(KEY, second["key"]) and second["name"] == "command line" and second["dateExpires"] is None
    found = shell.run("keys", "list", "--json")
    assert [key["name"] for key in objects(found.out)] == ["first", "for tests", "command line"]
    assert made.out.strip() not in found.out and second["key"] not in found.out
    assert shell.run("keys", "revoke", second["id"]).err.endswith("(command line) is revoked.\n")
    rows = shell.run("keys", "list").out.splitlines()
    assert rows[0].split() == ["id", "name", "begins", "state", "scopes", "last", "used"]
    assert [re.split("  +", row)[3] for row in rows[1:]] == ["valid", "valid", "revoked"]


# serving


def test_serve_answers_and_ends_in_order_on_sigterm(shell: Shell) -> None:
    server = shell.start("serve", "--port", "0", "--json")
    assert server.stdout is not None
    told = json.loads(server.stdout.readline())
    assert re.fullmatch(KEY, told["key"])
    with urllib.request.urlopen(f"{told['url']}/healthz") as answer:
        assert answer.status == 200
    request = urllib.request.Request(
        f"{told['url']}/interactions/processes", headers={"Authorization": f"Bearer {told['key']}"}
    )
    with urllib.request.urlopen(request) as answer:
        assert json.load(answer)["items"] == []
    lines_until(
        server,
        f"listening on {told['url']} (its pages: {told['url']}/web, its document: {told['url']}/docs). Ctrl-C ends it.",
    )
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=30)
    assert (server.returncode, out, err) == (0, "", "")


@pytest.mark.parametrize(
    ("command", "word"), [(("worker",), "ready"), (("api", "--port", "0"), "listening on")], ids=["worker", "api"]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_servers_with_exit_code_0(
    shell: Shell, command: tuple[str, ...], word: str, number: signal.Signals
) -> None:
    process = shell.start(*command)
    lines_until(process, word)
    process.send_signal(number)
    assert process.wait(30) == 0


def test_openapi_prints_the_document(shell: Shell) -> None:
    (document,) = objects(shell.run("openapi", "--json").out)
    assert document == json.loads(shell.run("openapi").out)
    assert document["openapi"].startswith("3.1") and "/healthz" in document["paths"]


# the command itself


def test_the_command_without_a_command_shows_its_help(shell: Shell) -> None:
    assert shell.run("--version").out == f"{__version__}\n"
    alone = shell.run()
    assert (alone.code, alone.out) == (2, "") and "Usage: folkmoot [OPTIONS] COMMAND" in alone.err
    asked = shell.run("--help")
    assert (asked.code, asked.err) == (0, "") and "Runs: list, show, watch, stop" in asked.out


def test_a_worker_loads_neither_the_api_nor_a_providers_library() -> None:
    """So that it starts fast, and an API's library cannot keep it from starting."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "folkmoot", "worker", "--help"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert {"asyncpg", "folkmoot"} <= loaded
    assert not loaded & {
        "fastapi",
        "starlette",
        "uvicorn",
        "openai",
        "pydantic_ai",
        "httpx",
        "httpx2",
        "xllamacpp",
        "rich",
    }
    assert "folkmoot.api" not in done.stderr and "folkmoot.wire" not in done.stderr
