"""What must hold when a version is saved. Pointers are into the version, by the wire's names.

Everything wrong is found at once, so that it can be put right at once. Deliberately absent: whether the things that a
version refers to exist; that takes the store.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from folkmoot.domain.agent_checks import faults_of_runs
from folkmoot.domain.binding_checks import faults_of_bindings, faults_of_call_inputs
from folkmoot.domain.budgets import faults_of_budget
from folkmoot.domain.context_checks import LARGEST_COUNT, faults_of_context
from folkmoot.domain.definitions import (
    AgentBinding,
    AgentVersion,
    ChatMode,
    DefinitionKind,
    InteractionType,
    InteractionVersion,
    PromptInput,
)
from folkmoot.domain.input_values import faults_of_inputs
from folkmoot.domain.later_parts import later_fields
from folkmoot.domain.link_checks import faults_of_link
from folkmoot.domain.managed_checks import faults_of_managed
from folkmoot.domain.model_checks import faults_of_model
from folkmoot.domain.participant_names import faults_of_names
from folkmoot.domain.prompts import check_prompts, problem_of_input_name
from folkmoot.domain.schemas import check_schema
from folkmoot.domain.swarm_checks import faults_of_swarm
from folkmoot.domain.time_checks import faults_of_warning, is_usable
from folkmoot.domain.tool_bindings import OperationBinding
from folkmoot.domain.tool_names import faults_of_tool_names
from folkmoot.kernel.errors import Fault

__all__ = [
    "faults_of_agent",
    "faults_of_inputs",
    "faults_of_interaction",
    "faults_of_model",
    "faults_of_names",
    "later_fields",
]

Json = Any


def faults_of_interaction(version: InteractionVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved; () if nothing does."""
    return (
        *_participant_faults(version),
        *_input_faults(version.inputs_prompt),
        *_prompt_faults(version),
        *_tool_faults(version),
        *(check_schema(version.solution_schema, "/solutionSchema") if version.solution_schema is not None else ()),
        *_bound_faults(version),
        *faults_of_warning(version.duration_warning_to_ai, version.duration_auto_termination),
        *faults_of_context(version.context_settings),
        *_compaction_faults(version),
        *_endless_faults(version),
        *faults_of_managed(version),
        *(faults_of_swarm(version.swarm, [name_of(each) for each in version.bindings]) if version.swarm else ()),
        *faults_of_budget(version.budget),
    )


def faults_of_agent(version: AgentVersion) -> tuple[Fault, ...]:
    """What keeps the version from being saved. Its prompts are checked at a start, where the inputs are known."""
    return (
        *faults_of_link("/model", version.model, "a model"),
        *_sampling_faults(version),
        *faults_of_tool_names(tools_of_agent(version)),
        *faults_of_bindings(operations_of(version)),
        *faults_of_runs(version.runs, tools_of_agent(version)),
    )


Bindings = list[tuple[str, OperationBinding]]

BINDING_FIELDS = {
    DefinitionKind.MCP_CONNECTOR: "externalOperationsMcp",
    DefinitionKind.OPEN_API_CONNECTOR: "externalOperationsOpenApi",
}


def operations_of(
    version: AgentVersion | AgentBinding | InteractionVersion, pointer: str = "", *, kind: DefinitionKind | None = None
) -> Bindings:
    """The bindings of its own, each with its JSON pointer; `pointer` is that of the whole. `kind`: of connectors; null: both."""
    bound = {
        DefinitionKind.MCP_CONNECTOR: version.external_operations_mcp,
        DefinitionKind.OPEN_API_CONNECTOR: version.external_operations_open_api,
    }
    return [
        (f"{pointer}/{BINDING_FIELDS[each]}/{index}", binding)
        for each, bindings in bound.items()
        if kind in (None, each)
        for index, binding in enumerate(bindings)
    ]


def tools_of_agent(version: AgentVersion) -> list[tuple[str, str]]:
    """Pointers and names of an agent's own tools."""
    return [
        *((f"/functionTools/{index}", name) for index, name in enumerate(version.function_tools)),
        *((f"{pointer}/name", binding.name) for pointer, binding in operations_of(version)),
    ]


def inputs_of_calls(version: InteractionVersion) -> list[str]:
    """The names that bound values may use."""
    prompts = [item.name for item in version.inputs_prompt]
    return [*prompts, *(item.name for item in version.inputs_connector_binding)]


def _participant_faults(version: InteractionVersion) -> Iterator[Fault]:
    if not version.agents:
        yield Fault("/agents", "Nobody takes part; name at least one agent.")
    for pointer, binding in version.placed:
        yield from faults_of_link(f"{pointer}/agent", binding.agent, "an agent")
    # A binding without any name is given its agent's own when the run starts, and checked again there.
    named = ((f"{pointer}/name", name_of(binding)) for pointer, binding in version.placed)
    yield from faults_of_names((pointer, name) for pointer, name in named if name is not None)


def name_of(binding: AgentBinding) -> str | None:
    """What the participant is called; null: as its agent, which is linked by its id alone."""
    return binding.name if binding.name is not None else binding.agent.name


