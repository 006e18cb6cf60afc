"""The functions of the research team: two look into the sources beside this file and change nothing, one writes the report.

Every public function here is offered; an agent can call those that its definition names. Deliberately absent: a way to read or write
anything else. Texts are in UTF-8, the report stands in `dist/research` of the folder in which Folkmoot was started.
"""

from __future__ import annotations

import csv
from pathlib import Path

from folkmoot.tools.functions import function_tool

_SOURCES = Path(__file__).parent / "sources"
_REPORT = Path("dist") / "research" / "REPORT.md"


@function_tool(is_read_only=True, limit_seconds=5)
def find_letters(word: str) -> list[str]:
    """The readers' letters in which a word occurs, whole; upper and lower case are the same."""
    letters = (_SOURCES / "letters.md").read_text(encoding="utf-8").split("\n\n")
    return [letter.strip() for letter in letters if word.casefold() in letter.casefold()]


@function_tool(is_read_only=True, limit_seconds=5)
def visits_per_hour(day: str) -> dict[str, float]:
    """How many people came to the library on this day of the week: counted days, visits in all, and visits per open hour."""
    with (_SOURCES / "visits.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["day"] == day]
    if not rows:
        raise ValueError(f"Nobody counted on '{day}'. There are: Saturday, Sunday.")
    visits, hours = (sum(int(row[column]) for row in rows) for column in ("visits", "hours"))
    return {"days": len(rows), "visits": visits, "visitsPerHour": round(visits / hours, 1)}


@function_tool(approval_mode="Always", limit_seconds=5)
def write_report(text: str) -> str:
    """Write the report, Markdown; one that is there is replaced. A person approves each call before it is made."""
    _REPORT.parent.mkdir(parents=True, exist_ok=True)
    _REPORT.write_text(f"{text.rstrip()}\n", encoding="utf-8")
    return f"Written to {_REPORT}."
