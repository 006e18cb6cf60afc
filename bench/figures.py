"""Figures as lines: one JSON object per repetition, kept by part; and their medians with the spread.

Deliberately absent: means, and figures that are thrown away.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Line = dict[str, Any]
OURS = "folkmoot"


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some repetitions, the least and the greatest of them."""

    median: float
    least: float
    greatest: float
    count: int

    def __str__(self) -> str:
        if self.count == 1:
            return shown(self.median)
        return f"{shown(self.median)} ({shown(self.least)}-{shown(self.greatest)})"


def shown(value: float) -> str:
    """Three digits, more only before the point."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.{2 if abs(value) >= 1 else 3}f}".rstrip("0").rstrip(".")


class Figures:
    """The lines of a file, by part. A part that is measured again replaces what was there of it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.lines: list[Line] = []
        if file.exists():
            self.lines = [json.loads(text) for text in file.read_text(encoding="utf-8").splitlines()]

    def begin(self, part: str, **header: Any) -> None:
        self.lines = [line for line in self.lines if line["part"] != part]
        self.add({"part": part, "subject": "header", **header})

    def add(self, line: Line) -> None:
        """Saved at once, so that an interrupted run keeps what it had."""
        self.lines.append(line)
        text = "".join(json.dumps(kept, separators=(", ", ": ")) + "\n" for kept in self.lines)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(text, encoding="utf-8")

    def header(self, part: str) -> Line | None:
        return next((line for line in self.lines if line["part"] == part and line["subject"] == "header"), None)

    def parts(self) -> list[str]:
        return [line["part"] for line in self.lines if line["subject"] == "header"]

    def subjects(self, part: str) -> list[str]:
        """In the order in which they were measured."""
        found = (line["subject"] for line in self.lines if line["part"] == part and line["subject"] != "header")
        return list(dict.fromkeys(found))

    def of(self, part: str, subject: str) -> list[Line]:
        return [line for line in self.lines if line["part"] == part and line["subject"] == subject]

    def spread(self, part: str, subject: str, name: str) -> Spread | None:
        """Null where nothing was measured."""
        return spread_of([line[name] for line in self.of(part, subject) if line.get(name) is not None])

    def trouble(self, part: str, subject: str) -> str | None:
        """Why there is no figure, where a subject could not be measured."""
        return next((line["trouble"] for line in self.of(part, subject) if "trouble" in line), None)


def spread_of(values: Sequence[float]) -> Spread | None:
    return Spread(statistics.median(values), min(values), max(values), len(values)) if values else None


def percentile(values: Iterable[float], part: float) -> float:
    """The smallest value that `part` (0 to 1) of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]
