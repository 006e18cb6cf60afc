"""What sends from an outbox ends when it is closed, whatever it is doing at that moment (F14)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest

from folkmoot.runtime.sending import Receiver, Sending


class Nothing:
    """An outbox in which there is nothing."""

    async def claim(self, *, limit: int, busy: Mapping[Receiver, int]) -> Sequence[str]:
        return ()

    async def send(self, message: str) -> None:
        raise AssertionError("there is nothing to send")

    def receiver_of(self, message: str) -> Receiver:
        return UUID(int=1), UUID(int=2)


@pytest.mark.parametrize("moments", range(6))
async def test_news_at_the_moment_of_closing_does_not_keep_it_open(moments: int) -> None:
    """Else a worker that is told to end just as a message was sent would never end."""
    sending = Sending(Nothing(), poll_seconds=100.0)
    sending.start()
    for _ in range(10):  # it waits for news by then
        await asyncio.sleep(0)
    sending.nudge()
    for _ in range(moments):
        await asyncio.sleep(0)
    task = asyncio.create_task(sending.close())
    done, _ = await asyncio.wait({task}, timeout=1)
    if not done:
        task.cancel()
    assert done, f"it goes on after it was closed {moments} moments after the news"
