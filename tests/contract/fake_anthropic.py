"""A server on loopback that speaks Anthropic's Messages protocol as it is on the wire: events from message_start to message_stop,
errors as `{type: error}`, cache marks that count, signatures that only it can make.

What it does is chosen by the model's name, or by a function that a test hands in. A request that the real one refuses is refused in
its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fake_server import Problem, Read, serving
from fake_words import PLAYS, Answer, Counts, Piece, PrefixCache, Seen, in_pieces

Json = Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_FINISH = {
    "stop": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "filtered": "refusal",
    "refused": "refusal",
    "window": "model_context_window_exceeded",
}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"} | {
    402: "billing_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"
}  # fmt: skip
SIGNATURE = "signed-by-"
REDACTED = "redacted-by-"


@contextmanager
def fake_anthropic(seen: Seen | None = None, **settings: Any) -> Iterator[tuple[str, Seen]]:
    """The base URL of a running server, and what it sees. `settings`: fields of Seen."""
    seen = seen or Seen(**settings)
    with serving(PROVIDER, seen) as url:
        yield url, seen


def _problem(status: int, message: str, **headers: str) -> Problem:
    error = {"type": "error", "error": {"type": _TYPES[status], "message": message}, "request_id": "req_1"}
    return status, headers, json.dumps(error).encode()


_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
_PROBLEMS: dict[str, Problem] = {
    "Authentication": _problem(401, "invalid x-api-key"),
    "forbidden": _problem(403, "Your API key does not have permission to use the specified resource."),
    "RateLimited": _problem(429, "This request would exceed the rate limit of your organization.", **{"retry-after": "17"}),
    "QuotaExhausted": _problem(400, _CREDIT),
    "QuotaExhausted-billing": _problem(402, "Your account has a problem with its billing."),
    "QuotaExhausted-limit": _problem(
        400, "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC."
    ),
    "Overloaded": _problem(529, "Overloaded", **{"retry-after": "3"}),
    "ContextTooLong": _problem(400, "prompt is too long: 210000 tokens > 200000 maximum"),
    "ContextTooLong-sum": _problem(
        400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"
    ),
    "ContextTooLong-size": _problem(413, "Request exceeds the maximum size"),
    "ContentFiltered": _problem(400, "Output blocked by content filtering policy"),
    "InvalidRequest": _problem(400, "max_tokens: Input should be greater than or equal to 1"),
    "missing": _problem(404, "model: missing"),
    "Unavailable": _problem(500, "Internal server error"),
    "html": (502, {"content-type": "text/html"}, b"<html>bad gateway</html>"),
    "echo": _problem(400, "Bad header x-api-key: sk-right-secret in request."),
}  # fmt: skip


class _Anthropic:
    prefix = ""
    problems = _PROBLEMS
    plays = PLAYS

    def cache(self) -> PrefixCache:
        return PrefixCache(by_marks=True)

    def read(self, path: str, headers: dict[str, str], body: Json) -> Read:
        fault = "Not Found" if path.partition("?")[0] != "/v1/messages" else _fault(headers, body)
        pieces = () if fault else tuple(_pieces(body))
        must_call = body.get("tool_choice", {}).get("type") in ("any", "tool")
        key = headers.get("x-api-key", "")
        return Read(str(body.get("model")), key, bool(body.get("stream")), pieces, must_call, fault)

    def raw(self, play: str, *, is_stream: bool) -> bytes | None:
        told = {
            "no-json": b"{oops",
            "odd": b'{"type": "content_block_start", "index": {}, "content_block": [], "content": "x", "usage": []}',
        }.get(play)
        return b"event: content_block_start\ndata: " + told + b"\n\n" if told and is_stream else told

    def refusal(self, fault: str) -> Problem:
        return _problem(400, fault)

    def too_long(self, tokens: int, window: int) -> Problem:
        return _problem(400, f"prompt is too long: {tokens} tokens > {window} maximum")

    def chunks(self, answer: Answer, counts: Counts, model: str) -> Sequence[bytes]:
        return list(_events(answer, counts, model))

    def whole(self, answer: Answer, counts: Counts, model: str) -> bytes:
        content = [
            block | ({"input": _input(block["raw"])} if "raw" in block else {}) for block in _blocks(answer, model)
        ]
        for block in content:
            block.pop("raw", None)
        message = _message(model, content) | {"stop_reason": _FINISH[answer.finish]}
        message["usage"] = _usage(answer, counts)
        return json.dumps(message).encode()


PROVIDER = _Anthropic()


def _input(arguments: str) -> Json:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        # The real one gives a parsed object in a whole reply, so there is nothing else for it to give.
        return {"INVALID_JSON": arguments}


def _message(model: str, content: list[Json]) -> dict[str, Json]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content, "stop_reason": None, "stop_sequence": None,
    }  # fmt: skip


def _usage(answer: Answer, counts: Counts) -> Json:
    if answer.is_uncounted:
        return {"input_tokens": 0, "output_tokens": 0}
    told = {
        "input_tokens": counts.input,
        "cache_creation_input_tokens": counts.cache_write,
        "cache_read_input_tokens": counts.cached_input,
        # Thoughts are among the output, and told beside it.
        "output_tokens": counts.output + counts.reasoning,
        "output_tokens_details": {"thinking_tokens": counts.reasoning},
        "service_tier": answer.tier or "standard",
    }
    return told


def _blocks(answer: Answer, model: str) -> list[dict[str, Json]]:
    blocks: list[dict[str, Json]] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": f"{SIGNATURE}{model}"})
        blocks.append({"type": "redacted_thinking", "data": f"{REDACTED}{model}"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    for name, arguments in answer.calls:
        # Every call has the same id, which the real one does not do; ids that repeat must not matter to us.
        blocks.append({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}, "raw": arguments})
    return blocks


def _event(kind: str, **fields: Json) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def _events(answer: Answer, counts: Counts, model: str) -> Iterator[bytes]:
    usage = _usage(answer, counts)
    yield _event(
        "message_start",
        message=_message(model, []) | {"usage": usage | {"output_tokens": min(1, usage["output_tokens"])}},
    )
    yield _event("ping")
    for index, block in enumerate(_blocks(answer, model)):
        yield _event("content_block_start", index=index, content_block=_begun(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        if answer.end != "whole" and block["type"] == "tool_use":
            return
        yield _event("content_block_stop", index=index)
    if answer.end == "error":
        yield _event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    if answer.end != "whole":
        return
    yield _event("message_delta", delta={"stop_reason": _FINISH[answer.finish], "stop_sequence": None}, usage=usage)
    yield _event("message_stop")


def _begun(block: dict[str, Json]) -> Json:
    match block["type"]:
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "text":
            return {"type": "text", "text": ""}
    return {name: value for name, value in block.items() if name != "raw"}


def _deltas(block: dict[str, Json]) -> Iterator[Json]:
    match block["type"]:
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in in_pieces(block["text"]))
        case "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            if block["raw"]:
                yield {"type": "input_json_delta", "partial_json": block["raw"]}


def _pieces(body: Json) -> Iterator[Piece]:
    for tool in body.get("tools", ()):
        yield Piece(
            "tool", tool.get("description", "") + json.dumps(tool["input_schema"]), tool["name"], _is_marked(tool)
        )
    for block in _content(body.get("system", [])):
        yield Piece("system", block["text"], is_marked=_is_marked(block))
    for message in body["messages"]:
        for block in _content(message["content"]):
            yield _piece(message["role"], block)


def _piece(role: str, block: Json) -> Piece:
    is_marked = _is_marked(block)
    match block["type"]:
        case "tool_use":
            return Piece("call", json.dumps(block["input"]), block["name"], is_marked)
        case "tool_result":
            return Piece("result", "".join(part["text"] for part in _content(block.get("content", ""))), "", is_marked)
        case "text":
            return Piece(role, block["text"], "", is_marked)
    return Piece(role, block.get("thinking", ""), "", is_marked)


def _content(content: Json) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _is_marked(block: Json) -> bool:
    return block.get("cache_control") is not None


def _fault(headers: dict[str, str], body: Json) -> str | None:
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
        blocks = [block for message in body["messages"] for block in _content(message["content"])]
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
    blocks = _content(body.get("system", []))
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
        blocks = _content(message["content"])
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
    blocks = [*body.get("tools", ()), *_content(body.get("system", []))]
    blocks += [block for message in body["messages"] for block in _content(message["content"])]
    marked = [block for block in blocks if _is_marked(block)]
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        return "cache_control: Extra inputs are not permitted in thinking blocks"
    if len(marked) > 4:
        return f"A maximum of 4 blocks with cache_control may be provided. Found {len(marked)}."
    return None
