"""Real workers: `python -m folkmoot worker` on a test's database, with short leases, a fault to be hit, and a tools' log.

Deliberately absent: ending a process otherwise than by its own id.
"""

from __future__ import annotations

import asyncio
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import panels
from forked import start

from folkmoot.store.database import Database

HERE = Path(__file__).parent
SHOP = HERE / "functions" / "shop.py"
LEASE_SECONDS = 1.5
SETTINGS = {
    "LEASE_SECONDS": str(LEASE_SECONDS), "PING_SECONDS": "0.3", "SWEEP_SECONDS": "0.3", "POLL_SECONDS": "0.2", "DRAIN_SECONDS": "20",
}  # fmt: skip


class Hired:
    """A worker's process, as asyncio's own shows one."""

    def __init__(self, process: subprocess.Popen[Any]) -> None:
        self._process = process
        self.pid = process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        self._process.send_signal(number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        return await asyncio.to_thread(self._process.wait)


@dataclass
class Hands:
    """A test's worker processes, all of them ended when it is over. `log`: what the tools wrote."""

    database: Database
    folder: Path
    processes: list[Hired] = field(default_factory=list)

    @property
    def log(self) -> Path:
        return self.folder / "tools.jsonl"

    def gate(self, name: str) -> Path:
        """While this file is there, the function of this name does not answer."""
        return self.folder / f"gate.{name}"

    async def hire(self, *, fault: str | None = None, functions: tuple[Path, ...] = (SHOP,), **settings: str) -> Hired:
        """Start a worker; it is not waited for."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FOLKMOOT_")}
        named = {
            **SETTINGS,
            "DATABASE_URL": self.database.dsn,
            "DATA_DIR": str(self.folder),
            "FUNCTIONS": ":".join(map(str, functions)),
            **settings,
        }
        if fault is not None:
            named["FAULT"] = fault
        environment |= {f"FOLKMOOT_{name}": value for name, value in named.items()}
        environment |= {
            "TOOL_LOG": str(self.log),
            "TOOL_GATE": str(self.folder / "gate"),
            "PYTHONPATH": str(HERE.parents[1] / "src"),
        }
        with (self.folder / "workers.log").open("ab") as errors:
            process = Hired(
                await asyncio.to_thread(
                    start, ["worker"], env=environment, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
                )
            )
        self.processes.append(process)
        return process

    def functions(self) -> dict[str, Any]:
        """The shop's functions for a worker in this process, with the same log and gates."""
        os.environ["TOOL_LOG"], os.environ["TOOL_GATE"] = str(self.log), str(self.folder / "gate")
        module = runpy.run_path(str(SHOP))
        return {name: value for name, value in module.items() if hasattr(value, "__folkmoot_function_tool__")}

    async def is_at_work(self, process: Hired) -> bool:
        """Whether the process has a worker's row with a live lease: from then on it drains when it is told to."""
        rows = await panels.fetch(
            self.database, "select 1 from worker where pid = $1 and lease_until > folkmoot_now()", process.pid
        )
        return bool(rows)

    def words(self) -> str:
        """What the workers wrote to their standard error, for a failure's message."""
        return (self.folder / "workers.log").read_text(errors="replace")[-6000:]


@asynccontextmanager
async def hands(database: Database, folder: Path) -> AsyncIterator[Hands]:
    made = Hands(database, folder)
    try:
        yield made
    except BaseException:
        sys.stderr.write(made.words() if (folder / "workers.log").exists() else "")
        raise
    finally:
        for process in made.processes:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGKILL)
                await process.wait()
