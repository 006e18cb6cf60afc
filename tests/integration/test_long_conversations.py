"""Long conversations against a provider with a small window that refuses what is longer, as the real ones do.

The workers, the adapters and the database are real; the provider is a server on loopback that speaks its protocol.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import crews
import panels
import pytest
import waiting_panel
from crews import Asking, until
from fake_openai import fake_openai
from fake_words import Answer, Asked, Seen
from panels import Started

from folkmoot.domain import items
from folkmoot.domain.calls import Tool
from folkmoot.domain.contexts import CompactionType, ContextMode, ContextSettings, TrimmingMode, TrimmingStyle
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice, Sampling
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.ids import NewId
from folkmoot.store import conversations
from folkmoot.store.database import Database

NAMES = ("Ann", "Ben", "Cid")
LOOK = Tool(
    "look", "Looks something up.", {"type": "object", "properties": {"at": {"type": "integer"}}}, is_read_only=True
)
PAY = Tool("pay", "Pays.", {"type": "object", "properties": {"amount": {"type": "integer"}}}, is_gated=True)
WORDS = "The harbour road costs less than the bridge, as the town has found out; 港の道は安い. "
SUMMARY = "They go through the numbers one by one, and have not settled yet."
COMPACT = ContextSettings(mode=ContextMode.COMPACT)


@pytest.fixture
def server() -> Iterator[tuple[str, Seen]]:
    with fake_openai(keeps=40) as running:
        yield running


@asynccontextmanager
async def crew(database: Database, new_id: NewId, folder: Path) -> AsyncIterator[crews.Crew]:
    model = Asking(folder)
    functions = {"look": lambda at: f"{at}: {WORDS * 6}", "pay": lambda amount: f"paid exactly {amount} crowns"}
    async with crews.crew(database, new_id, functions=functions, model=model) as made:
        yield made
    await model.close()


def panel(
    new_id: NewId,
    url: str,
    *,
    window: int,
    rounds: int,
    context: ContextSettings,
    names: tuple[str, ...] = NAMES,
    **seat: Any,
) -> ResolvedInteraction:
    made = panels.interaction(new_id, names=names, maximum_rounds=rounds, context=context, tools={"Ann": (LOOK, PAY)})
    model = ModelChoice("openai-compatible", "talker", context_window=window, base_url=url)
    seats = tuple(replace(p, model=model, **seat) for p in made.participants)
    return replace(made, participants=seats)


def talker(asked: Asked) -> Answer:
    """Ann pays once, and looks something up in some of her turns; else everybody talks at length. Summaries are short."""
    last = next(piece for piece in reversed(asked.pieces) if piece.role in ("user", "result"))
    if "Summarise the record" in last.text:
        return Answer(SUMMARY)
    if "pay" in asked.tools and last.role == "user":
        if asked.number == 1:
            return Answer("", (("pay", '{"amount": 17}'),), finish="calls")
        if asked.number % 4 == 0:
            return Answer("Let me look.", (("look", f'{{"at": {asked.number}}}'),), finish="calls")
    return Answer(f"{asked.number}. {WORDS * 5}")


async def run_to_its_end(
    database: Database, caller: Caller, new_id: NewId, resolved: ResolvedInteraction, folder: Path
) -> Started:
    started = await panels.start(database, new_id, resolved, tenant_id=caller.tenant_id)
    async with crew(database, new_id, folder), waiting_panel.a_person(database, caller, new_id):
        await until(lambda: panels.has_ended(database, started), seconds=100)
    return started


@pytest.mark.timeout(200)
async def test_three_hundred_turns_fit_into_a_small_window(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path
) -> None:
    """B21, B22: no refusal reaches the run's end, what is pinned is there at the end, every prompt fits."""
    with fake_openai(answer=talker, window_tokens=8_000, keeps=40) as (url, seen):
        context = replace(COMPACT, trimming=TrimmingMode.ON_PRESSURE)
        resolved = panel(new_id, url, window=8_000, rounds=100, context=context)
        started = await run_to_its_end(database, caller, new_id, resolved, tmp_path)
        row = await panels.row_of(database, started)
        assert (row["status"], row["failure_details"]) == ("Completed", None)
        conversation = await panels.items_of(database, started)
        assert sum(isinstance(s.item.detail, items.Floor) for s in conversation) == 300
        made = [s.item for s in conversation if isinstance(s.item.body, items.Summary)]
        assert {item.author.name for item in made} == set(NAMES) and len(made) >= 12
        assert not seen.refused and seen.too_long <= 3, "each participant learns from a refusal"
        last = {name: said for name in NAMES for said in _prompts_of(seen, name)}
        for name, said in last.items():
            assert f"You are {name}" in said and "Talk it over." in said
        assert "paid exactly 17 crowns" in last["Ann"]


def _prompts_of(seen: Seen, name: str) -> list[str]:
    """What was sent lately for a participant, turns alone."""
    texts = []
    for body in seen.bodies:
        said = "\n".join(str(message.get("content")) for message in body["messages"])
        if f"You are {name}." in said and "Summarise the record" not in said:
            texts.append(said)
    return texts


LONG_RESULTS = ContextSettings(mode=ContextMode.TRIM, trimming=TrimmingMode.AFTER_CYCLES, trimming_cycles=1)


def looker(asked: Asked) -> Answer:
    """Looks something up four times, each time once the one before is there; then says so."""
    last = asked.pieces[-1]
    if "Summarise the record" in last.text:
        return Answer(SUMMARY)
    if asked.number <= 4 and "look" in asked.tools:
        return Answer("", (("look", f'{{"at": {asked.number}}}'),), finish="calls")
    return Answer(WORDS * 12)


