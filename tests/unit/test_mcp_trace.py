"""Failures of work with MCP servers become sentences, and a cancellation is never taken for one of them (B32, B53)."""

from __future__ import annotations

import asyncio

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS

from folkmoot.tools.addresses import AddressRefused
from folkmoot.tools.bodies import BodyTooLarge
from folkmoot.tools.mcp.trace import ServerFailure, Trace, explained


async def test_a_cancellation_is_not_lost_among_failures() -> None:
    """A group of tasks that is cancelled gives the failures of its tasks and forgets that it was cancelled."""

    async def failing() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise OSError("the pipe is closed")

    async def work() -> None:
        with explained(Trace()):
            async with anyio.create_task_group() as group:
                group.start_soon(failing)
                await anyio.sleep_forever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    ("error", "is_worth_another", "is_answer", "is_sent"),
    [
        (AddressRefused("inside"), False, False, False),
        (httpx2.ConnectError("refused"), False, False, False),
        (httpx2.ReadError("reset"), True, False, True),
        (BodyTooLarge("too large"), False, True, True),
        (MCPError(CONNECTION_CLOSED, "Connection closed"), True, False, True),
        (MCPError(INVALID_PARAMS, "no"), False, True, True),
        (RuntimeError("odd"), False, False, True),
    ],
)
def test_what_a_failure_means_for_the_call_is_told(
    error: Exception, is_worth_another: bool, is_answer: bool, is_sent: bool
) -> None:
    """Also where it lies in groups, and beside the noise of tasks that were ended with it."""

    trace = Trace(is_asked=True, is_sent=True)

    def work() -> None:
        with explained(trace):
            raise ExceptionGroup("all", [RuntimeError("noise"), ExceptionGroup("inner", [error])])

    async def inside() -> None:
        work()

    with pytest.raises(ServerFailure) as caught:
        asyncio.run(inside())
    assert (caught.value.is_worth_another, caught.value.is_answer, trace.is_sent) == (
        is_worth_another,
        is_answer,
        is_sent,
    )
