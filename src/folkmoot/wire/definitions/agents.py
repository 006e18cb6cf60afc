"""Agents: prompts, model, sampling, tools, memory. Deliberately absent: what only agent runs use."""

from typing import Annotated

from pydantic import Field, Strict

from folkmoot.wire.definitions.bindings import (
    McpExternalOperationBinding,
    McpExternalOperationBindingRequest,
    OpenApiExternalOperationBinding,
    OpenApiExternalOperationBindingRequest,
    WebAccess,
    WebAccessRequest,
)
from folkmoot.wire.definitions.looms import LoomConfiguration, LoomConfigurationRequest
from folkmoot.wire.definitions.resources import DefinitionResource, DefinitionVersion
from folkmoot.wire.formats import (
    Name,
    Page,
    Positive,
    ReferenceRequest,
    RequestShape,
    ResponseShape,
    Text,
    Uuid,
    VersionReference,
)

_Seed = Annotated[int, Strict(), Field(ge=0, le=2**32 - 1)]
_Temperature = Annotated[float, Strict(), Field(ge=0, le=2, allow_inf_nan=False)]
_Share = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]


class SamplingSettings(ResponseShape):
    """How a model's replies are drawn; null leaves it to the provider."""

    temperature: float | None
    top_p: float | None
    seed: int | None
    max_tokens: int | None


class AgentVersion(DefinitionVersion):
    """One version of an agent. `description` is for managers and routers, `functionTools` the operator's functions."""

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


class AgentVersionRequest(RequestShape):
    """A new version of an agent. `model` is a name, `namespace/name`, `name@3`, or an id and a version."""

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


class AgentRequest(RequestShape):
    """Creates an agent with its first version."""

    name: Name
    version: AgentVersionRequest
