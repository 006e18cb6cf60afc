"""`folkmoot agent` as somebody types it: agents run to their answers, and what they ask is answered (agent-runs.md; api.md, CLI)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from agents_at_hand import call, met, plan, script, step
from shell import Shell, lines_until

GOAL = "Tell Bo the sum of the two numbers."
FUNCTIONS = '''\
from pathlib import Path

from folkmoot.tools.functions import function_tool


@function_tool(is_read_only=True)
def look() -> str:
    """Look at the numbers."""
    return "The numbers are 20 and 22."


@function_tool(approval_mode="Always")
def tell(who: str, what: str) -> str:
    """Tell somebody something."""
    with Path("told.txt").open("a") as log:
        log.write(f"{who}: {what}\\n")
    return f"{who} was told."
'''
AGENTS = """\
kind: AiModel
namespace: team
name: small
version: {provider: scripted, modelName: clerk, path: clerk.script.yaml}
---
kind: Agent
namespace: team
name: clerk
version: {model: small, functionTools: [look, tell], toolWhitelist: [look, tell]}
"""
ANOTHER = """\
---
kind: Agent
namespace: team
name: other
version: {model: small}
"""
STEPS: list[list[dict[str, Any]] | str] = [
    [call("look")],
    "The numbers are 20 and 22.",
    plan(step("Tell Bo.", "tell")),
    [call("tell", who="Bo", what="\u202e42")],
    "Told.",
    met("42"),
]
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def agents(
    shell: Shell, text: str = AGENTS, *, steps: Sequence[list[dict[str, Any]] | str] = STEPS
) -> tuple[str, dict[str, str]]:
    """A file with an agent that looks, plans, and tells Bo, for which its owner's consent is needed; and the settings it needs."""
    shell.write("clerk.script.yaml", json.dumps(script(clerk=steps)))
    return shell.write("agents.yaml", text).name, {"FOLKMOOT_FUNCTIONS": str(shell.write("tools.py", FUNCTIONS))}


def told(shell: Shell) -> str:
    path = shell.home / "told.txt"
    return path.read_text() if path.exists() else ""


def asked(shell: Shell, run_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.run("agent", "show", run_id, "--json").out)
    return found


# run


def test_on_a_terminal_the_phases_are_shown_and_a_typed_word_consents(shell: Shell) -> None:
    """F33: what hides in an argument is shown. A line that is no decision decides nothing; the call is made once, as it was shown."""
    file, env = agents(shell)
    with shell.terminal("agent", "run", file, GOAL, env=env) as terminal:
        terminal.until("Type approve, or decline and why")
        assert told(shell) == ""
        terminal.type("approve of nothing\n")
        terminal.until("That is no decision")
        terminal.type("approve\n")
        done = terminal.end()
    said = ANSI.sub("", done.err)
    assert (done.code, done.out, told(shell)) == (0, "42\n", "Bo: \u202e42\n"), said
    for words in (
        "-- gather", "look({})", "=> The numbers are 20 and 22.", "-- plan", "   1. Tell Bo. (tell)", "It is met if: 1. Bo was told.",
        "-- act, step 1 of 1: Tell Bo. (tell)", "clerk wants to call tell, which needs its owner's consent", r"\u202e42",
        "-- verify", "The goal is met:", "   + 1. The result says so.", "completed.",
    ):  # fmt: skip
        assert words in said, words
    order = [said.index(words) for words in ("-- gather", "-- plan", "-- act", "wants to call", "-- verify")]
    assert order == sorted(order)
    assert "make_plan" not in said and "verdict(" not in said


def test_without_a_terminal_it_is_said_how_to_answer_and_a_declined_call_is_not_made(shell: Shell) -> None:
    """B08: the run waits; the inbox and `agent show` say the same of it; the agent learns the reason, and goes on."""
    file, env = agents(shell)
    process = shell.start("agent", "run", file, GOAL, env=env)
    lines = lines_until(process, "To answer: folkmoot agent consent ")
    run_id = lines[-1].split("consent ")[1].split()[0]
    assert f"agent run {run_id}\n" in lines
    inbox = shell.run("inbox")
    assert f"  agent run {run_id}  Approval  " in inbox.out and "clerk: tell({" in inbox.out
    assert "folkmoot agent consent" in inbox.err
    shown = shell.run("agent", "show", run_id)
    assert "awaiting_consent in act" in shown.err and r"\u202e42" in shown.err
    undecided = shell.run("agent", "consent", run_id)
    assert undecided.code == 2 and "wants to call tell" in undecided.err and "Nothing was decided." in undecided.err
    declined = shell.run("agent", "consent", run_id, "--decline", "--reason", "Bo is asleep.", "--json")
    decided = json.loads(declined.out)
    assert (decided["status"], decided["reason"], decided["decidedOver"]) == ("declined", "Bo is asleep.", "command")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, told(shell)) == (0, "42\n", ""), err
    assert "Bo is asleep." in err
    later = shell.run("agent", "show", run_id).err
    assert f"   The task: {GOAL}" in later
    assert re.search(r"   its call of tell was declined, by owner at \S+ over command\. Bo is asleep\.\n", later)
    assert "its call of tell was declined, by owner at " in shell.run("agent", "watch", run_id).err
    nothing = shell.run("agent", "consent", run_id, "--approve")
    assert nothing.code == 1 and "asks nothing any more. Its call of tell was declined, by owner at " in nothing.err


