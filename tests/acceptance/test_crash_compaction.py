"""Workers that die before, in and after a compaction: the old view or the new one, never a mix, and every item is still there (F08)."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import checker
import crews
import panels
import pytest
import pytest_asyncio
from crews import until
from panel_with_tools import transcript
from panels import Started
from processes import SHOP, Hands, hands

from folkmoot.bootstrap.installation import find_functions
from folkmoot.domain import items
from folkmoot.domain.contexts import ContextMode, ContextSettings, TrimmingMode
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.items import StoredItem
from folkmoot.domain.model_calls import Purpose
from folkmoot.domain.runs import Claim
from folkmoot.engine.view import View
from folkmoot.kernel import fault_points
from folkmoot.kernel.ids import NewId
from folkmoot.runtime.transcript import Transcript
from folkmoot.store.database import Database

WINDOW = 1400
LONG = "The harbour road costs less than the bridge, as the town has found out. " * 9
SUMMARY = "The harbour road costs less."
SCRIPT: dict[str, Any] = {
    "rules": [
        {"when": {"purpose": "compaction"}, "reply": {"text": SUMMARY}},
        {
            "when": {"participant": "Ann", "call": 1},
            "reply": {"calls": [{"name": "look", "arguments": {"text": LONG}}]},
        },
        {"reply": {"text": LONG}},
    ]
}
CONTEXT = ContextSettings(
    mode=ContextMode.COMPACT, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=0, summary_tokens=60
)
POINTS = ("before_model_call", "after_model_call", "before_commit", "after_commit")


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """`at`: how often each point had been reached when the first compaction's reply came, that one included."""

    lines: list[str]
    at: Counter[str]


_UNDISTURBED: list[Undisturbed] = []


@pytest_asyncio.fixture
async def crew(database: Database, tmp_path: Path) -> AsyncIterator[Hands]:
    async with hands(database, tmp_path) as made:
        yield made


def panel(new_id: NewId, script: dict[str, Any] = SCRIPT) -> ResolvedInteraction:
    tools = find_functions((SHOP,))
    made = panels.interaction(
        new_id, script, names=("Ann", "Ben"), tools={"Ann": (tools.offered("look"),)}, maximum_rounds=7, context=CONTEXT
    )
    seats = tuple(replace(seat, model=replace(seat.model, context_window=WINDOW)) for seat in made.participants)
    return replace(made, participants=seats)


def lines(conversation: list[StoredItem]) -> list[str]:
    """The whole conversation; what a summary covers is part of it."""
    covered = [
        f"covers {s.item.body.covered_up_to_sequence}" for s in conversation if isinstance(s.item.body, items.Summary)
    ]
    return [*transcript(conversation), *covered]


async def undisturbed(crew: Hands, new_id: NewId) -> Undisturbed:
    if not _UNDISTURBED:
        reached: Counter[str] = Counter()
        at: list[Counter[str]] = []
        started = await panels.start(crew.database, new_id, panel(new_id))
        async with crews.crew(crew.database, new_id, functions=crew.functions()) as made:

            def note(point: str) -> None:
                reached[point] += 1
                if point == "after_model_call" and made.model.requests[-1].purpose is Purpose.COMPACTION:
                    at.append(reached.copy())

            for point in POINTS:
                fault_points.arm(point, partial(note, point))
            try:
                await until(lambda: panels.has_ended(crew.database, started))
            finally:
                fault_points.disarm_all()
        _UNDISTURBED.append(Undisturbed(lines(await panels.items_of(crew.database, started)), at[0]))
    return _UNDISTURBED[0]


async def killed(crew: Hands, new_id: NewId, *, fault: str) -> Started:
    started = await panels.start(crew.database, new_id, panel(new_id))
    first = await crew.hire(fault=fault)
    assert await asyncio.wait_for(first.wait(), 60) == -signal.SIGKILL
    async with crews.rescuers(crew.database, new_id, crew.functions()):
        await until(lambda: panels.has_ended(crew.database, started), seconds=60)
    return started


@pytest.mark.parametrize(
    ("point", "further"), [("before_model_call", 0), ("after_model_call", 0), ("before_commit", 1), ("after_commit", 1)]
)
async def test_crash_around_a_compaction_gives_the_same_conversation(
    crew: Hands, new_id: NewId, point: str, further: int
) -> None:
    """F08: the same summaries in the same places, whoever made them; a summary whose commit was lost is made anew."""
    wanted = await undisturbed(crew, new_id)
    started = await killed(crew, new_id, fault=f"{point}:exit:{wanted.at[point] + further}")
    assert lines(await panels.items_of(crew.database, started)) == wanted.lines
    assert await checker.faults(crew.database, crew.log) == []
    assert sum("summary" in line for line in wanted.lines) >= 4


@pytest.mark.chaos
@pytest.mark.parametrize("point", POINTS)
async def test_crash_each_time_around_all_compactions(crew: Hands, new_id: NewId, point: str) -> None:
    """The whole of it: each time that a point is reached."""
    wanted = await undisturbed(crew, new_id)
    for nth in range(1, 16):
        started = await killed(crew, new_id, fault=f"{point}:exit:{nth}")
        assert lines(await panels.items_of(crew.database, started)) == wanted.lines


@pytest.mark.parametrize(
    "context",
    [CONTEXT, replace(CONTEXT, trimming=TrimmingMode.ON_PRESSURE, target_utilization=40, low_water_utilization=30)],
    ids=lambda context: context.trimming.value,
)
async def test_worker_that_takes_over_sends_what_the_first_one_would_have_sent(
    database: Database, new_id: NewId, context: ContextSettings
) -> None:
    """F08: views are folded from the items, summaries among them; what was trimmed is told by the calls' records."""
    looks = [{**SCRIPT["rules"][1], "when": {"participant": "Ann", "call": n}} for n in range(1, 12, 2)]
    script = {"rules": [SCRIPT["rules"][0], *looks, SCRIPT["rules"][2]]}
    started = await panels.start(database, new_id, replace(panel(new_id, script), context=context))
    async with crews.crew(database, new_id, functions={"look": lambda text: f"seen {text}"}) as crew:
        await until(lambda: panels.has_ended(database, started))
    last = (await panels.items_of(database, started))[-1].sequence
    claim = Claim(started.tenant_id, started.run_id, 1, new_id())
    again = Transcript(claim, last, cost_of=lambda _model, _usage, _tier: None)
    async with database.reader() as reader:
        await again.load(reader)
    for name in ("Ann", "Ben"):
        newest = next(
            r for r in reversed(crew.model.requests) if r.participant == name and r.purpose is not Purpose.COMPACTION
        )
        assert again.views.of[name].entries[: newest.view_length] == list(newest.view[: newest.view_length])
        assert again.views.of[name].covered_upto
    assert any("left out here" in str(entry) for entry in again.views.of["Ann"].entries), "something is trimmed"


async def test_control_a_view_that_lost_something_is_noticed(
    crew: Hands, new_id: NewId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above sees a worker that takes over with less in a view than there was."""
    wanted = await undisturbed(crew, new_id)
    cover = View.cover

    def cover_all(view: View, summary: items.Summary) -> None:
        cover(view, replace(summary, covered_up_to_sequence=max(view.entered)))

    monkeypatch.setattr(View, "cover", cover_all)
    started = await killed(crew, new_id, fault=f"after_commit:exit:{wanted.at['after_commit'] + 1}")
    assert lines(await panels.items_of(crew.database, started)) != wanted.lines
