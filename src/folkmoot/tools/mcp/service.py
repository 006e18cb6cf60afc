"""The door to MCP servers: discovery for connectors, calls for runs.

Deliberately absent: when a call is made, that it is recorded as begun, whose approval it needs, where secrets come from.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

import mcp_types as types
from mcp.client.session import ClientSession

from folkmoot.domain.calls import CallBounds, CallResult
from folkmoot.domain.operations import Discovered, Http, McpDescriptor, OperationTarget, Server, Stdio
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.addresses import Guard
from folkmoot.tools.functions import UNKNOWN_OUTCOME
from folkmoot.tools.mcp.answers import result_of
from folkmoot.tools.mcp.listing import discovered, listed
from folkmoot.tools.mcp.local import LocalServer, LocalServers, line_limit
from folkmoot.tools.mcp.remote import RemoteServers
from folkmoot.tools.mcp.talk import Order, ordered
from folkmoot.tools.mcp.texts import shortened
from folkmoot.tools.mcp.trace import Changed, ServerFailure, Trace
from folkmoot.tools.sent_secrets import SentSecrets

_LISTING_BYTES = 16_777_216
# What the libraries log holds URLs, and what servers say, secrets of ours given back included. Each failure is told by us.
_SILENT = {"mcp": logging.CRITICAL, "client": logging.CRITICAL, "httpx2": logging.WARNING}

T = TypeVar("T")
_log = logging.getLogger("folkmoot.tools.mcp")


@dataclass(frozen=True, slots=True)
class _Call:
    """One call as it is made. `deadline`: of the event loop's clock."""

    subject: str
    server: Server
    owner: Hashable
    order: Order
    headers: dict[str, str]
    deadline: float
    bounds: CallBounds