def test_a_decision_that_no_worker_has_taken_up_yet_is_told(shell: Shell) -> None:
    """Whoever comes later hears what was decided and by whom, and whoever looks hears what the run waits for."""
    file, env = agents(shell)
    process = shell.start("agent", "run", file, GOAL, env=env)
    run_id = lines_until(process, "To answer: folkmoot agent consent ")[-1].split("consent ")[1].split()[0]
    process.terminate()
    process.wait(60)
    assert shell.run("agent", "consent", run_id, "--decline", "--reason", "Later.").code == 0
    again = shell.run("agent", "consent", run_id, "--approve")
    assert again.code == 1 and "Its call of tell was declined, by owner at " in again.err
    shown = shell.run("agent", "show", run_id).err
    assert "   its call of tell was declined, by owner at " in shown and "It goes on where a worker runs" in shown


def test_a_run_that_is_left_to_a_worker_is_answered_and_watched_by_its_id(shell: Shell) -> None:
    """A hash of another card is refused (B05). At a terminal `agent consent` asks for the decision itself."""
    file, env = agents(shell)
    started = shell.run("agent", "run", file, GOAL, "--detach", "--tag", "sums", env=env)
    run_id = started.out.strip()
    assert started.code == 0 and f"folkmoot agent watch {run_id}" in started.err
    assert "asks nothing now" in shell.run("agent", "consent", run_id, "--approve").err
    shell.start("worker", env=env)
    watching = shell.start("agent", "watch", run_id, "--json")
    lines_until(watching, "To answer: folkmoot agent consent")
    stale = shell.run("agent", "consent", run_id, "--approve", "--hash", "00" * 32)
    assert stale.code == 1 and "is not what you were shown" in stale.err and told(shell) == ""
    with shell.terminal("agent", "consent", run_id) as terminal:
        terminal.until("Type approve, or decline and why")
        terminal.type("perhaps\n")
        terminal.until("That is no decision")
        terminal.type("approve\n")
        assert "approved, by owner at " in terminal.end().err
    out, err = watching.communicate(timeout=60)
    ended = json.loads(out)
    assert (watching.returncode, ended["status"], ended["answer"], ended["id"]) == (
        0,
        "completed",
        "42",
        int(run_id),
    ), err
    assert told(shell) == "Bo: \u202e42\n"
    whole = json.loads(shell.run("agent", "show", run_id, "--payload", "--items", "--json").out)
    assert whole["payload"]["budget"]["toolCalls"]["used"] == 2 and whole["consent"] is None
    assert [item["kind"] for item in whole["items"]].count("toolResult") == 4
    assert shell.run("agent", "show", run_id).out == "42\n"
    assert "The plan:" in shell.run("agent", "show", run_id, "--items").err


def test_the_inbox_and_the_commands_of_runs_answer_an_agents_call_as_well(shell: Shell) -> None:
    """Whoever has the id of what waits from the inbox answers it there: the answer is the consent."""
    file, env = agents(shell)
    process = shell.start("agent", "run", file, "-", env=env, stdin=-1)
    assert process.stdin is not None
    process.stdin.write(GOAL)
    process.stdin.close()
    process.stdin = None
    lines_until(process, "To answer: folkmoot agent consent ")
    with shell.terminal("inbox", "--watch", shows_data=True) as terminal:
        seen = terminal.until("folkmoot agent consent ")
        terminal.type("\x03")
        terminal.end()
    assert re.search(r"\?\? Agent run \d+ of team/clerk asks:", seen)
    (waiting,) = [json.loads(line) for line in shell.run("inbox", "--json").out.splitlines()]
    approved = shell.run("runs", "approve", waiting["runId"], "--json")
    assert json.loads(approved.out)["status"] == "Approved", approved.err
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, told(shell)) == (0, "42\n", "Bo: \u202e42\n"), err


