"""What every part is given: the ground, how often and how much to measure, the peers, and where figures go."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.figures import Figures, Line, shown
from bench.ground import Ground


@dataclass(frozen=True, slots=True)
class Peer:
    """`store`: what it saves to. `is_durable`: every turn that it has acknowledged survives kill -9."""

    name: str
    store: str
    is_durable: bool

    def __str__(self) -> str:
        return f"{self.name} / {self.store}"


PEERS = (
    Peer("langgraph", "memory", False),
    Peer("langgraph", "postgres-sync", True),
    Peer("langgraph", "postgres-delta", True),
    Peer("autogen", "memory", False),
    Peer("autogen", "file", True),
)
MORE_PEERS = (
    Peer("openai_agents", "sqlite", True),
    Peer("pydantic_ai", "dbos", True),
    Peer("maf", "file", True),
    Peer("crewai", "sqlite", True),
)


@dataclass(frozen=True, slots=True)
class Course:
    """`repeats`: how often each figure is taken. `is_quick`: less of everything, to see that it works. `fake_url`: the HTTP model's."""

    ground: Ground
    figures: Figures
    repeats: int
    is_quick: bool
    peers: tuple[Peer, ...]
    fake_url: str

    def record(self, part: str, subject: str, repeat: int, **figures: float | str | None) -> None:
        line: Line = {"part": part, "subject": subject, "repeat": repeat}
        line |= {name: round(value, 5) if isinstance(value, float) else value for name, value in figures.items()}
        self.figures.add(line)
        texts = (f"{k}={shown(v) if isinstance(v, int | float) else v}" for k, v in figures.items() if v is not None)
        print(f"{part} {subject}: {' '.join(texts)}", file=sys.stderr, flush=True)


Part = Callable[[Course], Awaitable[None]]
