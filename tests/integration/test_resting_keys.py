"""Ten keys, of which seven fail in different ways, under 200 runs at once: each run ends, each rest is recorded once, no call goes to
a key that rests (platform.md; B44, F61)."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiosql
import panels
import pytest
from api_at_hand import NAMESPACE
from crews import until
from keyed_models import MODEL, Bank, bank

from folkmoot.bootstrap.installation import bench_of
from folkmoot.domain.definitions import Reference
from folkmoot.domain.key_choice import Rest
from folkmoot.runtime import model_access
from folkmoot.runtime.model_access import Opened
from folkmoot.services import keys, starting
from folkmoot.services.closure import StartFields
from folkmoot.store import credentials
from folkmoot.store.database import Database

RUNS = 200
FAILING = {
    "1-refused": "refused",
    "2-forbidden": "forbidden",
    "3-limited": "limited",
    "4-limited-untold": "limited-untold",
    "5-quota": "quota",
    "6-deleted": "fine",
    "7-renamed": "fine",
}
AT_ONE_MOMENT = "where r.until <= excluded.began_at or r.version <> excluded.version"


@dataclass
class Watch:
    """What the worker chose: when it began to look, when it had looked, and what it took; and what rested.

    A rest surely holds from when its commit was answered to its length after it was asked for.
    """

    choices: list[tuple[float, float, str, str]] = field(default_factory=list)
    rests: list[tuple[str, str, float, float]] = field(default_factory=list)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened, keys_now, rest = model_access.opened, credentials.keys_now, credentials.rest
        failed, rest_deleted = model_access.failed, model_access._rest_deleted
        looked: dict[Any, float] = {}
        uncommitted: dict[Any, list[tuple[str, str, float]]] = {}

        async def watched_keys_now(*args: Any, **named: Any) -> Any:
            found = await keys_now(*args, **named)
            looked[asyncio.current_task()] = time.monotonic()
            return found

        async def watched_opened(*args: Any, **named: Any) -> Any:
            began = time.monotonic()
            made = await opened(*args, **named)
            if isinstance(made, Opened) and made.key is not None:
                at = looked.pop(asyncio.current_task())
                self.choices.append((began, at, made.key.rests_as, made.key.model_name))
            return made

        async def watched_rest(*args: Any, **named: Any) -> float | None:
            asked = time.monotonic()
            seconds = await rest(*args, **named)
            if seconds is not None and named["is_recorded"]:
                of_task = uncommitted.setdefault(asyncio.current_task(), [])
                of_task.append((named["key"], named["model"], asked + seconds))
            return seconds

        def committed() -> None:
            now = time.monotonic()
            self.rests += [
                (key, model, now, until) for key, model, until in uncommitted.pop(asyncio.current_task(), [])
            ]

        async def watched_failed(*args: Any, **named: Any) -> Any:
            told = await failed(*args, **named)
            committed()
            return told

        async def watched_rest_deleted(*args: Any, **named: Any) -> None:
            await rest_deleted(*args, **named)
            committed()

        monkeypatch.setattr(model_access, "opened", watched_opened)
        monkeypatch.setattr(credentials, "keys_now", watched_keys_now)
        monkeypatch.setattr(credentials, "rest", watched_rest)
        monkeypatch.setattr(model_access, "failed", watched_failed)
        monkeypatch.setattr(model_access, "_rest_deleted", watched_rest_deleted)

    def to_resting_keys(self) -> list[tuple[float, str]]:
        """Choices whose whole look fell into a rest of what they chose."""
        return [
            (began, chosen)
            for began, looked, chosen, there in self.choices
            for key, model, since, until in self.rests
            if key == chosen and model in ("", there) and since <= began and looked < until
        ]


@asynccontextmanager
async def ten_keys(dsn: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Bank, Watch]]:
    watch = Watch()
    watch.watch(monkeypatch)
    async with bank(dsn, folder, FOLKMOOT_RETRY_SECONDS="0.2") as home:
        await home.panel(seats=2)
        for priority, (name, play) in enumerate(FAILING.items()):
            more = {"modelNameOverrides": {MODEL: "unknown"}} if name == "7-renamed" else {}
            await home.key(name, priority=priority, play=play, **more)
        elsewhere = home.models.url.replace("/v1", "/elsewhere/v1")
        at = {"baseUrl": elsewhere, "modelNameOverrides": {MODEL: MODEL}}
        await home.key("8-overloaded", priority=8, play="overloaded", **at)
        for name in ("9-fine", "10-fine"):
            await home.key(name, priority=9)
        gone = f"/namespaces/{NAMESPACE}/secrets/by-name/6-deleted"
        assert (await home.server.client.delete(gone)).status_code == 204
        yield home, watch


async def start(home: Bank, count: int) -> None:
    """All at once: none is answered before each has asked, with the same key."""
    installation = home.server.installation
    owner = await keys.owner(installation.database)
    home.models.gate.clear()
    for _ in range(count):
        await starting.start(
            installation.database, owner, interaction=Reference("panel", NAMESPACE), request=StartFields(), bench=bench_of(installation),
            new_id=installation.new_id, tell=installation.notifier.tell,
        )  # fmt: skip
    await until(lambda: len(home.models.calls) == count, seconds=60)
    assert set(home.models.keys) == {"1-refused"}
    home.models.gate.set()


async def recorded(database: Database) -> Counter[str]:
    """How often each key's failure was recorded, over all runs."""
    found = await panels.fetch(
        database,
        "select s.name, f.at, f.retry_after_seconds from credential_failure f "
        "left join secret s on s.secret_id::text = f.key order by 1, 2",
    )
    for one, next_ in itertools.pairwise(found):
        if one["name"] == next_["name"]:
            # the seconds are told rounded up
            assert (next_["at"] - one["at"]).total_seconds() > one["retry_after_seconds"] - 1
    return Counter(row["name"] or "6-deleted" for row in found)


