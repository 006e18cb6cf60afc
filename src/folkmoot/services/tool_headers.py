"""The headers that are sent with a tool's calls: of its connector, of its binding, of the run's inputs.

A header names a secret by its id, once it is known to be the tenant's. To a command each is a variable of its environment.
Deliberately absent: values; they are read at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from uuid import UUID

from folkmoot.domain.binding_checks import faults_of_variable
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.definitions import InteractionVersion, Reference, StoredVersion
from folkmoot.domain.operations import Http, SecretHeader, Server, Stdio
from folkmoot.domain.tool_bindings import BindingInput, OperationBinding, SecretInput
from folkmoot.services import secret_links
from folkmoot.services.operation_links import FoundOperation
from folkmoot.store.database import Reader


class ToolHeaders:
    """`given`: the run's inputs by name, as text. `fault` is told of what is wrong with a binding."""

    def __init__(
        self,
        reader: Reader,
        tenant_id: UUID,
        *,
        interaction: StoredVersion,
        given: Mapping[str, str],
        fault: Callable[[OperationBinding, str], None],
    ) -> None:
        assert isinstance(interaction.body, InteractionVersion)
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = interaction.definition.namespace
        self._inputs = interaction.body.inputs_connector_authentication_secret
        self._given = given
        self._fault = fault
        self._problems: dict[UUID, str | None] = {}

    async def of(
        self, binding: OperationBinding, found: FoundOperation, connector: StoredVersion, *, agent_id: UUID
    ) -> tuple[SecretHeader, ...]:
        """The connector's own, then the binding's, then those of run inputs: of one name the last is sent."""
        headers: dict[str, SecretHeader] = {}
        server = server_of(connector)
        for header in self._wanted(binding, found, connector, agent_id):
            if await self._is_there(binding, header.secret_id):
                is_variable = isinstance(server, Stdio)  # which another case makes another one
                headers[header.header_name if is_variable else header.header_name.lower()] = header
        if isinstance(server, Stdio):
            for header in headers.values():
                for fault in faults_of_variable("", header.header_name, header.scheme, server.environment):
                    self._fault(binding, f"The {found.title} is run by a command. {fault.message}")
        return tuple(headers.values())

    def _wanted(
        self, binding: OperationBinding, found: FoundOperation, connector: StoredVersion, agent_id: UUID
    ) -> Iterator[SecretHeader]:
        assert isinstance(connector.body, McpConnectorVersion | OpenApiConnectorVersion)
        for header in connector.body.headers:
            if header.secret.definition_id is not None:
                yield SecretHeader(header.header_name, header.secret.definition_id, header.scheme)
        own = binding.authentication_header
        if own is not None:
            secret_id = own.secret.definition_id if own.secret is not None else None
            for item in self._inputs:
                if item.name == own.secret_input_name:
                    secret_id = self._chosen(item)
            if secret_id is not None:
                yield SecretHeader(own.header_name, secret_id, own.scheme)
        for item in self._inputs:
            chosen = self._chosen(item)
            is_its = item.external_operation_id == found.operation.operation_id and is_for(item, agent_id)
            if is_its and chosen is not None:
                yield SecretHeader(item.header_name, chosen, item.scheme)

    def _chosen(self, item: SecretInput) -> UUID | None:
        text = self._given.get(item.name)
        if text is None:
            return item.default_secret.definition_id if item.default_secret is not None else None
        try:
            return UUID(text)
        except ValueError:
            return None  # the check of the inputs has said so

    async def _is_there(self, binding: OperationBinding, secret_id: UUID) -> bool:
        if secret_id not in self._problems:
            found = await secret_links.find(
                self._reader, self._tenant_id, secret=Reference(definition_id=secret_id), namespace=self._namespace
            )
            self._problems[secret_id] = found if isinstance(found, str) else None
        problem = self._problems[secret_id]
        if problem is not None:
            self._fault(binding, problem)
        return problem is None


def is_for(item: BindingInput | SecretInput, agent_id: UUID) -> bool:
    """Whether an input is for the calls of this agent."""
    return item.agent is None or item.agent.definition_id == agent_id


def server_of(connector: StoredVersion) -> Server:
    """Where the connector's calls go."""
    body = connector.body
    if isinstance(body, McpConnectorVersion):
        return body.server
    assert isinstance(body, OpenApiConnectorVersion)
    return Http(body.base_url or body.server_url or "")
