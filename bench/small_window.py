"""Part w: a conversation of thousands of turns with models whose window holds 8,000 tokens, against servers that refuse what is longer.

The fake servers of the tests run in processes of their own, each with its provider's protocol and error shapes. CPU is the worker's;
a turn's cost late in the conversation is held against that of the turns after the first summary.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from bench.clocks import cpu_seconds
from bench.course import Course
from bench.model_calls import PROVIDERS, fake_provider
from bench.roundtable import NAMES, Driver, driver, roundtable
from bench.workers import worker
from folkmoot.domain.contexts import ContextMode, ContextSettings
from folkmoot.domain.model_calls import ModelChoice

WINDOW = 8_000
_NAME_OF = {"openai": "openai-compatible"}
_KEY = "BENCH_API_KEY"
_LOOK_SECONDS = 0.1

Look = tuple[int, float]  # turns so far, the worker's CPU seconds


async def small_window(course: Course) -> None:
    turns, stretch = (120, 30) if course.is_quick else (3000, 300)
    for repeat in range(1, course.repeats + 1):
        for provider in PROVIDERS:
            await _one(course, repeat, provider, turns=turns, stretch=stretch)


async def _one(course: Course, repeat: int, provider: str, *, turns: int, stretch: int) -> None:
    """`stretch`: how many turns a figure is taken over; the first one begins 100 turns after the first summary, or as many fewer."""
    async with (
        fake_provider(provider, window=WINDOW) as url,
        course.ground.database() as dsn,
        driver(dsn) as drive,
        worker(course.ground, dsn, drive, beside={_KEY: "sk-bench"}, ALLOW_KEYS=f"{_KEY}={url}") as process,
    ):
        model = ModelChoice(
            _NAME_OF.get(provider, provider), "talker", context_window=WINDOW, base_url=url, api_key_variable=_KEY
        )
        await _allow_keys(drive)
        resolved = replace(
            roundtable(model, rounds=turns // len(NAMES)), context=ContextSettings(mode=ContextMode.COMPACT), allow_platform_fallback=True
        )  # fmt: skip
        (run_id,) = await drive.start(resolved)
        looks = await _watched(drive, run_id, process.pid)
        await drive.ended([run_id], turns=turns)
        found = await _told(drive, run_id)
        first = min(found["first_summary"] + 100, turns - 2 * stretch)
        early, late = _cpu_ms(looks, first, first + stretch), _cpu_ms(looks, turns - stretch, turns)
        times = await drive.turn_times(run_id)
        early_ms, late_ms = (_wall_ms(times, at, stretch) for at in (first, turns - stretch))
        course.record(
            "w", provider, repeat, done=turns, summaries=found["summaries"], refused=found["refused"], cpu_ms_early=early,
            cpu_ms_late=late, cpu_growth=late / early, ms_early=early_ms, ms_late=late_ms, growth=late_ms / early_ms,
        )  # fmt: skip


async def _allow_keys(drive: Driver) -> None:
    """The tenant may have the operator's key, as the one that an empty database gets."""
    async with drive.database.writer() as writer:
        await writer.connection.execute(
            "insert into tenant (tenant_id, name, created_at, allow_platform_fallback) values ($1, 'bench', now(), true)",
            drive.tenant_id,
        )


async def _watched(drive: Driver, run_id: UUID, pid: int) -> list[Look]:
    """Looks at the run and the worker's clock until the run has ended."""
    looks: list[Look] = []
    async with drive.database.reader() as reader:
        while True:
            row = await reader.connection.fetchrow(
                "select ended_at is not null as has_ended, (select count(*) from item i where i.tenant_id = p.tenant_id"
                " and i.run_id = p.run_id and i.kind = 'agentMessage') as turns from process p where tenant_id = $1 and run_id = $2",
                drive.tenant_id, run_id,
            )  # fmt: skip
            looks.append((row["turns"], cpu_seconds(pid)))
            if row["has_ended"]:
                return looks
            await asyncio.sleep(_LOOK_SECONDS)


async def _told(drive: Driver, run_id: UUID) -> dict[str, int]:
    async with drive.database.reader() as reader:
        row = await reader.connection.fetchrow(
            "with s as (select min(sequence) as at, count(*) as n from item where tenant_id = $1 and run_id = $2 and kind = 'summary')"
            " select n as summaries, (select count(*) from item where tenant_id = $1 and run_id = $2 and kind = 'agentMessage'"
            " and sequence < s.at) as first_summary, (select count(*) from model_call where tenant_id = $1 and run_id = $2"
            " and error_class = 'ContextTooLong') as refused from s",
            drive.tenant_id, run_id,
        )  # fmt: skip
    return dict(row)


def _cpu_ms(looks: Sequence[Look], first: int, last: int) -> float:
    """CPU of a turn between two of them."""
    return (_cpu_at(looks, last) - _cpu_at(looks, first)) / (last - first) * 1000


def _cpu_at(looks: Sequence[Look], turn: int) -> float:
    """Between two looks CPU is taken to go by evenly."""
    before = max((look for look in looks if look[0] <= turn), key=lambda look: look[0], default=looks[0])
    after = min((look for look in looks if look[0] >= turn), key=lambda look: look[0], default=looks[-1])
    if after[0] == before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * (turn - before[0]) / (after[0] - before[0])


def _wall_ms(times: Sequence[object], at: int, stretch: int) -> float:
    span = times[at + stretch - 1] - times[at]  # type: ignore[operator]
    return float(span.total_seconds()) / (stretch - 1) * 1000
