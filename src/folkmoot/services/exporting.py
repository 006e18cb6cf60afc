"""All definitions of a namespace, as they are now, to be written to files.

Deliberately absent: secrets, which are named; and how files look (`api.definition_export`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from folkmoot.domain.connectors import OpenApiConnectorVersion
from folkmoot.domain.definitions import StoredVersion
from folkmoot.domain.tenancy import Caller
from folkmoot.services import namespaces
from folkmoot.services.apply import PUBLISH_ORDER, everything
from folkmoot.store import audit, operations
from folkmoot.store.database import Database


@dataclass(frozen=True, slots=True)
class Exported:
    """Definitions in the order in which they may be published, each as its newest version; uploaded documents by their hash."""

    definitions: tuple[StoredVersion, ...]
    documents: Mapping[str, bytes]


async def export(database: Database, caller: Caller, *, namespace: str) -> Exported:
    """Raises NotFound where there is no such namespace."""
    found: list[StoredVersion] = []
    documents: dict[str, bytes] = {}
    async with database.writer() as writer:
        place = await namespaces.get(writer, caller, name=namespace)
        for kind in PUBLISH_ORDER:
            found += await everything(writer, caller, kind=kind, namespace=namespace)
        for stored in found:
            body = stored.body
            if isinstance(body, OpenApiConnectorVersion) and body.document_hash is not None:
                kept = await operations.document(writer, caller.tenant_id, document_hash=body.document_hash)
                documents |= {body.document_hash: kept} if kept is not None else {}
        detail = {"namespace": namespace, "definitions": len(found)}
        await audit.note(
            writer, caller, action="definitions.exported", subject_kind="namespace", subject_id=place.namespace_id, detail=detail
        )  # fmt: skip
    return Exported(tuple(found), documents)
