"""Peers, the fake model server and the raw limits: scripts under bench/peers, each run in its own process and environment.

A peer without an environment is recorded as not set up, never left out. Deliberately absent: anything that knows a peer's API.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.course import Course, Peer
from bench.ground import Ground

HERE = Path(__file__).parent / "peers"
_LONGEST_SECONDS = 300.0
_FIELDS = (
    "turns_per_s",
    "cpu_ms_per_turn",
    "machine_cpu_ms_per_turn",
    "rss_mb",
    "import_s",
    "distributions",
    "version",
)


def python_of(name: str) -> Path | None:
    """The peer's own Python; null where bench/peers/setup.sh has not made it."""
    found = HERE / "venvs" / name / "bin" / "python"
    return found if found.exists() else None


async def peer(
    course: Course, part: str, which: Peer, repeat: int, *options: str, fields: tuple[str, ...] = ()
) -> None:
    """Run a peer's script once on a database of its own, and record what it says. `fields`: those wanted beside the usual."""
    python = python_of(which.name)
    if python is None:
        trouble = f"not set up: bench/peers/setup.sh python3.12 {which.name}"
        course.record(part, str(which), repeat, trouble=trouble)
        return
    async with course.ground.database(is_migrated=False) as dsn:
        env = os.environ | {
            "PG_DSN": dsn, "FAKE_URL": course.fake_url, "PEER_DATA": str(course.ground.folder / "peers"),
        }  # fmt: skip
        said = await _say(python, f"peer_{which.name}.py", "--store", which.store, *options, env=env)
    wanted = {name: said[name] for name in (*_FIELDS, *fields, "note") if name in said}
    if "stored_per_content" in fields and "wal_bytes" in said:
        wanted["wal_per_content"] = said["wal_bytes"] / said["content_bytes"]
    course.record(part, str(which), repeat, **wanted, **({"trouble": said["trouble"]} if "trouble" in said else {}))


async def limits(course: Course, *, seconds: float) -> dict[str, Any]:
    """Commits of the same size and calls of the same model, with nothing around them: what the machine allows."""
    python = python_of("limits") or Path(sys.executable)
    async with course.ground.database(is_migrated=False) as dsn:
        env = os.environ | {"PG_DSN": dsn, "FAKE_URL": course.fake_url}
        return await _say(python, "limits.py", "--seconds", str(seconds), env=env)


@asynccontextmanager
async def fake_model(ground: Ground) -> AsyncIterator[str]:
    """The instant OpenAI-compatible server's URL, for as long as it is needed."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    python = python_of("limits") or Path(sys.executable)
    with (ground.folder / "fake_openai.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            python,
            HERE / "fake_openai.py",
            "--port",
            str(port),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        await _wait_for(process, port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _wait_for(process: asyncio.subprocess.Process, port: int) -> None:
    while True:
        if process.returncode is not None:
            raise RuntimeError("The fake model server did not start.")
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return


async def _say(python: Path, script: str, *options: str, env: dict[str, str]) -> dict[str, Any]:
    """The JSON line that a script prints last; `trouble` where it printed none."""
    process = await asyncio.create_subprocess_exec(
        python, HERE / script, *options, env=env, cwd=HERE,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, errors = await asyncio.wait_for(process.communicate(), _LONGEST_SECONDS)
    except TimeoutError:
        return {"trouble": f"not done within {_LONGEST_SECONDS:.0f} s"}
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = out.decode().strip().splitlines()
    if not lines:
        last = (errors.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return {"trouble": last[:300]}
    said: dict[str, Any] = json.loads(lines[-1])
    return said
