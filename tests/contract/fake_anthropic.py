"""A server on loopback that speaks Anthropic's Messages protocol as it is on the wire: events from message_start to message_stop,
errors as `{type: error}`, cache marks that count, signatures that only it can make.

What it does is chosen by the model's name, or by a function that a test hands in. A request that the real one refuses is refused in
its words.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fake_anthropic_rules import REDACTED, SIGNATURE, content_of, fault_of, is_marked
from fake_server import Problem, Read, faked
from fake_words import PLAYS, Answer, Counts, Piece, PrefixCache, in_pieces

Json = Any

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


def _problem(status: int, message: str, **headers: str) -> Problem:
    error = {"type": "error", "error": {"type": _TYPES[status], "message": message}, "request_id": "req_1"}
    return status, headers, json.dumps(error).encode()


_CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."
_PROBLEMS: dict[str, Problem] = {
    "Authentication": _problem(401, "invalid x-api-key"),
    "forbidden": _problem(403, "Your API key does not have permission to use the specified resource."),
    "RateLimited": _problem(429, "This request would exceed the rate limit of your organization.", **{"retry-after": "17"}),
    "RateLimited-limits": _problem(
        429, "This request would exceed the rate limit of your organization.", **{
            "date": "Mon, 30 Nov 2026 12:00:00 GMT",
            "anthropic-ratelimit-requests-remaining": "9", "anthropic-ratelimit-requests-reset": "2026-11-30T14:00:00Z",
            "anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": "2026-11-30T12:01:02.5Z",
        }
    ),
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
        fault = "Not Found" if path.partition("?")[0] != "/v1/messages" else fault_of(headers, body)
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
fake_anthropic = partial(faked, PROVIDER)


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
            "tool", tool.get("description", "") + json.dumps(tool["input_schema"]), tool["name"], is_marked(tool)
        )
    for block in content_of(body.get("system", [])):
        yield Piece("system", block["text"], is_marked=is_marked(block))
    for message in body["messages"]:
        for block in content_of(message["content"]):
            yield _piece(message["role"], block)


def _piece(role: str, block: Json) -> Piece:
    marked = is_marked(block)
    match block["type"]:
        case "tool_use":
            return Piece("call", json.dumps(block["input"]), block["name"], marked)
        case "tool_result":
            return Piece("result", "".join(part["text"] for part in content_of(block.get("content", ""))), "", marked)
        case "text":
            return Piece(role, block["text"], "", marked)
    return Piece(role, block.get("thinking", ""), "", marked)
