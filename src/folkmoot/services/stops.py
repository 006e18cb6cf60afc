"""The stop of a run of whatever type, for the doors that take any.

Of an agent run it holds for all that it delegated at once (`agent_runs`); of any other it goes down by itself (`runs`, `trees`). Deliberately
absent: what a stop does.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.runs import ProcessType
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.trees import Node
from folkmoot.services import agent_runs, runs, trees
from folkmoot.services.people import Tell
from folkmoot.store.database import Database


async def request(
    database: Database, caller: Caller, *, run_id: UUID, run_type: ProcessType | None = None, tell: Tell
) -> Node:
    """Ask a run to stop: the run as its tree shows it then. `run_type`: what it must be; null: anything. Raises NotFound, RunEnded."""
    run_type = run_type or await trees.type_of(database, caller, run_id=run_id)
    if run_type is ProcessType.AGENT_RUN:
        await agent_runs.stop(database, caller, run_id=run_id, tell=tell)
    else:
        await runs.request_stop(database, caller, run_id=run_id, run_type=run_type, tell=tell)
    return await trees.node(database, caller, run_id=run_id, run_type=run_type)
