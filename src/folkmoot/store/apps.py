"""App runs: rows of `process` that no worker claims. Opened, pinged, ended, lost, read.

Every transition is one statement whose WHERE names the states it may leave. Deliberately absent: stopping, which is every run's
(`runs`), and what they started (`trees`).
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from folkmoot.domain.apps import AppCursor, AppRun, Ending, Opening
from folkmoot.domain.run_status import FIRST, RunStatus
from folkmoot.domain.runs import WRITTEN_STATE, ProcessType
from folkmoot.store.codecs import json_text, json_value, safe, safe_json
from folkmoot.store.database import Reader, Writer, queries
from folkmoot.store.runs import SEARCHED_CHARACTERS

_sql: Any = queries("apps")


async def insert(writer: Writer, tenant_id: UUID, *, run_id: UUID, opening: Opening, created_by: UUID) -> AppRun:
    """A new run, at work from now on."""
    words = " ".join((opening.name, *opening.tags, *(value for _, value in opening.inputs)))
    row = await _sql.insert_app(
        writer.connection, tenant_id=tenant_id, run_id=run_id, name=safe(opening.name), ping_limit=opening.ping_limit,
        description=safe(opening.description) if opening.description is not None else None,
        inputs=json_text(safe_json([list(pair) for pair in opening.inputs])), created_by=created_by, state_version=WRITTEN_STATE[ProcessType.APP],
        tags=[safe(tag) for tag in opening.tags], search=safe(words[:SEARCHED_CHARACTERS]), status=FIRST[ProcessType.APP.value],
    )  # fmt: skip
    return _run(row)


async def ping(writer: Writer, tenant_id: UUID, *, name: str, run_id: UUID) -> AppRun | None:
    """The run as it goes on; null if it is not there, has ended, or was not pinged in time."""
    row = await _sql.ping(writer.connection, tenant_id=tenant_id, run_id=run_id, name=safe(name))
    return _run(row) if row is not None else None


async def end(writer: Writer, tenant_id: UUID, *, name: str, run_id: UUID, ending: Ending) -> AppRun | None:
    """The run as it ended; null as for `ping`."""
    row = await _sql.end(
        writer.connection, tenant_id=tenant_id, run_id=run_id, name=safe(name), status=ending.status,
        output=safe(ending.output) if ending.output is not None else None,
        failure_details=safe(ending.failure_details) if ending.failure_details is not None else None,
    )  # fmt: skip
    return _run(row) if row is not None else None


async def lose(writer: Writer, *, tenant_id: UUID | None = None, run_id: UUID | None = None) -> list[tuple[UUID, UUID]]:
    """Fails the runs that were not pinged in time, of all tenants, or this one of a tenant's if it was not; their tenants and ids."""
    rows = _sql.lose(writer.connection, tenant_id=tenant_id, run_id=run_id)
    return [(row["tenant_id"], row["run_id"]) async for row in rows]


async def get(reader: Reader, tenant_id: UUID, *, name: str, run_id: UUID) -> AppRun | None:
    row = await _sql.get_app(reader.connection, tenant_id=tenant_id, run_id=run_id, name=safe(name))
    return _run(row) if row is not None else None


async def page(
    reader: Reader, tenant_id: UUID, *, name: str, status: RunStatus | None, after: AppCursor | None, limit: int
) -> list[AppRun]:
    """Runs of one app, the newest first, those after the cursor."""
    async with reader.one_moment():
        await reader.plan_anew()
        rows = _sql.page_of_app(
            reader.connection, tenant_id=tenant_id, name=safe(name), status=status, after_date=after.created_at if after else None,
            after_id=after.run_id if after else None, limit=limit,
        )  # fmt: skip
        return [_run(row) async for row in rows]


def _run(row: Any) -> AppRun:
    inputs = tuple((name, value) for name, value in json_value(row["app_inputs"]))
    opening = Opening(row["app_name"], row["app_description"], inputs, tuple(row["tags"]), row["ping_limit"])
    return AppRun(
        row["tenant_id"], row["run_id"], opening, RunStatus(row["status"]), row["created_by"], row["created_at"], row["updated_at"],
        row["pinged_at"], row["lost_at"], row["ended_at"], row["output"], row["failure_details"], row["now"],
    )  # fmt: skip
