"""What goes wrong at a first try, one thing at a time: a sentence that says what, where and what to do, the right exit code, and
nothing lost. Each test is a part of 'Bad input' of the first milestone; Ctrl-C is in
test_interruptions.py, terminals and pipes are in test_terminals.py.
"""

from __future__ import annotations

import re
import signal
import socket

import panels
import pytest
from fake_openai import fake_openai
from shell import Done, Shell, lines_until

from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.tenancy import Caller
from folkmoot.services import definitions
from folkmoot.store.database import Database

TOPIC = ("-i", "topic=tea")


def assert_refused(done: Done, code: int, *sentences: str) -> None:
    """Refused with these words, whatever surrounds them; no data, no traceback."""
    assert (done.code, done.out) == (code, ""), done
    for sentence in sentences:
        assert sentence in done.err
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].endswith(".")


async def counts(database: Database) -> tuple[int, int]:
    """How many definitions and runs there are."""
    rows = await panels.fetch(
        database, "select (select count(*) from definition) as d, (select count(*) from process) as r"
    )
    return rows[0]["d"], rows[0]["r"]


# inputs


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (
            ("-i", "topic=tea", "-i", "topik=tea"),
            "There is no input 'topik'; correct the name or leave it out. The inputs: 'topic', 'count'.",
        ),
        ((), "The required input 'topic' is missing; give it a value."),
        (
            ("-i", "topic=tea", "-i", "count=many"),
            "The input 'count' is of type Integer, and 'many' is not: write it like 12.",
        ),
        (
            ("-i", "topic=@gone.txt"),
            "The input 'topic' cannot be read from 'gone.txt': No such file or directory. Correct the path",
        ),
    ],
    ids=["unknown", "missing", "wrong type", "no file"],
)
async def test_a_run_with_a_wrong_input_is_not_started(
    shell: Shell, database: Database, inputs: tuple[str, ...], sentence: str
) -> None:
    """Bad input: unknown input, missing required input, wrong type."""
    done = shell.run("run", shell.talk(), *inputs)
    assert_refused(done, 2, sentence)
    assert (await counts(database))[1] == 0


# definitions


SOLUTION = "  isSolutionProposalAllowed: true\n"
CIRCLE = '{$defs: {a: {$ref: "#/$defs/b"}, b: {$ref: "#/$defs/a"}}, $ref: "#/$defs/a"}'
ENDS = "  isSolutionProposalAllowed: true\n  humanSettings: {chatMode: Observing}\n  maximumRounds: 2\n"


@pytest.mark.parametrize(
    ("old", "new", "line", "sentence"),
    [
        ("%%topic%%", "%%topik%%", 25, "/prompt: '%%topik%%' names no input. The inputs are 'topic', 'count': correct"),
        (SOLUTION, f"{SOLUTION}  solutionSchema: {CIRCLE}\n", 20, "A '$ref' leads back to where it stands"),
        (
            SOLUTION, f'{SOLUTION}  solutionSchema: {{$ref: "https://example.com/a.json"}}\n', 20,
            "'https://example.com/a.json' is fetched from nowhere; put what it means under '$defs'",
        ),
        (SOLUTION, f"{SOLUTION}  solutionSchema: {{type: objekt}}\n", 20, 'This is no type: "objekt". The types are array'),
        ("  maximumRounds: 2\n", "\tmaximumRounds: 2\n", 21, "a tab stands where YAML wants blanks; put spaces in its place."),
        ("name: Ben", "name: Ann", 18, "The name 'Ann' is taken or looks like 'Ann', another participant's"),
        (ENDS, "", 14, "This conversation could never end: nobody may propose a solution"),
    ],
    ids=["typo", "circular $ref", "remote $ref", "no schema", "tab", "two of one name", "endless"],
)  # fmt: skip
async def test_a_file_that_does_not_hold_together_is_refused_whole(
    shell: Shell, database: Database, old: str, new: str, line: int, sentence: str
) -> None:
    """Bad input: `%%typo%%`, circular or remote `$ref`, a schema that is none, YAML with a tab, two agents of one name, a
    conversation that can never end. With file and line; nothing of the file is applied."""
    done = shell.run("run", shell.talk(old=old, new=new), *TOPIC)
    assert_refused(done, 2, f"talk.yaml:{line}: ", sentence)
    assert await counts(database) == (0, 0)


