"""The benchmarks still run. What they measure is not asserted: the machine that runs the tests decides that."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.agents import AGENT_ENDS
from bench.consent_answers import WAYS
from bench.consents import EXPIRED, PAUSED
from bench.trees import TREE, WAITING

_ROOT = Path(__file__).parents[2]


def run(*parts: str, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *parts, "--out", str(out)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def measured(*parts: str, out: Path) -> tuple[list[dict[str, Any]], str]:
    """The results' lines, and their page."""
    done = run(*parts, "--quick", "--peers", "none", out=out)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    return lines, (out / "RESULTS.md").read_text()


@pytest.mark.timeout(240)
def test_quick_parts_measure_and_report(tmp_path: Path) -> None:
    lines, page = measured("a", "e", "t", out=tmp_path)
    a = next(line for line in lines if line["part"] == "a" and line["subject"] == "folkmoot")
    e = next(line for line in lines if line["part"] == "e" and line["subject"] == "folkmoot")
    assert a["turns_per_s"] > 0 and a["cpu_ms_per_turn"] > 0
    assert 0 < e["first_call_ms_p50"] <= e["end_ms_p50"] <= e["end_ms_p95"]
    tree = next(line for line in lines if line["subject"] == TREE)
    waiting = next(line for line in lines if line["subject"] == WAITING)
    assert tree["ratio"] > 0 and tree["longest_lock_wait_ms"] >= 0 and waiting["held"] == 0
    header = next(line for line in lines if line["subject"] == "header")
    assert (header["machine"]["fsync"], header["machine"]["synchronous_commit"]) == ("on", "on")
    assert "start to a one-turn run's end, ms p50" in page
    assert "1,000 sub-runs under one root, over the time of as many separate runs" in page
    assert "Not measured: `python -m bench b`." in page


@pytest.mark.chaos
@pytest.mark.timeout(240)
def test_the_quick_part_of_agent_runs_measures_and_reports(tmp_path: Path) -> None:
    lines, _ = measured("n", out=tmp_path)
    kinds = {line["subject"]: line for line in lines if line["part"] == "n"}
    assert kinds[PAUSED]["held"] == 0 and kinds[EXPIRED]["not_once"] == 0
    assert all(kinds[way][name] == 0 for way in WAYS for name in ("calls_lost", "calls_twice", "calls_unasked"))
    assert kinds[AGENT_ENDS]["cpu_ratio"] > 0


def test_unknown_part_is_refused(tmp_path: Path) -> None:
    done = run("z", out=tmp_path)
    assert done.returncode == 2
    assert "there is no part z" in done.stderr
