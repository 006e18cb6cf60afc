"""Part g: how long importing takes and a worker's start, and what an installation takes on disk.

Each import is in a fresh interpreter, less what a bare one takes. The installation is made from requirements.lock, in a new
virtual environment; pip itself is not counted.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from importlib.metadata import distributions
from pathlib import Path

from bench.course import Course
from bench.figures import OURS
from bench.roundtable import driver
from bench.workers import worker

_ROOT = Path(__file__).parent.parent
_NOT_OURS = {"pip", "setuptools"}
_TRIES = 3
# the composition root with all of its modules, which a bare import of the package might leave out
_IMPORT = """
import importlib, pkgutil, folkmoot.bootstrap as root
for found in pkgutil.iter_modules(getattr(root, "__path__", ()), root.__name__ + "."):
    importlib.import_module(found.name)
"""


async def footprint(course: Course) -> None:
    for repeat in range(1, course.repeats + 1):
        bare = await _seconds("pass")
        imported = await _seconds(_IMPORT) - bare
        async with (
            course.ground.database() as dsn,
            driver(dsn) as drive,
            worker(course.ground, dsn, drive) as process,
        ):
            course.record("g", OURS, repeat, import_s=imported, worker_ready_s=process.ready_seconds)
    if not course.is_quick:
        await asyncio.to_thread(_installation, course)


async def _seconds(code: str) -> float:
    """The median of some tries: the first one of all may have to compile."""
    times = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=_ROOT / "src")
        if await process.wait() != 0:
            raise RuntimeError(f"This failed in a fresh Python: {code}")
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def _installation(course: Course) -> None:
    folder = course.ground.folder / "installation"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, "--require-hashes", "-r", _ROOT / "requirements.lock"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        course.record("g", "installation", 1, trouble=reason[:300])
        return
    (packages,) = folder.glob("lib/python*/site-packages")
    found = {str(d.metadata["Name"]).lower() for d in distributions(path=[str(packages)])} - _NOT_OURS
    kept = [path for path in packages.iterdir() if path.name.split("-")[0].lower() not in _NOT_OURS]
    size = sum(_bytes(path) for path in kept) + _bytes(_ROOT / "src" / "folkmoot")
    course.record("g", "installation", 1, installed_mb=size / 2**20, distributions=len(found))


def _bytes(path: Path) -> int:
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files)
