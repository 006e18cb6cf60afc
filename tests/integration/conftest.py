"""What integration tests may ask for beside what every test may: a server of tools."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from connectors_at_hand import Bench, bench_at_work


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[Bench]:
    """An MCP server whose tools a test changes."""
    async with bench_at_work() as found:
        yield found