def test_ctrl_c_leaves_the_run_and_cancelling_ends_it(shell: Shell) -> None:
    """130, with how to go on; several are cancelled at once, each told of; a cancelled run has failed."""
    file, env = agents(shell)
    with shell.terminal("agent", "run", file, GOAL, env=env) as terminal:
        terminal.until("Type approve, or decline and why")
        terminal.type("\x03")
        done = terminal.end()
    found = re.search(r"folkmoot agent watch (\d+); to end it: folkmoot agent cancel \1", done.err)
    assert done.code == 130 and found is not None, done.err
    run_id = found[1]
    assert asked(shell, run_id)["status"] == "awaiting_consent"
    worker = shell.start("worker", env=env)
    watching = shell.start("agent", "watch", run_id)
    lines_until(watching, "To answer:")
    cancelled = shell.run("agent", "cancel", run_id, "999")
    assert cancelled.code == 3 and f"{run_id}: " in cancelled.err and "There is no agent run 999." in cancelled.err
    out, err = watching.communicate(timeout=60)
    assert (watching.returncode, out) == (1, "") and "failed: cancelled by owner" in err, err
    worker.terminate()
    late = shell.run("agent", "cancel", run_id)
    assert late.code == 1 and "is failed already" in late.err
    assert told(shell) == ""
    (row,) = shell.run("agent", "list", "--status", "failed", "--agent", "team/clerk").out.splitlines()[1:]
    assert row.split()[:4] == [run_id, "clerk", "failed", "act"] and "cancelled by owner" in row
    (listed,) = [json.loads(line) for line in shell.run("agent", "list", "--json").out.splitlines()]
    assert (listed["id"], listed["agent"]["name"], listed["parentRun"]) == (int(run_id), "clerk", None)


def test_a_run_that_fails_says_why_and_leaves_stdout_empty(shell: Shell) -> None:
    """Its budget of model calls is at its end: exit code 1, and no answer."""
    file, env = agents(shell)
    done = shell.run("agent", "run", file, GOAL, "--calls", "1", env=env)
    assert (done.code, done.out) == (1, "") and "\nfailed: " in done.err, done.err
    as_json = shell.run("agent", "run", file, GOAL, "--calls", "1", "--json", env=env)
    ended = json.loads(as_json.out)
    assert (as_json.code, ended["status"], ended["answer"]) == (1, "failed", None) and ended["lastError"]


# what is refused


REFUSED: list[tuple[tuple[str, ...], int, str]] = [
    (("run", "FILE"), 2, "Say what the run is to achieve"),
    (("run", "FILE", "  "), 2, "Say what the run is to achieve"),
    (("run", "FILE", "Go.", "--goal-file", "agents.yaml"), 2, "in one way"),
    (("run", "FILE", "--goal-file", "gone.txt"), 2, "cannot be read from 'gone.txt'"),
    (("run", "FILE", "Go.", "--reply-params", "{no json"), 2, "this is no JSON"),
    (("run", "FILE", "Go.", "--conversation", "mine"), 2, "is no conversation's id"),
    (("run", "FILE", "Go.", "--money", "much"), 2, "--money takes an amount"),
    (("run", "FILE", "Go.", "--channel", "pigeon"), 2, "There is no channel"),
    (("run", "FILE", "Go.", "--agent", "nobody"), 2, "There is no agent 'nobody' in it"),
    (("run", "team/clerk", "Go.", "--agent", "clerk"), 2, "'team/clerk' is no file or folder here. Correct the path"),
    (("run", "nobody", "Go."), 3, "There is no agent 'default/nobody'"),
    (("list", "--status", "done"), 2, "There is no status 'done'"),
    (("list", "--agent", "nobody"), 3, "There is no agent 'default/nobody'"),
    (("show", "one"), 2, "'one' is no agent run's id"),
    (("show", "7"), 3, "There is no agent run 7."),
    (("watch", "7"), 3, "There is no agent run 7."),
    (("cancel", "7"), 3, "There is no agent run 7."),
    (("consent", "7", "--approve"), 3, "There is no agent run 7."),
    (("consent", "7", "--approve", "--decline"), 2, "not both"),
    (("consent", "7", "--approve", "--reason", "Yes."), 2, "--reason says why a call is declined"),
]


def test_what_cannot_be_is_refused_with_its_exit_code(shell: Shell) -> None:
    """Each with a sentence, nothing on stdout, and no run."""
    file, env = agents(shell)
    for arguments, code, words in REFUSED:
        done = shell.run("agent", *(file if word == "FILE" else word for word in arguments), env=env)
        assert (done.code, done.out) == (code, "") and words in done.err, (arguments, done)
    assert shell.run("agent", "list", "--json").out == ""


def test_of_several_agents_of_a_file_one_is_named(shell: Shell) -> None:
    file, env = agents(shell, AGENTS + ANOTHER)
    refused = shell.run("agent", "run", file, GOAL, env=env)
    assert refused.code == 2 and "name one of these with --agent: clerk, other" in refused.err
    assert shell.run("agent", "run", file, GOAL, "--agent", "team/clerk", "--detach", env=env).code == 0
