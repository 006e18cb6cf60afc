"""Connectors: saved together with what their servers offer, and looked at again.

A server is asked before the transaction that writes down its answer is opened; if it cannot be used nothing is written.
Deliberately absent: how servers are reached (`reach`), and what is decided on an operation (`operations`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from folkmoot.domain.connectors import (
    ConnectorVersion,
    Discovery,
    McpConnectorVersion,
    OpenApiConnectorVersion,
    Refreshed,
)
from folkmoot.domain.definitions import DefinitionKind, Reference, StoredVersion, Version
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Conflict, ConnectorFault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import definitions, references
from folkmoot.services.definitions import PublishedVersion, check_in, kind_of, publish_in
from folkmoot.services.discoveries import look, record
from folkmoot.services.reach import Reach
from folkmoot.store import audit, operations
from folkmoot.store import definitions as stored_definitions
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.definitions import Outcome

Key = tuple[DefinitionKind, str, str]
Discoveries = Mapping[Key, Discovery]


async def publish(
    database: Database, caller: Caller, reach: Reach, *, namespace: str, name: str, version: ConnectorVersion,
    document: bytes | None, new_id: NewId, only_if_new: bool = False,
) -> tuple[PublishedVersion, Refreshed]:  # fmt: skip
    """As `definitions.publish`, with the server looked at. `document`: an uploaded one, null for that of an earlier version.

    Raises ConnectorFault where the server or its document cannot be used; nothing is written then.
    """
    kind = kind_of(version)
    async with database.reader() as reader:
        await check_in(reader, caller, namespace=namespace, name=name, version=version)
        if only_if_new and await stored_definitions.get_by_name(
            reader, caller.tenant_id, kind=kind, namespace=namespace, name=name
        ):
            raise definitions.taken(kind, namespace, name)
        document = await _document(reader, caller, version, document)
    discovery = await look(database, caller, reach, version=version, document=document, namespace=namespace)
    async with database.writer() as writer:
        published, refreshed = await save_in(
            writer, caller, namespace=namespace, name=name, version=version, discovery=discovery, new_id=new_id
        )
        if only_if_new and published.outcome is not Outcome.CREATED:
            raise definitions.taken(kind, namespace, name)
        return published, refreshed


async def save_in(
    writer: Writer, caller: Caller, *, namespace: str, name: str, version: ConnectorVersion, discovery: Discovery, new_id: NewId
) -> tuple[PublishedVersion, Refreshed]:  # fmt: skip
    """Write down a connector and what was found, within a transaction that is open."""
    version = _with_server(version, discovery.server_url)
    published = await publish_in(writer, caller, namespace=namespace, name=name, version=version, new_id=new_id)
    connector_id = published.stored.definition.definition_id
    return published, await record(writer, caller, connector_id=connector_id, discovery=discovery, new_id=new_id)


def _with_server(version: ConnectorVersion, server_url: str | None) -> ConnectorVersion:
    return replace(version, server_url=server_url) if isinstance(version, OpenApiConnectorVersion) else version


async def refresh(
    database: Database, caller: Caller, reach: Reach, *, kind: DefinitionKind, reference: Reference, new_id: NewId
) -> Refreshed:
    """Look at the server again. Raises NotFound, ConnectorFault, Conflict (disabled, or published meanwhile)."""
    async with database.reader() as reader:
        stored = await _enabled(reader, caller, kind, reference)
        version = stored.body
        assert isinstance(version, McpConnectorVersion | OpenApiConnectorVersion)
        document = await _document(reader, caller, version, None)
    definition = stored.definition
    discovery = await look(database, caller, reach, version=version, document=document, namespace=definition.namespace)
    async with database.writer() as writer:
        connector_id = definition.definition_id
        if not await operations.lock_connector(writer, caller.tenant_id, connector_id=connector_id):
            raise NotFound(f"The connector '{definition.namespace}/{definition.name}' was deleted in this very moment.")
        now = await _enabled(writer, caller, kind, Reference(definition_id=connector_id))
        if now.number != stored.number:
            raise Conflict("Another version of the connector was published meanwhile. Refresh it again.")
        refreshed = await record(writer, caller, connector_id=connector_id, discovery=discovery, new_id=new_id)
        detail = {
            "namespace": definition.namespace, "name": definition.name, "added": len(refreshed.added),
            "changed": len(refreshed.changed), "gone": len(refreshed.gone), "back": len(refreshed.back),
        }  # fmt: skip
        await audit.note(
            writer, caller, action="connector.refreshed", subject_kind=references.NOUNS[kind], subject_id=connector_id, detail=detail
        )  # fmt: skip
    return replace(refreshed, server_url=_elsewhere(version, refreshed.server_url))


def _elsewhere(version: ConnectorVersion, found: str | None) -> str | None:
    """Where the document says now that the service is, if that is not where its calls go."""
    settled = version.server_url if isinstance(version, OpenApiConnectorVersion) else found
    return found if found != settled else None


async def _enabled(reader: Reader, caller: Caller, kind: DefinitionKind, reference: Reference) -> StoredVersion:
    definition = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
    pinned = Reference(definition_id=definition.definition_id)
    found = await references.enabled(reader, caller.tenant_id, kind=kind, reference=pinned)
    if isinstance(found, str):
        raise Conflict(found)
    return found


async def _document(reader: Reader, caller: Caller, version: ConnectorVersion, uploaded: bytes | None) -> bytes | None:
    if not isinstance(version, OpenApiConnectorVersion) or version.document_hash is None or uploaded is not None:
        return uploaded
    found = await operations.document(reader, caller.tenant_id, document_hash=version.document_hash)
    if found is None:
        raise ConnectorFault("The connector's document is not kept here. Upload it.")
    return found


async def look_at_changed(
    database: Database, caller: Caller, reach: Reach, wanted: Sequence[tuple[Key, Version, bytes | None, str]]
) -> Discoveries:
    """Of a set of connectors, what the servers of those offer that are new or say something else; the rest is not asked.

    `wanted`: key, version, document, and where it stands, for the error. One that does not hold together is passed over: whoever
    saves it is told.
    """
    found: dict[Key, Discovery] = {}
    for key, version, document, where in wanted:
        if not isinstance(version, McpConnectorVersion | OpenApiConnectorVersion):
            continue
        async with database.reader() as reader:
            is_changed = await _is_changed(reader, caller, key, version)
        if not is_changed:
            continue
        try:
            found[key] = await look(database, caller, reach, version=version, document=document, namespace=key[1])
        except ConnectorFault as error:
            raise ConnectorFault(f"{where}: {error}") from error
    return found


async def _is_changed(reader: Reader, caller: Caller, key: Key, version: ConnectorVersion) -> bool:
    kind, namespace, name = key
    try:
        linked = await check_in(reader, caller, namespace=namespace, name=name, version=version)
    except BadDefinition:
        return False
    definition = await stored_definitions.get_by_name(
        reader, caller.tenant_id, kind=kind, namespace=namespace, name=name
    )
    if definition is None:
        return True
    latest = await stored_definitions.version(
        reader, caller.tenant_id, definition=definition, number=definition.latest_version
    )
    assert latest is not None
    assert isinstance(linked, McpConnectorVersion | OpenApiConnectorVersion)
    assert isinstance(latest.body, McpConnectorVersion | OpenApiConnectorVersion)
    return _with_server(linked, None) != _with_server(latest.body, None)
