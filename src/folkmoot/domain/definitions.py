"""Definitions and their versions: agents, AI models, interactions; and the closure that a run starts with.

A version is never rewritten. Deliberately absent: effects of the settings that later parts bring (looms, web access); they are
kept as they came, and a start that needs them is refused (`services.starting`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from folkmoot.domain.agent_runs import PinnedLoop
from folkmoot.domain.agent_settings import AgentRunSettings
from folkmoot.domain.budgets import Budget, BudgetAbove
from folkmoot.domain.calls import Tool
from folkmoot.domain.channels import ChannelVersion
from folkmoot.domain.connectors import McpConnectorVersion, OpenApiConnectorVersion
from folkmoot.domain.contexts import ContextSettings
from folkmoot.domain.credentials import CredentialEntry, CredentialStackVersion, StackSnapshot
from folkmoot.domain.model_calls import ModelChoice, ModelPurpose, Sampling
from folkmoot.domain.references import Reference as Reference
from folkmoot.domain.routers import CandidateKind, PinnedRouter, RouterVersion
from folkmoot.domain.swarms import PinnedSwarm, SwarmSettings
from folkmoot.domain.tool_bindings import BindingInput, OperationBinding, SecretInput

Json = Any


class DefinitionKind(StrEnum):
    AGENT = "Agent"
    ROUTER = "Router"
    AI_MODEL = "AiModel"
    INTERACTION = "Interaction"
    MCP_CONNECTOR = "McpConnector"
    OPEN_API_CONNECTOR = "OpenApiConnector"
    CREDENTIAL_STACK = "CredentialStack"
    CHANNEL = "Channel"


@dataclass(frozen=True, slots=True)
class AiModelVersion:
    """`prices`: money per million tokens by kind; `capabilities`: tools, structuredOutput, images, reasoning.

    `context_window` null: as the catalogue of known models says when a run starts.
    """

    provider: str
    model_name: str
    context_window: int | None = None
    largest_response: int | None = None
    base_url: str | None = None
    api_key_variable: str | None = None
    path: str | None = None
    capabilities: dict[str, bool] = field(default_factory=dict)
    prices: dict[str, float] | None = None


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """`function_tools`: names of the operator's Python functions that this agent may call. `runs`: what its own runs are defined by, which is
    nothing to those in which it takes part. `later`: fields kept for later parts."""

    model: Reference
    description: str | None = None
    prompts: tuple[str, ...] = ()
    settings: Sampling = field(default_factory=Sampling)
    function_tools: tuple[str, ...] = ()
    external_operations_mcp: tuple[OperationBinding, ...] = ()
    external_operations_open_api: tuple[OperationBinding, ...] = ()
    later: dict[str, Json] = field(default_factory=dict)
    runs: AgentRunSettings = field(default_factory=AgentRunSettings)


class DataType(StrEnum):
    STRING = "String"
    NUMBER = "Number"
    INTEGER = "Integer"
    BOOLEAN = "Boolean"
    JSON = "Json"
    DATE = "Date"


@dataclass(frozen=True, slots=True)
class PromptInput:
    data_type: DataType
    name: str
    description: str | None = None
    is_required: bool = False


class SystemPromptMode(StrEnum):
    APPEND = "AppendToDefault"
    REPLACE = "ReplaceDefault"


class Rule(StrEnum):
    MAJORITY = "Majority"
    UNANIMOUS = "Unanimous"


class ChatMode(StrEnum):
    EXCLUDED = "Excluded"
    OBSERVING = "Observing"
    EVERY_ROUND = "EveryRound"
    ON_QUESTION = "OnQuestion"


@dataclass(frozen=True, slots=True)
class HumanSettings:
    chat_mode: ChatMode
    include_in_votes: bool = False
    include_in_solutions: bool = False


class InteractionType(StrEnum):
    ROUND_ROBIN = "RoundRobin"
    MANAGED = "Managed"


DEFAULT_CONCURRENT_DISPATCHES = 4


@dataclass(frozen=True, slots=True)
class AgentBinding:
    """A participant. `name` null: the agent's own name. `later`: loom and web access, kept for later parts.

    `kind`: whether `agent` links to an agent or to a router, which then decides before each turn; null until that is known.
    `description`: what a manager reads of it; null: the agent's own.
    """

    agent: Reference
    name: str | None = None
    external_operations_mcp: tuple[OperationBinding, ...] = ()
    external_operations_open_api: tuple[OperationBinding, ...] = ()
    later: dict[str, Json] = field(default_factory=dict)
    kind: CandidateKind | None = None
    description: str | None = None


@dataclass(frozen=True, slots=True)
class InteractionVersion:
    """Participants take turns (`RoundRobin`), or a `manager` sends work to the `agents` (`Managed`), several at once up to
    `maximum_concurrent_dispatches`. What is not for a type has its default there.

    `context_settings` holds the wire's fields as they came, but for its one link, `compaction_model`; `later` the fields of
    later parts, by their wire names. `credential_stack`: `name` or `namespace/name` of the runs' stack, where a start names none."""

    agents: tuple[AgentBinding, ...]
    prompt: str
    is_no_action_allowed: bool = False
    is_voting_allowed: bool = False
    is_direct_questioning_allowed: bool = False
    is_solution_proposal_allowed: bool = False
    human_settings: HumanSettings | None = None
    maximum_no_action_loops: int | None = None
    external_operations_mcp: tuple[OperationBinding, ...] = ()
    external_operations_open_api: tuple[OperationBinding, ...] = ()
    inputs_connector_authentication_secret: tuple[SecretInput, ...] = ()
    inputs_connector_binding: tuple[BindingInput, ...] = ()
    inputs_prompt: tuple[PromptInput, ...] = ()
    solution_schema: str | None = None
    system_prompt_mode: SystemPromptMode = SystemPromptMode.APPEND
    system_prompts: tuple[str, ...] = ()
    duration_warning_to_ai: timedelta | None = None
    duration_auto_termination: timedelta | None = None
    duration_human_timeout: timedelta | None = None
    maximum_rounds: int | None = None
    solution_rule: Rule = Rule.MAJORITY
    vote_rule: Rule = Rule.MAJORITY
    context_settings: dict[str, Json] = field(default_factory=dict)
    compaction_model: Reference | None = None
    credential_stack: str | None = None
    later: dict[str, Json] = field(default_factory=dict)
    budget: Budget | None = None
    type: InteractionType = InteractionType.ROUND_ROBIN
    manager: AgentBinding | None = None
    maximum_concurrent_dispatches: int = DEFAULT_CONCURRENT_DISPATCHES
    swarm: SwarmSettings | None = None

    @property
    def bindings(self) -> tuple[AgentBinding, ...]:
        """All participants; a manager comes first."""
        return self.agents if self.manager is None else (self.manager, *self.agents)

    @property
    def placed(self) -> tuple[tuple[str, AgentBinding], ...]:
        """The same, each with its JSON pointer."""
        agents = tuple((f"/agents/{index}", binding) for index, binding in enumerate(self.agents))
        return agents if self.manager is None else (("/manager", self.manager), *agents)


