"""Agents: prompts, model, sampling, tools, memory, and what their own runs are defined by. Deliberately absent: the runs."""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from folkmoot.wire.definitions.bindings import (
    McpExternalOperationBinding,
    McpExternalOperationBindingRequest,
    OpenApiExternalOperationBinding,
    OpenApiExternalOperationBindingRequest,
    WebAccess,
    WebAccessRequest,
)
from folkmoot.wire.definitions.links import LinkText
from folkmoot.wire.definitions.looms import LoomConfiguration, LoomConfigurationRequest
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import (
    Amount,
    Name,
    Page,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    Timespan,
    Tokens,
    Uuid,
    VersionReference,
    Whole,
)

_Seed = Annotated[int, Strict(), Field(ge=0, le=2**32 - 1)]
_Temperature = Annotated[float, Strict(), Field(ge=0, le=2, allow_inf_nan=False)]
_Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]


Comparison = Literal["Always", "Above", "Below", "Equals", "Differs", "Contains"]


class SamplingSettings(ResponseShape):
    """How a model's replies are drawn; null leaves it to the provider."""

    temperature: float | None
    top_p: float | None
    seed: int | None
    max_tokens: int | None


class ConsentRule(ResponseShape):
    """Calls of `tool` whose `argument` (a name, or a JSON pointer) compares so to `value` need the owner's consent."""

    tool: str
    argument: str | None
    comparison: Comparison
    value: Any


class AgentBudget(ResponseShape):
    """How much a run may use with all that it delegates; null: no limit. `money` is in US dollars; `workingTime` counts no waiting for people."""

    tokens: int | None
    money: Amount | None
    model_calls: int | None
    tool_calls: int | None
    working_time: Timespan | None


class AgentVersion(DefinitionVersion):
    """One version of an agent. `description` is for managers and routers, `functionTools` the operator's functions.

    From `owner` on: of its own runs. `owner`: whose rights they have; null: whoever made the agent. `channel` null: `web`;
    `consentTime` null: for ever.
    """

    description: str | None
    prompts: tuple[str, ...]
    model: VersionReference | str
    settings: SamplingSettings
    function_tools: tuple[str, ...]
    external_operations_mcp: tuple[McpExternalOperationBinding, ...]
    external_operations_open_api: tuple[OpenApiExternalOperationBinding, ...]
    web_access: WebAccess | None
    loom_id: Uuid | None
    loom: LoomConfiguration | None
    owner: Uuid | None
    tool_whitelist: tuple[str, ...]
    specialists: tuple[VersionReference, ...]
    consent_rules: tuple[ConsentRule, ...]
    maximum_iterations: int
    agent_budget: AgentBudget
    channel: str | None
    consent_time: Timespan | None


class Agent(DefinitionResource):
    """An agent and its newest version, disabled or not."""

    latest_version: AgentVersion


class AgentPage(Page[Agent]):
    """A page of agents."""


class AgentVersionPage(Page[AgentVersion]):
    """A page of versions, the newest first."""


class SamplingSettingsRequest(RequestShape):
    """How a model's replies are drawn; null leaves it to the provider."""

    temperature: _Temperature | None = None
    top_p: _Share | None = None
    seed: _Seed | None = None
    max_tokens: Positive | None = None


class ConsentRuleRequest(RequestShape):
    """Calls of `tool` whose `argument` (a name, or a JSON pointer) compares so to `value` need the owner's consent; `Always` looks at none."""

    tool: Name
    argument: Text | None = None
    comparison: Comparison = "Always"
    value: Any = None


class AgentBudgetRequest(RequestShape):
    """How much a run may use with all that it delegates; null: no limit. `money` is in US dollars; `workingTime` counts no waiting for people."""

    tokens: Tokens | None = None
    money: Amount | None = None
    model_calls: Tokens | None = None
    tool_calls: Tokens | None = None
    working_time: Timespan | None = None


class AgentVersionRequest(RequestShape):
    """A new version of an agent. `model` and each of `specialists` is a name, `namespace/name`, `name@3`, or an id and a version.

    From `owner` on: of its own runs. `owner`: a user's name or id, whose rights they have; null: whoever made the agent. `channel`:
    `web` (so does null), or a channel's name or `namespace/name`. `consentTime`: how long a consent may take; null: for ever.
    """

    description: Text | None = None
    prompts: tuple[Text, ...] = ()
    model: ReferenceRequest
    settings: SamplingSettingsRequest = SamplingSettingsRequest()
    function_tools: tuple[Name, ...] = ()
    external_operations_mcp: tuple[McpExternalOperationBindingRequest, ...] = ()
    external_operations_open_api: tuple[OpenApiExternalOperationBindingRequest, ...] = ()
    web_access: WebAccessRequest | None = None
    loom_id: Uuid | None = None
    loom: LoomConfigurationRequest | None = None
    owner: Name | None = None
    tool_whitelist: tuple[Name, ...] = ()
    specialists: tuple[ReferenceRequest, ...] = ()
    consent_rules: tuple[ConsentRuleRequest, ...] = ()
    maximum_iterations: Whole = 3
    agent_budget: AgentBudgetRequest | None = None
    channel: LinkText | None = None
    consent_time: Timespan | None = timedelta(days=3)


class AgentRequest(RequestShape):
    """Creates an agent with its first version."""

    name: Name
    version: AgentVersionRequest