def test_two_agents_of_one_name_in_a_set_are_told_with_both_places(shell: Shell) -> None:
    """Bad input: two agents of one name."""
    twice = shell.talk(old="kind: Interaction", new="kind: Agent\nnamespace: team\nname: clerk\nversion: {model: small}\n---\nkind: Interaction")  # fmt: skip
    done = shell.run("check", twice)
    assert_refused(done, 2, "talk.yaml:13: /name: There are two agents 'team/clerk'; the other is at talk.yaml:8.")


async def test_a_disabled_version_is_not_run_and_the_sentence_says_how_to(
    shell: Shell, database: Database, caller: Caller
) -> None:
    """Bad input: a disabled version. By name, and by the file that says what the disabled version says."""
    file = shell.talk()
    assert shell.run("apply", "-f", file).code == 0
    interaction = Reference("talk", "team")
    await definitions.set_disabled(
        database, caller, kind=DefinitionKind.INTERACTION, reference=interaction, is_disabled=True
    )
    sentence = "Version 1 of interaction 'team/talk' is disabled. Enable it, or refer to another version."
    assert_refused(shell.run("run", "team/talk@1", *TOPIC), 2, sentence)
    assert_refused(shell.run("run", file, *TOPIC), 2, sentence)
    everything = "Every version of interaction 'team/talk' is disabled. Enable one, or publish another."
    assert_refused(shell.run("run", "team/talk", *TOPIC), 2, everything)
    assert (await counts(database))[1] == 0


# models


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("openai:small", "Model 'small' needs a key: set the environment variable OPENAI_API_KEY."),
        ("local:smollm2-135m-instruct", "fetch it with `folkmoot model pull`."),
        ("scripted:gone.yaml", "The script 'gone.yaml' cannot be read: No such file or directory. Correct the path."),
    ],
)  # fmt: skip
async def test_a_model_that_cannot_be_asked_is_told_before_anything_is_done(
    shell: Shell, database: Database, model: str, sentence: str
) -> None:
    """Bad input: a model that does not exist, as far as this machine can tell."""
    assert_refused(shell.run("run", shell.talk(), *TOPIC, "--model", model), 2, sentence)
    assert await counts(database) == (0, 0)


def test_a_model_that_the_provider_does_not_have_fails_the_run(shell: Shell) -> None:
    """Bad input: a model that does not exist."""
    with fake_openai() as (url, seen):
        done = shell.run("run", shell.talk(), *TOPIC, "--model", f"openai-compatible:missing@{url}")
    assert_refused(done, 1, f"{url} (model 'missing') does not know this model or address: check modelName and baseUrl")
    assert done.err.splitlines()[-1].startswith("Failed: ") and len(seen.bodies) == 1


def test_a_refused_key_fails_the_run_and_is_named_and_not_shown(shell: Shell) -> None:
    """Bad input: a key that is refused."""
    with fake_openai() as (url, seen):
        named = f"version: {{provider: openai, modelName: Authentication, baseUrl: '{url}'}}"
        file = shell.talk(old="version: {provider: scripted, modelName: talk, path: talk.script.yaml}", new=named)
        key = {"OPENAI_API_KEY": "sk-right-and-secret"}
        elsewhere = shell.run("run", file, *TOPIC, env=key)
        assert_refused(elsewhere, 1, f"FOLKMOOT_ALLOW_KEYS=OPENAI_API_KEY={url} lets it")
        assert seen.bodies == []
        done = shell.run("run", file, *TOPIC, env={**key, "FOLKMOOT_ALLOW_KEYS": f"OPENAI_API_KEY={url}"})
    assert_refused(
        done, 1, f"{url} (model 'Authentication') refused the key from the environment variable OPENAI_API_KEY"
    )
    assert done.err.splitlines()[-1].startswith("Failed: ") and "secret" not in done.err
    assert len(seen.bodies) == 1 and seen.headers[0]["authorization"] == "Bearer sk-right-and-secret"


async def test_without_a_network_a_call_is_tried_so_often_and_then_the_run_is_failed(
    shell: Shell, database: Database
) -> None:
    """Bad input: no network. The attempts are bounded, and the sentence names the address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    done = shell.run("run", shell.talk(), *TOPIC, "--model", f"openai-compatible:small@{url}")
    assert_refused(done, 1, f"{url} cannot be reached: check the network, the address and that its server runs.")
    assert done.err.splitlines()[-1].startswith("Failed: ")
    rows = await panels.fetch(database, "select count(*) as n from model_call")
    assert rows[0]["n"] == 5


# servers


def test_a_port_in_use_is_told_before_the_database_is_touched(shell: Shell) -> None:
    """Bad input: a port in use."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = shell.run(
            "serve", "--port", str(port), env={"FOLKMOOT_DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}
        )
    assert_refused(
        done, 2, f"127.0.0.1:{port} is in use, perhaps by another `folkmoot serve`. Stop it, or choose another"
    )


