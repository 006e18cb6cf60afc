"""The external tools of a start: each binding with the operation's version, what is bound to its calls, and its headers.

All of it is settled for the run's whole life (B09), secrets by their ids alone. Deliberately absent: functions and protocol
tools; and calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from folkmoot.domain.argument_paths import is_required, path_of
from folkmoot.domain.binding_checks import faults_beside, faults_of_targets
from folkmoot.domain.bindings import Unfit, bound_schema, bound_value
from folkmoot.domain.calls import Tool
from folkmoot.domain.checking import operations_of
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    Definition,
    DefinitionKind,
    InteractionVersion,
    Reference,
    StoredVersion,
)
from folkmoot.domain.operations import (
    Bound,
    OperationTarget,
    OperationVersion,
    SecretHeader,
    is_gated,
)
from folkmoot.domain.prompts import fill
from folkmoot.domain.schema_documents import step
from folkmoot.domain.tool_bindings import BindingInput, OperationBinding
from folkmoot.kernel.errors import Fault
from folkmoot.services import operation_links, references
from folkmoot.services.operation_links import FoundOperation
from folkmoot.services.tool_headers import ToolHeaders, is_for, server_of
from folkmoot.store.database import Reader

_VALUE = "value"


@dataclass(frozen=True, slots=True)
class _Place:
    """Whose tool it is, for sentences and for inputs of one agent alone."""

    agent_id: UUID
    namespace: str


class Tooling:
    """Makes tools of bindings; `faults` says what is wrong with them.

    `given`: the run's inputs by name, as text. `disabled`: tools to leave out, whatever is wrong with them. `is_survey`: there is no run, so that no value is missed.
    """

    def __init__(
        self,
        reader: Reader,
        tenant_id: UUID,
        *,
        interaction: StoredVersion,
        given: Mapping[str, str],
        disabled: Collection[str] = (),
        is_survey: bool = False,
    ) -> None:
        assert isinstance(interaction.body, InteractionVersion)
        self._reader = reader
        self._tenant_id = tenant_id
        self._namespace = interaction.definition.namespace
        self._body = interaction.body
        self._given = given
        self._disabled = disabled
        self._is_survey = is_survey
        self._texts = _texts(interaction.body, given)
        self._prompt_texts = {item.name: self._texts[item.name] for item in interaction.body.inputs_prompt}
        self._connectors: dict[UUID, StoredVersion | str] = {}
        self.faults: list[Fault] = []
        self._headers = ToolHeaders(reader, tenant_id, interaction=interaction, given=given, fault=self._fault)

    async def tools_of(self, agent: StoredVersion, binding: AgentBinding) -> tuple[Tool, ...]:
        """What a participant has of its agent's, of its own, and of everybody's."""
        assert isinstance(agent.body, AgentVersion)
        definition = agent.definition
        own = _Place(definition.definition_id, definition.namespace)
        here = _Place(definition.definition_id, self._namespace)
        bindings = [
            (place, kind, bound)
            for place, holder in ((own, agent.body), (here, binding), (here, self._body))
            for kind in operation_links.CONNECTORS
            for _, bound in operations_of(holder, kind=kind)
            if bound.name not in self._disabled
        ]
        tools = [await self._tool(kind, bound, place) for place, kind, bound in bindings]
        return tuple(tool for tool in tools if tool is not None)

    async def _tool(self, kind: DefinitionKind, binding: OperationBinding, place: _Place) -> Tool | None:
        before = len(self.faults)
        found = await operation_links.find(
            self._reader, self._tenant_id, link=binding, namespace=place.namespace, kind=kind
        )
        if isinstance(found, str):
            self._fault(binding, found)
            return None
        stored = await operation_links.enabled(
            self._reader, self._tenant_id, found=found, number=binding.external_operation_version
        )
        connector = await self._connector(found.connector)
        for problem in (stored, connector):
            if isinstance(problem, str):
                self._fault(binding, problem)
        if isinstance(stored, str) or isinstance(connector, str):
            return None
        version = _tightened(stored.version, binding)
        for fault in faults_beside("", binding, stored.version):
            self._fault(binding, fault.message)
        bound = self._bound(binding, found, version, place)
        headers = await self._headers.of(binding, found, connector, agent_id=place.agent_id)
        if len(self.faults) > before:
            return None
        target = _target(found, connector, version, bound=bound, headers=headers)
        return self._made(binding, version, target)

    def _made(self, binding: OperationBinding, version: OperationVersion, target: OperationTarget) -> Tool:
        guidance = binding.prompt_guidance
        return Tool(
            name=binding.name,
            description=version.descriptor.description,
            parameters=bound_schema(version.descriptor, target.bound),
            is_idempotent=version.is_idempotent,
            is_read_only=version.is_read_only,
            is_terminal=binding.is_terminal,
            is_gated=is_gated(version.approval_mode, version.descriptor),
            limit_seconds=version.limit_seconds,
            limit_bytes=version.limit_bytes,
            guidance=fill(guidance, self._prompt_texts) if guidance else None,
            target=target,
        )

    async def _connector(self, connector: Definition) -> StoredVersion | str:
        key = connector.definition_id
        if key not in self._connectors:
            self._connectors[key] = await references.enabled(
                self._reader, self._tenant_id, kind=connector.kind, reference=Reference(definition_id=key)
            )
        return self._connectors[key]

    def _bound(
        self, binding: OperationBinding, found: FoundOperation, version: OperationVersion, place: _Place
    ) -> tuple[Bound, ...]:
        descriptor = version.descriptor
        inputs = [
            item
            for item in self._body.inputs_connector_binding
            if item.external_operation_id == found.operation.operation_id and is_for(item, place.agent_id)
        ]
        taken = [(item.type, "/inputs", item.target, None) for item in inputs]
        fixed = [(each, "/inputs", pair.name, None) for each, _, pair in binding.fixed()]
        before = len(self.faults)
        for fault in faults_of_targets([*fixed, *taken], descriptor, name=binding.name):
            self.faults.append(fault)
        if len(self.faults) > before:
            return ()
        made = []
        for each, _, pair in binding.fixed():
            path = path_of(descriptor, each, pair.name)
            assert path is not None
            made.append(Bound(each, pair.name, self._value(binding, version, path, pair.value, self._texts, "")))
        return (*made, *(self._input(binding, version, item) for item in inputs))

    def _input(self, binding: OperationBinding, version: OperationVersion, item: BindingInput) -> Bound:
        """What the run was given for the target; a model may choose it no more where nobody did."""
        path = path_of(version.descriptor, item.type, item.target)
        assert path is not None
        text = self._given.get(item.name, item.default_value)
        if text is None:
            if is_required(version.descriptor, path) and not self._is_survey:
                message = f"The tool '{binding.name}' needs a value for '{item.target}': give the input '{item.name}'."
                self.faults.append(Fault("/inputs", message))
            return Bound(item.type, item.target, None, is_sent=False)
        # By way of a name, so that a value that looks like an input stays as it is (F56).
        value = self._value(binding, version, path, f"%%{_VALUE}%%", {_VALUE: text}, step("/inputs", item.name))
        return Bound(item.type, item.target, value)

    def _value(
        self, binding: OperationBinding, version: OperationVersion, path: tuple[str, ...], text: str,
        inputs: Mapping[str, str], pointer: str,
    ) -> object:  # fmt: skip
        try:
            return bound_value(version.descriptor, path, text, inputs)
        except Unfit as error:
            if not self._is_survey:
                message = (
                    f"The value for '{'.'.join(path)}' of the tool '{binding.name}' is wrong: {error}. Correct it."
                )
                self.faults.append(Fault(pointer, message))
            return None

    def _fault(self, binding: OperationBinding, message: str) -> None:
        self.faults.append(Fault("", f"The tool '{binding.name}' cannot be had. {message}"))


def _texts(body: InteractionVersion, given: Mapping[str, str]) -> dict[str, str]:
    """What `%%name%%` stands for in bound values. Secrets' inputs are none of these."""
    texts = {item.name: "" for item in body.inputs_prompt}
    texts |= {item.name: item.default_value or "" for item in body.inputs_connector_binding}
    return {name: given.get(name, text) for name, text in texts.items()}


def _tightened(version: OperationVersion, binding: OperationBinding) -> OperationVersion:
    """With what the binding says beside it; that it loosens nothing was checked."""
    return replace(
        version,
        approval_mode=binding.approval_mode if binding.approval_mode is not None else version.approval_mode,
        is_idempotent=version.is_idempotent and binding.is_idempotent is not False,
        limit_seconds=binding.limit_seconds or version.limit_seconds,
        limit_bytes=binding.limit_bytes or version.limit_bytes,
    )


def _target(
    found: FoundOperation, connector: StoredVersion, version: OperationVersion, *, bound: tuple[Bound, ...], headers: tuple[SecretHeader, ...]
) -> OperationTarget:  # fmt: skip
    return OperationTarget(
        connector_id=found.connector.definition_id,
        connector_name=f"{found.connector.namespace}/{found.connector.name}",
        operation_id=found.operation.operation_id,
        operation_version=version.number,
        server=server_of(connector),
        descriptor=version.descriptor,
        bound=bound,
        headers=headers,
    )
