"""Parts a, c and ch: turns per second and CPU per turn, of one conversation and of 50 at once, the model in the process or over HTTP.

30 turns are what peers do in the same repetition; 300 turns show the steady rate. Starting and ending the runs counts.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from bench.clocks import Used, Watch, resident_mb
from bench.course import Course
from bench.figures import OURS
from bench.peer_runs import peer
from bench.roundtable import NAMES, Driver, driver, over_http, roundtable, scripted
from bench.workers import WorkerProcess, worker
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice

SHORT_TURNS = 30
LONG_TURNS = 300
LONG = f"{OURS}, {LONG_TURNS} turns"
_CONVERSATIONS = 50


@dataclass(frozen=True, slots=True)
class _Work:
    """So many conversations at once, each of so many turns, so often one after the other."""

    subject: str
    turns: int
    conversations: int
    times: int


async def one_conversation(course: Course) -> None:
    """Part a."""
    work = [_Work(OURS, SHORT_TURNS, 1, 9), _Work(LONG, LONG_TURNS, 1, 3)]
    if course.is_quick:
        work = [_Work(OURS, SHORT_TURNS, 1, 2)]
    for repeat in range(1, course.repeats + 1):
        await _ours(course, "a", repeat, work, model=scripted())
        for which in course.peers:
            await peer(course, "a", which, repeat, "--turns", str(SHORT_TURNS), "--repeat", "9", "--warm", "30")


async def many_conversations(course: Course) -> None:
    """Part c."""
    work = [_Work(OURS, SHORT_TURNS, _CONVERSATIONS, 1), _Work(LONG, LONG_TURNS, _CONVERSATIONS, 1)]
    if course.is_quick:
        work = [_Work(OURS, 9, _CONVERSATIONS, 1)]
    await _many(course, "c", work, model=scripted())


async def many_over_http(course: Course) -> None:
    """Part ch."""
    turns = 9 if course.is_quick else SHORT_TURNS
    await _many(
        course, "ch", [_Work(OURS, turns, _CONVERSATIONS, 1)], "--model", "http", model=over_http(course.fake_url)
    )


async def _many(course: Course, part: str, work: list[_Work], *options: str, model: ModelChoice) -> None:
    size = ("--turns", str(work[0].turns), "--conversations", str(_CONVERSATIONS), "--warm", "30")
    for repeat in range(1, course.repeats + 1):
        await _ours(course, part, repeat, work, model=model)
        for which in course.peers:
            await peer(course, part, which, repeat, *size, *options)


async def _ours(course: Course, part: str, repeat: int, works: list[_Work], *, model: ModelChoice) -> None:
    for work in works:
        async with (
            course.ground.database() as dsn,
            driver(dsn) as drive,
            worker(course.ground, dsn, drive) as process,
        ):
            warm = roundtable(model, rounds=10)
            await drive.ended(await drive.start(warm, count=min(10, work.conversations)), turns=30)
            resolved = roundtable(model, rounds=work.turns // len(NAMES))
            used = [await _once(drive, process, resolved, work) for _ in range(work.times)]
            turns = work.turns * work.conversations
            course.record(
                part, work.subject, repeat,
                turns_per_s=statistics.median(turns / u.wall for u in used),
                cpu_ms_per_turn=sum(u.cpu for u in used) / len(used) / turns * 1000,
                machine_cpu_ms_per_turn=sum(u.machine_cpu for u in used) / len(used) / turns * 1000,
                rss_mb=resident_mb(process.pid),
            )  # fmt: skip


async def _once(drive: Driver, process: WorkerProcess, resolved: ResolvedInteraction, work: _Work) -> Used:
    watch = Watch(process.pid)
    run_ids = await drive.start(resolved, count=work.conversations)
    ended = await drive.ended(run_ids, turns=work.turns)
    return watch.used(until=ended.at)
