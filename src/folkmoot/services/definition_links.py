"""Settles what a version refers to: definitions, operations and secrets by their ids, so that a thing of the same name that is
made later is another one. Deliberately absent: what is wrong with a version in itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, assert_never
from uuid import UUID

from folkmoot.domain.binding_checks import faults_beside, faults_of_targets
from folkmoot.domain.checking import operations_of
from folkmoot.domain.connectors import (
    ConnectorHeader,
    McpConnectorVersion,
    OpenApiConnectorVersion,
    StoredOperation,
)
from folkmoot.domain.credentials import CredentialStackVersion
from folkmoot.domain.definition_names import parse_reference
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    AiModelVersion,
    DefinitionKind,
    InteractionVersion,
    Reference,
    StoredVersion,
    Version,
)
from folkmoot.domain.participant_checks import faults_of_participant
from folkmoot.domain.tool_bindings import BindingInput, OnOperation, OperationBinding, SecretInput
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import operation_links, references, secret_links
from folkmoot.services.operation_links import FoundOperation, settled
from folkmoot.store.database import Reader

Json = Any
Holder = TypeVar("Holder", AgentVersion, AgentBinding, InteractionVersion)
_MCP, _OPEN_API = DefinitionKind.MCP_CONNECTOR, DefinitionKind.OPEN_API_CONNECTOR


class Links:
    """Settles one version's references; `faults` says what is wrong with those that cannot be."""

    def __init__(self, reader: Reader, tenant_id: UUID, *, namespace: str) -> None:
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = namespace
        self._bound: set[UUID | None] = set()
        self.faults: list[Fault] = []

    async def settle(self, version: Version) -> Version:
        match version:
            case AgentVersion():
                model, _ = await self._definition("/model", DefinitionKind.AI_MODEL, version.model)
                version = replace(version, model=model)
                return await self._with_operations("", version)
            case InteractionVersion():
                return await self._interaction(version)
            case McpConnectorVersion():
                return replace(version, headers=await self._headers(version.headers))
            case OpenApiConnectorVersion():
                return replace(version, headers=await self._headers(version.headers))
            case AiModelVersion():
                return version
            case CredentialStackVersion():
                return await self._stack(version)
            case _:
                assert_never(version)

    async def _interaction(self, version: InteractionVersion) -> InteractionVersion:
        await self._named_stack(version)
        agents = [await self._participant(index, binding, version) for index, binding in enumerate(version.agents)]
        linked = replace(version, agents=tuple(agents), later=await self._later(version.later))
        linked = await self._with_operations("", linked)
        if version.compaction_model is not None:
            pointer = "/contextSettings/compactionModel"
            model, _ = await self._definition(pointer, DefinitionKind.AI_MODEL, version.compaction_model)
            linked = replace(linked, compaction_model=model)
        ids = {binding.agent.definition_id for binding in agents}
        secrets = [
            await self._secret_input(f"/inputsConnectorAuthenticationSecret/{index}", item, ids)
            for index, item in enumerate(version.inputs_connector_authentication_secret)
        ]
        bindings = [
            await self._binding_input(f"/inputsConnectorBinding/{index}", item, ids)
            for index, item in enumerate(version.inputs_connector_binding)
        ]
        return replace(
            linked, inputs_connector_authentication_secret=tuple(secrets), inputs_connector_binding=tuple(bindings)
        )

    async def _participant(self, index: int, binding: AgentBinding, interaction: InteractionVersion) -> AgentBinding:
        pointer = f"/agents/{index}/agent"
        link, agent = await self._definition(pointer, DefinitionKind.AGENT, binding.agent)
        if agent is not None:
            assert isinstance(agent.body, AgentVersion)
            self._bound |= {bound.external_operation_id for _, bound in operations_of(agent.body)}
            self.faults += faults_of_participant(
                pointer, agent=agent.body, name=agent.definition.name, binding=binding, interaction=interaction
            )
        return await self._with_operations(f"/agents/{index}", replace(binding, agent=link))

    async def _with_operations(self, pointer: str, version: Holder) -> Holder:
        """An agent, a participant or an interaction with its bindings settled."""
        mcp = [await self._operation(at, _MCP, bound) for at, bound in operations_of(version, pointer, kind=_MCP)]
        open_api = [
            await self._operation(at, _OPEN_API, bound) for at, bound in operations_of(version, pointer, kind=_OPEN_API)
        ]
        return replace(version, external_operations_mcp=tuple(mcp), external_operations_open_api=tuple(open_api))

    async def _operation(self, pointer: str, kind: DefinitionKind, binding: OperationBinding) -> OperationBinding:
        header = binding.authentication_header
        if header is not None and header.secret is not None:
            secret = await self._secret(f"{pointer}/authenticationHeader/secret", header.secret)
            binding = replace(binding, authentication_header=replace(header, secret=secret))
        found, stored = await self._found(pointer, binding, kind=kind, number=binding.external_operation_version)
        if found is None:
            return binding
        self._bound.add(found.operation.operation_id)
        if stored is not None:
            self.faults += faults_beside(pointer, binding, stored.version)
        return settled(binding, found)

    async def _secret_input(self, pointer: str, item: SecretInput, agents: set[UUID | None]) -> SecretInput:
        if item.default_secret is not None:
            secret = await self._secret(f"{pointer}/defaultSecret", item.default_secret)
            item = replace(item, default_secret=secret)
        if item.agent is not None:
            item = replace(item, agent=await self._agent_of_input(pointer, item.agent, agents))
        found, _ = await self._found(pointer, item)
        if found is None:
            return item
        self._check_bound(pointer, found)
        return settled(item, found)

    async def _binding_input(self, pointer: str, item: BindingInput, agents: set[UUID | None]) -> BindingInput:
        if item.agent is not None:
            item = replace(item, agent=await self._agent_of_input(pointer, item.agent, agents))
        found, stored = await self._found(pointer, item)
        if found is None:
            return item
        self._check_bound(pointer, found)
        if stored is not None:
            target = (item.type, f"{pointer}/target", item.target, item.default_value)
            self.faults += faults_of_targets([target], stored.version.descriptor, name=found.operation.name)
        return settled(item, found)

    async def _agent_of_input(self, pointer: str, agent: Reference, agents: set[UUID | None]) -> Reference:
        link, _ = await self._definition(f"{pointer}/agent", DefinitionKind.AGENT, agent)
        if link.definition_id is not None and link.definition_id not in agents:
            message = f"The agent '{link.name}' takes no part in this interaction; correct it, or leave it out."
            self.faults.append(Fault(f"{pointer}/agent", message))
        return link

    def _check_bound(self, pointer: str, found: FoundOperation) -> None:
        if found.operation.operation_id not in self._bound:
            message = f"The {found.title} is bound to nobody here; bind it, or take the input out."
            self.faults.append(Fault(pointer, message))

    async def _found(
        self, pointer: str, link: OnOperation, *, kind: DefinitionKind | None = None, number: int | None = None
    ) -> tuple[FoundOperation | None, StoredOperation | None]:
        if link.external_operation_id is None and (link.connector is None or link.operation is None):
            return None, None  # faults_of says so
        found = await operation_links.find(
            self._reader, self._tenant_id, link=link, namespace=self._namespace, kind=kind
        )
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return None, None
        stored = await operation_links.enabled(self._reader, self._tenant_id, found=found, number=number)
        if isinstance(stored, str):
            self.faults.append(Fault(pointer, stored))
            return found, None
        return found, stored

    async def _headers(self, headers: tuple[ConnectorHeader, ...]) -> tuple[ConnectorHeader, ...]:
        return tuple(
            [
                replace(header, secret=await self._secret(f"/headers/{index}/secret", header.secret))
                for index, header in enumerate(headers)
            ]
        )

    async def _named_stack(self, version: InteractionVersion) -> None:
        """It stays a name, as the wire has it, and must be one of something."""
        if version.credential_stack is None:
            return
        try:
            wanted = parse_reference(version.credential_stack)
        except BadInput as error:
            self.faults.append(Fault("/credentialStack", str(error)))
            return
        await self._definition("/credentialStack", DefinitionKind.CREDENTIAL_STACK, wanted)

    async def _stack(self, version: CredentialStackVersion) -> CredentialStackVersion:
        entries = []
        for index, entry in enumerate(version.entries):
            if entry.credential is not None:
                settled = await self._secret(f"/entries/{index}/credential", entry.credential)
                entry = replace(entry, credential=settled)
            entries.append(entry)
        return replace(version, entries=tuple(entries))

    async def _secret(self, pointer: str, secret: Reference) -> Reference:
        found = await secret_links.find(self._reader, self._tenant_id, secret=secret, namespace=self._namespace)
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return secret
        return found

    async def _later(self, later: Mapping[str, Json]) -> dict[str, Json]:
        """Links to interactions that participants may start; they are shown by id, and so must be known by it."""
        swarm = later.get("swarm")
        if not isinstance(swarm, Mapping):
            return dict(later)
        links = []
        for index, link in enumerate(swarm.get("interactions") or ()):
            wanted = _read_link(link)
            found, _ = await self._definition(f"/swarm/interactions/{index}", DefinitionKind.INTERACTION, wanted)
            links.append({"id": str(found.definition_id), "version": found.version or 0})
        return {**later, "swarm": {**swarm, "interactions": links}}

    async def _definition(
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
