"""Where an agent and an interaction meet: the agent's `%%name%%`s need inputs, and the tools of both need names of their own.

Pointers are the one that is handed in: neither version holds the fault alone. Deliberately absent: what either says for itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from folkmoot.domain.binding_checks import faults_of_secret_input, faults_of_texts
from folkmoot.domain.checking import inputs_of_calls, operations_of, tools_of_agent
from folkmoot.domain.definitions import AgentBinding, AgentVersion, InteractionType, InteractionVersion
from folkmoot.domain.prompts import check_prompts
from folkmoot.domain.routers import RouterVersion
from folkmoot.domain.tool_names import faults_of_tool_names
from folkmoot.kernel.errors import Fault


def faults_of_participant(
    pointer: str, *, agent: AgentVersion, name: str, binding: AgentBinding, interaction: InteractionVersion
) -> tuple[Fault, ...]:
    """What of the agent (`name` is its own) does not fit the interaction."""
    return (
        *_faults_of_texts(pointer, agent, name, interaction),
        *_faults_of_tools(pointer, agent, name, binding, interaction),
    )


def faults_of_router_in(
    pointer: str, *, router: RouterVersion, name: str, interaction: InteractionVersion
) -> Iterator[Fault]:
    """What of a router (`name` is its own) does not fit the interaction: its prompt's `%%name%%`s need inputs as an agent's do."""
    if router.prompt is not None:
        known = [item.name for item in interaction.inputs_prompt]
        for fault in check_prompts([(pointer, router.prompt)], known):
            yield Fault(pointer, f"In the prompt of router '{name}': {fault.message}")


def _faults_of_texts(pointer: str, agent: AgentVersion, name: str, interaction: InteractionVersion) -> Iterator[Fault]:
    known = [item.name for item in interaction.inputs_prompt]
    for fault in check_prompts([(pointer, text) for text in agent.prompts], known):
        yield Fault(pointer, f"In the prompts of agent '{name}': {fault.message}")
    secret_inputs = [item.name for item in interaction.inputs_connector_authentication_secret]
    for _, bound in operations_of(agent):
        faults = list(faults_of_texts("", bound, inputs=inputs_of_calls(interaction), prompt_inputs=known))
        header = bound.authentication_header
        if header is not None and header.secret_input_name is not None:
            faults += faults_of_secret_input("", header.secret_input_name, secret_inputs)
        for fault in faults:
            yield Fault(pointer, f"In the tool '{bound.name}' of agent '{name}': {fault.message}")


def _faults_of_tools(
    pointer: str, agent: AgentVersion, name: str, binding: AgentBinding, interaction: InteractionVersion
) -> Iterator[Fault]:
    """Those of the agent alone and of the interaction alone are found there; here what is alike between the two."""
    own = [tool for _, tool in tools_of_agent(agent)]
    others = [bound.name for _, bound in (*operations_of(binding), *operations_of(interaction))]
    is_managed = interaction.type is InteractionType.MANAGED
    before = {fault.message for fault in (*_alone(own), *_alone(others, is_managed=is_managed))}
    for fault in faults_of_tool_names([(pointer, tool) for tool in (*own, *others)], is_managed=is_managed):
        if fault.message not in before:
            yield Fault(pointer, f"With agent '{name}': {fault.message}")


def _alone(names: list[str], *, is_managed: bool = False) -> tuple[Fault, ...]:
    return faults_of_tool_names([("", tool) for tool in names], is_managed=is_managed)
