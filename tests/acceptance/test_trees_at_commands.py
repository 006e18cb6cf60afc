"""Trees of runs at the command line: drawn, started under an App run, and what a sub-run asks answered from above (api.md, CLI; B10)."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from api_at_hand import NEW_ID
from apps_at_hand import put_below
from crews import until
from shell import Shell, lines_until
from waiting_at_hand import ask, copies, fetch

from folkmoot.domain.apps import Opening
from folkmoot.domain.pending import PendingKind
from folkmoot.services import apps, keys
from folkmoot.store.database import Database

FLOOR = {
    "old": "{chatMode: Observing}\n  maximumRounds: 2",
    "new": "{chatMode: EveryRound, includeInVotes: true, includeInSolutions: true}\n  maximumRounds: 3",
}


async def open_app(dsn: str) -> str:
    database = await Database.open(dsn)
    try:
        run = await apps.open_run(database, await keys.owner(database), opening=Opening("import"), new_id=NEW_ID)
        return str(run.run_id)
    finally:
        await database.close()


async def a_family(dsn: str, run_id: str) -> str:
    """The run, put down by whoever held it, with a sub-run that asks something; the sub-run's id."""
    database = await Database.open(dsn)
    try:
        async with database.writer() as writer:
            await writer.connection.execute(
                "update process set worker_id = null, claim_id = null, ready_at = null, deadline_at = null where kind = 'Interaction'"
            )
        (child,) = await copies(database, run_id, 1)
        await put_below(database, run_id, str(child))
        await ask(database, child, PendingKind.QUESTION)
        return str(child)
    finally:
        await database.close()


async def the_answer(dsn: str) -> Any:
    """What was answered to the one thing that is asked, once it is."""
    database = await Database.open(dsn, connections=1)

    async def is_answered() -> bool:
        return bool(await fetch(database, "select from pending where outcome is not null"))

    try:
        await until(is_answered)
        return json.loads((await fetch(database, "select answer from pending"))[0]["answer"])
    finally:
        await database.close()


def test_a_tree_is_drawn_and_its_sub_runs_are_answered_from_above(shell: Shell) -> None:
    """An App run, a run under it, and one below that; the line typed to the upper one answers what the lower one asks."""
    dsn = shell.dsn or ""
    shell.run("apply", "-f", shell.talk(**FLOOR))
    app = asyncio.run(open_app(dsn))
    process = shell.start("run", "team/talk", "-i", "topic=tea", "--parent", app)
    run_id = lines_until(process, "run ")[-1].split()[-1]
    process.kill()
    process.wait()
    child = asyncio.run(a_family(dsn, run_id))
    drawn = shell.run("runs", "tree", child)
    assert [line.split("  ")[-1].strip() for line in drawn.out.splitlines()] == [app, run_id, child]
    assert "import (App): Running" in drawn.out and "   └─ team/talk: PendingHuman, asks 1" in drawn.out
    listed = shell.run("runs", "list", "--parent", app, "--json")
    assert [json.loads(line)["id"] for line in listed.out.splitlines()] == [run_id]
    with shell.terminal("runs", "watch", run_id) as terminal:
        terminal.until(f"The sub-run team/talk {child} asks:")
        terminal.until("Ann asks you: By when")
        terminal.type("By Friday.\n")
        assert asyncio.run(the_answer(dsn)) == {"answer": "By Friday."}
    stopped = shell.run("runs", "stop", app)
    assert stopped.err == f"{app}: Stopped\n"
