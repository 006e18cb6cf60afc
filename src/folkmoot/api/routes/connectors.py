"""Connectors: saved with a look at their servers, looked at again; and their operations: listed, decided on, switched off and on.

Annotations are evaluated when a route is made; so no `from __future__ import annotations`.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Query

from folkmoot.api.bodies import KeyedRoute
from folkmoot.api.document import shown_as
from folkmoot.api.doors import Caller, Doors, Doorway, Reader, may
from folkmoot.api.mapping import connectors as mapping
from folkmoot.api.mapping.cursors import name_cursor, number_cursor, read_name_cursor, read_number_cursor
from folkmoot.api.paging import DEFAULT_LIMIT, Limit, cut
from folkmoot.api.problems import responses
from folkmoot.api.routes.addresses import After, Number, Version, by_id, by_name
from folkmoot.domain.connectors import ConnectorVersion
from folkmoot.domain.definitions import DefinitionKind, Reference
from folkmoot.domain.rights import Right
from folkmoot.domain.tenancy import Caller as DomainCaller
from folkmoot.services import connectors, operations, surveys
from folkmoot.services.definitions import PublishedVersion
from folkmoot.services.operations import OperationFilter
from folkmoot.wire import definitions as wire

Save = Callable[..., Awaitable[PublishedVersion]]
router = APIRouter(tags=["connectors"], route_class=KeyedRoute)

Keeper = Annotated[Caller, may(Right.MANAGE_CONNECTORS)]
Settings = Annotated[wire.ExternalOperationSettingsRequest, shown_as({"approvalMode": "Always", "limitSeconds": 30})]
Part = Annotated[str | None, Query(max_length=500, description="A part of the operation's name.")]
Whole = Annotated[str | None, Query(max_length=500, description="The operation's whole name.")]
_READ = responses(401, 404, 422, 503)
_PATHS = {
    DefinitionKind.MCP_CONNECTOR: ("connectors/mcp", "mcp_connector"),
    DefinitionKind.OPEN_API_CONNECTOR: ("connectors/open-api", "open_api_connector"),
}


def looking_at_server(version_of: Callable[[Any], ConnectorVersion | tuple[ConnectorVersion, bytes | None]]) -> Save:
    """How a connector is saved: with what its server, or its document, offers. An OpenAPI version comes with its document."""

    async def save(
        doors: Doors, caller: DomainCaller, *, namespace: str, name: str, body: Any, only_if_new: bool
    ) -> PublishedVersion:
        made = version_of(body)
        version, document = made if isinstance(made, tuple) else (made, None)
        published, _ = await connectors.publish(
            doors.of(caller), caller, doors.reach, namespace=namespace, name=name, version=version, document=document,
            new_id=doors.new_id, only_if_new=only_if_new,
        )  # fmt: skip
        return published

    return save


def _add(kind: DefinitionKind, path: str, *, reference: Any, suffix: str) -> None:
    """What a connector of a kind offers beside what every definition does."""
    addressed = Annotated[Reference, reference]
    noun = _PATHS[kind][1]

    @router.get(f"{path}/operations", responses=_READ, name=f"list_{noun}_operations_{suffix}")
    async def list_operations(
        doors: Doorway,
        caller: Reader,
        which: addressed,
        text: Part = None,
        operation: Whole = None,
        limit: Limit = DEFAULT_LIMIT,
        after: After = None,
    ) -> wire.ExternalOperationPage:
        """What the connector's server offers, by name, each operation with its newest version; what is gone too."""
        rows = await operations.page(
            doors.of(caller), caller, kind=kind, reference=which, wanted=OperationFilter(text, operation),
            after=read_name_cursor(after), limit=limit + 1,
        )  # fmt: skip
        found, following = cut(rows, limit, lambda each: name_cursor(each.stored.operation.name))
        shown = tuple(mapping.operation(each, caller.tenant_id) for each in found)
        return wire.ExternalOperationPage(items=shown, next=following)

    @router.post(f"{path}/refresh", responses=_READ | responses(409), name=f"refresh_{noun}_{suffix}")
    async def refresh(doors: Doorway, caller: Keeper, which: addressed) -> wire.ConnectorChanges:
        """Look at the server again: what changed is a new version, what is offered no more is marked."""
        refreshed = await connectors.refresh(
            doors.of(caller), caller, doors.reach, kind=kind, reference=which, new_id=doors.new_id
        )
        return mapping.changes(refreshed)


