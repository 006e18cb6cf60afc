"""Part limits: what this machine allows: commits of 1 KB without anything around them, and calls of the fake HTTP model."""

from __future__ import annotations

from bench.course import Course
from bench.peer_runs import limits


async def raw_limits(course: Course) -> None:
    for repeat in range(1, course.repeats + 1):
        said = await limits(course, seconds=0.1 if course.is_quick else 0.5)
        if "trouble" in said:
            course.record("limits", "limits.py", repeat, trouble=said["trouble"])
            return
        for name, found in said.items():
            if isinstance(found, dict):
                course.record(
                    "limits", name, repeat, per_s=found["per_s"], cpu_ms=found["cpu_ms"], machine_cpu_ms=found["machine_cpu_ms"]
                )  # fmt: skip
