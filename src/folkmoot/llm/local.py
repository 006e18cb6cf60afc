"""Models on this machine: a GGUF file run inside the process, without a key and without a network.

Loaded at the first call, once per file; calls queue, since two at once would only share the same cores. The same request
gives the same reply: no prompt is cached, and the seed comes from the request alone. Deliberately absent: fetching the
file (`model_file`), and tools of the model's own (`shim` stands in).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import xllamacpp

from folkmoot.domain.model_calls import FailureClass, ModelFailure, ModelReply, ModelRequest, OnText, Usage
from folkmoot.llm.model_file import is_small, lack_of_file, model_path
from folkmoot.llm.shim import read_reply, said_so_far
from folkmoot.llm.shim_call import SMALL_WINDOW_TOKENS, shim_call

Json = Any

_LARGEST_WINDOW_TOKENS = 8192
_MOST_THREADS = 8
_QUIET = -1


class LocalModel:
    """Asks models in GGUF files. `threads`: how many cores a call may use; null: all but one."""

    def __init__(self, *, data_dir: Path, threads: int | None = None) -> None:
        self._data_dir = data_dir
        self._threads = threads or spare_cores()
        self._engines: dict[tuple[Path, int], Any] = {}
        self._queue = ThreadPoolExecutor(max_workers=1, thread_name_prefix="local-model")

    async def ask(self, request: ModelRequest, on_text: OnText | None) -> ModelReply | ModelFailure:
        lack = lack_of_file(request.model.model_name, request.model.path, self._data_dir)
        if lack is not None:
            return ModelFailure(FailureClass.UNAVAILABLE, lack)
        file = model_path(request.model.path, self._data_dir)
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def pass_on(piece: str) -> None:
            loop.call_soon_threadsafe(lambda: None if stop.is_set() or on_text is None else on_text(piece))

        try:
            return await loop.run_in_executor(self._queue, self._complete, file, request, pass_on, stop)
        finally:
            # A cancelled call ends at its next token; nobody waits for it.
            stop.set()

    async def close(self) -> None:
        self._queue.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._queue.shutdown, wait=True)
        self._engines.clear()

    # What follows runs in the queue's one thread.

    def _complete(
        self, file: Path, request: ModelRequest, pass_on: Callable[[str], None], stop: threading.Event
    ) -> ModelReply | ModelFailure:
        small = is_small(request.model.model_name)
        window = SMALL_WINDOW_TOKENS if small else min(request.model.context_window, _LARGEST_WINDOW_TOKENS)
        reply = _Reply(pass_on, stop)
        try:
            engine = self._engine(file, window)
            engine.handle_chat_completions(_body(request, window), reply.take)
        except (RuntimeError, ValueError, TypeError) as error:
            return _refused(request, str(error))
        return reply.outcome(request)

    def _engine(self, file: Path, window_tokens: int) -> Any:
        key = (file, window_tokens)
        if key not in self._engines:
            # Its HTTP server cannot be turned off; behind a key that nobody has, it answers nobody.
            self._engines[key] = start_engine(
                file, window_tokens=window_tokens, threads=self._threads, port=0, api_key=secrets.token_hex()
            )
        return self._engines[key]


def spare_cores() -> int:
    """The cores that a model may use. One is left to everything else: its threads wait for each other spinning, and where
    they must share a core, a call takes many times as long."""
    return min(max((os.cpu_count() or 1) - 1, 1), _MOST_THREADS)


def start_engine(file: Path, *, window_tokens: int, threads: int, port: int, api_key: str | None) -> Any:
    """llama.cpp with one model, which also serves the OpenAI protocol on loopback at `.listening_address`.

    `port` 0: any free one. `api_key` null: none is asked for. It ends when the last reference to it goes.
    Errors: RuntimeError (no such model, no memory, port in use).
    """
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = window_tokens
    params.n_parallel = 1
    params.port = port
    params.api_keys = [] if api_key is None else [api_key]
    params.ui = params.endpoint_slots = params.endpoint_props = False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.warmup = False
    params.verbosity = _QUIET
    return xllamacpp.Server(params)


def _body(request: ModelRequest, window_tokens: int) -> Json:
    call = shim_call(request, small=is_small(request.model.model_name), window_tokens=window_tokens)
    body = {
        "messages": [{"role": message.role, "content": message.content} for message in call.messages],
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": call.schema}},
        "temperature": call.temperature,
        "seed": call.seed,
        "max_tokens": call.max_tokens,
        # A cached prompt is evaluated in other portions, which changes its numbers a little, and so now and then a word.
        "cache_prompt": False,
        "stream": True,
        "stream_options": {"include_usage": True},
        **call.extra,
    }
    return body if call.top_p is None else {**body, "top_p": call.top_p}


class _Reply:
    """Gathers a streamed reply; `take` returns true to stop it."""

    def __init__(self, pass_on: Callable[[str], None], stop: threading.Event) -> None:
        self._pass_on = pass_on
        self._stop = stop
        self._raw = ""
        self._said = 0
        self._usage: Usage | None = None
        self._error: str | None = None
        self._error_type = ""

    def take(self, chunk: Json) -> bool:
        if "error" in chunk:
            self._error = str(chunk["error"].get("message", "no reason given"))
            self._error_type = str(chunk["error"].get("type", ""))
            return True
        for choice in chunk.get("choices", ()):
            self._raw += choice.get("delta", {}).get("content") or ""
        text = said_so_far(self._raw)
        if len(text) > self._said:
            self._pass_on(text[self._said :])
            self._said = len(text)
        counted = chunk.get("usage")
        if counted:
            self._usage = Usage(input=counted["prompt_tokens"], output=counted["completion_tokens"])
        return self._stop.is_set()

    def outcome(self, request: ModelRequest) -> ModelReply | ModelFailure:
        if self._error is not None:
            if self._error_type == "exceed_context_size_error":
                message = f"The conversation is longer than the window of local model '{request.model.model_name}': {self._error}."
                return ModelFailure(FailureClass.CONTEXT_TOO_LONG, message)
            return _refused(request, self._error)
        text, calls = read_reply(self._raw)
        return ModelReply(text, calls, self._usage or Usage(output=len(self._raw) // 4, estimated=True))


def _refused(request: ModelRequest, reason: str) -> ModelFailure:
    message = f"Local model '{request.model.model_name}' cannot do this request: {reason.strip().rstrip('.')}."
    return ModelFailure(FailureClass.INVALID_REQUEST, message)
