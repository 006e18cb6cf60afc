"""A command as an MCP server: its process, and messages as lines over its standard input and output.

The process sees PATH, HOME, LANG and its connector's own environment with its secrets, is a process group of its own, and is ended
with all of its group. Its standard error is drained, and the last of it kept, without those values. Deliberately absent: notifications of the server, which are
dropped here; a shell.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from folkmoot.domain.operations import Stdio
from folkmoot.tools.mcp.lines import Lines, Oversized
from folkmoot.tools.mcp.talk import IDEMPOTENCY_META_KEY
from folkmoot.tools.mcp.texts import shortened
from folkmoot.tools.mcp.trace import ANSWER_TOO_LARGE, ServerFailure, Trace
from folkmoot.tools.sent_secrets import SentSecrets

DEFAULT_LINE_BYTES = 16_777_216
_INHERITED = ("PATH", "HOME", "LANG")
_PIECE = 65_536
_STDERR_BYTES = 16_384
_EXIT_SECONDS = 1.0
_TERM_SECONDS = 2.0
_POLL_SECONDS = 0.02
_WAITING_MESSAGES = 64


@dataclass(slots=True)
class ProcessLog:
    """What is known of one process. `traces`: of the calls under way, by idempotency key. `over`: its output has ended."""

    server: Stdio
    lines: Lines = field(default_factory=lambda: Lines(DEFAULT_LINE_BYTES))
    over: asyncio.Event = field(default_factory=asyncio.Event)
    traces: dict[str, Trace] = field(default_factory=dict)
    exit_code: int | None = None
    noise: str = ""
    stderr: bytearray = field(default_factory=bytearray)
    is_stderr_cut: bool = False

    def note_error(self, piece: bytes) -> None:
        """Keep what it wrote to its standard error, and forget what is too long ago."""
        self.stderr += piece
        if len(self.stderr) > _STDERR_BYTES:
            del self.stderr[:-_STDERR_BYTES]
            self.is_stderr_cut = True

    def last_words(self) -> str:
        """The last lines of its standard error, without the values of its environment; for operators, not for models."""
        # A value that the cut went through is not recognized: what may be its rest is left out.
        longest = max((len(value) for value in self.server.environment.values()), default=0)
        text = self.masked(self.stderr)[longest if self.is_stderr_cut else 0 :]
        lines = [line.strip() for line in text.splitlines() if line.strip()][-5:]
        return shortened(" | ".join(lines), 600)

    def masked(self, line: bytes | bytearray) -> str:
        """What it wrote, without the values of its environment."""
        return SentSecrets(self.server.environment.values()).masked(line.decode(errors="replace"))

    def ended(self) -> str:
        """How it ended, as a clause after 'The server'."""
        if self.exit_code is None:
            return "closed its output"
        if self.exit_code < 0:
            return f"was ended by signal {-self.exit_code}"
        return f"ended with exit code {self.exit_code}"


@asynccontextmanager
async def open_pipes(log: ProcessLog) -> AsyncIterator[TransportStreams]:
    """Start the command; its streams of messages, for a session. Ends the process and its group, however the block ends.

    Raises ServerFailure where the command cannot be started.
    """
    process = await _started(log.server)
    arriving, arrivals = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    leaving, departures = anyio.create_memory_object_stream[SessionMessage](_WAITING_MESSAGES)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, arriving, log)
            tasks.start_soon(_write, process, departures, log)
            tasks.start_soon(_drain, process, log)
            try:
                yield arrivals, leaving
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process, log)
                tasks.cancel_scope.cancel()
    finally:
        # A second cancellation may have cut the gentle way short.
        _signal(process, signal.SIGKILL)
        for stream in (arriving, arrivals, leaving, departures):
            stream.close()


async def _started(server: Stdio) -> asyncio.subprocess.Process:
    environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    command = shortened(server.command, 100)
    try:
        return await asyncio.create_subprocess_exec(
            server.command,
            *server.arguments,
            env=environment | server.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError:
        raise ServerFailure(
            f"cannot be started: the command '{command}' was not found. Install it, or give its path."
        ) from None
    except PermissionError:
        raise ServerFailure(f"cannot be started: '{command}' may not be executed.") from None
    except (OSError, ValueError) as error:
        raise ServerFailure(f"cannot be started: '{command}' ({type(error).__name__}).") from None


async def _read(
    process: asyncio.subprocess.Process, arriving: ObjectSendStream[SessionMessage | Exception], log: ProcessLog
) -> None:
    assert process.stdout is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with arriving:
            try:
                while chunk := await process.stdout.read(_PIECE):
                    for line in log.lines.feed(chunk):
                        message = _message(line, log)
                        if message is not None:
                            await arriving.send(message)
            except _Unanswerable:
                pass
            finally:
                log.over.set()


class _Unanswerable(Exception):
    """An answer was too large, and whose it was cannot be told: every call that waits is given up."""


def _message(line: bytes | Oversized, log: ProcessLog) -> SessionMessage | None:
    if isinstance(line, Oversized):
        if line.request_id is None:
            raise _Unanswerable
        fault = types.ErrorData(code=ANSWER_TOO_LARGE, message=f"The answer has {line.size:,} bytes.")
        return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=line.request_id, error=fault))
    if not line.strip():
        return None
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # Servers print to where they should not; what is no message is nobody's.
        log.noise = log.noise or shortened(log.masked(line), 200)
        return None
    return None if isinstance(message, types.JSONRPCNotification) else SessionMessage(message)


async def _write(
    process: asyncio.subprocess.Process, departures: ObjectReceiveStream[SessionMessage], log: ProcessLog
) -> None:
    assert process.stdin is not None
    async with departures:
        async for departure in departures:
            text = departure.message.model_dump_json(by_alias=True, exclude_unset=True)
            trace = _trace_of(departure.message, log)
            process.stdin.write(text.encode() + b"\n")
            if trace is not None:
                trace.is_sent = True
            try:
                await process.stdin.drain()
            except OSError:
                # Nobody reads: it never arrived.
                if trace is not None:
                    trace.is_sent = False
                return


def _trace_of(message: types.JSONRPCMessage, log: ProcessLog) -> Trace | None:
    match message:
        case types.JSONRPCRequest(method="tools/call", params={"_meta": {**meta}}):
            return log.traces.get(str(meta.get(IDEMPOTENCY_META_KEY)))
        case _:
            return None


async def _drain(process: asyncio.subprocess.Process, log: ProcessLog) -> None:
    assert process.stderr is not None
    while piece := await process.stderr.read(_PIECE):
        log.note_error(piece)


async def _end(process: asyncio.subprocess.Process, log: ProcessLog) -> None:
    """Close its input and wait, then SIGTERM, then SIGKILL; whatever it started goes with it."""
    assert process.stdin is not None
    process.stdin.close()
    if not await _is_over(process, _EXIT_SECONDS):
        _signal(process, signal.SIGTERM)
        await _is_over(process, _TERM_SECONDS)
    _signal(process, signal.SIGKILL)
    await _is_over(process, _TERM_SECONDS)
    log.exit_code = process.returncode
    # What it wrote last may still lie in the pipe.
    with suppress(TimeoutError):
        async with asyncio.timeout(_POLL_SECONDS * 5):
            await process.wait()


async def _is_over(process: asyncio.subprocess.Process, seconds: float) -> bool:
    # Not process.wait(): it also waits for the pipes, which a child of the process may hold open.
    deadline = asyncio.get_running_loop().time() + seconds
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """To the whole group: its id is that of the process, also after that one has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