async def within_a_rest(database: Database) -> list[tuple[str, float]]:
    """Failures of a key that were recorded within the rest that the one before began, with how long after it. A rest may end while the
    runs go on, and another one begin: how many there are depends on the machine."""
    rows = await panels.fetch(
        database, "select key, at, retry_after_seconds as rest from credential_failure order by key, at"
    )
    return [
        (after["key"], (after["at"] - before["at"]).total_seconds())
        for before, after in pairwise(rows)
        if before["key"] == after["key"] and (after["at"] - before["at"]).total_seconds() < before["rest"] - 1
    ]


@pytest.mark.timeout(240)
async def test_200_runs_at_once_end_and_no_call_goes_to_a_resting_key(
    database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rest is seen by every choice that begins after its commit; what was chosen before may still be under way."""
    async with ten_keys(database_dsn, tmp_path, monkeypatch) as (home, watch):
        database = home.server.installation.database
        await start(home, RUNS)

        async def all_ended() -> bool:
            return not await panels.fetch(database, "select from process where ended_at is null")

        await until(all_ended, seconds=180)
        ends = await panels.fetch(database, "select status, failure_details, count(*) from process group by 1, 2")
        assert [(row["status"], row["count"]) for row in ends] == [("Completed", RUNS)], ends
        assert watch.to_resting_keys() == []
        assert set(await recorded(database)) == set(FAILING)
        assert await within_a_rest(database) == []
        answered = home.models.counts()["9-fine"] + home.models.counts()["10-fine"]
        assert answered == 2 * RUNS and "6-deleted" not in home.models.counts()


async def test_control_calls_go_to_resting_keys_if_rests_are_not_looked_at(
    database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ten_keys(database_dsn, tmp_path, monkeypatch) as (home, watch):
        keys_now = credentials.keys_now

        async def without_rests(*args: Any, **named: Any) -> Any:
            none: dict[str, list[Rest]] = {}
            return replace(await keys_now(*args, **named), rests=none)

        monkeypatch.setattr(credentials, "keys_now", without_rests)
        await start(home, 3)
        await until(lambda: bool(watch.to_resting_keys()))


async def test_control_failures_are_recorded_more_than_once_if_a_rest_may_begin_within_a_rest(
    database_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = files("folkmoot.store").joinpath("sql/credentials.sql").read_text(encoding="utf-8")
    assert text.count(AT_ONE_MOMENT) == 1
    unguarded = aiosql.from_str(
        text.replace(AT_ONE_MOMENT, ""), "asyncpg", kwargs_only=True, mandatory_parameters=False
    )
    monkeypatch.setattr(credentials, "_sql", unguarded)
    async with ten_keys(database_dsn, tmp_path, monkeypatch) as (home, _):
        await start(home, 5)
        database = home.server.installation.database

        async def is_there_twice() -> bool:
            found = await panels.fetch(database, "select key from credential_failure where detail like '%refused%'")
            return len(found) > len({row["key"] for row in found})

        await until(is_there_twice)


@pytest.mark.timeout(240)
async def test_a_long_time_of_429_is_waited_out_with_few_calls(database_dsn: str, tmp_path: Path) -> None:
    """F61, 'five minutes of 429', a hundred times as fast: every run waits for the one key, and few calls find out how it is."""
    async with bank(database_dsn, tmp_path, FOLKMOOT_RETRY_SECONDS="0.01") as home:
        database = home.server.installation.database
        await home.panel()
        await home.key("1-refused", play="limited-untold")
        await start(home, 50)

        async def has_rested_long() -> bool:
            found = await panels.fetch(
                database, "select extract(epoch from until - began_at) as long from credential_rest"
            )
            return bool(found) and found[0]["long"] > 1.0

        await until(has_rested_long)
        assert not await panels.fetch(database, "select from process where ended_at is not null")
        limited = len(home.models.calls)
        home.models.plays["1-refused"] = "fine"
        await until(lambda: all_completed(database))
        assert limited < 50 * 3, limited  # the first of each at once, then some at each rest's end
        tried = await panels.fetch(database, "select run_id from model_call where error_class is not null")
        assert max(Counter(row["run_id"] for row in tried).values()) < 40


async def all_completed(database: Database) -> bool:
    return not await panels.fetch(database, "select from process where status <> 'Completed'")