@pytest.mark.parametrize(
    ("base", "change"),
    [
        (ContextSettings(), {"mode": ContextMode.TRIM, "trimming": TrimmingMode.AFTER_CYCLES}),
        (LONG_RESULTS, {"trimming": TrimmingMode.ON_PRESSURE}),
        (LONG_RESULTS, {"trimming_cycles": 0}),
        (LONG_RESULTS, {"trimming_style": TrimmingStyle.HEAD_TAIL}),
        (LONG_RESULTS, {"trimming_style": TrimmingStyle.REMOVE}),
        (LONG_RESULTS, {"replacement": "Gone."}),
        (LONG_RESULTS, {"max_tool_call_loops": 2}),
        (replace(LONG_RESULTS, trimming=TrimmingMode.ON_PRESSURE), {"target_utilization": 30}),
        (replace(LONG_RESULTS, trimming=TrimmingMode.ON_PRESSURE, target_utilization=30), {"low_water_utilization": 5}),
        (COMPACT, {"mode": ContextMode.NONE}),
        (COMPACT, {"compaction": CompactionType.DEDICATED_MODEL}),
        (COMPACT, {"compact_at_utilization": 45, "low_water_utilization": 40}),
        (COMPACT, {"low_water_utilization": 20}),
        (COMPACT, {"keep_recent_tokens": 100}),
        (COMPACT, {"summary_tokens": 64}),
        (COMPACT, {"summary_limit_tokens": 900}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_each_setting_changes_what_the_model_is_sent(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path, base: ContextSettings, change: dict[str, Any]
) -> None:
    """Context, each row of the table: the requests as the provider recorded them."""
    plain = await sent(database, caller, new_id, tmp_path, base)
    changed = await sent(database, caller, new_id, tmp_path, replace(base, **change))
    assert plain != changed


_SENT: dict[ContextSettings, list[Any]] = {}


async def sent(database: Database, caller: Caller, new_id: NewId, folder: Path, context: ContextSettings) -> list[Any]:
    """The bodies of all requests of one conversation, ids taken out."""
    if context not in _SENT:
        with fake_openai(answer=looker) as (url, seen):
            resolved = panel(
                new_id,
                url,
                window=2_600,
                rounds=5,
                context=context,
                names=("Ann", "Ben"),
                sampling=Sampling(max_tokens=200),
            )
            await run_to_its_end(database, caller, new_id, resolved, folder)
            _SENT[context] = [_without_ids(body) for body in seen.bodies]
    return _SENT[context]


def _without_ids(body: Any) -> Any:
    if isinstance(body, dict):
        return {key: _without_ids(value) for key, value in body.items() if key not in ("id", "tool_call_id")}
    if isinstance(body, list):
        return [_without_ids(value) for value in body]
    return body if not isinstance(body, str) else body.split(", id ")[0]


async def test_trimmed_result_is_read_again_by_the_id_in_its_place(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path
) -> None:
    """Context: the replacement stands there with the result's id, so that it can be read again."""

    def reader(asked: Asked) -> Answer:
        if asked.number <= 2:
            return Answer("", (("look", f'{{"at": {asked.number}}}'),), finish="calls")
        trimmed = next((p.text for p in asked.pieces if p.role == "result" and "Read it again" in p.text), None)
        if trimmed is not None and asked.number == 3:
            result_id = trimmed.split("id ")[-1].rstrip(".]")
            return Answer("", (("read_tool_result", f'{{"id": "{result_id}"}}'),), finish="calls")
        return Answer("Done.")

    with fake_openai(answer=reader) as (url, _):
        context = replace(LONG_RESULTS, trimming_cycles=0)
        resolved = panel(new_id, url, window=8_000, rounds=1, context=context, names=("Ann",))
        started = await run_to_its_end(database, caller, new_id, resolved, tmp_path)
        conversation = await panels.items_of(database, started)
    read = [s.item.body for s in conversation if isinstance(s.item.body, items.ToolResult)][-1]
    assert not read.is_error and read.result == f"1: {WORDS * 6}"


async def test_window_smaller_than_was_said_is_found_out(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path
) -> None:
    """Context: the provider's 'context too long' brings one forced summary and one retry, and is learnt from."""
    with fake_openai(answer=talker, window_tokens=3_000) as (url, seen):
        resolved = panel(new_id, url, window=100_000, rounds=12, context=COMPACT)
        started = await run_to_its_end(database, caller, new_id, resolved, tmp_path)
        row = await panels.row_of(database, started)
        assert (row["status"], row["failure_details"]) == ("Completed", None)
        assert 1 <= seen.too_long <= 6
        async with database.reader() as reader:
            noted = await conversations.noted_model_calls(reader, started.tenant_id, run_id=started.run_id)
        assert noted.unsettled == (), "what was answered in the end is no failure to whoever takes over"


async def test_run_that_cannot_fit_fails_and_says_what_to_do(
    database: Database, caller: Caller, new_id: NewId, tmp_path: Path
) -> None:
    with fake_openai(answer=talker, window_tokens=60) as (url, _):
        resolved = panel(new_id, url, window=100_000, rounds=12, context=COMPACT)
        started = await run_to_its_end(database, caller, new_id, resolved, tmp_path)
        row = await panels.row_of(database, started)
    assert row["status"] == "Failed"
    assert "larger window" in row["failure_details"]
