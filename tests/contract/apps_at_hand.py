"""App runs over HTTP, sweeps without a worker, and statements without one of their guards: for tests of apps and trees."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import Any
from uuid import UUID

import aiosql
from api_at_hand import NEW_ID, Served
from crews import QUICK
from waiting_at_hand import fetch

from folkmoot.domain.swarms import PinnedSwarm, SwarmLimits
from folkmoot.runtime.timekeeper import Timekeeper
from folkmoot.store import runs
from folkmoot.store.codecs import RESOLVED
from folkmoot.store.database import Database

IMPORT = "/apps/nightly-import/runs"
SWARM = PinnedSwarm((), ("Ann",), SwarmLimits())


async def opened(server: Served, **body: Any) -> str:
    """A new run of the app; its id."""
    answer = await server.client.post(IMPORT, json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


async def sweep(database: Database) -> None:
    """One sweep, as any worker's."""
    await Timekeeper(database, QUICK, lambda: 0.5, NEW_ID, hear=lambda _: None, tell=lambda _: None).sweep()


async def noted(database: Database, run_id: str | UUID) -> list[str]:
    """What the audit log says was done to a run, in order."""
    statement = "select action from audit where subject_id = $1 order by at, audit_id"
    return [row["action"] for row in await fetch(database, statement, UUID(str(run_id)))]


def without(noun: str, guard: str, instead: str = "") -> Any:
    """The statements of a noun as they would be without a guard."""
    text = files("folkmoot.store").joinpath(f"sql/{noun}.sql").read_text(encoding="utf-8")
    assert guard in text
    return aiosql.from_str(text.replace(guard, instead), "asyncpg", kwargs_only=True, mandatory_parameters=False)


async def put_below(database: Database, parent: str, child: str) -> None:
    """Make a run a sub-run of another one, which may have such, as if the other had started it."""
    async with database.writer() as writer:
        tenant_id = await writer.connection.fetchval("select tenant_id from process where run_id = $1", UUID(parent))
        resolved = await runs.resolved(writer, tenant_id, run_id=UUID(parent))
        await writer.connection.execute(
            "update resolved_definition set body = $2 where run_id = $1", UUID(parent), RESOLVED.write(replace(resolved, swarm=SWARM))
        )  # fmt: skip
        await writer.connection.execute(
            """
            with above as (update process set stops_below = true where run_id = $1)
            update process c set parent_id = p.run_id, parent_kind = p.kind, tree_root_id = p.tree_root_id, swarm_root_id = p.swarm_root_id
            from process p where p.run_id = $1 and c.run_id = $2
            """,
            UUID(parent), UUID(child),
        )  # fmt: skip