class McpTools:
    """All of one process's work with MCP servers. `is_stdio_allowed`: whether the operator lets connectors run commands."""

    def __init__(self, guard: Guard, *, is_stdio_allowed: bool) -> None:
        self._remote = RemoteServers(guard)
        self._local = LocalServers()
        self._is_stdio_allowed = is_stdio_allowed
        for name, level in _SILENT.items():
            logging.getLogger(name).setLevel(level)

    async def close(self) -> None:
        """End every server that was started. Takes a few seconds where one does not end by itself."""
        await self._local.close()

    async def discover(self, server: Server, *, headers: dict[str, str], limit_seconds: float) -> list[Discovered]:
        """What the server offers now, in its order. A command is started for this alone and ended.

        `headers`: as they are sent, secrets included; to a command as variables of its environment. Raises ConnectorFault where the server or a tool of it cannot be used.
        """
        subject = _subject(server)
        try:
            async with asyncio.timeout(limit_seconds):
                return discovered(await self._listed(server, headers))
        except TimeoutError:
            raise ConnectorFault(f"{subject} did not answer within {limit_seconds:g} seconds.") from None
        except ServerFailure as failure:
            aside = f" It wrote: '{failure.aside}'." if failure.aside else ""
            raise ConnectorFault(SentSecrets(headers.values()).masked(f"{subject} {failure}{aside}")) from None
        except ConnectorFault as fault:
            said = SentSecrets(headers.values()).masked(str(fault))
            raise ConnectorFault(f"{subject} cannot be used. {said}") from None

    async def call(
        self,
        target: OperationTarget,
        arguments: dict[str, Any],
        *,
        headers: dict[str, str],
        bounds: CallBounds,
        verify: bool,
    ) -> CallResult:
        """Call the tool once. Every failure is a result; only a cancellation is raised, and it ends no server.

        `verify`: look first that the tool is still what the run is pinned to. A call that is repeatable is sent a second time,
        once, where the connection was lost; any other only where it had not left.
        """
        descriptor = target.descriptor
        if not isinstance(descriptor, McpDescriptor):
            return _error(f"The operation of '{target.connector_name}' is none of an MCP server.")
        pinned = descriptor if verify else None
        call = _Call(
            subject=f"The tool '{descriptor.tool_name}' of '{shortened(target.connector_name, 100)}'",
            server=target.server,
            owner=target.connector_id,
            order=Order(descriptor.tool_name, arguments, bounds.idempotency_key, pinned),
            headers=headers,
            deadline=asyncio.get_running_loop().time() + bounds.limit_seconds,
            bounds=bounds,
        )
        try:
            return await self._attempted(call, Trace())
        except _Lost:
            # Opened again once (B53), within the same time.
            try:
                return await self._attempted(call, Trace())
            except _Lost as lost:
                return lost.result

    async def _attempted(self, call: _Call, trace: Trace) -> CallResult:
        """The result. Raises _Lost where the connection was lost and the call may be sent again."""
        try:
            async with asyncio.timeout_at(call.deadline):
                answer = await self._answer(call, trace)
        except TimeoutError:
            return _overrun(call, trace)
        except Changed as changed:
            return _error(
                f"{call.subject} was not called, since it {changed}. Somebody has to refresh the connector, "
                "look at what is new, and bind the new version."
            )
        except ServerFailure as failure:
            is_unknown = trace.is_sent and not failure.is_answer and not call.bounds.is_repeatable
            result = _failed(call, failure, is_unknown=is_unknown)
            if failure.is_worth_another and not is_unknown:
                raise _Lost(result) from None
            return result
        except ConnectorFault as fault:
            return _error(f"{call.subject} was not called. {fault}")
        except Exception as error:
            _log.exception("A call of an MCP tool failed in a way that was not foreseen.")
            is_unknown = trace.is_asked and not call.bounds.is_repeatable
            return _failed(
                call, ServerFailure(f"could not be worked with ({type(error).__name__})."), is_unknown=is_unknown
            )
        return result_of(
            answer,
            subject=call.subject,
            limit_bytes=call.bounds.limit_bytes,
            secrets=SentSecrets(call.headers.values()),
        )

    async def _answer(self, call: _Call, trace: Trace) -> types.CallToolResult:
        async def task(session: ClientSession) -> types.CallToolResult:
            return await ordered(session, call.order, trace)

        limit = line_limit(call.bounds.limit_bytes)
        match call.server:
            case Http(url):
                limit = max(limit, _LISTING_BYTES) if call.order.pinned is not None else limit
                return await self._remote.work(url, task, headers=call.headers, limit_bytes=limit, trace=trace)
            case Stdio():
                local = self._local.server(call.owner, self._permitted(call.server, call.headers))
                return await local.work(task, limit_bytes=limit, key=call.order.idempotency_key, trace=trace)

    async def _listed(self, server: Server, headers: dict[str, str]) -> list[types.Tool]:
        trace = Trace()
        if isinstance(server, Stdio):
            local = LocalServer(self._permitted(server, headers))
            try:
                return await local.work(listed, limit_bytes=_LISTING_BYTES, key=None, trace=trace)
            finally:
                await local.close()
        try:
            return await self._remote.work(server.url, listed, headers=headers, limit_bytes=_LISTING_BYTES, trace=trace)
        except ServerFailure as failure:
            if not failure.is_worth_another:
                raise
        return await self._remote.work(server.url, listed, headers=headers, limit_bytes=_LISTING_BYTES, trace=Trace())

    def _permitted(self, server: Stdio, headers: dict[str, str]) -> Stdio:
        """The command as it is started: secret headers are variables of its environment."""
        if not self._is_stdio_allowed:
            raise ServerFailure("is a command, which the operator of this installation does not allow.")
        for name, value in headers.items():
            if "\0" in value:
                raise ServerFailure(f"cannot be given '{name[:60]}': the secret holds a NUL. Set it to another value.")
        return replace(server, environment=server.environment | headers)


class _Lost(Exception):
    def __init__(self, result: CallResult) -> None:
        super().__init__()
        self.result = result


def _subject(server: Server) -> str:
    """The server without what may be secret: path and query of its URL, arguments of its command."""
    if isinstance(server, Stdio):
        return f"The MCP server '{shortened(server.command, 100)}'"
    try:
        parts = urlsplit(server.url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return "The MCP server"
    return f"The MCP server at '{shortened(f'{parts.scheme}://{host}', 150)}'"


def _overrun(call: _Call, trace: Trace) -> CallResult:
    took = f"{call.subject} took longer than its {call.bounds.limit_seconds:g} seconds"
    if trace.is_asked and not call.bounds.is_repeatable:
        return _error(f"{took}; its outcome is unknown: {UNKNOWN_OUTCOME}.", unknown=True)
    return _error(f"{took} and was given up. It can be called again.")


def _failed(call: _Call, failure: ServerFailure, *, is_unknown: bool) -> CallResult:
    reason = SentSecrets(call.headers.values()).masked(str(failure))
    if is_unknown:
        return _error(
            f"{call.subject} failed: its server {reason} The outcome is unknown: {UNKNOWN_OUTCOME}.", unknown=True
        )
    return _error(f"{call.subject} failed: its server {reason}")


def _error(text: str, *, unknown: bool = False) -> CallResult:
    return CallResult(text=text, is_error=True, unknown=unknown)
