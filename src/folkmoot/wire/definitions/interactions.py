"""Interactions: who takes part, what they may do, what they are to answer.

Deliberately absent: managed interactions, as yet.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from folkmoot.wire.definitions.bindings import (
    InteractionAgentBinding,
    InteractionAgentBindingRequest,
    McpExternalOperationBinding,
    McpExternalOperationBindingRequest,
    OpenApiExternalOperationBinding,
    OpenApiExternalOperationBindingRequest,
)
from folkmoot.wire.definitions.budgets import InteractionBudget, InteractionBudgetRequest
from folkmoot.wire.definitions.contexts import InteractionContextSettings, InteractionContextSettingsRequest
from folkmoot.wire.definitions.inputs import (
    ConnectorAuthenticationSecretInput,
    ConnectorAuthenticationSecretInputRequest,
    ConnectorBindingInput,
    ConnectorBindingInputRequest,
    PromptInput,
    PromptInputRequest,
)
from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.definitions.looms import LoomConfiguration, LoomConfigurationRequest
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import (
    Count,
    Flag,
    Name,
    Page,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    Timespan,
    VersionReference,
)


class ChatMode(StrEnum):
    """Whether a person may write, and when the run waits for them."""

    EXCLUDED = "Excluded"
    OBSERVING = "Observing"
    EVERY_ROUND = "EveryRound"
    ON_QUESTION = "OnQuestion"


class DecisionRule(StrEnum):
    """How many of those entitled must agree."""

    UNANIMOUS = "Unanimous"
    MAJORITY = "Majority"


class InteractionSystemPromptMode(StrEnum):
    """Whether system prompts come after the default instructions or in their place."""

    APPEND_TO_DEFAULT = "AppendToDefault"
    REPLACE_DEFAULT = "ReplaceDefault"


class RoundRobinInteractionHumanSettings(ResponseShape):
    """How a person takes part."""

    chat_mode: ChatMode
    include_in_votes: bool
    include_in_solutions: bool


class InteractionSwarmSettings(ResponseShape):
    """Which interactions which participants may start; limits are the whole tree's, null leaves them to the tenant."""

    interactions: tuple[VersionReference, ...]
    participants: tuple[str, ...]
    max_depth: int | None
    max_concurrent: int | None
    max_total: int | None


class RoundRobinInteractionVersion(DefinitionVersion):
    """One version of a round-robin interaction; the last five fields are ours."""

    agents: tuple[InteractionAgentBinding, ...]
    is_no_action_allowed: bool
    is_voting_allowed: bool
    is_direct_questioning_allowed: bool
    is_solution_proposal_allowed: bool
    human_settings: RoundRobinInteractionHumanSettings | None
    maximum_no_action_loops: int | None
    external_operations_mcp: tuple[McpExternalOperationBinding, ...]
    external_operations_open_api: tuple[OpenApiExternalOperationBinding, ...]
    inputs_connector_authentication_secret: tuple[ConnectorAuthenticationSecretInput, ...]
    inputs_connector_binding: tuple[ConnectorBindingInput, ...]
    inputs_prompt: tuple[PromptInput, ...]
    prompt: str
    solution_schema: str | None
    system_prompt_mode: InteractionSystemPromptMode
    system_prompts: tuple[str, ...]
    duration_warning_to_ai: Timespan | None
    duration_auto_termination: Timespan | None
    context_settings: InteractionContextSettings
    loom: LoomConfiguration | None
    swarm: InteractionSwarmSettings | None
    credential_stack: str | None
    duration_human_timeout: Timespan | None
    maximum_rounds: int | None
    solution_rule: DecisionRule
    vote_rule: DecisionRule
    budget: InteractionBudget | None


class Interaction(DefinitionResource):
    """An interaction and its newest version, disabled or not."""

    type: Literal["RoundRobin", "Managed"]
    latest_version: RoundRobinInteractionVersion


class InteractionPage(Page[Interaction]):
    """A page of interactions."""


class RoundRobinInteractionVersionPage(Page[RoundRobinInteractionVersion]):
    """A page of versions, the newest first."""


class RoundRobinInteractionHumanSettingsRequest(RequestShape):
    """How a person takes part."""

    chat_mode: ChatMode
    include_in_votes: Flag = False
    include_in_solutions: Flag = False


class InteractionSwarmSettingsRequest(RequestShape):
    """Which interactions which participants may start; limits hold for the whole tree."""

    interactions: tuple[ReferenceRequest, ...] = ()
    participants: tuple[Name, ...] = ()
    max_depth: Count | None = None
    max_concurrent: Count | None = None
    max_total: Count | None = None


class RoundRobinInteractionVersionRequest(RequestShape):
    """A new version of a round-robin interaction. `solutionSchema` is a JSON Schema (draft 2020-12) as text."""

    agents: Annotated[tuple[InteractionAgentBindingRequest, ...], Field(min_length=1)]
    is_no_action_allowed: Flag = False
    is_voting_allowed: Flag = False
    is_direct_questioning_allowed: Flag = False
    is_solution_proposal_allowed: Flag = False
    human_settings: RoundRobinInteractionHumanSettingsRequest | None = None
    maximum_no_action_loops: Positive | None = None
    external_operations_mcp: tuple[McpExternalOperationBindingRequest, ...] = ()
    external_operations_open_api: tuple[OpenApiExternalOperationBindingRequest, ...] = ()
    inputs_connector_authentication_secret: tuple[ConnectorAuthenticationSecretInputRequest, ...] = ()
    inputs_connector_binding: tuple[ConnectorBindingInputRequest, ...] = ()
    inputs_prompt: tuple[PromptInputRequest, ...] = ()
    prompt: Text
    solution_schema: Text | None = None
    system_prompt_mode: InteractionSystemPromptMode = InteractionSystemPromptMode.APPEND_TO_DEFAULT
    system_prompts: tuple[Text, ...] = ()
    duration_warning_to_ai: Timespan | None = None
    duration_auto_termination: Timespan | None = None
    context_settings: InteractionContextSettingsRequest = InteractionContextSettingsRequest()
    loom: LoomConfigurationRequest | None = None
    swarm: InteractionSwarmSettingsRequest | None = None
    credential_stack: LinkText | None = None
    duration_human_timeout: Timespan | None = None
    maximum_rounds: Positive | None = None
    solution_rule: DecisionRule = DecisionRule.MAJORITY
    vote_rule: DecisionRule = DecisionRule.MAJORITY
    budget: InteractionBudgetRequest | None = None


class InteractionRequest(RequestShape):
    """Creates an interaction with its first version."""

    name: Name
    type: Literal["RoundRobin"]
    version: RoundRobinInteractionVersionRequest
