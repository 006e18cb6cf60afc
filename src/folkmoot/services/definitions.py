"""Publishing, reading, disabling and deleting definitions.

A version is checked whole, with all that it refers to, before it is stored; it is stored with its references settled to ids, so
that a definition of the same name that is made later is another one. Deliberately absent: files (`apply` takes documents).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from folkmoot.domain.channel_checks import faults_of_channel, faults_of_channel_name
from folkmoot.domain.channels import NO_APPS, AppShape, ChannelVersion
from folkmoot.domain.checking import faults_of_agent, faults_of_interaction, faults_of_model
from folkmoot.domain.connector_checks import faults_of_mcp_connector, faults_of_open_api_connector
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.credential_checks import faults_of_stack
from folkmoot.domain.credentials import CredentialStackVersion
from folkmoot.domain.definition_names import faults_of_name
from folkmoot.domain.definitions import (
    AgentVersion,
    AiModelVersion,
    Definition,
    DefinitionKind,
    InteractionVersion,
    Reference,
    StoredVersion,
    Version,
)
from folkmoot.domain.router_checks import faults_of_router
from folkmoot.domain.routers import RouterVersion
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Conflict, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import agent_links, namespaces, references
from folkmoot.services.definition_links import Links
from folkmoot.services.references import NOUNS
from folkmoot.services.router_links import chain_faults
from folkmoot.store import audit, definitions, routers, specialists, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.definitions import Outcome

Json = Any


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """`outcome` unchanged: the latest version said the same, and is given back."""

    stored: StoredVersion
    outcome: Outcome


async def publish(
    database: Database, caller: Caller, *, namespace: str, name: str, version: Version, new_id: NewId, only_if_new: bool = False,
    channel_apps: Mapping[str, AppShape] = NO_APPS,
) -> PublishedVersion:  # fmt: skip
    """Create a definition with its first version, or add the next one. Raises BadDefinition with every fault.

    `only_if_new`: Conflict where there is one of this name. `channel_apps`: what is known of the apps of channels.
    """
    async with database.writer() as writer:
        published = await publish_in(
            writer, caller, namespace=namespace, name=name, version=version, new_id=new_id, channel_apps=channel_apps
        )
        if only_if_new and published.outcome is not Outcome.CREATED:
            raise taken(kind_of(version), namespace, name)
        return published


def taken(kind: DefinitionKind, namespace: str, name: str) -> Conflict:
    """That there is a definition of this name."""
    return Conflict(
        f"There is already an {NOUNS[kind]} '{namespace}/{name}'. Add a version to it, or choose another name."
    )


async def check_in(
    reader: Reader, caller: Caller, *, namespace: str, name: str, version: Version, channel_apps: Mapping[str, AppShape] = NO_APPS
) -> Version:  # fmt: skip
    """The version with its references settled to ids. Raises BadDefinition with every fault."""
    kind = kind_of(version)
    links = Links(reader, caller.tenant_id, namespace=namespace)
    linked = await links.settle(version)
    if isinstance(linked, RouterVersion):
        links.faults += await chain_faults(reader, caller.tenant_id, namespace=namespace, name=name, version=linked)
    if isinstance(linked, AgentVersion):
        linked, more = await agent_links.settled(reader, caller, namespace=namespace, name=name, version=linked)
        links.faults += more
    faults = (
        *faults_of_name("/namespace", namespace, what="namespace"),
        *faults_of_name("/name", name, what=NOUNS[kind]),
        *(faults_of_channel_name(name) if kind is DefinitionKind.CHANNEL else ()),
        *faults_of(linked, channel_apps),
        *links.faults,
    )
    if faults:
        raise BadDefinition(_refusal(kind, namespace, name, faults), faults)
    return linked


async def publish_in(
    writer: Writer, caller: Caller, *, namespace: str, name: str, version: Version, new_id: NewId,
    channel_apps: Mapping[str, AppShape] = NO_APPS,
) -> PublishedVersion:  # fmt: skip
    """The same within a transaction that is open."""
    kind, tenant_id = kind_of(version), caller.tenant_id
    if kind is DefinitionKind.ROUTER:
        await routers.lock(writer, tenant_id)  # of two that lead to each other the second one sees the first
    if isinstance(version, AgentVersion) and version.runs.specialists:
        await specialists.lock(writer, tenant_id)
    linked = await check_in(writer, caller, namespace=namespace, name=name, version=version, channel_apps=channel_apps)
    place = await tenancy.get_or_create_namespace(writer, tenant_id, name=namespace, new_id=new_id)
    made = await definitions.publish(
        writer, tenant_id, kind=kind, namespace_id=place.namespace_id, name=name, body=linked,
        created_by=caller.user_id, definition_id=new_id(),
    )  # fmt: skip
    if made is None:
        fault = Fault(
            "/type", "An interaction keeps the type of its first version. Give one of another type another name."
        )
        raise BadDefinition(_refusal(kind, namespace, name, (fault,)), (fault,))
    definition = await definitions.get(writer, tenant_id, kind=kind, definition_id=made.definition_id)
    assert definition is not None
    stored = await definitions.version(writer, tenant_id, definition=definition, number=made.number)
    assert stored is not None
    if made.outcome is not Outcome.UNCHANGED:
        await _note(writer, caller, "definition.saved", definition, version=made.number)
    return PublishedVersion(stored, made.outcome)


def kind_of(version: Version) -> DefinitionKind:
    match version:
        case AgentVersion():
            return DefinitionKind.AGENT
        case RouterVersion():
            return DefinitionKind.ROUTER
        case AiModelVersion():
            return DefinitionKind.AI_MODEL
        case InteractionVersion():
            return DefinitionKind.INTERACTION
        case McpConnectorVersion():
            return DefinitionKind.MCP_CONNECTOR
        case OpenApiConnectorVersion():
            return DefinitionKind.OPEN_API_CONNECTOR
        case CredentialStackVersion():
            return DefinitionKind.CREDENTIAL_STACK
        case ChannelVersion():
            return DefinitionKind.CHANNEL
        case _:
            assert_never(version)


def faults_of(version: Version, channel_apps: Mapping[str, AppShape] = NO_APPS) -> tuple[Fault, ...]:
    """What is wrong with a version in itself. `channel_apps`: what is known of the apps of channels."""
    match version:
        case AgentVersion():
            return faults_of_agent(version)
        case RouterVersion():
            return faults_of_router(version)
        case AiModelVersion():
            return faults_of_model(version)
        case InteractionVersion():
            return faults_of_interaction(version)
        case McpConnectorVersion():
            return faults_of_mcp_connector(version)
        case OpenApiConnectorVersion():
            return faults_of_open_api_connector(version)
        case CredentialStackVersion():
            return faults_of_stack(version)
        case ChannelVersion():
            return faults_of_channel(version, channel_apps)
        case _:
            assert_never(version)


async def get(database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference) -> StoredVersion:
    """The version that `reference` names, else the newest; disabled or not. Raises NotFound."""
    async with database.reader() as reader:
        definition = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
        number = reference.version or definition.latest_version
        found = await definitions.version(reader, caller.tenant_id, definition=definition, number=number)
    if found is None:
        raise _no_version(definition, number)
    return found


async def versions(
    database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference, before: int | None, limit: int
) -> list[StoredVersion]:
    """Versions, the newest first, those below the number `before`. Raises NotFound."""
    async with database.reader() as reader:
        definition = await references.find(reader, caller.tenant_id, kind=kind, reference=reference)
        return await definitions.versions(reader, caller.tenant_id, definition=definition, before=before, limit=limit)


async def page(
    database: Database, caller: Caller, *, kind: DefinitionKind, namespace: str, after: str, limit: int
) -> list[StoredVersion]:
    """Definitions of a namespace by name, each as its newest version; after the name `after`. Raises NotFound."""
    async with database.reader() as reader:
        place = await namespaces.get(reader, caller, name=namespace)
        return await definitions.page(
            reader, caller.tenant_id, kind=kind, namespace_id=place.namespace_id, after=after, limit=limit
        )


async def set_disabled(
    database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference, is_disabled: bool
) -> StoredVersion:
    """Disable or enable the version that `reference` names, else the newest. Runs under way go on. Raises NotFound."""
    async with database.writer() as writer:
        definition = await references.find(writer, caller.tenant_id, kind=kind, reference=reference)
        number = reference.version or definition.latest_version
        found = await definitions.set_disabled(
            writer, caller.tenant_id, definition=definition, number=number, is_disabled=is_disabled
        )
        if found is not None:
            action = "definition.disabled" if is_disabled else "definition.enabled"
            await _note(writer, caller, action, definition, version=number)
    if found is None:
        raise _no_version(definition, number)
    return found


async def delete(database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference) -> None:
    """Hide a definition from everything new; runs that used it keep their versions. Raises NotFound."""
    async with database.writer() as writer:
        definition = await references.find(writer, caller.tenant_id, kind=kind, reference=reference)
        await delete_in(writer, caller, definition=definition)


async def delete_in(writer: Writer, caller: Caller, *, definition: Definition) -> None:
    """The same within a transaction that is open."""
    await definitions.delete(writer, caller.tenant_id, kind=definition.kind, definition_id=definition.definition_id)
    await _note(writer, caller, "definition.deleted", definition)


async def _note(
    writer: Writer, caller: Caller, action: str, definition: Definition, *, version: int | None = None
) -> None:
    detail = {"namespace": definition.namespace, "name": definition.name, "version": version}
    await audit.note(
        writer, caller, action=action, subject_kind=NOUNS[definition.kind], subject_id=definition.definition_id, detail=detail
    )  # fmt: skip


def _no_version(definition: Definition, number: int) -> NotFound:
    title = f"{NOUNS[definition.kind]} '{definition.namespace}/{definition.name}'"
    return NotFound(f"There is no version {number} of {title}; its newest is {definition.latest_version}.")


def _refusal(kind: DefinitionKind, namespace: str, name: str, faults: tuple[Fault, ...]) -> str:
    more = f" There are {len(faults)} faults." if len(faults) > 1 else ""
    return f"The {NOUNS[kind]} '{namespace}/{name}' was not saved. {faults[0].message}{more}"
