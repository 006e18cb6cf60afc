"""RESULTS.md from the lines: what must be reached and whether it is, then a table per part.

A pure function of the figures, so that the page can be made again without measuring. Deliberately absent: figures that are not
in the lines, and peers or parts that are silently left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.agents import PACES
from bench.approvals import BESIDE, MCP, OVER_HTTP
from bench.consent_answers import WAYS
from bench.consents import BEGINS as BESIDE_CONSENTS
from bench.consents import EXPIRED
from bench.consents import PAUSED as FOR_CONSENT
from bench.course import MORE_PEERS, PEERS
from bench.figures import OURS, Figures, shown
from bench.goals import GOALS, best_durable
from bench.length import MARKS, OBSERVED
from bench.people import BEGINS, INBOX, PAUSED
from bench.speed import LONG, LONG_TURNS, SHORT_TURNS
from bench.trees import SEPARATE, TREE, WAITING

BEGIN = "<!-- figures: written by `python -m bench`; do not edit -->"
END = "<!-- end of figures -->"
_DURABLE = {str(which) for which in (*PEERS, *MORE_PEERS) if which.is_durable}

TITLES = {
    "limits": "What this machine allows",
    "a": "a. One conversation",
    "b": "b. One long conversation",
    "c": "c. 50 conversations at once, one worker",
    "ch": "ch. 50 conversations at once, the model behind HTTP",
    "d": "d. Memory of a worker beside 5,000 runs in other states",
    "e": "e. From start to first call, and to the end of a run of one turn; the worker idle",
    "f": "f. Takeover of a killed worker's run",
    "g": "g. Import, start, size",
    "h": "h. Lists of runs (B63)",
    "i": "i. 5,000 runs that wait for people, and 1,000 approvals at once",
    "m": "m. CPU of a model call of 45 messages and 2 functions",
    "n": "n. 10,000 agent runs that await consent, 1,000 that expire, 900 that are answered; and what a run costs",
    "t": "t. A tree of 1,000 sub-runs under one root",
    "w": "w. 3,000 turns in a window of 8,000 tokens",
}


def write(file: Path, figures: Figures) -> None:
    """Puts the report between the markers of a page, keeping what is around them."""
    before, after = "# Figures\n\nHow they are measured: [README.md](README.md).\n\n", "\n"
    if file.exists():
        text = file.read_text(encoding="utf-8")
        if BEGIN in text and END in text:
            before, after = text[: text.index(BEGIN)], text[text.index(END) + len(END) :]
    file.write_text(f"{before}{BEGIN}\n\n{render(figures)}\n{END}{after}", encoding="utf-8")


def render(figures: Figures) -> str:
    blocks = [_headers(figures), _goals(figures), _ratios(figures)]
    for part, title in TITLES.items():
        if part in figures.parts():
            blocks.append(f"### {title}\n\n{_TABLES[part](figures, part)}")
        else:
            blocks.append(f"### {title}\n\nNot measured: `python -m bench {part}`.")
    return "\n\n".join(blocks) + "\n"


def _headers(figures: Figures) -> str:
    """Parts that were measured alike are named together."""
    texts: dict[str, list[str]] = {}
    for part in figures.parts():
        header = figures.header(part)
        assert header is not None
        machine = ", ".join(f"{name} {value}" for name, value in header["machine"].items())
        repeats = "1 repetition" if header["repeats"] == 1 else f"{header['repeats']} repetitions"
        quick = " Quick: less of everything, no figure to hold a goal against." if header["is_quick"] else ""
        text = f"`{header['command']}` on {header['date']}: {machine}; {repeats}.{quick}"
        texts.setdefault(text, []).append(part)
    lines = [f"- {', '.join(parts)}: {text}" for text, parts in texts.items()]
    explained = (
        "Medians, with the least and the greatest in brackets. Everything is durable: a turn that was acknowledged survives `kill -9` of"
        " any process; what peers save is named beside them. Replies are 1 KB, 3 agents take turns. CPU is the worker's own, machine CPU"
        " that of everything that ran."
    )
    return "\n".join([*lines, "", explained])


def _goals(figures: Figures) -> str:
    rows = []
    for goal in GOALS:
        value = goal.value(figures)
        if value is None:
            rows.append([goal.what, "not measured", goal.bound(goal.must), goal.bound(goal.stretch), ""])
            continue
        reached = "stretch reached" if goal.holds(value, goal.stretch) and goal.stretch is not None else "reached"
        verdict = reached if goal.holds(value, goal.must) else "**not reached**"
        rows.append([goal.what, shown(value), goal.bound(goal.must), goal.bound(goal.stretch), verdict])
    return "### Goals\n\n" + _table(["", "median", "must", "stretch", ""], rows)


def _ratios(figures: Figures) -> str:
    rows = []
    for part, what in (("a", "one conversation"), ("c", "50 conversations"), ("ch", "50 conversations, HTTP")):
        ours, best = figures.spread(part, OURS, "turns_per_s"), best_durable(figures, part)
        memory = figures.spread(part, "autogen / memory", "turns_per_s")
        if ours is None:
            continue
        durable = f"{shown(ours.median / best[1])} ({best[0]})" if best else "no durable peer was measured"
        fastest = shown(ours.median / memory.median) if memory else "not measured"
        rows.append([what, durable, fastest])
    if not rows:
        return "### Beside peers\n\nNot measured."
    return "### Beside peers: turns/s, ours over theirs\n\n" + _table(
        ["", "best durable peer", "AutoGen in memory"], rows
    )


# The tables, one for each kind of part.


def _speed(figures: Figures, part: str) -> str:
    columns = ("turns_per_s", "cpu_ms_per_turn", "machine_cpu_ms_per_turn", "rss_mb")
    head = [
        f"{SHORT_TURNS} turns each, unless it says {LONG_TURNS}",
        "durable",
        "turns/s",
        "CPU ms/turn",
        "machine CPU ms/turn",
        "RSS MB",
    ]
    return _by_subject(figures, part, head, columns, extra=_is_durable)


def _is_durable(subject: str) -> str:
    return "yes" if subject in (OURS, LONG, OBSERVED) or subject in _DURABLE else "no"


def _length(figures: Figures, part: str) -> str:
    columns = (*(f"ms_at_{mark}" for mark in MARKS), "stored_per_content", "wal_per_content", "messages_per_turn")
    head = [
        "ms a turn around turn",
        "durable",
        *(f"{mark:,}" for mark in MARKS),
        "stored / content",
        "WAL / content",
        "messages a turn",
    ]
    return _by_subject(figures, part, head, columns, extra=_is_durable)


def _waiting(figures: Figures, part: str) -> str:
    head = ["", "RSS MB, 0 runs", "RSS MB, 5,000 runs", "KB a run", "CPU % when idle"]
    return _by_subject(figures, part, head, ("rss_mb_0", "rss_mb_5000", "kb_per_run", "idle_cpu_percent"))


def _latency(figures: Figures, part: str) -> str:
    head = ["ms", "first call p50", "first call p95", "end seen p50", "end seen p95"]
    return _by_subject(figures, part, head, ("first_call_ms_p50", "first_call_ms_p95", "end_ms_p50", "end_ms_p95"))


def _takeover(figures: Figures, part: str) -> str:
    head = ["", "kill to next item, s", "of lease + sweep + 0.5 s", "items lost"]
    return _by_subject(figures, part, head, ("seconds", "of_bound", "items_lost"))


def _footprint(figures: Figures, part: str) -> str:
    rows = []
    for subject in figures.subjects(part):
        trouble = figures.trouble(part, subject)
        for line in figures.of(part, subject)[:1]:
            names = [name for name in line if name not in ("part", "subject", "repeat", "trouble")]
            rows += [[subject, name, str(figures.spread(part, subject, name))] for name in names]
        if trouble:
            rows.append([subject, "", trouble])
    for subject in figures.subjects("a"):
        peer = subject.partition(" / ")[0]
        for name in ("import_s", "distributions"):
            spread = figures.spread("a", subject, name)
            if spread is not None and not any(row[:2] == [peer, name] for row in rows):
                rows.append([peer, name, str(spread)])
    return _table(["", "", ""], rows)


def _lists(figures: Figures, part: str) -> str:
    made = figures.of(part, "rows")[0]
    rows = []
    for subject in figures.subjects(part)[1:]:
        line = figures.of(part, subject)[0]
        spreads = [str(figures.spread(part, subject, name)) for name in ("ms_p50", "ms_p95")]
        rows.append([subject, *spreads, str(line["rows"]), line["plan"]])
    return f"{made['runs']:,} runs.\n\n" + _table(["filter", "ms p50", "ms p95", "rows", "found by"], rows)


def _people(figures: Figures, part: str) -> str:
    worker = ["", "MB beside none", "MB, all waiting", "MB more", "idle CPU % beside none", "idle CPU %, all waiting"]
    weighed = ("mb_none", "mb_waiting", "mb_more", "cpu_percent_none", "cpu_percent")
    calls = ["from answer to call", "runs", "answers/s", "ms p50", "ms p95", "lost", "twice", "worker CPU ms each"]
    called = ("runs", "answers_per_s", "call_ms_p50", "call_ms_p95", "calls_lost", "calls_twice", "cpu_ms_each")
    tables = (
        (worker, weighed, (BEGINS, PAUSED)),
        (["over HTTP", "ms p50", "ms p95", "ms longest"], ("ms_p50", "ms_p95", "ms_longest"), INBOX),
        (calls, called, (OVER_HTTP, BESIDE, MCP)),
    )
    return "\n\n".join(_by_subject(figures, part, head, names, only=subjects) for head, names, subjects in tables)


def _model_calls(figures: Figures, part: str) -> str:
    head = ["CPU ms a call", "ours", "ours, read along with", "bare SDK", "bare httpx2", "ours, µs a message more"]
    return _by_subject(figures, part, head, ("ours_ms", "ours_streamed_ms", "sdk_ms", "httpx2_ms", "us_per_message"))


def _small_window(figures: Figures, part: str) -> str:
    head = ["", "turns", "summaries", "refused as too long", "CPU ms a turn, early", "late", "late over early", "ms a turn, early", "late", "late over early"]  # fmt: skip
    columns = (
        "done",
        "summaries",
        "refused",
        "cpu_ms_early",
        "cpu_ms_late",
        "cpu_growth",
        "ms_early",
        "ms_late",
        "growth",
    )
    return _by_subject(figures, part, head, columns)


def _trees(figures: Figures, part: str) -> str:
    head = ["1,000 runs, 50 at once", "s", "runs/s", "of separate runs' time", "worker CPU ms each", "machine CPU ms each", "longest lock wait, ms"]  # fmt: skip
    columns = ("seconds", "runs_per_s", "ratio", "cpu_ms_per_run", "machine_cpu_ms_per_run", "longest_lock_wait_ms")
    weighed = ["", "RSS MB, 1 root", "roots", "RSS MB, all of them", "KB a root", "roots that it holds"]
    tables = (
        (head, columns, (SEPARATE, TREE)),
        (weighed, ("rss_mb_1", "roots", "rss_mb_all", "kb_per_root", "held"), (WAITING,)),
    )
    return "\n\n".join(_by_subject(figures, part, head, names, only=subjects) for head, names, subjects in tables)


def _agents(figures: Figures, part: str) -> str:
    paused = ["", "runs", "runs/s", "that they hold", "MB of both, half waiting", "MB, all waiting", "KB a run"]
    begins = ["", "MB beside none", "MB, all waiting", "KB a run", "idle CPU % beside none", "all waiting", "transactions/s beside none", "all waiting"]  # fmt: skip
    swept = ["", "runs", "first to last row, s", "until it is seen, s", "of 5 s", "to last end, s", "to last announcement, s", "not announced once"]  # fmt: skip
    called = ["from consent to call", "answers", "beside", "answers/s", "ms p50", "ms p95", "ms longest", "p95 of 2 s", "lost", "twice", "without consent"]  # fmt: skip
    paces = ["", "runs", "starts/s", "runs/s", "worker CPU ms each", "machine CPU ms each", "of interactions' time", "of their worker CPU"]  # fmt: skip
    begun = (
        "mb_none",
        "mb_all",
        "kb_per_run",
        "cpu_percent_none",
        "cpu_percent",
        "transactions_per_s_none",
        "transactions_per_s",
    )
    calls = ("call_ms_p50", "call_ms_p95", "call_ms_longest", "of_bound", "calls_lost", "calls_twice", "calls_unasked")
    used = ("runs_per_s", "cpu_ms_per_run", "machine_cpu_ms_per_run", "time_ratio", "cpu_ratio")
    tables = (
        (paused, ("runs", "runs_per_s", "held", "mb_half", "mb_all", "kb_per_run"), (FOR_CONSENT,)),
        (begins, begun, (BESIDE_CONSENTS,)),
        (swept, ("runs", "decided_s", "sweep_s", "of_bound", "ended_s", "announced_s", "not_once"), (EXPIRED,)),
        (called, ("answers", "beside", "answers_per_s", *calls), WAYS),
        (paces, ("runs", "starts_per_s", *used), PACES),
    )
    return "\n\n".join(_by_subject(figures, part, head, names, only=subjects) for head, names, subjects in tables)


def _limits(figures: Figures, part: str) -> str:
    return _by_subject(
        figures, part, ["", "per second", "CPU ms each", "machine CPU ms each"], ("per_s", "cpu_ms", "machine_cpu_ms")
    )


def _by_subject(
    figures: Figures,
    part: str,
    head: Sequence[str],
    columns: Sequence[str],
    *,
    extra: Callable[[str], str] | None = None,
    only: Sequence[str] | None = None,
) -> str:
    rows = []
    for subject in figures.subjects(part) if only is None else only:
        row = [subject, extra(subject)] if extra else [subject]
        trouble = figures.trouble(part, subject)
        spreads = [figures.spread(part, subject, column) for column in columns]
        cells = [str(spread) if spread is not None else "" for spread in spreads]
        rows.append([*row, *cells] if any(cells) or trouble is None else [*row, trouble, *cells[1:]])
    return _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


_TABLES: dict[str, Callable[[Figures, str], str]] = {
    "limits": _limits, "a": _speed, "b": _length, "c": _speed, "ch": _speed, "d": _waiting, "e": _latency, "f": _takeover,
    "g": _footprint, "h": _lists, "i": _people, "m": _model_calls, "n": _agents, "t": _trees,
    "w": _small_window,
}  # fmt: skip
