"""What the figures are held against. A goal that is not reached is told so; nothing fails because of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median

from bench.approvals import BESIDE, MCP, OVER_HTTP
from bench.consent_answers import CALL_MS, WAYS
from bench.consents import BEGINS as BESIDE_CONSENTS
from bench.consents import EXPIRED, SWEEP_SECONDS
from bench.consents import PAUSED as FOR_CONSENT
from bench.course import MORE_PEERS, PEERS
from bench.figures import OURS, Figures, shown
from bench.length import OBSERVED
from bench.model_calls import PROVIDERS
from bench.people import BEGINS, INBOX, PAUSED
from bench.speed import LONG
from bench.takeover import BOUND_SECONDS
from bench.trees import TREE, WAITING


@dataclass(frozen=True, slots=True)
class Goal:
    """`value` gives null where it was not measured. `is_least`: the bounds are the least that counts; else the most."""

    what: str
    value: Callable[[Figures], float | None]
    must: float
    stretch: float | None = None
    is_least: bool = False

    def holds(self, value: float, bound: float | None) -> bool:
        if bound is None:
            return False
        return value >= bound if self.is_least else value <= bound

    def bound(self, bound: float | None) -> str:
        return "" if bound is None else f"{'≥' if self.is_least else '≤'} {shown(bound)}"


def best_durable(figures: Figures, part: str) -> tuple[str, float] | None:
    """The fastest peer that loses no acknowledged turn, and its turns per second."""
    found = [
        (str(which), spread.median)
        for which in (*PEERS, *MORE_PEERS)
        if which.is_durable and (spread := figures.spread(part, str(which), "turns_per_s")) is not None
    ]
    return max(found, key=lambda pair: pair[1]) if found else None


def _median(part: str, subject: str, name: str) -> Callable[[Figures], float | None]:
    def value(figures: Figures) -> float | None:
        spread = figures.spread(part, subject, name)
        return spread.median if spread else None

    return value


def _over_best(part: str) -> Callable[[Figures], float | None]:
    def value(figures: Figures) -> float | None:
        ours, best = figures.spread(part, OURS, "turns_per_s"), best_durable(figures, part)
        return ours.median / best[1] if ours and best else None

    return value


def _over_memory(figures: Figures) -> float | None:
    ours, theirs = figures.spread("c", OURS, "turns_per_s"), figures.spread("c", "autogen / memory", "turns_per_s")
    return ours.median / theirs.median if ours and theirs else None


def _growth(subject: str) -> Callable[[Figures], float | None]:
    def value(figures: Figures) -> float | None:
        late, early = figures.spread("b", subject, "ms_at_1000"), figures.spread("b", subject, "ms_at_10")
        return late.median / early.median if late and early else None

    return value


def _slowest_list(figures: Figures) -> float | None:
    return _worst(figures, "h", figures.subjects("h"), "ms_p95")


def _worst(figures: Figures, part: str, subjects: Iterable[str], name: str) -> float | None:
    spreads = [figures.spread(part, subject, name) for subject in subjects]
    return max((spread.median for spread in spreads if spread), default=None)


def _worst_of(subjects: tuple[str, ...], name: str) -> Callable[[Figures], float | None]:
    return lambda figures: _worst(figures, "i", subjects, name)


def _misdone(figures: Figures) -> float | None:
    """Approved calls that were not made or made again, in any repetition."""
    lines = [line for subject in (OVER_HTTP, BESIDE, MCP) for line in figures.of("i", subject)]
    return sum(line["calls_lost"] + line["calls_twice"] for line in lines) if lines else None


def _grown(figures: Figures) -> float | None:
    """MB that a worker which paused runs has more with all of them waiting than with half."""
    lines = figures.of("n", FOR_CONSENT)
    return median((line["mb_all"] - line["mb_half"]) / 2 for line in lines) if lines else None


def _sum_of(part: str, subjects: tuple[str, ...], *names: str) -> Callable[[Figures], float | None]:
    """Of what must not happen in any repetition."""

    def value(figures: Figures) -> float | None:
        lines = [line for subject in subjects for line in figures.of(part, subject)]
        return sum(line[name] for line in lines for name in names) if lines else None

    return value


def _worst_wait(figures: Figures) -> float | None:
    """Of any repetition."""
    spread = figures.spread("t", TREE, "longest_lock_wait_ms")
    return spread.greatest if spread else None


GOALS = (
    Goal("one conversation, turns/s (300 turns)", _median("a", LONG, "turns_per_s"), 1000, 1500, is_least=True),
    Goal("one conversation, over the best durable peer (30 turns)", _over_best("a"), 2, is_least=True),
    Goal("50 conversations, turns/s (300 turns)", _median("c", LONG, "turns_per_s"), 3000, 8000, is_least=True),
    Goal("50 conversations, over the best durable peer (30 turns)", _over_best("c"), 4, is_least=True),
    Goal("50 conversations, over AutoGen in memory (30 turns)", _over_memory, 1, is_least=True),
    Goal("50 conversations, worker CPU ms a turn (300 turns)", _median("c", LONG, "cpu_ms_per_turn"), 0.15, 0.06),
    Goal("a turn at 1,000 over one at 10, in one long run", _growth(OURS), 1.25, 1.1),
    Goal("the same with a person's message a turn", _growth(OBSERVED), 1.25, 1.1),
    Goal("bytes stored over content", _median("b", OURS, "stored_per_content"), 2.6, 2.2),
    Goal("WAL bytes over content", _median("b", OURS, "wal_per_content"), 3.0, 2.3),
    Goal("KB of a worker's memory for each waiting run", _median("d", OURS, "kb_per_run"), 0.1),
    Goal("takeover of a lost worker's run, s", _median("f", OURS, "seconds"), BOUND_SECONDS),
    Goal("items lost by the takeover", _median("f", OURS, "items_lost"), 0),
    Goal("start to a one-turn run's end, ms p50", _median("e", OURS, "end_ms_p50"), 8, 4),
    Goal("50 conversations over HTTP, over the best durable peer", _over_best("ch"), 2, is_least=True),
    Goal("the slowest list of runs, ms p95 (B63)", _slowest_list, 50),
    Goal("MB more in a worker beside 5,000 runs that wait for people", _worst_of((BEGINS, PAUSED), "mb_more"), 5),
    Goal("the inbox over HTTP beside them, ms p95", _worst_of(INBOX, "ms_p95"), 50),
    Goal(
        "1,000 approvals at once: answer to the call of a function, ms p95",
        _worst_of((OVER_HTTP, BESIDE), "call_ms_p95"),
        2000,
    ),
    Goal("approved calls lost or made twice", _misdone, 0),
    Goal("1,000 sub-runs under one root, over the time of as many separate runs", _median("t", TREE, "ratio"), 1.3),
    Goal("the longest wait for a lock in such a tree, ms", _worst_wait, 100),
    Goal("KB of a worker's memory for each waiting root", _median("t", WAITING, "kb_per_root"), 0.1),
    Goal("waiting roots that hold a worker", _median("t", WAITING, "held"), 0),
    Goal("runs awaiting consent that a worker holds", _sum_of("n", (FOR_CONSENT,), "held"), 0),
    Goal(
        "KB of a worker's memory for each of 10,000 runs awaiting consent",
        _median("n", BESIDE_CONSENTS, "kb_per_run"),
        0.1,
    ),
    Goal("MB more in a worker that paused them, from half of them to all", _grown, 5),
    Goal("sweep of 1,000 expiries, s", _median("n", EXPIRED, "sweep_s"), SWEEP_SECONDS),
    Goal("expiries that were not announced exactly once", _sum_of("n", (EXPIRED,), "not_once"), 0),
    *(
        Goal(f"from consent to call beside them, {way}, ms p95", _median("n", way, "call_ms_p95"), CALL_MS)
        for way in WAYS
    ),
    Goal(
        "calls with consent that were lost, made twice, or made without it",
        _sum_of("n", WAYS, "calls_lost", "calls_twice", "calls_unasked"),
        0,
    ),
    *(Goal(f"a model call of 45 messages to {name}, CPU ms", _median("m", name, "ours_ms"), 3) for name in PROVIDERS),
    *(
        Goal(
            f"{name}: CPU of a turn at 3,000 in a small window over one after the first summary",
            _median("w", name, "cpu_growth"),
            1.2,
        )
        for name in PROVIDERS
    ),
)
