"""`docs/run-states.md` is made from the one transition table: run this file as a program to write it anew."""

from __future__ import annotations

from pathlib import Path

from folkmoot.domain.run_status import FINAL, FIRST, TRANSITIONS, WAITING, RunStatus

RUN_STATES = Path(__file__).resolve().parents[2] / "docs" / "run-states.md"


def diagram() -> str:
    """docs/run-states.md, from the one transition table."""
    lines = ["# The states of a run", ""]
    lines += [
        "Made from `TRANSITIONS` in `src/folkmoot/domain/run_status.py` by `python tests/unit/test_run_states.py`.",
        "",
    ]
    lines += ["```mermaid", "stateDiagram-v2"]
    lines += [f"    [*] --> {status}: {kind}" for kind, status in FIRST.items()]
    moves: dict[tuple[RunStatus, RunStatus], list[str]] = {}
    for move, (sources, target) in TRANSITIONS.items():
        for source in RunStatus:
            if source in sources:
                moves.setdefault((source, target), []).append(move.value)
    lines += [f"    {source} --> {target}: {', '.join(names)}" for (source, target), names in moves.items()]
    lines += [f"    {status} --> [*]" for status in RunStatus if status in FINAL]
    lines += ["```", "", "| status | kind | moves that leave it |", "|---|---|---|"]
    for status in RunStatus:
        kind = "final" if status in FINAL else "waiting" if status in WAITING else "at work or to be claimed"
        leaving = [f"`{move.value}`" for move, (sources, _) in TRANSITIONS.items() if status in sources]
        lines.append(f"| `{status}` | {kind} | {', '.join(leaving) or 'none'} |")
    return "\n".join(lines) + "\n"


def test_the_diagram_of_run_states_is_what_the_transition_table_says() -> None:
    assert RUN_STATES.read_text(encoding="utf-8") == diagram(), "Run `python tests/unit/test_run_states.py`."


if __name__ == "__main__":
    RUN_STATES.write_text(diagram(), encoding="utf-8")
