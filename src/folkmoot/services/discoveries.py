"""Looks at what a connector's server offers, and writes down what has changed.

A changed description or schema is a new version; what is offered no more is marked, and its versions stay. Deliberately absent:
a transaction around the look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit
from uuid import UUID

from folkmoot.domain.connectors import (
    ConnectorHeader,
    ConnectorVersion,
    Discovery,
    McpConnectorVersion,
    OpenApiConnectorVersion,
    Refreshed,
)
from folkmoot.domain.operation_changes import first_version, next_version
from folkmoot.domain.operations import Discovered, Stdio, header_value
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.kernel.ids import NewId
from folkmoot.services import secret_links
from folkmoot.services.reach import Reach
from folkmoot.store import operations
from folkmoot.store.database import Database, Writer
from folkmoot.store.operations import Known, NewVersion


async def look(
    database: Database, caller: Caller, reach: Reach, *, version: ConnectorVersion, document: bytes | None, namespace: str
) -> Discovery:  # fmt: skip
    """What the server offers now. `document`: the one that `version` names by its hash. Raises ConnectorFault, NotFound (a
    secret), SecretFault."""
    match version:
        case McpConnectorVersion():
            if isinstance(version.server, Stdio) and not reach.allows_stdio:
                raise ConnectorFault(
                    "Connectors that run a command are not allowed here. Use a server at a URL, or let the operator set "
                    "FOLKMOOT_ALLOW_STDIO."
                )
            headers = await _headers(database, caller, reach, version.headers, namespace=namespace)
            offered = await reach.mcp.discover(version.server, headers=headers, limit_seconds=reach.limit_seconds)
            return Discovery(tuple(offered))
        case OpenApiConnectorVersion():
            return await _service(database, caller, reach, version=version, document=document, namespace=namespace)


async def _service(
    database: Database, caller: Caller, reach: Reach, *, version: OpenApiConnectorVersion, document: bytes | None, namespace: str
) -> Discovery:  # fmt: skip
    body, url = document, version.document_url
    if url is not None:
        # The secrets are the service's: whoever merely keeps its document is not told them.
        is_its = version.base_url is not None and _origin(url) == _origin(version.base_url)
        headers = await _headers(database, caller, reach, version.headers, namespace=namespace) if is_its else {}
        body = await reach.fetch(url, headers, reach.limit_seconds)
    assert body is not None
    found = await asyncio.to_thread(reach.read, body, url)  # a large document takes seconds
    server_url = version.base_url or found.server_url
    if server_url is None:
        raise ConnectorFault("The document names no server that can be called: set 'baseUrl' to the service's address.")
    kept = body if url is None else None
    return Discovery(found.offered, found.left_out, server_url.rstrip("/"), kept)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


async def _headers(
    database: Database, caller: Caller, reach: Reach, headers: tuple[ConnectorHeader, ...], *, namespace: str
) -> dict[str, str]:
    made: dict[str, str] = {}
    for header in headers:
        async with database.reader() as reader:
            found = await secret_links.find(reader, caller.tenant_id, secret=header.secret, namespace=namespace)
        if isinstance(found, str) or found.definition_id is None:
            raise ConnectorFault(f"The header '{header.header_name}' cannot be sent. {found}")
        text = (await reach.open_secret(caller.tenant_id, found.definition_id)).reveal()
        made[header.header_name] = header_value(header.scheme, text)
    return made


async def record(
    writer: Writer, caller: Caller, *, connector_id: UUID, discovery: Discovery, new_id: NewId
) -> Refreshed:
    """Write down what is offered, in the transaction that holds the connector."""
    tenant_id = caller.tenant_id
    if discovery.document is not None:
        await operations.keep_document(writer, tenant_id, body=discovery.document)
    offered = {each.name: each for each in discovery.offered}
    known = await operations.compare(writer, tenant_id, connector_id=connector_id, offered=tuple(offered.values()))
    seen = {each.name for each in known}
    added = [each for name, each in offered.items() if name not in seen]
    changed = [each for each in known if each.is_offered and not each.is_same]
    gone = [each for each in known if not each.is_offered and not each.is_gone]
    back = [each for each in known if each.is_offered and each.is_gone]
    versions = [NewVersion(new_id(), first_version(each.descriptor), name=each.name) for each in added]
    versions += [_changed(each, offered) for each in changed]
    await operations.add(writer, tenant_id, connector_id=connector_id, versions=versions, created_by=caller.user_id)
    await operations.mark(
        writer, tenant_id, gone=[each.operation_id for each in gone], back=[each.operation_id for each in back]
    )
    return Refreshed(
        tuple(each.name for each in added),
        tuple(each.name for each in changed),
        tuple(each.name for each in gone),
        tuple(each.name for each in back),
        discovery.left_out,
        discovery.server_url,
    )


def _changed(known: Known, offered: Mapping[str, Discovered]) -> NewVersion:
    """Disabled, where the version before was: a server's word brings back nothing that was switched off."""
    assert known.version is not None
    version = next_version(known.version, offered[known.name].descriptor)
    return NewVersion(known.operation_id, version, known.is_disabled)