def test_two_servers_on_the_same_data_work_side_by_side_but_not_on_one_port(shell: Shell) -> None:
    """Bad input: a second `serve` on the same data."""
    first = shell.start("serve", "--port", "0")
    port = re.findall(r"http://127\.0\.0\.1:(\d+) ", lines_until(first, "listening on")[-1])[0]
    second = shell.start("serve", "--port", "0")
    lines_until(second, "listening on")
    assert_refused(shell.run("serve", env={"FOLKMOOT_PORT": port}), 2, f"127.0.0.1:{port} is in use")
    done = shell.run("run", shell.talk(), *TOPIC)
    assert (done.code, done.out) == (0, "Tea it is.\n")
    for server in (first, second):
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 0


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("FOLKMOOT_MODLE", "openai:x", "There is no setting FOLKMOOT_MODLE."),
        ("FOLKMOOT_PORT", "99999", "FOLKMOOT_PORT is '99999'; it must be a number from 0 to 65535."),
        ("FOLKMOOT_HOST", "192.0.2.1", "192.0.2.1:8080 cannot be listened on (Cannot assign requested address). Choose"),
        ("FOLKMOOT_DATABASE_URL", "mysql://u:secret@h/d", "FOLKMOOT_DATABASE_URL is no address of a PostgreSQL server."),
        ("FOLKMOOT_FUNCTIONS", "gone.py", "FOLKMOOT_FUNCTIONS names gone.py, and there is no Python file /"),
        ("FOLKMOOT_FUNCTIONS", "bad.py", "The functions in bad.py:2 cannot be loaded (ZeroDivisionError: division by zero)."),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_is_named_and_never_ignored(
    shell: Shell, setting: str, value: str, sentence: str
) -> None:
    shell.write("bad.py", "\n1 / 0\n")
    done = shell.run("serve" if setting == "FOLKMOOT_HOST" else "worker", env={setting: value})
    assert_refused(done, 2, sentence)
    assert "secret" not in done.err


def test_a_database_that_cannot_be_reached_is_its_own_exit_code(shell: Shell) -> None:
    """Exit codes: 4."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    done = shell.run(
        "runs", "list", env={"FOLKMOOT_DATABASE_URL": f"postgresql://owner:secret@127.0.0.1:{port}/folkmoot"}
    )
    assert_refused(done, 4, f"The database at 127.0.0.1:{port}/folkmoot cannot be reached", "Start it, or correct")
    assert "secret" not in done.err


# what is not there


UNKNOWN = "01a22c4d-8dbb-73d3-9ed5-0e9654cbe96d"


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        (("runs", "show", UNKNOWN), 3, f"There is no run {UNKNOWN}."),
        (("runs", "watch", UNKNOWN), 3, f"There is no run {UNKNOWN}."),
        (("runs", "stop", UNKNOWN), 3, f"There is no run {UNKNOWN}."),
        (("keys", "revoke", UNKNOWN), 3, f"There is no key {UNKNOWN}."),
        (("run", "team/gone"), 3, "There is no interaction 'team/gone'. Publish it first, or correct the reference."),
        (("run", "gone.yaml"), 2, "gone.yaml: The file cannot be read: No such file or directory."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_is_not_there_is_named(shell: Shell, command: tuple[str, ...], code: int, sentence: str) -> None:
    """Exit codes: 3 not found, 2 wrong input."""
    assert_refused(shell.run(*command), code, sentence)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("serv",), "No such command 'serv'."),
        (("runs", "list", "--fast"), "No such option: --fast"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_wrong_usage_shows_the_usage(shell: Shell, command: tuple[str, ...], sentence: str) -> None:
    """Exit codes: 2."""
    done = shell.run(*command)
    assert (done.code, done.out) == (2, "")
    assert sentence in done.err and done.err.startswith("Usage: folkmoot ")


def test_output_that_cannot_be_written_is_told_and_the_answer_is_kept(shell: Shell) -> None:
    file = shell.talk()
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = shell.start("run", file, *TOPIC, stdout=full.fileno())
        _, err = process.communicate(timeout=60)
    assert process.returncode == 1 and "the output cannot be written: No space left on device" in err
    assert "Traceback" not in err
    assert "Tea it is." in shell.run("runs", "list").out
