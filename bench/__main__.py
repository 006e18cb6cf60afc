"""`python -m bench [part ...]`: measures the parts that are named, or all, and writes RESULTS.md and results.jsonl."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

from bench import report
from bench.agents import agents
from bench.course import MORE_PEERS, PEERS, Course, Part, Peer
from bench.figures import Figures
from bench.footprint import footprint
from bench.ground import open_ground
from bench.latency import latency
from bench.length import long_conversation
from bench.lists import lists
from bench.model_calls import model_calls
from bench.peer_runs import fake_model
from bench.people import people
from bench.raw_limits import raw_limits
from bench.small_window import small_window
from bench.speed import many_conversations, many_over_http, one_conversation
from bench.takeover import takeover
from bench.trees import trees
from bench.waiting import waiting_runs

_HERE = Path(__file__).parent
_REPEATS = 5
PARTS: dict[str, Part] = {
    "limits": raw_limits, "a": one_conversation, "b": long_conversation, "c": many_conversations, "ch": many_over_http,
    "d": waiting_runs, "e": latency, "f": takeover, "g": footprint, "h": lists, "i": people, "m": model_calls, "n": agents,
    "t": trees, "w": small_window,
}  # fmt: skip
_ALSO = {"agents": "n", "lists": "h", "people": "i", "models": "m", "trees": "t"}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {' '.join(PARTS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="one repetition of less work, to see that it runs")
    parser.add_argument("--repeats", type=int, help=f"repetitions of each figure (default {_REPEATS}; 1 with --quick)")
    parser.add_argument("--peers", choices=("usual", "all", "none"), default="usual", help="which peers run beside")
    parser.add_argument(
        "--out", type=Path, help="where RESULTS.md and results.jsonl go (default bench; bench/data with --quick)"
    )
    parser.add_argument("--data-parent", type=Path, help="folder below which the database is made, and removed again")
    asked = parser.parse_args()
    asked.parts = [_ALSO.get(part, part) for part in asked.parts] or list(PARTS)
    unknown = [part for part in asked.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    return asked


async def _measure(asked: argparse.Namespace, out: Path) -> None:
    figures = Figures(out / "results.jsonl")
    repeats = asked.repeats or (1 if asked.quick else _REPEATS)
    peers: dict[str, tuple[Peer, ...]] = {"usual": PEERS, "all": PEERS + MORE_PEERS, "none": ()}
    async with open_ground(asked.data_parent) as ground, fake_model(ground) as url:
        course = Course(ground, figures, repeats, asked.quick, peers[asked.peers], url)
        header = {
            "command": shlex.join(["python", "-m", "bench", *sys.argv[1:]]), "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            "machine": ground.machine, "repeats": repeats, "is_quick": asked.quick,
        }  # fmt: skip
        for part in asked.parts:
            figures.begin(part, **header)
            await PARTS[part](course)
            report.write(out / "RESULTS.md", figures)


def main() -> None:
    asked = _arguments()
    out = asked.out or (_HERE / "data" if asked.quick else _HERE)
    out.mkdir(parents=True, exist_ok=True)
    try:
        asyncio.run(_measure(asked, out))
    except KeyboardInterrupt:
        print("bench: interrupted; what was measured is kept.", file=sys.stderr)
        sys.exit(130)
    print(f"bench: {out / 'RESULTS.md'}")


if __name__ == "__main__":
    main()
