"""A person at the command line: what a run asks is shown, and answered by typing or by a command (api.md, CLI; B01, B03, B08)."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from shell import Shell, lines_until
from waiting_at_hand import ask

from folkmoot.domain.pending import PendingKind
from folkmoot.store.database import Database

TOPIC = ("-i", "topic=tea")
FLOOR = {
    "old": "{chatMode: Observing}\n  maximumRounds: 2",
    "new": "{chatMode: EveryRound, includeInVotes: true, includeInSolutions: true}\n  maximumRounds: 3",
}
# Ann pays, which needs an approval; Ben proposes once that is settled
PAYING = """\
rules:
  - when: {offered: agree}
    reply: {calls: [{name: agree, arguments: {}}]}
  - when: {participant: Ann, call: 1}
    reply: {calls: [{name: pay, arguments: {amount: 7, to: "\u202eeve"}}]}
  - when: {participant: Ann}
    reply: {text: "Done."}
  - reply: {calls: [{name: propose_solution, arguments: {solution: "Tea it is."}}]}
"""
FUNCTIONS = '''\
from pathlib import Path

from folkmoot.tools.functions import function_tool


@function_tool(approval_mode="Always")
def pay(amount: int, to: str) -> str:
    """Pay somebody."""
    with Path("paid.txt").open("a") as log:
        log.write(f"{amount}\\n")
    return f"paid {amount}"
'''
TALKING = """\
rules:
  - when: {offered: agree}
    reply: {calls: [{name: agree, arguments: {}}]}
  - when: {seen: milk, participant: Ben}
    reply: {calls: [{name: propose_solution, arguments: {solution: "Milk it is."}}]}
  - reply: {text: "Tea, as ever."}
"""


def paying(shell: Shell) -> tuple[str, dict[str, str]]:
    """A talk whose agents may pay, and the settings it needs."""
    path = shell.write("tools.py", FUNCTIONS)
    file = shell.talk(
        PAYING, old='prompts: ["You take notes."]', new='prompts: ["You take notes."], functionTools: [pay]'
    )
    return file, {"FOLKMOOT_FUNCTIONS": str(path)}


def test_on_a_terminal_the_card_is_shown_and_the_typed_line_answers_it(shell: Shell) -> None:
    """The floor, then a vote on the solution; a line that is no vote is refused, and counts as nothing."""
    with shell.terminal("run", shell.talk(TALKING, **FLOOR), *TOPIC) as terminal:
        terminal.until(r"You have the floor in round 1\.")
        terminal.type("/pass\n")
        terminal.until(r"You have the floor in round 2\.")
        terminal.type("milk, please\n")
        terminal.until("Ben proposes as the answer: Milk it is.")
        terminal.type("perhaps\n")
        terminal.until("That is no vote")
        terminal.type("n too cold\n")
        done = terminal.end()
    assert (done.code, done.out) == (0, "Milk it is.\n")
    said = re.sub(r"\x1b\[\d+m", "", done.err)
    for words in ("passes", "milk, please", "disagrees: too cold"):
        assert f"owner (person): {words}" in said
    assert said.index("The task: Talk about tea.") < said.index("You have the floor in round 1.")
    assert "Human is thinking" not in said


def test_on_a_terminal_a_call_is_approved_by_a_word(shell: Shell) -> None:
    """F33: what hides in an argument is shown."""
    file, env = paying(shell)
    with shell.terminal("run", file, *TOPIC, env=env) as terminal:
        seen = terminal.until("Type approve, or reject and why")
        assert "Ann wants to call pay, which needs an approval" in seen and r"\u202eeve" in seen
        assert not (shell.home / "paid.txt").exists()
        terminal.type("approve of nothing\n")
        terminal.until("That is no decision")
        terminal.type("approve\n")
        done = terminal.end()
    assert (done.code, done.out) == (0, "Tea it is.\n")
    assert (shell.home / "paid.txt").read_text() == "7\n"


def test_without_a_terminal_a_run_says_how_to_answer_and_waits_for_it(shell: Shell) -> None:
    """B08: the inbox shows it, a command rejects it, the run goes on to its end; a second word is told of the first."""
    file, env = paying(shell)
    process = shell.start("run", file, *TOPIC, env=env)
    told = lines_until(process, "To answer: folkmoot runs approve ")[-1].split()
    run_id, id_ = told[told.index("approve") + 1], told[told.index("approve") + 2].rstrip(",")
    (waiting,) = [json.loads(line) for line in shell.run("inbox", "--json").out.splitlines()]
    assert (waiting["id"], waiting["runId"], waiting["approval"]["functionName"]) == (id_, run_id, "pay")
    done = shell.run("runs", "reject", run_id, "--reason", "Too much.", "--json")
    receipt = json.loads(done.out)
    assert (done.code, receipt["status"], receipt["reason"], receipt["channel"]) == (
        0,
        "Rejected",
        "Too much.",
        "command",
    )
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "Tea it is.\n"), err
    assert not (shell.home / "paid.txt").exists()
    late = shell.run("runs", "approve", run_id, id_)
    assert late.code == 1 and "was rejected by owner" in late.err


def test_without_an_id_one_of_several_is_not_guessed(shell: Shell) -> None:
    """B01: refused, with the ids; by its id each is answered."""
    shell.run("apply", "-f", shell.talk(**FLOOR))
    process = shell.start("run", "team/talk", *TOPIC)
    run_id = lines_until(process, "run ")[-1].split()[-1]
    process.kill()
    process.wait()
    first, second = asyncio.run(two_waiting(shell.dsn or "", run_id))
    refused = shell.run("runs", "answer", run_id, "By Friday.")
    assert refused.code == 2 and first in refused.err and second in refused.err
    for id_ in (second, first):
        assert shell.run("runs", "answer", run_id, "By Friday.", "--id", id_).code == 0
    assert "Nothing waits for a person." in shell.run("inbox").err


async def two_waiting(dsn: str, run_id: str) -> tuple[str, str]:
    database = await Database.open(dsn)
    try:
        async with database.writer() as writer:
            await writer.connection.execute(
                "update process set worker_id = null, claim_id = null where ended_at is null"
            )
        made: list[Any] = [str(await ask(database, run_id, PendingKind.QUESTION)) for _ in range(2)]
        return made[0], made[1]
    finally:
        await database.close()
