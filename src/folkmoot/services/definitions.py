"""Publishing, reading, disabling and deleting definitions.

A version is checked whole, with all that it refers to, before it is stored; it is stored with its references settled to ids, so
that a definition of the same name that is made later is another one. Deliberately absent: files (`apply` takes documents).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, assert_never
from uuid import UUID

from folkmoot.domain.checking import faults_of_agent, faults_of_interaction, faults_of_model
from folkmoot.domain.definition_names import faults_of_name, parse_reference
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    Definition,
    DefinitionKind,
    Reference,
    RoundRobinVersion,
    StoredVersion,
    Version,
)
from folkmoot.domain.prompts import check_prompts
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadDefinition, Conflict, Fault, NotFound
from folkmoot.kernel.ids import NewId
from folkmoot.services import references
from folkmoot.services.references import NOUNS
from folkmoot.store import definitions, tenancy
from folkmoot.store.database import Database, Reader, Writer
from folkmoot.store.definitions import Outcome

Json = Any


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """`outcome` unchanged: the latest version said the same, and is given back."""

    stored: StoredVersion
    outcome: Outcome


async def publish(
    database: Database, caller: Caller, *, namespace: str, name: str, version: Version, new_id: NewId, only_if_new: bool = False
) -> PublishedVersion:  # fmt: skip
    """Create a definition with its first version, or add the next one. Raises BadDefinition with every fault.

    `only_if_new`: Conflict where there is one of this name.
    """
    async with database.writer() as writer:
        published = await publish_in(writer, caller, namespace=namespace, name=name, version=version, new_id=new_id)
        if only_if_new and published.outcome is not Outcome.CREATED:
            noun = NOUNS[kind_of(version)]
            raise Conflict(
                f"There is already an {noun} '{namespace}/{name}'. Add a version to it, or choose another name."
            )
        return published


async def publish_in(
    writer: Writer, caller: Caller, *, namespace: str, name: str, version: Version, new_id: NewId
) -> PublishedVersion:
    """The same within a transaction that is open."""
    kind, tenant_id = kind_of(version), caller.tenant_id
    links = _Links(writer, tenant_id, namespace=namespace)
    linked = await links.settle(version)
    faults = (
        *faults_of_name("/namespace", namespace, what="namespace"),
        *faults_of_name("/name", name, what=NOUNS[kind]),
        *faults_of(linked),
        *links.faults,
    )
    if faults:
        raise BadDefinition(_refusal(kind, namespace, name, faults), faults)
    place = await tenancy.get_or_create_namespace(writer, tenant_id, name=namespace, new_id=new_id)
    made = await definitions.publish(
        writer, tenant_id, kind=kind, namespace_id=place.namespace_id, name=name, body=linked,
        created_by=caller.user_id, definition_id=new_id(),
    )  # fmt: skip
    definition = await definitions.get(writer, tenant_id, kind=kind, definition_id=made.definition_id)
    assert definition is not None
    stored = await definitions.version(writer, tenant_id, definition=definition, number=made.number)
    assert stored is not None
    return PublishedVersion(stored, made.outcome)


def kind_of(version: Version) -> DefinitionKind:
    match version:
        case AgentVersion():
            return DefinitionKind.AGENT
        case AiModelVersion():
            return DefinitionKind.AI_MODEL
        case RoundRobinVersion():
            return DefinitionKind.INTERACTION
        case _:
            assert_never(version)


def faults_of(version: Version) -> tuple[Fault, ...]:
    """What is wrong with a version in itself."""
    match version:
        case AgentVersion():
            return faults_of_agent(version)
        case AiModelVersion():
            return faults_of_model(version)
        case RoundRobinVersion():
            return faults_of_interaction(version)
        case _:
            assert_never(version)


def faults_of_prompts(
    pointer: str, *, agent: AgentVersion, name: str, interaction: RoundRobinVersion
) -> tuple[Fault, ...]:
    """An agent's `%%name%%`s that the interaction has no input for; they can only be checked where the two meet."""
    known = [item.name for item in interaction.inputs_prompt]
    found = check_prompts([(pointer, text) for text in agent.prompts], known)
    return tuple(Fault(pointer, f"In the prompts of agent '{name}': {fault.message}") for fault in found)


