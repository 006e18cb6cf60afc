"""From our request to what pydantic-ai sends: messages, tools and settings; or, for a model without tools, the shim's call.

Deliberately absent: keys, URLs, connections, and the reply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.messages import ModelRequest as RequestMessage
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from folkmoot.domain.model_calls import ModelChoice, ModelRequest
from folkmoot.llm.function_names import own_names, safe_function_name
from folkmoot.llm.function_schemas import FittedSchemas
from folkmoot.llm.model_file import is_small
from folkmoot.llm.profiles import Profile
from folkmoot.llm.rendering import Renderer
from folkmoot.llm.shim_call import shim_call
from folkmoot.llm.shim_prompt import ChatMessage

_WITHDRAWN = "Not offered any more."


@dataclass(frozen=True, slots=True)
class Sending:
    """`is_shim`: the reply is one JSON object, to be read by the shim. `names`: of the functions as sent, and what each stands for."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    is_shim: bool
    names: dict[str, str] = field(default_factory=dict)


class Sender:
    """Builds what is sent, by one provider's profile. What it keeps is a cache and changes nothing about the result."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._renderer = Renderer(marks_cache=profile.marks_cache)
        self._schemas = FittedSchemas(profile.schema)

    def sending(self, request: ModelRequest) -> Sending:
        if self._profile.has_models_without_tools and uses_shim(request.model):
            return _through_shim(request, self._profile)
        rendered = self._renderer.render(request)
        settings = sampling_settings(request, self._profile)
        offered = request.offered if request.model.tools else ()
        tools = [self._tool(tool.name, tool.description, tool.parameters) for tool in offered]
        if tools and request.required:
            settings["tool_choice"] = "required"
        if not tools and rendered.called and self._profile.needs_functions_for_calls:
            tools = [self._tool(name, _WITHDRAWN, {"type": "object"}) for name in rendered.called]
            settings["tool_choice"] = "none"
        parameters = ModelRequestParameters(function_tools=tools)
        return Sending(rendered.messages, parameters, settings, False, own_names(tool.name for tool in offered))

    def _tool(self, name: str, description: str, schema: dict[str, Any]) -> ToolDefinition:
        # Not strict: many servers refuse strict tools, and the engine validates arguments anyway.
        return ToolDefinition(
            name=safe_function_name(name),
            description=description,
            parameters_json_schema=self._schemas.fitted(schema),
            strict=False,
        )


def uses_shim(model: ModelChoice) -> bool:
    """A model that has no tools but keeps to a schema gets its tools through one."""
    return model.structured_output and not model.tools


def sampling_settings(request: ModelRequest, profile: Profile) -> ModelSettings:
    """Only what the agent sets and the protocol takes; the rest is the provider's own default."""
    sampling = request.sampling
    settings = ModelSettings()
    if sampling.temperature is not None:
        settings["temperature"] = min(sampling.temperature, profile.highest_temperature)
    if sampling.top_p is not None and (profile.takes_both_samplings or sampling.temperature is None):
        settings["top_p"] = sampling.top_p
    if sampling.seed is not None and profile.takes_seed:
        settings["seed"] = sampling.seed
    largest = sampling.max_tokens
    if largest is None and profile.default_max_tokens is not None:
        largest = request.model.largest_response or profile.default_max_tokens
    if largest is not None:
        settings["max_tokens"] = largest
    return settings


def _through_shim(request: ModelRequest, profile: Profile) -> Sending:
    model = request.model
    call = shim_call(request, small=is_small(model.model_name), window_tokens=model.context_window)
    settings = ModelSettings(temperature=min(call.temperature, profile.highest_temperature), max_tokens=call.max_tokens)
    if profile.takes_seed:
        settings["seed"] = call.seed
    if call.top_p is not None and profile.takes_both_samplings:
        settings["top_p"] = call.top_p
    if call.extra:
        settings["extra_body"] = call.extra
    shape = OutputObjectDefinition(name="reply", json_schema=call.schema, strict=False)
    parameters = ModelRequestParameters(output_mode="native", output_object=shape)
    return Sending(_messages(call.messages), parameters, settings, True)


def _messages(prompt: list[ChatMessage]) -> list[ModelMessage]:
    system, *rest = prompt
    messages: list[ModelMessage] = []
    for message in rest:
        if message.role == "assistant":
            messages.append(ModelResponse([TextPart(message.content)]))
        else:
            first = [] if messages else [SystemPromptPart(system.content)]
            messages.append(RequestMessage([*first, UserPromptPart(message.content)]))
    return messages
