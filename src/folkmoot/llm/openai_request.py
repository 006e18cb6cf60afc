"""From our request to what pydantic-ai sends: messages, tools and settings; or, for a model without tools, the shim's call.

Deliberately absent: keys, URLs, connections, and the reply.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic_ai.messages import ModelMessage, ModelResponse, SystemPromptPart, TextPart, UserPromptPart
from pydantic_ai.messages import ModelRequest as RequestMessage
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from folkmoot.domain.model_calls import ModelChoice, ModelRequest
from folkmoot.llm.model_file import is_small
from folkmoot.llm.rendering import Renderer
from folkmoot.llm.shim_call import shim_call
from folkmoot.llm.shim_prompt import ChatMessage


@dataclass(frozen=True, slots=True)
class Sending:
    """`is_shim`: the reply is one JSON object, to be read by the shim."""

    messages: list[ModelMessage]
    parameters: ModelRequestParameters
    settings: ModelSettings
    is_shim: bool


def uses_shim(model: ModelChoice) -> bool:
    """A model that has no tools but keeps to a schema gets its tools through one."""
    return model.structured_output and not model.tools


def sending(request: ModelRequest, renderer: Renderer) -> Sending:
    if uses_shim(request.model):
        return _through_shim(request)
    has_tools = bool(request.offered) and request.model.tools
    settings = _settings(request)
    if has_tools and request.required:
        settings["tool_choice"] = "required"
    # Not strict: many servers refuse strict tools, and the engine validates arguments anyway.
    tools = [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.parameters, strict=False
        )
        for tool in (request.offered if has_tools else ())
    ]
    return Sending(renderer.messages(request), ModelRequestParameters(function_tools=tools), settings, False)


def _settings(request: ModelRequest) -> ModelSettings:
    """Only what the agent sets; the rest is the provider's own default."""
    sampling = request.sampling
    settings = ModelSettings()
    if sampling.temperature is not None:
        settings["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        settings["top_p"] = sampling.top_p
    if sampling.seed is not None:
        settings["seed"] = sampling.seed
    if sampling.max_tokens is not None:
        settings["max_tokens"] = sampling.max_tokens
    return settings


def _through_shim(request: ModelRequest) -> Sending:
    model = request.model
    call = shim_call(request, small=is_small(model.model_name), window_tokens=model.context_window)
    settings = ModelSettings(temperature=call.temperature, seed=call.seed, max_tokens=call.max_tokens)
    if call.top_p is not None:
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
