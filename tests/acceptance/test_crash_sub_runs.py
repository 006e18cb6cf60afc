"""The crash matrix of a run that starts others: a worker dies as it starts them, as it pauses for them, and as it is woken by them.

Nothing is started twice, nothing that was started is lost, and the run goes on once they have ended (F01, F05, F58, F59).
"""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path

import checker
import crews
import panels
import pytest
import swarm_at_hand as swarm
from crews import until
from processes import hands
from swarm_at_hand import MATRIX, call, script, start_call

from folkmoot.bootstrap.installation import read_script
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.services.closure import Workbench
from folkmoot.store.database import Database
from folkmoot.tools.functions import FunctionTools

KID = """\
rules:
  - when: {call: 1}
    reply: {calls: [{name: wait, arguments: {text: "for it"}}]}
  - reply: {text: "Done."}
"""


@pytest.mark.parametrize(("point", "nth"), MATRIX)
async def test_crash_of_a_run_that_starts_two_others(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path, point: str, nth: int
) -> None:
    kid = tmp_path / "kid.yaml"
    kid.write_text(KID)
    child = await swarm.publish(database, caller, new_id, functions=("wait",), path=str(kid))
    rules = script([start_call(), start_call(), call("await_interactions")], "Thank you.")
    started = await swarm.start(database, caller, new_id, swarm.parent(new_id, [child], rules))
    async with hands(database, tmp_path) as crew:
        gate = crew.gate("wait")  # while it is there no child ends
        gate.touch()

        first = await crew.hire(fault=f"{point}:exit:{nth}")

        async def is_dead_or_waited_for() -> bool:
            row = await panels.row_of(database, started)
            return first.returncode is not None or bool(row["status"] == "PendingSubInteractions")

        async def open_the_gate() -> None:
            await until(is_dead_or_waited_for, seconds=60)
            gate.unlink()

        opening = asyncio.create_task(open_the_gate())
        assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
        functions = FunctionTools.discover(crew.functions())
        bench = Workbench(functions.offered, read_script)
        async with crews.rescuers(database, new_id, crew.functions(), bench=bench):
            await opening
            await until(lambda: panels.has_ended(database, started), seconds=60)
        row = await panels.row_of(database, started)
        assert row["status"] == "Completed", row["failure_details"]
        below = await swarm.children(database, started)
        assert [each["status"] for each in below] == ["Completed", "Completed"]
        (place,) = await panels.fetch(database, "select started from swarm where root_id = $1", started.run_id)
        assert place["started"] == 2
        found = await swarm.results(database, started)
        assert [is_error for _, is_error in found] == [False] * 3
        assert {json.loads(text)["id"] for text, _ in found[:2]} == {str(each["run_id"]) for each in below}
        assert [each["status"] for each in json.loads(found[2][0])] == ["Completed", "Completed"]
        assert await checker.faults(database, crew.log) == []
