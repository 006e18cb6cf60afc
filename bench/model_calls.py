"""Part m: CPU of a model call of 45 messages and 2 functions, through our adapters, beside the bare SDK's and bare httpx2's.

The fake server of the tests, which speaks and checks the provider's protocol, runs in a process of its own; so does the caller, which
prints its figures. Only the caller's CPU counts.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.course import Course

_ROOT = Path(__file__).parent.parent
_FAKE = _ROOT / "tests" / "contract" / "fake_server.py"
PROVIDERS = ("openai", "anthropic", "google")
_CALLS, _QUICK_CALLS = 400, 20
_LONGER = 400


async def model_calls(course: Course) -> None:
    for repeat in range(1, course.repeats + 1):
        for provider in PROVIDERS:
            async with fake_provider(provider) as url:
                ms = await _called(provider, url, calls=_QUICK_CALLS if course.is_quick else _CALLS)
            course.record(
                "m", provider, repeat, ours_ms=ms["ours"], ours_streamed_ms=ms["ours_streamed"], sdk_ms=ms["sdk"], httpx2_ms=ms["httpx2"],
                us_per_message=(ms["ours_longer"] - ms["ours"]) * 1000 / _LONGER,
            )  # fmt: skip


@asynccontextmanager
async def fake_provider(provider: str, *, window: int | None = None) -> AsyncIterator[str]:
    """Its base URL. `window`: tokens of the longest prompt that it takes; null: any."""
    bounds = [] if window is None else ["--window", str(window)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(_FAKE), provider, *bounds, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        if not url:
            raise RuntimeError(f"The fake server of {provider} did not start.")
        yield url
    finally:
        # It ends with its input.
        process.stdin.close()
        await process.wait()


async def _called(provider: str, url: str, *, calls: int) -> dict[str, float]:
    env = os.environ | {"PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.called_model",
        provider,
        url,
        str(calls),
        stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
        env=env,
    )
    said, _ = await process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"The calls of {provider} did not end well; what went wrong stands above.")
    figures: dict[str, float] = json.loads(said.decode().splitlines()[-1])
    return figures
