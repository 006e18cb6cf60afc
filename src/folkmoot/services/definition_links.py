"""Settles what a version refers to: definitions, operations and secrets by their ids, so that a thing of the same name that is
made later is another one. Deliberately absent: what is wrong with a version in itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar, assert_never
from uuid import UUID

from folkmoot.domain.binding_checks import faults_beside, faults_of_targets
from folkmoot.domain.channels import ChannelVersion
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
from folkmoot.domain.participant_checks import faults_of_participant, faults_of_router_in
from folkmoot.domain.routers import CandidateKind, RouterCandidate, RouterVersion
from folkmoot.domain.schema_documents import step
from folkmoot.domain.swarms import SwarmSettings
from folkmoot.domain.tool_bindings import BindingInput, OnOperation, OperationBinding, SecretInput
from folkmoot.kernel.errors import BadInput, Fault
from folkmoot.services import operation_links, references, secret_links
from folkmoot.services.operation_links import FoundOperation, settled
from folkmoot.services.router_reach import KINDS, reach
from folkmoot.store.database import Reader

Holder = TypeVar("Holder", AgentVersion, AgentBinding, InteractionVersion)
_MCP, _OPEN_API = DefinitionKind.MCP_CONNECTOR, DefinitionKind.OPEN_API_CONNECTOR


class Links:
    """Settles one version's references; `faults` says what is wrong with those that cannot be."""

    def __init__(self, reader: Reader, tenant_id: UUID, *, namespace: str) -> None:
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = namespace
        self._bound: set[UUID | None] = set()
        self._agent_ids: set[UUID] = set()
        self.faults: list[Fault] = []

    async def settle(self, version: Version) -> Version:
        match version:
            case AgentVersion():
                model, _ = await self._definition("/model", DefinitionKind.AI_MODEL, version.model)
                version = replace(version, model=model)
                return await self._with_operations("", version)
            case RouterVersion():
                return await self._router(version)
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
            case ChannelVersion():
                return await self._channel(version)
            case _:
                assert_never(version)

    async def _router(self, version: RouterVersion) -> RouterVersion:
        candidates = [
            await self._candidate(f"/candidates/{index}", each) for index, each in enumerate(version.candidates)
        ]
        version = replace(version, candidates=tuple(candidates))
        if version.model is None:
            return version
        model, _ = await self._definition("/model", DefinitionKind.AI_MODEL, version.model)
        return replace(version, model=model)

    async def _candidate(self, pointer: str, candidate: RouterCandidate) -> RouterCandidate:
        if candidate.agent is not None:
            agent, _ = await self._definition(f"{pointer}/agent", DefinitionKind.AGENT, candidate.agent)
            candidate = replace(candidate, agent=agent)
        if candidate.router is not None:
            router, _ = await self._definition(f"{pointer}/router", DefinitionKind.ROUTER, candidate.router)
            candidate = replace(candidate, router=router)
        return candidate

    async def _interaction(self, version: InteractionVersion) -> InteractionVersion:
        await self._named_stack(version)
        seats = [await self._participant(pointer, binding, version) for pointer, binding in version.placed]
        manager, *agents = seats if version.manager is not None else [None, *seats]
        linked = replace(version, manager=manager, agents=tuple(agent for agent in agents if agent is not None))
        linked = await self._with_operations("", linked)
        if version.compaction_model is not None:
            pointer = "/contextSettings/compactionModel"
            model, _ = await self._definition(pointer, DefinitionKind.AI_MODEL, version.compaction_model)
            linked = replace(linked, compaction_model=model)
        if version.swarm is not None:
            linked = replace(linked, swarm=await self._swarm(version.swarm))
        secrets = [
            await self._secret_input(f"/inputsConnectorAuthenticationSecret/{index}", item)
            for index, item in enumerate(version.inputs_connector_authentication_secret)
        ]
        bindings = [
            await self._binding_input(f"/inputsConnectorBinding/{index}", item)
            for index, item in enumerate(version.inputs_connector_binding)
        ]
        return replace(
            linked, inputs_connector_authentication_secret=tuple(secrets), inputs_connector_binding=tuple(bindings)
        )

    async def _participant(self, at: str, binding: AgentBinding, interaction: InteractionVersion) -> AgentBinding:
        """With its link settled to the agent or, where none has that name, the router that bears it."""
        pointer = f"{at}/agent"
        if binding.kind is not None:
            link, found = await self._definition(pointer, KINDS[binding.kind], binding.agent)
        else:
            link, found = await self._agent_or_router(pointer, binding.agent)
        if found is not None:
            kind = CandidateKind.ROUTER if found.definition.kind is DefinitionKind.ROUTER else CandidateKind.AGENT
            binding = replace(binding, kind=kind)
            for agent in await self._agents(pointer, found, interaction):
                self._takes_part(pointer, agent, binding, interaction)
        return await self._with_operations(at, replace(binding, agent=link))

    async def _agents(
        self, pointer: str, found: StoredVersion, interaction: InteractionVersion
    ) -> Iterable[StoredVersion]:
        """Those who may have the seat: the agent itself, or whom its routers may choose."""
        if not isinstance(found.body, RouterVersion):
            return (found,)
        reached = await reach(self._reader, self._tenant_id, found)
        self.faults += [Fault(pointer, problem) for problem in reached.problems]
        for router in reached.routers.values():
            assert isinstance(router.body, RouterVersion)
            self.faults += faults_of_router_in(
                pointer, router=router.body, name=router.definition.name, interaction=interaction
            )
        return reached.agents.values()

    def _takes_part(
        self, pointer: str, agent: StoredVersion, binding: AgentBinding, interaction: InteractionVersion
    ) -> None:
        assert isinstance(agent.body, AgentVersion)
        self._agent_ids.add(agent.definition.definition_id)
        self._bound |= {bound.external_operation_id for _, bound in operations_of(agent.body)}
        self.faults += faults_of_participant(
            pointer, agent=agent.body, name=agent.definition.name, binding=binding, interaction=interaction
        )

    async def _swarm(self, swarm: SwarmSettings) -> SwarmSettings:
        links = []
        for index, link in enumerate(swarm.interactions):
            settled, _ = await self._definition(f"/swarm/interactions/{index}", DefinitionKind.INTERACTION, link)
            links.append(settled)
        return replace(swarm, interactions=tuple(links))

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

    async def _secret_input(self, pointer: str, item: SecretInput) -> SecretInput:
        if item.default_secret is not None:
            secret = await self._secret(f"{pointer}/defaultSecret", item.default_secret)
            item = replace(item, default_secret=secret)
        if item.agent is not None:
            item = replace(item, agent=await self._agent_of_input(pointer, item.agent))
        found, _ = await self._found(pointer, item)
        if found is None:
            return item
        self._check_bound(pointer, found)
        return settled(item, found)

    async def _binding_input(self, pointer: str, item: BindingInput) -> BindingInput:
        if item.agent is not None:
            item = replace(item, agent=await self._agent_of_input(pointer, item.agent))
        found, stored = await self._found(pointer, item)
        if found is None:
            return item
        self._check_bound(pointer, found)
        if stored is not None:
            target = (item.type, f"{pointer}/target", item.target, item.default_value)
            self.faults += faults_of_targets([target], stored.version.descriptor, name=found.operation.name)
        return settled(item, found)

    async def _agent_of_input(self, pointer: str, agent: Reference) -> Reference:
        link, _ = await self._definition(f"{pointer}/agent", DefinitionKind.AGENT, agent)
        if link.definition_id is not None and link.definition_id not in self._agent_ids:
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

    async def _channel(self, version: ChannelVersion) -> ChannelVersion:
        links = {name: await self._secret(step("/secrets", name), link) for name, link in version.secrets.items()}
        return replace(version, secrets=links)

    async def _secret(self, pointer: str, secret: Reference) -> Reference:
        found = await secret_links.find(self._reader, self._tenant_id, secret=secret, namespace=self._namespace)
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return secret
        return found

    async def _definition(
        self, pointer: str, kind: DefinitionKind, reference: Reference
    ) -> tuple[Reference, StoredVersion | None]:
        if reference.definition_id is None and not reference.name:
            return reference, None  # faults_of says so
        found = await references.enabled(
            self._reader, self._tenant_id, kind=kind, reference=reference, namespace=self._namespace
        )
        return self._settled(pointer, reference, found)

    async def _agent_or_router(self, pointer: str, reference: Reference) -> tuple[Reference, StoredVersion | None]:
        if reference.definition_id is None and not reference.name:
            return reference, None  # faults_of says so
        kinds = (DefinitionKind.AGENT, DefinitionKind.ROUTER)
        found = await references.enabled_of_either(
            self._reader, self._tenant_id, kinds=kinds, reference=reference, namespace=self._namespace
        )
        return self._settled(pointer, reference, found)

    def _settled(
        self, pointer: str, reference: Reference, found: StoredVersion | str
    ) -> tuple[Reference, StoredVersion | None]:
        if isinstance(found, str):
            self.faults.append(Fault(pointer, found))
            return reference, None
        definition = found.definition
        pin = reference.version or None
        return Reference(definition.name, definition.namespace, definition.definition_id, pin), found
