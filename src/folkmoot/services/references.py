"""Finds what a reference means now, or says in a sentence why it means nothing.

Without a version a reference means the latest enabled one; a pinned version must be enabled. Deliberately absent: deleted
definitions and those of other tenants, which are as if they never were.
"""

from __future__ import annotations

from uuid import UUID

from folkmoot.domain.definitions import Definition, DefinitionKind, Reference, StoredVersion
from folkmoot.kernel.errors import NotFound
from folkmoot.store import definitions
from folkmoot.store.database import Reader

NOUNS = {
    DefinitionKind.AGENT: "agent",
    DefinitionKind.ROUTER: "router",
    DefinitionKind.AI_MODEL: "AI model",
    DefinitionKind.INTERACTION: "interaction",
    DefinitionKind.MCP_CONNECTOR: "MCP connector",
    DefinitionKind.OPEN_API_CONNECTOR: "OpenAPI connector",
    DefinitionKind.CREDENTIAL_STACK: "credential stack",
    DefinitionKind.CHANNEL: "channel",
}


async def find(
    reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, reference: Reference, namespace: str | None = None
) -> Definition:
    """The definition meant, whatever its versions. `namespace`: where a bare name is looked for. Raises NotFound."""
    place = reference.namespace or namespace
    if reference.definition_id is not None:
        found = await definitions.get(reader, tenant_id, kind=kind, definition_id=reference.definition_id)
    elif reference.name is None or place is None:
        found = None
    else:
        found = await definitions.get_by_name(reader, tenant_id, kind=kind, namespace=place, name=reference.name)
    if found is None:
        name = f"{place}/{reference.name}" if reference.name and place else reference.name
        which = f"'{name}'" if reference.definition_id is None else f"with the id {reference.definition_id}"
        raise NotFound(f"There is no {NOUNS[kind]} {which}. Publish it first, or correct the reference.")
    return found


async def enabled(
    reader: Reader, tenant_id: UUID, *, kind: DefinitionKind, reference: Reference, namespace: str | None = None
) -> StoredVersion | str:
    """The version that something new takes, or a sentence that says why there is none."""
    try:
        definition = await find(reader, tenant_id, kind=kind, reference=reference, namespace=namespace)
    except NotFound as error:
        return str(error)
    title = f"{NOUNS[kind]} '{definition.namespace}/{definition.name}'"
    if not reference.version:
        latest = await definitions.latest_enabled(reader, tenant_id, definition=definition)
        return latest or f"Every version of {title} is disabled. Enable one, or publish another."
    pinned = await definitions.version(reader, tenant_id, definition=definition, number=reference.version)
    if pinned is None:
        return f"There is no version {reference.version} of {title}; its newest is {definition.latest_version}."
    if pinned.is_disabled:
        return f"Version {pinned.number} of {title} is disabled. Enable it, or refer to another version."
    return pinned


async def enabled_of_either(
    reader: Reader, tenant_id: UUID, *, kinds: tuple[DefinitionKind, DefinitionKind], reference: Reference, namespace: str | None = None
) -> StoredVersion | str:  # fmt: skip
    """The same of the first of two kinds that has one of this name or id, whatever becomes of the other."""
    missing = ""
    for kind in kinds:
        try:
            found = await find(reader, tenant_id, kind=kind, reference=reference, namespace=namespace)
        except NotFound as error:
            missing = str(error)
            continue
        pinned = Reference(definition_id=found.definition_id, version=reference.version)
        return await enabled(reader, tenant_id, kind=kind, reference=pinned)
    first, second = (NOUNS[kind] for kind in kinds)
    return missing.replace(f"no {second} ", f"no {first} or {second} ", 1)
