"""What Anthropic's Messages API refuses, in its words: the rules that the fake server holds requests to."""

from __future__ import annotations

import re
from typing import Any

Json = Any

SIGNATURE = "signed-by-"
REDACTED = "redacted-by-"
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")


def fault_of(headers: dict[str, str], body: Json) -> str | None:
    """What the real one would refuse, in its words; null if it would take this."""
    if "anthropic-version" not in headers:
        return "anthropic-version: header is required"
    if not isinstance(body.get("max_tokens"), int):
        return "max_tokens: Field required"
    if not body.get("messages"):
        return "messages: at least one message is required"
    temperature = body.get("temperature")
    if temperature is not None and not 0 <= temperature <= 1:
        return f"temperature: range: 0..1, got {temperature}"
    if temperature is not None and "top_p" in body:
        return "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    unknown = body.keys() & {"seed", "frequency_penalty", "presence_penalty", "parallel_tool_calls", "response_format"}
    if unknown:
        return f"{min(unknown)}: Extra inputs are not permitted"
    return _fault_of_tools(body) or _fault_of_system(body) or _fault_of_messages(body) or _fault_of_marks(body)


def _fault_of_tools(body: Json) -> str | None:
    tools = body.get("tools")
    if not tools:
        if "tool_choice" in body:
            return "tool_choice: may only be specified while providing tools"
        blocks = [block for message in body["messages"] for block in content_of(message["content"])]
        if any(block["type"] in ("tool_use", "tool_result") for block in blocks):
            return "Requests which include `tool_use` or `tool_result` blocks must define tools"
        return None
    for n, tool in enumerate(tools):
        if not _NAME.fullmatch(tool["name"]):
            return f"tools.{n}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        schema = tool["input_schema"]
        if schema.get("type") != "object":
            return f"tools.{n}.custom.input_schema.type: Input should be 'object'"
        if any(word in schema for word in ("oneOf", "anyOf", "allOf")):
            return (
                f"tools.{n}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level"
            )
    if len({tool["name"] for tool in tools}) < len(tools):
        return "tools: Tool names must be unique."
    return None


def _fault_of_system(body: Json) -> str | None:
    blocks = content_of(body.get("system", []))
    return (
        "system: text content blocks must be non-empty" if any(not block["text"].strip() for block in blocks) else None
    )


def _fault_of_messages(body: Json) -> str | None:
    messages = body["messages"]
    if messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    if messages[-1]["role"] == "assistant":
        return "This model does not support assistant message prefill. The conversation must end with a user message."
    open_ids: list[str] = []
    used: set[str] = set()
    for n, message in enumerate(messages):
        blocks = content_of(message["content"])
        if message["role"] not in ("user", "assistant"):
            return f"messages.{n}.role: Input should be 'user' or 'assistant'"
        if n and message["role"] == messages[n - 1]["role"]:
            return f'messages: roles must alternate between "user" and "assistant", but found multiple "{message["role"]}" roles in a row'
        if not blocks:
            return f"messages.{n}: all messages must have non-empty content"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "messages: text content blocks must contain non-whitespace text"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        unexpected = [given for given in results if given not in open_ids]
        if unexpected:
            return (
                f"messages.{n}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {unexpected[0]}. Each `tool_result` "
                "block must have a corresponding `tool_use` block in the previous message."
            )
        missing = [wanted for wanted in open_ids if wanted not in results]
        if missing or [block["type"] == "tool_result" for block in blocks[: len(results)]] != [True] * len(results):
            return (
                f"messages.{n - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(missing)}. Each "
                "`tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        calls = [block for block in blocks if block["type"] == "tool_use"]
        open_ids = [block["id"] for block in calls]
        if len(set(open_ids)) < len(open_ids) or used & set(open_ids):
            return "messages: `tool_use` ids must be unique"
        used |= set(open_ids)
        fault = _fault_of_calls(n, calls) or _fault_of_thoughts(n, blocks, body["model"])
        if fault:
            return fault
    return None


def _fault_of_calls(n: int, calls: list[Json]) -> str | None:
    for call in calls:
        if not _NAME.fullmatch(call["name"]):
            return f"messages.{n}.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        if not _CALL_ID.fullmatch(call["id"]):
            return f"messages.{n}.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if not isinstance(call["input"], dict):
            return f"messages.{n}.content.0.tool_use.input: Input should be a valid dictionary"
    return None


def _fault_of_thoughts(n: int, blocks: list[Json], model: str) -> str | None:
    for m, block in enumerate(blocks):
        if block["type"] == "thinking" and block["signature"] != f"{SIGNATURE}{model}":
            return f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block"
        if block["type"] == "redacted_thinking" and block["data"] != f"{REDACTED}{model}":
            return f"messages.{n}.content.{m}: Invalid `data` in `redacted_thinking` block"
    return None


def _fault_of_marks(body: Json) -> str | None:
    blocks = [*body.get("tools", ()), *content_of(body.get("system", []))]
    blocks += [block for message in body["messages"] for block in content_of(message["content"])]
    marked = [block for block in blocks if is_marked(block)]
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        return "cache_control: Extra inputs are not permitted in thinking blocks"
    if len(marked) > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    return None


def content_of(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def is_marked(block: Json) -> bool:
    return block.get("cache_control") is not None
