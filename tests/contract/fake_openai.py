"""A server on loopback that speaks OpenAI's chat protocol as it is on the wire: streams, errors, and connections that break.

What it does is chosen by the model's name in the request (`text`, `calls`, `RateLimited`, `drop`, …: see `fake_words.PLAYS` and
`_PROBLEMS`), or by a function that a test hands in. A request that the real one refuses is refused in its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fake_server import Problem, Read, faked
from fake_words import PLAYS, Answer, Counts, Piece, PrefixCache, in_pieces

Json = Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FINISH = {"calls": "tool_calls", "filtered": "content_filter", "refused": "stop", "window": "length"}
_NOT_ON_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")


def _problem(status: int, message: str, code: str | None = None, **headers: str) -> Problem:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return status, headers, json.dumps({"error": error}).encode()


_PROBLEMS: dict[str, Problem] = {
    "Authentication": _problem(401, "Incorrect API key provided: sk-right-*****cret.", "invalid_api_key"),
    "forbidden": _problem(403, "Your key may not use this model."),
    "RateLimited": _problem(429, "Rate limit reached.", "rate_limit_exceeded", **{"retry-after": "17"}),
    "RateLimited-limits": _problem(
        429,
        "Rate limit reached.",
        "rate_limit_exceeded",
        **{
            "x-ratelimit-remaining-requests": "9",
            "x-ratelimit-reset-requests": "1h0m0s",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "1m2.5s",
        },
    ),
    "QuotaExhausted": _problem(429, "You exceeded your current quota.", "insufficient_quota"),
    "Overloaded": _problem(503, "The engine is currently overloaded.", **{"retry-after": "3"}),
    "ContextTooLong": _problem(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
    "ContextTooLong-llama": _problem(400, "request (9000 tokens) exceeds the available context size (8192 tokens)"),
    "ContentFiltered": _problem(400, "The prompt was filtered.", "content_filter"),
    "InvalidRequest": _problem(400, "Unknown parameter."),
    "missing": _problem(404, "The model does not exist.", "model_not_found"),
    "Unavailable": _problem(500, "Something broke."),
    "html": (502, {"content-type": "text/html"}, b"<html>bad gateway</html>"),
    "echo": _problem(400, "Bad header Bearer sk-right-secret in request."),
}


class _OpenAi:
    prefix = "/v1"
    problems = _PROBLEMS
    plays = PLAYS

    def cache(self) -> PrefixCache:
        return PrefixCache(by_marks=False, shortest=1024, step=128)

    def read(self, path: str, headers: dict[str, str], body: Json) -> Read:
        key = headers.get("authorization", "").removeprefix("Bearer ")
        fault = f"Invalid URL (POST {path})" if not path.endswith("/chat/completions") else _fault(body)
        pieces = () if fault else tuple(_pieces(body))
        must_call = body.get("tool_choice", "auto") not in ("auto", "none")
        return Read(str(body.get("model")), key, bool(body.get("stream")), pieces, must_call, fault)

    def raw(self, play: str, *, is_stream: bool) -> bytes | None:
        told = {
            "no-json": b"{oops",
            "odd": b'{"choices": [{"delta": "x", "message": "x", "index": {}}], "usage": []}',
        }.get(play)
        return b"data: " + told + b"\n\n" if told and is_stream else told

    def refusal(self, fault: str) -> Problem:
        return _problem(400, fault)

    def too_long(self, tokens: int, window: int) -> Problem:
        message = (
            f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
            "Please reduce the length of the messages."
        )
        return _problem(400, message, "context_length_exceeded")

    def chunks(self, answer: Answer, counts: Counts, model: str) -> Sequence[bytes]:
        return list(_chunks(answer, counts, model))

    def whole(self, answer: Answer, counts: Counts, model: str) -> bytes:
        message: Json = {"role": "assistant", "content": answer.text or None}
        if answer.finish == "refused":
            message |= {"content": None, "refusal": answer.text}
        if answer.thinking:
            message["reasoning_content"] = answer.thinking
        if answer.calls:
            message["tool_calls"] = [
                {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
                for name, arguments in answer.calls
            ]
        choice = {"index": 0, "message": message, "finish_reason": _FINISH.get(answer.finish, answer.finish)}
        body: Json = {"id": "c1", "object": "chat.completion", "created": 1, "model": model, "choices": [choice]}
        if not answer.is_uncounted:
            body["usage"] = _usage(counts)
        if answer.tier:
            body["service_tier"] = answer.tier
        return json.dumps(body).encode()


PROVIDER = _OpenAi()
fake_openai = partial(faked, PROVIDER)


def _usage(counts: Counts) -> Json:
    prompt, completion = counts.input + counts.cached_input, counts.output + counts.reasoning
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": counts.cached_input},
        "completion_tokens_details": {"reasoning_tokens": counts.reasoning},
    }


def _chunks(answer: Answer, counts: Counts, model: str) -> Iterator[bytes]:
    def chunk(delta: Json = None, *, finish: str | None = None, **more: Json) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
        shown = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": choices}
        return b"data: " + json.dumps({**shown, "usage": None, **more}).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    if answer.thinking:
        yield chunk({"reasoning_content": answer.thinking})
    said = "refusal" if answer.finish == "refused" else "content"
    for piece in in_pieces(answer.text):
        yield chunk({said: piece})
    for index, (name, arguments) in enumerate(answer.calls):
        # Every call has the same id, as some servers do.
        first = {"index": index, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        middle = len(arguments) // 2
        for part in (arguments[:middle], arguments[middle:]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    if answer.end == "error":
        yield b'data: {"error": {"message": "The server is overloaded", "type": "overloaded"}}\n\n'
    if answer.end != "whole":
        return
    yield chunk({}, finish=_FINISH.get(answer.finish, answer.finish))
    tier = {"service_tier": answer.tier} if answer.tier else {}
    if not answer.is_uncounted:
        yield chunk(usage=_usage(counts), **tier)
    yield b"data: [DONE]\n\n"


def _pieces(body: Json) -> Iterator[Piece]:
    for tool in body.get("tools", ()):
        function = tool["function"]
        told = function.get("description", "") + json.dumps(function.get("parameters", {}))
        yield Piece("tool", told, function["name"])
    for message in body["messages"]:
        role = message["role"]
        text = _text(message.get("content")) + (message.get("reasoning_content") or "")
        if text or role != "assistant":
            yield Piece("result" if role == "tool" else "system" if role == "developer" else role, text)
        for call in message.get("tool_calls") or ():
            yield Piece("call", call["function"]["arguments"], call["function"]["name"])


def _text(content: Json) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def _fault(body: Json) -> str | None:
    """What the real one would refuse, in its words; null if it would take this."""
    if not body.get("messages"):
        return (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
    tools = body.get("tools")
    if tools is not None and not tools:
        return "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."
    if not tools:
        for setting in ("tool_choice", "parallel_tool_calls"):
            if setting in body:
                return f"'{setting}' is only allowed when 'tools' are specified."
    return _fault_of_tools(tools or ()) or _fault_of_messages(body["messages"])


def _fault_of_tools(tools: Json) -> str | None:
    for n, tool in enumerate(tools):
        function = tool["function"]
        name, schema = function["name"], function.get("parameters", {"type": "object"})
        if not _NAME.fullmatch(name):
            return (
                f"Invalid 'tools[{n}].function.name': string does not match pattern. Expected a string that matches the "
                "pattern '^[a-zA-Z0-9_-]+$'."
            )
        if schema.get("type") != "object" or any(word in schema for word in _NOT_ON_TOP):
            return (
                f"Invalid schema for function '{name}': schema must have type 'object' and not have "
                "'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level."
            )
    return None


def _fault_of_messages(messages: Json) -> str | None:
    open_calls: set[str] = set()
    for n, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            if message.get("tool_call_id") not in open_calls:
                return (
                    f"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' "
                    f"(messages[{n}].role)."
                )
            open_calls.discard(message["tool_call_id"])
            continue
        if open_calls:
            break
        calls = message.get("tool_calls")
        if role == "assistant" and message.get("content") is None and not calls:
            return f"Invalid value for 'content': expected a string, got null (messages.[{n}].content)."
        for call in calls or ():
            if not _NAME.fullmatch(call["function"]["name"]):
                return f"Invalid 'messages[{n}].tool_calls[0].function.name': string does not match pattern."
            if len(call["id"]) > 40:
                return f"Invalid 'messages[{n}].tool_calls[0].id': string too long. Expected a maximum length of 40."
            open_calls.add(call["id"])
    if open_calls:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "
            f"following tool_call_ids did not have response messages: {', '.join(sorted(open_calls))}"
        )
    return None