class _Links:
    """Settles a version's references to ids; `faults` says what is wrong with those that cannot be."""

    def __init__(self, reader: Reader, tenant_id: UUID, *, namespace: str) -> None:
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = namespace
        self.faults: list[Fault] = []

    async def settle(self, version: Version) -> Version:
        match version:
            case AgentVersion():
                model, _ = await self._settled("/model", DefinitionKind.AI_MODEL, version.model)
                return replace(version, model=model)
            case RoundRobinVersion():
                bindings = [
                    await self._binding(index, binding, version) for index, binding in enumerate(version.agents)
                ]
                return replace(version, agents=tuple(bindings), later=await self._later(version.later))
            case AiModelVersion():
                return version
            case _:
                assert_never(version)

    async def _binding(self, index: int, binding: AgentBinding, interaction: RoundRobinVersion) -> AgentBinding:
        pointer = f"/agents/{index}/agent"
        link, agent = await self._settled(pointer, DefinitionKind.AGENT, binding.agent)
        if agent is not None:
            assert isinstance(agent.body, AgentVersion)
            name = agent.definition.name
            self.faults += faults_of_prompts(pointer, agent=agent.body, name=name, interaction=interaction)
        return replace(binding, agent=link)

    async def _later(self, later: Mapping[str, Json]) -> dict[str, Json]:
        """Links to interactions that participants may start; they are shown by id, and so must be known by it."""
        swarm = later.get("swarm")
        if not isinstance(swarm, Mapping):
            return dict(later)
        settled = []
        for index, link in enumerate(swarm.get("interactions") or ()):
            wanted = _read_link(link)
            found, _ = await self._settled(f"/swarm/interactions/{index}", DefinitionKind.INTERACTION, wanted)
            settled.append({"id": str(found.definition_id), "version": found.version or 0})
        return {**later, "swarm": {**swarm, "interactions": settled}}

    async def _settled(
        self, pointer: str, kind: DefinitionKind, reference: Reference
    ) -> tuple[Reference, StoredVersion | None]:
        if reference.definition_id is None and not reference.name:
            return reference, None  # faults_of says so
        found = await references.enabled(
            self._reader, self._tenant_id, kind=kind, reference=reference, namespace=self._namespace
        )
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return reference, None
        definition = found.definition
        pin = reference.version or None
        return Reference(definition.name, definition.namespace, definition.definition_id, pin), found


def _read_link(link: Json) -> Reference:
    if isinstance(link, Mapping):
        return Reference(definition_id=UUID(link["id"]), version=link.get("version") or None)
    return parse_reference(link)


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
        place = await tenancy.find_namespace(reader, caller.tenant_id, name=namespace)
        if place is None:
            raise NotFound(f"There is no namespace '{namespace}'. Publishing something in it makes it.")
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
    if found is None:
        raise _no_version(definition, number)
    return found


async def delete(database: Database, caller: Caller, *, kind: DefinitionKind, reference: Reference) -> None:
    """Hide a definition from everything new; runs that used it keep their versions. Raises NotFound."""
    async with database.writer() as writer:
        definition = await references.find(writer, caller.tenant_id, kind=kind, reference=reference)
        await definitions.delete(writer, caller.tenant_id, kind=kind, definition_id=definition.definition_id)


def _no_version(definition: Definition, number: int) -> NotFound:
    title = f"{NOUNS[definition.kind]} '{definition.namespace}/{definition.name}'"
    return NotFound(f"There is no version {number} of {title}; its newest is {definition.latest_version}.")


def _refusal(kind: DefinitionKind, namespace: str, name: str, faults: tuple[Fault, ...]) -> str:
    more = f" There are {len(faults)} faults." if len(faults) > 1 else ""
    return f"The {NOUNS[kind]} '{namespace}/{name}' was not saved. {faults[0].message}{more}"
