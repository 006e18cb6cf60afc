"""What a process and the machine have used, read from outside. Linux only: CPU clocks of other processes and /proc.

Deliberately absent: anything that has to run inside the process that is measured.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

_CPU_CLOCK_OF_A_PROCESS = 2  # the kind that clock_getcpuclockid(3) encodes below the inverted process id


def cpu_seconds(pid: int) -> float:
    """CPU time of all threads of a running process; what time.process_time() says inside it."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_A_PROCESS)


def machine_cpu_seconds() -> float:
    """Busy time of the whole machine since it started, to 10 ms: the worker, PostgreSQL and whatever else ran."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    """Memory that a process holds, in MB of 2**20 bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True, slots=True)
class Used:
    """What went by between two looks: seconds of wall time, of one process's CPU, of the machine's."""

    wall: float
    cpu: float
    machine_cpu: float


class Watch:
    """Started when made. `began_at`: Unix seconds, to be compared with the database's clock on the same machine."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._machine = machine_cpu_seconds()
        self._cpu = cpu_seconds(pid)
        self.began_at = time.time()

    def used(self, *, until: float | None = None) -> Used:
        """`until`: Unix seconds at which the work was over, where that is known better than by when it was noticed."""
        cpu, machine = cpu_seconds(self._pid) - self._cpu, machine_cpu_seconds() - self._machine
        return Used((time.time() if until is None else until) - self.began_at, cpu, machine)
