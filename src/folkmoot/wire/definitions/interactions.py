"""Interactions of both types: who takes part, what they may do, what they are to answer.

Deliberately absent: in a managed interaction's version, all that is about rounds, passes and votes.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Strict, Tag

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
    variant,
)

Dispatches = Annotated[int, Strict(), Field(ge=1, le=50)]


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
    """How a person takes part, in an interaction of either type."""

    chat_mode: ChatMode
    include_in_votes: bool
    include_in_solutions: bool


class InteractionSwarmSettings(ResponseShape):
    """Which interactions which participants may start. Limits are the whole tree's; null: `maxDepth` 3, `maxConcurrent` 20, `maxTotal` 100."""

    interactions: tuple[VersionReference, ...]
    participants: tuple[str, ...]
    max_depth: int | None
    max_concurrent: int | None
    max_total: int | None


class SharedInteractionVersion(DefinitionVersion):
    """What a version of either type has."""

    human_settings: RoundRobinInteractionHumanSettings | None
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
    budget: InteractionBudget | None


class RoundRobinInteractionVersion(SharedInteractionVersion):
    """One version of a round-robin interaction. Ours: `type`, `durationHumanTimeout`, `budget`, `maximumRounds` and the rules."""

    type: Literal["RoundRobin"]
    agents: tuple[InteractionAgentBinding, ...]
    is_no_action_allowed: bool
    is_voting_allowed: bool
    is_direct_questioning_allowed: bool
    is_solution_proposal_allowed: bool
    maximum_no_action_loops: int | None
    maximum_rounds: int | None
    solution_rule: DecisionRule
    vote_rule: DecisionRule


class ManagedInteractionVersion(SharedInteractionVersion):
    """One version of a managed interaction: the manager sends work to the agents, to several at once up to a limit."""

    type: Literal["Managed"]
    manager: InteractionAgentBinding
    agents: tuple[InteractionAgentBinding, ...]
    maximum_concurrent_dispatches: int


class Interaction(DefinitionResource):
    """An interaction and its newest version, disabled or not. All its versions are of one type."""

    type: Literal["RoundRobin", "Managed"]
    latest_version: RoundRobinInteractionVersion | ManagedInteractionVersion


class InteractionPage(Page[Interaction]):
    """A page of interactions."""


class InteractionVersionPage(Page[RoundRobinInteractionVersion | ManagedInteractionVersion]):
    """A page of versions, the newest first."""


class RoundRobinInteractionHumanSettingsRequest(RequestShape):
    """How a person takes part."""

    chat_mode: ChatMode
    include_in_votes: Flag = False
    include_in_solutions: Flag = False


class InteractionSwarmSettingsRequest(RequestShape):
    """Which interactions which participants may start. Limits hold for the whole tree: `maxDepth` (null: 3), `maxConcurrent` (20, at most
    10,000), `maxTotal` (100, at most 100,000)."""

    interactions: tuple[ReferenceRequest, ...] = ()
    participants: tuple[Name, ...] = ()
    max_depth: Count | None = None
    max_concurrent: Count | None = None
    max_total: Count | None = None


class SharedInteractionVersionRequest(RequestShape):
    """What a version of either type may say. `solutionSchema` is a JSON Schema (draft 2020-12) as text."""

    agents: Annotated[tuple[InteractionAgentBindingRequest, ...], Field(min_length=1)]
    human_settings: RoundRobinInteractionHumanSettingsRequest | None = None
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
    budget: InteractionBudgetRequest | None = None


class RoundRobinInteractionVersionRequest(SharedInteractionVersionRequest):
    """A new version of a round-robin interaction."""

    type: Literal["RoundRobin"] = "RoundRobin"
    is_no_action_allowed: Flag = False
    is_voting_allowed: Flag = False
    is_direct_questioning_allowed: Flag = False
    is_solution_proposal_allowed: Flag = False
    maximum_no_action_loops: Positive | None = None
    maximum_rounds: Positive | None = None
    solution_rule: DecisionRule = DecisionRule.MAJORITY
    vote_rule: DecisionRule = DecisionRule.MAJORITY


class ManagedInteractionVersionRequest(SharedInteractionVersionRequest):
    """A version of a managed interaction. The `description` of each of the agents is what the manager reads of it."""

    type: Literal["Managed"] = "Managed"
    manager: InteractionAgentBindingRequest
    maximum_concurrent_dispatches: Dispatches = 4


class TypedManagedInteractionVersionRequest(ManagedInteractionVersionRequest):
    """The same where nothing around it says its type."""

    type: Literal["Managed"]


class RoundRobinInteractionRequest(RequestShape):
    """Creates a round-robin interaction with its first version."""

    name: Name
    type: Literal["RoundRobin"]
    version: RoundRobinInteractionVersionRequest


class ManagedInteractionRequest(RequestShape):
    """Creates a managed interaction with its first version."""

    name: Name
    type: Literal["Managed"]
    version: ManagedInteractionVersionRequest


def _tag(value: Any) -> str | None:
    """By the body's `type`; without one it is the older type, so that what was sent before there were two means the same."""
    if not isinstance(value, Mapping):
        return variant("RoundRobin")
    kind = value.get("type", "RoundRobin")
    return variant(kind) if kind in ("RoundRobin", "Managed") else None


_BY_TYPE = Discriminator(
    _tag,
    custom_error_type="interaction_type",
    custom_error_message="An interaction's 'type' is 'RoundRobin' or 'Managed'; correct it.",
)
InteractionRequest = Annotated[
    Annotated[RoundRobinInteractionRequest, Tag(variant("RoundRobin"))]
    | Annotated[ManagedInteractionRequest, Tag(variant("Managed"))],
    _BY_TYPE,
]
InteractionVersionRequest = Annotated[
    Annotated[RoundRobinInteractionVersionRequest, Tag(variant("RoundRobin"))]
    | Annotated[TypedManagedInteractionVersionRequest, Tag(variant("Managed"))],
    _BY_TYPE,
]
