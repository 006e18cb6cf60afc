"""Any run, of whatever type: its tree, and its stop. An agent run goes by its number, any other by its UUID."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import trees as mapping
from folkmoot.api.problems import responses
from folkmoot.domain import runs as domain
from folkmoot.domain.rights import Right
from folkmoot.kernel.errors import NotFound
from folkmoot.services import agent_runs, stops, trees
from folkmoot.wire.runs import ProcessNode, ProcessTree, ProcessType

router = APIRouter(tags=["runs"], route_class=KeyedRoute)
_TREE = responses(401, 404, 422, 503)
_Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
ProcessId = Annotated[
    UUID | _Number, Path(union_mode="left_to_right", description="A run's UUID; of an AgentRun, its number.")
]


async def _process(doors: Doorway, caller: Caller, type: ProcessType, process_id: ProcessId) -> UUID:
    """The kernel's id of the run that a path names, once the route knows that the caller may. Raises NotFound."""
    if type is ProcessType.AGENT_RUN:
        if isinstance(process_id, UUID):
            raise NotFound(
                f"There is no AgentRun run {process_id}: it goes by its number, as GET /agent-runs shows it."
            )
        return (await agent_runs.get(doors.of(caller), caller, id_=process_id)).run_id
    if not isinstance(process_id, UUID):
        raise NotFound(f"There is no {type} run {process_id}: it goes by its UUID; only an AgentRun has a number.")
    return process_id


RunId = Annotated[UUID, Depends(_process)]


@router.get("/interactions/processes/by-id/{run_id}/tree", responses=_TREE)
async def get_run_tree(doors: Doorway, caller: Reader, run_id: UUID) -> ProcessTree:
    """The whole tree that the run belongs to, its root included."""
    found = await trees.get(doors.of(caller), caller, run_id=run_id, run_type=domain.ProcessType.INTERACTION)
    return mapping.tree(found)


@router.get("/processes/{type}/{process_id}/tree", responses=_TREE)
async def get_process_tree(doors: Doorway, caller: Reader, type: ProcessType, run_id: RunId) -> ProcessTree:
    """The same of a run of any type."""
    found = await trees.get(doors.of(caller), caller, run_id=run_id, run_type=domain.ProcessType(type))
    return mapping.tree(found)


@router.post("/processes/{type}/{process_id}/stop", responses=responses(401, 404, 409, 422, 503))
async def stop_process(
    doors: Doorway, caller: Annotated[Caller, may(Right.STOP)], type: ProcessType, run_id: RunId
) -> ProcessNode:
    """Ask a run of any type to stop, and with it what it started. An App run is Stopped at once."""
    run_type = domain.ProcessType(type)
    return mapping.node(
        await stops.request(doors.of(caller), caller, run_id=run_id, run_type=run_type, tell=doors.tell)
    )