for _kind, (_path, _) in _PATHS.items():
    _add(
        _kind, f"/namespaces/{{namespace_name}}/{_path}/by-name/{{name}}", reference=Depends(by_name), suffix="by_name"
    )
    _add(_kind, f"/{_path}/by-id/{{definition_id}}", reference=Depends(by_id), suffix="by_id")


@router.get("/connectors/operations/by-id/{operation_id}", responses=_READ)
async def get_operation(
    doors: Doorway, caller: Reader, operation_id: UUID, version: Version = None
) -> wire.ExternalOperation:
    """The operation with its newest version, or with the one that is asked for."""
    found = await operations.get(doors.of(caller), caller, operation_id=operation_id, version=version)
    return mapping.operation(found, caller.tenant_id)


@router.get("/connectors/operations/by-id/{operation_id}/versions", responses=_READ)
async def list_operation_versions(
    doors: Doorway, caller: Reader, operation_id: UUID, limit: Limit = DEFAULT_LIMIT, after: After = None
) -> wire.ExternalOperationVersionPage:
    """Its versions, the newest first."""
    rows = await operations.versions(
        doors.of(caller), caller, operation_id=operation_id, before=read_number_cursor(after), limit=limit + 1
    )
    found, following = cut(rows, limit, lambda each: number_cursor(each.stored.version.number))
    shown = tuple(mapping.operation_version(each.stored) for each in found)
    return wire.ExternalOperationVersionPage(items=shown, next=following)


@router.put(
    "/connectors/operations/by-id/{operation_id}/settings", responses=responses(400, 401, 404, 413, 415, 422, 503)
)
async def put_operation_settings(
    doors: Doorway, caller: Keeper, operation_id: UUID, body: Settings
) -> wire.ExternalOperation:
    """Decide on approval, repetition and limits: a new version, unless the newest says so already."""
    found = await operations.decide(
        doors.of(caller), caller, operation_id=operation_id, settings=mapping.settings_of(body)
    )
    return mapping.operation(found, caller.tenant_id)


@router.post("/connectors/operations/by-id/{operation_id}/versions/{number}/disable", responses=_READ)
async def disable_operation(
    doors: Doorway, caller: Keeper, operation_id: UUID, number: Number
) -> wire.ExternalOperation:
    """A disabled version is used for nothing new; runs already started go on."""
    found = await operations.set_disabled(
        doors.of(caller), caller, operation_id=operation_id, number=number, is_disabled=True
    )
    return mapping.operation(found, caller.tenant_id)


@router.post("/connectors/operations/by-id/{operation_id}/versions/{number}/enable", responses=_READ)
async def enable_operation(
    doors: Doorway, caller: Keeper, operation_id: UUID, number: Number
) -> wire.ExternalOperation:
    """Use the version again."""
    found = await operations.set_disabled(
        doors.of(caller), caller, operation_id=operation_id, number=number, is_disabled=False
    )
    return mapping.operation(found, caller.tenant_id)


async def _tools(doors: Doors, caller: DomainCaller, which: Reference, version: int | None) -> wire.InteractionTools:
    interaction = Reference(which.name, which.namespace, which.definition_id, version)
    return mapping.tools(await surveys.tools_of(doors.of(caller), caller, interaction=interaction, bench=doors.bench))


@router.get("/namespaces/{namespace_name}/interactions/by-name/{name}/tools", responses=_READ)
async def list_interaction_tools_by_name(
    doors: Doorway, caller: Reader, which: Annotated[Reference, Depends(by_name)], version: Version = None
) -> wire.InteractionTools:
    """What each participant could call, and which of it waits for a person's approval."""
    return await _tools(doors, caller, which, version)


@router.get("/interactions/by-id/{definition_id}/tools", responses=_READ)
async def list_interaction_tools_by_id(
    doors: Doorway, caller: Reader, which: Annotated[Reference, Depends(by_id)], version: Version = None
) -> wire.InteractionTools:
    """What each participant could call, and which of it waits for a person's approval."""
    return await _tools(doors, caller, which, version)
