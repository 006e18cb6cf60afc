"""A server on loopback that speaks the Gemini API as it is on the wire: generateContent, streamGenerateContent with `alt=sse`, errors with
their details, thought signatures that only it can make.

What it does is chosen by the model's name, or by a function that a test hands in. A request that the real one refuses is refused in
its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from fake_google_rules import fault_of, functions_of, schema_of, signature_of
from fake_server import Problem, Read, faked
from fake_words import PLAYS, Answer, Counts, Piece, PrefixCache, in_pieces

Json = Any

_PATH = re.compile(r"/v1beta/models/([^:]+):(generateContent|streamGenerateContent\?alt=sse)")
_FINISH = {
    "stop": "STOP",
    "calls": "STOP",
    "length": "MAX_TOKENS",
    "filtered": "SAFETY",
    "refused": "PROHIBITED_CONTENT",
    "malformed": "MALFORMED_FUNCTION_CALL",
}


def _problem(status: int, name: str, message: str, *details: Json) -> Problem:
    error = {"code": status, "message": message, "status": name, **({"details": list(details)} if details else {})}
    return status, {}, json.dumps({"error": error}).encode()


def _retry(seconds: str) -> Json:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds}


def _quota(quota_id: str) -> Json:
    violation = {"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": quota_id}
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}


_BAD_KEY = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
}
_USED_UP = "You exceeded your current quota, please check your plan and billing details."
_PER_MINUTE = "GenerateRequestsPerMinutePerProjectPerModel"
_PER_DAY = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
_PROBLEMS: dict[str, Problem] = {
    "Authentication": _problem(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", _BAD_KEY),
    "Authentication-401": _problem(401, "UNAUTHENTICATED", "API keys are not supported by this API."),
    "forbidden": _problem(403, "PERMISSION_DENIED", "Your project has been denied access."),
    # One sentence stands for both; the details tell which it is.
    "RateLimited": _problem(429, "RESOURCE_EXHAUSTED", _USED_UP, _quota(_PER_MINUTE), _retry("17s")),
    "RateLimited-bare": _problem(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "QuotaExhausted": _problem(429, "RESOURCE_EXHAUSTED", _USED_UP, _quota(_PER_DAY)),
    "Overloaded": _problem(503, "UNAVAILABLE", "The model is overloaded. Please try again later.", _retry("3s")),
    "Overloaded-bare": _problem(503, "UNAVAILABLE", "The service is currently unavailable."),
    "ContextTooLong": _problem(
        400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
    ),
    "InvalidRequest": _problem(400, "INVALID_ARGUMENT", "Request contains an invalid argument."),
    "missing": _problem(404, "NOT_FOUND", "models/missing is not found for API version v1beta."),
    "Unavailable": _problem(500, "INTERNAL", "An internal error has occurred."),
    "deadline": _problem(504, "DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    "html": (502, {"content-type": "text/html"}, b"<html>bad gateway</html>"),
    "echo": _problem(400, "INVALID_ARGUMENT", "Bad header x-goog-api-key: sk-right-secret in request."),
}  # fmt: skip


class _Google:
    prefix = ""
    problems = _PROBLEMS
    # Calls come as objects, so broken arguments come as none; and a prompt that is blocked is answered without a candidate.
    plays = PLAYS | {
        "broken": Answer(finish="malformed", counts=PLAYS["text"].counts),
        "ContentFiltered": Answer(finish="blocked", counts=Counts(input=36)),
    }

    def cache(self) -> PrefixCache:
        return PrefixCache(by_marks=False, shortest=1024, step=128)

    def read(self, path: str, headers: dict[str, str], body: Json) -> Read:
        found = _PATH.fullmatch(path)
        model = found[1] if found else path
        fault = fault_of(body, model) if found else f"Path {path} not found."
        pieces = () if fault else tuple(_pieces(body))
        must_call = _mode(body) == "ANY"
        key = headers.get("x-goog-api-key", "")
        return Read(model, key, "alt=sse" in path, pieces, must_call, fault)

    def raw(self, play: str, *, is_stream: bool) -> bytes | None:
        told = {"no-json": b"{oops", "odd": b'{"candidates": [{"content": {"parts": "x"}}], "usageMetadata": []}'}.get(
            play
        )
        return b"data: " + told + b"\r\n\r\n" if told and is_stream else told

    def refusal(self, fault: str) -> Problem:
        return _problem(400, "INVALID_ARGUMENT", fault)

    def too_long(self, tokens: int, window: int) -> Problem:
        message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window})."
        return _problem(400, "INVALID_ARGUMENT", message)

    def chunks(self, answer: Answer, counts: Counts, model: str) -> Sequence[bytes]:
        return [b"data: " + json.dumps(told).encode() + b"\r\n\r\n" for told in _events(answer, counts, model)]

    def whole(self, answer: Answer, counts: Counts, model: str) -> bytes:
        told = _response(list(_parts(answer, model, in_full=True)), model, _finish(answer), _usage(answer, counts))
        return json.dumps(_blocked(told) if answer.finish == "blocked" else told).encode()


PROVIDER = _Google()
fake_google = partial(faked, PROVIDER)


def _finish(answer: Answer) -> str:
    return _FINISH.get(answer.finish, "STOP")


def _usage(answer: Answer, counts: Counts) -> Json:
    if answer.is_uncounted:
        return None
    prompt = counts.input + counts.cached_input
    told = {"promptTokenCount": prompt, "totalTokenCount": prompt + counts.output + counts.reasoning}
    # What is 0 is left out.
    told |= {"candidatesTokenCount": counts.output} if counts.output else {}
    told |= {"cachedContentTokenCount": counts.cached_input} if counts.cached_input else {}
    told |= {"thoughtsTokenCount": counts.reasoning} if counts.reasoning else {}
    return told | ({"serviceTier": answer.tier} if answer.tier else {})


def _response(parts: list[Json], model: str, finish: str | None, usage: Json) -> Json:
    content = {"role": "model", **({"parts": parts} if parts else {})}
    candidate = {"content": content, "index": 0, **({"finishReason": finish} if finish else {})}
    told: Json = {"candidates": [candidate], "modelVersion": model, "responseId": "g1"}
    return told | ({"usageMetadata": usage} if usage else {})


def _blocked(told: Json) -> Json:
    return {name: value for name, value in told.items() if name != "candidates"} | {
        "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}
    }


def _parts(answer: Answer, model: str, *, in_full: bool) -> Iterator[Json]:
    signature = {"thoughtSignature": signature_of(model)} if answer.thinking else {}
    if answer.thinking:
        yield {"text": answer.thinking, "thought": True}
    texts = [answer.text] if in_full and answer.text else list(in_pieces(answer.text))
    for text in texts:
        # On the first call where there is one, else on the last text.
        yield {"text": text, **(signature if text is texts[-1] and not answer.calls else {})}
    for n, (name, arguments) in enumerate(answer.calls):
        call = {"name": name, "args": json.loads(arguments or "{}")}
        yield {"functionCall": call, **(signature if n == 0 else {})}


def _events(answer: Answer, counts: Counts, model: str) -> Iterator[Json]:
    usage = _usage(answer, counts)
    if answer.end != "whole":
        # No call comes in parts here, so a broken stream holds its text alone.
        answer = Answer(answer.text, end=answer.end)
    early = {**usage, "totalTokenCount": usage["promptTokenCount"]} if usage else None
    if early:
        early.pop("candidatesTokenCount", None)
    parts = list(_parts(answer, model, in_full=False))
    for part in parts[:-1]:
        yield _response([part], model, None, early)
    if answer.end == "error":
        yield {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    if answer.end != "whole":
        return
    last = _response(parts[-1:], model, _finish(answer), usage)
    yield _blocked(last) if answer.finish == "blocked" else last


def _mode(body: Json) -> str | None:
    mode: str | None = body.get("toolConfig", {}).get("functionCallingConfig", {}).get("mode")
    return mode


def _pieces(body: Json) -> Iterator[Piece]:
    for part in body.get("systemInstruction", {}).get("parts", ()):
        yield Piece("system", part["text"])
    for made in functions_of(body):
        schema = schema_of(made) or made.get("parameters", {})
        yield Piece("tool", made.get("description", "") + json.dumps(schema), made["name"])
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionCall" in part:
                yield Piece("call", json.dumps(part["functionCall"].get("args", {})), part["functionCall"]["name"])
            elif "functionResponse" in part:
                yield Piece("result", _told(part["functionResponse"]["response"]))
            else:
                yield Piece("assistant" if content["role"] == "model" else "user", part.get("text", ""))


def _told(response: Json) -> str:
    """A result's text: what is told as such, else the object."""
    if len(response) == 1:
        (value,) = response.values()
        if isinstance(value, str):
            return value
    return json.dumps(response, ensure_ascii=False)
