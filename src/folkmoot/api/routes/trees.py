"""Any run, of whatever type: its tree, and its stop."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.doors import Caller, Doorway, Reader, may
from folkmoot.api.mapping import trees as mapping
from folkmoot.api.problems import responses
from folkmoot.domain import runs as domain
from folkmoot.domain.rights import Right
from folkmoot.services import runs, trees
from folkmoot.wire.runs import ProcessNode, ProcessTree, ProcessType

router = APIRouter(tags=["runs"], route_class=KeyedRoute)
_TREE = responses(401, 404, 422, 503)


@router.get("/interactions/processes/by-id/{run_id}/tree", responses=_TREE)
async def get_run_tree(doors: Doorway, caller: Reader, run_id: UUID) -> ProcessTree:
    """The whole tree that the run belongs to, its root included."""
    found = await trees.get(doors.of(caller), caller, run_id=run_id, run_type=domain.ProcessType.INTERACTION)
    return mapping.tree(found)


@router.get("/processes/{type}/{process_id}/tree", responses=_TREE)
async def get_process_tree(doors: Doorway, caller: Reader, type: ProcessType, process_id: UUID) -> ProcessTree:
    """The same of a run of any type."""
    found = await trees.get(doors.of(caller), caller, run_id=process_id, run_type=domain.ProcessType(type))
    return mapping.tree(found)


@router.post("/processes/{type}/{process_id}/stop", responses=responses(401, 404, 409, 422, 503))
async def stop_process(
    doors: Doorway, caller: Annotated[Caller, may(Right.STOP)], type: ProcessType, process_id: UUID
) -> ProcessNode:
    """Ask a run of any type to stop, and with it what it started. An App run is Stopped at once."""
    run_type = domain.ProcessType(type)
    await runs.request_stop(doors.of(caller), caller, run_id=process_id, run_type=run_type, tell=doors.tell)
    return mapping.node(await trees.node(doors.of(caller), caller, run_id=process_id, run_type=run_type))
