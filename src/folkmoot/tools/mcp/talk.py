"""What is said to a server over an open session, whichever way it was reached: list its tools, call one.

A call carries its idempotency key in `_meta` under `folkmoot/idempotencyKey`, the same for every attempt. Deliberately absent:
the check of a result against the tool's output schema, whose patterns are the server's; progress, logs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from folkmoot import __version__
from folkmoot.domain.operations import McpDescriptor
from folkmoot.tools.mcp.listing import difference, found
from folkmoot.tools.mcp.trace import Changed, ServerFailure, Trace

IDEMPOTENCY_META_KEY = "folkmoot/idempotencyKey"
CLIENT_INFO = types.Implementation(name="folkmoot", version=__version__)

_Answer = types.CallToolResult | types.InputRequiredResult
_ANSWER: TypeAdapter[_Answer] = TypeAdapter(_Answer)


@dataclass(frozen=True, slots=True)
class Order:
    """One call. `pinned`: what the tool must still be, where that is to be seen to before the call."""

    tool_name: str
    arguments: dict[str, Any]
    idempotency_key: str
    pinned: McpDescriptor | None = None


async def ordered(session: ClientSession, order: Order, trace: Trace) -> types.CallToolResult:
    """Call the tool and wait for its answer. Raises Changed, ServerFailure, and what the session raises."""
    if order.pinned is not None:
        changed = difference(order.pinned, await found(session, order.tool_name))
        if changed is not None:
            raise Changed(changed)
    trace.is_asked = True
    try:
        answer = await _sent(session, order)
    except MCPError as error:
        if error.code != types.HEADER_MISMATCH:
            raise
        # The server wants arguments in headers too, which a session only does for tools that it has seen listed.
        await found(session, order.tool_name)
        answer = await _sent(session, order)
    if isinstance(answer, types.CallToolResult):
        return answer
    raise ServerFailure("asks for something before it goes on, which is not given to servers.", is_answer=True)


async def _sent(session: ClientSession, order: Order) -> _Answer:
    request = types.CallToolRequest(
        params=types.CallToolRequestParams(
            name=order.tool_name, arguments=order.arguments, _meta={IDEMPOTENCY_META_KEY: order.idempotency_key}
        )
    )
    return await session.send_request(request, _ANSWER)