Version = (
    AgentVersion
    | RouterVersion
    | AiModelVersion
    | InteractionVersion
    | McpConnectorVersion
    | OpenApiConnectorVersion
    | CredentialStackVersion
    | ChannelVersion
)


@dataclass(frozen=True, slots=True)
class Definition:
    """A named thing of a namespace. `latest_version` counts disabled ones too."""

    definition_id: UUID
    kind: DefinitionKind
    namespace: str
    name: str
    latest_version: int
    created_by: UUID
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class StoredVersion:
    definition: Definition
    number: int
    body: Version
    is_disabled: bool
    created_at: datetime


# What a run is pinned to.

DEFAULT_WINDOW = 8192  # tokens, where neither a definition nor the catalogue names a model's


@dataclass(frozen=True, slots=True)
class Participant:
    """One seat of the conversation with everything its turns need, prompts filled in.

    `compaction_model`: what summarises its view in place of its own model; null: its own. `routers`: of a seat whose agent is chosen
    before each turn, its router and all those that one may choose; `candidates`: the same seat with each agent that can be chosen.
    Its own fields are then those of the agent that is there until the first choice: what the fallbacks lead to.
    """

    name: str
    agent_id: UUID
    agent_name: str
    agent_version: int
    description: str | None
    prompts: tuple[str, ...]
    model: ModelChoice
    sampling: Sampling
    tools: tuple[Tool, ...] = ()
    compaction_model: ModelChoice | None = None
    routers: tuple[PinnedRouter, ...] = ()
    candidates: tuple[Participant, ...] = ()

    @property
    def variants(self) -> tuple[Participant, ...]:
        """The seat with each agent that may have it: itself alone where none is chosen."""
        return self.candidates or (self,)


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """A participant's model for one run. One of `model_id` (of the catalogue) and `custom_model` is set."""

    agent_name: str
    purpose: ModelPurpose
    model_id: UUID | None = None
    custom_model: AiModelVersion | None = None


@dataclass(frozen=True, slots=True)
class ResolvedInteraction:
    """The whole closure of a start, written once and never changed. `inputs` are name and value as text, as they were given,
    and so are `ai_model_overrides`; what they led to is in the participants.

    `allow_platform_fallback` null: it was started before that was asked, and goes on with the operator's keys. `manager`: the
    participant that sends work to the others; null: participants take turns. `budgets_above`: of the runs that this one is a
    sub-run of, which its calls are held to beside its own. `model_for_all`: what a command put in place of all models, in sub-runs too.
    `loop`: of an agent run, whose interaction is the agent itself; null: it is a run of an interaction.
    """

    interaction_id: UUID
    interaction_name: str
    interaction_version: int
    namespace: str
    participants: tuple[Participant, ...]
    task: str
    system_prompts: tuple[str, ...]
    system_prompt_mode: SystemPromptMode
    inputs: tuple[tuple[str, str], ...] = ()
    is_no_action_allowed: bool = False
    is_voting_allowed: bool = False
    is_direct_questioning_allowed: bool = False
    is_solution_proposal_allowed: bool = False
    human_settings: HumanSettings | None = None
    maximum_no_action_loops: int | None = None
    maximum_rounds: int | None = None
    solution_schema: str | None = None
    solution_rule: Rule = Rule.MAJORITY
    vote_rule: Rule = Rule.MAJORITY
    context: ContextSettings = field(default_factory=ContextSettings)
    duration_auto_termination: timedelta | None = None
    duration_human_timeout: timedelta | None = None
    disabled_tools: tuple[str, ...] = ()
    duration_warning_to_ai: timedelta | None = None
    ai_model_overrides: tuple[ModelOverride, ...] = ()
    credential_stack: StackSnapshot | None = None
    credentials: tuple[CredentialEntry, ...] = ()
    allow_platform_fallback: bool | None = None
    budget: Budget | None = None
    manager: str | None = None
    maximum_concurrent_dispatches: int = DEFAULT_CONCURRENT_DISPATCHES
    swarm: PinnedSwarm | None = None
    budgets_above: tuple[BudgetAbove, ...] = ()
    model_for_all: ModelChoice | None = None
    loop: PinnedLoop | None = None

    @property
    def starts_runs(self) -> bool:
        """Whether the run may have others below it, whose states are facts and which end with it."""
        return self.swarm is not None or (self.loop is not None and bool(self.loop.specialists))