def _input_faults(inputs: tuple[PromptInput, ...]) -> Iterator[Fault]:
    seen: set[str] = set()
    for index, item in enumerate(inputs):
        pointer = f"/inputsPrompt/{index}/name"
        problem = problem_of_input_name(item.name)
        if problem is not None:
            yield Fault(pointer, problem)
        elif item.name in seen:
            yield Fault(pointer, f"There are two inputs '{item.name}'; rename one of them.")
        seen.add(item.name)


def _prompt_faults(version: InteractionVersion) -> tuple[Fault, ...]:
    prompts = [("/prompt", version.prompt)]
    prompts += [(f"/systemPrompts/{index}", text) for index, text in enumerate(version.system_prompts)]
    return check_prompts(prompts, [item.name for item in version.inputs_prompt])


def _bound_faults(version: InteractionVersion) -> Iterator[Fault]:
    counts = {"maximumNoActionLoops": version.maximum_no_action_loops, "maximumRounds": version.maximum_rounds}
    for name, count in counts.items():
        if count is not None and not 1 <= count <= LARGEST_COUNT:
            yield Fault(f"/{name}", f"This is a number from 1 to {LARGEST_COUNT}, or null for no limit; correct it.")
    durations = {
        "durationWarningToAi": version.duration_warning_to_ai,
        "durationAutoTermination": version.duration_auto_termination,
        "durationHumanTimeout": version.duration_human_timeout,
    }
    for name, duration in durations.items():
        if duration is not None and not is_usable(duration):
            message = "This is a time longer than none and of at most 999,999 days, such as 00:05:00, or null for no limit; correct it."
            yield Fault(f"/{name}", message)


def _compaction_faults(version: InteractionVersion) -> Iterator[Fault]:
    """A dedicated type without a model is none: a start may name it."""
    model, pointer = version.compaction_model, "/contextSettings/compactionModel"
    if model is None:
        return
    yield from faults_of_link(pointer, model, "a model")
    if version.context_settings.get("compactionType") != "DedicatedModel":
        yield Fault(
            pointer,
            "A model of its own compacts where compactionType is 'DedicatedModel'; set that, or leave this out.",
        )


def _endless_faults(version: InteractionVersion) -> Iterator[Fault]:
    """A manager's work ends with its answer."""
    people = version.human_settings
    has_end = (
        version.type is InteractionType.MANAGED
        or version.is_solution_proposal_allowed
        or (people is not None and people.chat_mode is not ChatMode.EXCLUDED)
        or version.maximum_rounds is not None
        or version.duration_auto_termination is not None
        or (version.is_no_action_allowed and version.maximum_no_action_loops is not None)
    )
    if not has_end:
        message = (
            "This conversation could never end: nobody may propose a solution, no person may write, and rounds, passes and "
            "time have no bound. Set isSolutionProposalAllowed, maximumRounds, durationAutoTermination, "
            "maximumNoActionLoops together with isNoActionAllowed, or humanSettings with chatMode 'Observing'."
        )
        yield Fault("", message)


def _sampling_faults(version: AgentVersion) -> Iterator[Fault]:
    settings = version.settings
    for name, number, largest in (("temperature", settings.temperature, 2), ("topP", settings.top_p, 1)):
        if number is not None and not (math.isfinite(number) and 0 <= number <= largest):
            yield Fault(
                f"/settings/{name}",
                f"This is a number from 0 to {largest}, or null for the provider's own; correct it.",
            )
    if settings.seed is not None and not 0 <= settings.seed < 2**32:
        yield Fault("/settings/seed", "A seed is a whole number from 0 to 4294967295; correct it.")
    if settings.max_tokens is not None and not 1 <= settings.max_tokens <= LARGEST_COUNT:
        yield Fault("/settings/maxTokens", f"This is a whole number from 1 to {LARGEST_COUNT}, or null; correct it.")


def _tool_faults(version: InteractionVersion) -> Iterator[Fault]:
    everyone = operations_of(version)
    own = [operations_of(binding, pointer) for pointer, binding in version.placed]
    is_managed = version.type is InteractionType.MANAGED
    named = [(f"{pointer}/name", binding.name) for pointer, binding in everyone]
    yield from faults_of_tool_names(named, is_managed=is_managed)
    for bindings in own:
        named = [(f"{pointer}/name", binding.name) for pointer, binding in (*everyone, *bindings)]
        shared = {f"{pointer}/name" for pointer, _ in everyone}
        found = faults_of_tool_names(named, is_managed=is_managed)
        yield from (fault for fault in found if fault.pointer not in shared)
    secret_inputs = {item.name for item in version.inputs_connector_authentication_secret}
    yield from faults_of_bindings(
        [*everyone, *(pair for bindings in own for pair in bindings)],
        inputs=inputs_of_calls(version),
        prompt_inputs=[item.name for item in version.inputs_prompt],
        secret_inputs=secret_inputs,
    )
    yield from faults_of_call_inputs(
        version.inputs_connector_authentication_secret,
        version.inputs_connector_binding,
        prompts=[item.name for item in version.inputs_prompt],
    )
