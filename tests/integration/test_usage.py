"""What was used and what it cost: the same as in the provider's own books, summed up in any way (B45, F02)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import astuple, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import panels
import pytest
from api_at_hand import NAMESPACE, RUNS, Served, problem_of, put, served, watching
from crews import Listening, crew, until
from keeping_books import KINDS, Books, bookkeeper
from shell import Shell

from folkmoot.api.mapping import usage as mapping
from folkmoot.domain.model_calls import Usage
from folkmoot.domain.tenancy import Caller
from folkmoot.domain.usage import GroupedUsage, UsageFilter, UsageKey
from folkmoot.kernel.errors import BadInput
from folkmoot.kernel.ids import NewId
from folkmoot.services import keys, usage
from folkmoot.services.usage import RunUsage
from folkmoot.store import usage as rows
from folkmoot.store.database import Database

D = Decimal
MILLION = D(1_000_000)
# model, its prices as they are published, and what each kind is charged at
MODELS: dict[str, tuple[dict[str, float], tuple[Decimal, ...] | None]] = {
    "dear": (
        {"input": 3, "cachedInput": 0.3, "cacheWrite": 3.75, "output": 15, "reasoning": 20},
        (D(3), D("0.3"), D("3.75"), D(15), D(20)),
    ),
    "plain": ({"input": 0.15, "output": 0.6}, (D("0.15"), D("0.15"), D("0.15"), D("0.6"), D("0.6"))),
    "free": ({"input": 0, "output": 0}, (D(0),) * 5),
    "unpriced": ({}, None),
    "half-priced": ({"input": 1}, None),
    "filtered": ({"input": 2, "output": 2}, (D(2),) * 5),
}
FIELDS = {
    "day": ("day",),
    "namespace": ("namespaceName",),
    "interaction": ("interactionId", "interactionName"),
    "tree": ("rootProcessId",),
    "run": ("processId",),
    "agent": ("agentName",),
    "model": ("provider", "model"),
    "credential": ("credentialId",),
}


def cost_by_hand(tokens: dict[str, int], model: str) -> Decimal | None:
    prices = MODELS[model][1]
    if prices is None:
        return None
    return sum((price * tokens[kind] for kind, price in zip(KINDS, prices, strict=True)), D(0)) / MILLION


async def publish(server: Served, url: str) -> list[str]:
    """An interaction for each model, and one of two; their ids."""
    client, at = server.client, f"/namespaces/{NAMESPACE}"
    pairs = [(name,) for name in MODELS] + [("dear", "unpriced")]
    for name, (prices, _) in MODELS.items():
        body = {"provider": "openai-compatible", "modelName": name, "baseUrl": url, "prices": prices}
        await put(client, f"{at}/ai-models/by-name/{name}", body)
        await put(client, f"{at}/agents/by-name/{name}", {"model": name})
    made = []
    for pair in pairs:
        bindings = [{"agent": model, "name": name} for model, name in zip(pair * 2, ("Ann", "Ben"), strict=False)]
        body = {"agents": bindings, "prompt": "Talk.", "maximumRounds": 2}
        made.append((await put(client, f"{at}/interactions/by-name/{'-'.join(pair)}", body))["id"])
    return made


async def start(server: Served, interaction: str) -> str:
    answer = await server.client.put(f"{RUNS}/by-id/{interaction}/start", json={})
    assert answer.status_code == 201, answer.text
    run_id: str = answer.json()["id"]
    return run_id


async def sums(server: Served, *by: str, **more: Any) -> list[Any]:
    """All groups, page by page."""
    found: list[Any] = []
    after: dict[str, str] = {}
    while True:
        params = [*zip(("groupBy", "thenBy"), by, strict=False), *{"limit": 3, **more, **after}.items()]
        answer = await server.client.get("/usage", params=params)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        found += page["items"]
        if page["next"] is None:
            return found
        after = {"after": page["next"]}


def order(found: GroupedUsage) -> list[str]:
    """Where a group stands: the names sort nothing."""
    return [str(part or "") for part in astuple(found.group)[:-2]]


async def grouped(server: Served, by: tuple[UsageKey, ...]) -> list[Any]:
    """The same without HTTP, in pages of five."""
    found: list[Any] = []
    while True:
        after = found[-1].group if found else None
        database, caller = server.installation.database, await keys.owner(server.installation.database)
        page = await usage.sums(database, caller, wanted=UsageFilter(), by=by, after=after, limit=5)
        found += page
        if len(page) < 5:
            assert found == sorted(found, key=order)
            return [mapping.grouped(each).model_dump(mode="json", by_alias=True) for each in found]


def tokens_of(shown: Any) -> dict[str, int]:
    assert [count["type"] for count in shown["usages"]] == list(KINDS)
    return {count["type"]: count["count"] for count in shown["usages"]}


def to_the_cent(shown: float | None) -> Decimal | None:
    """A number of JSON, to a ten thousandth of a cent and below."""
    return None if shown is None else round(D(repr(shown)), 9)


def added(groups: Iterable[Any]) -> dict[str, Any]:
    whole: Counter[str] = Counter()
    costs = []
    for group in groups:
        whole.update(tokens_of(group))
        whole.update({name: group[name] for name in ("calls", "estimatedCalls", "failedCalls", "unpricedCalls")})
        costs += [D(repr(group["cost"]))] if group["cost"] is not None else []
    return {**{name: count for name, count in whole.items() if count}, "cost": round(sum(costs), 9) if costs else None}


class Busy:
    """A server with a worker after runs of every interaction side by side, some of them watched, and the provider's books."""

    def __init__(self, server: Served, books: Books, runs: list[str]) -> None:
        self.server, self.books, self.runs = server, books, runs


@asynccontextmanager
async def busy_server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Busy]:
    more = {"FOLKMOOT_RETRY_SECONDS": "0.01"}
    with bookkeeper() as (url, books):
        async with served(database_dsn, data_dir=tmp_path, works=True, more=more) as server:
            interactions = await publish(server, url)
            async with AsyncExitStack() as stack:
                # somebody reads along from the start, so that these are streamed
                runs = []
                for number, interaction in enumerate(interactions * 2):
                    runs.append(await start(server, interaction))
                    if number < len(interactions):
                        await stack.enter_async_context(watching(server.client, runs[-1]))

                async def all_ended() -> bool:
                    rows = await panels.fetch(
                        server.installation.database, "select from process where ended_at is null"
                    )
                    return not rows

                await until(all_ended)
            yield Busy(server, books, runs)


async def test_usage_equals_the_providers_own_books_to_the_token_and_the_cent(
    database_dsn: str, tmp_path: Path
) -> None:
    """B45: once per call, every kind apart; streamed or whole, failures in between, models and runs side by side.

    Whatever calls are grouped or filtered by, the sums are those of the books.
    """
    async with busy_server(database_dsn, tmp_path) as busy:
        await check_books(busy)
        await check_runs(busy)
        await check_groupings(busy)
        await check_filters(busy)
        await check_refusals(busy)
        await check_commands(busy, Shell(tmp_path, database_dsn))


async def check_books(busy: Busy) -> None:
    server, books = busy.server, busy.books
    assert books.streamed and books.streamed < books.arrived.total() and books.refused.total()
    by_model = {group["group"]["model"]: group for group in await sums(server, "model")}
    assert set(by_model) == set(MODELS) == set(books.arrived)
    for model, group in by_model.items():
        tokens = books.of_model(model)
        assert tokens_of(group) == tokens, model
        assert group["calls"] == books.arrived[model] + books.refused[model]
        failed = books.refused[model] + (books.arrived[model] if model == "filtered" else 0)
        assert (group["failedCalls"], group["estimatedCalls"]) == (failed, 0)
        by_hand = cost_by_hand(tokens, model)
        assert to_the_cent(group["cost"]) == (round(by_hand, 9) if by_hand is not None else None)
        assert group["unpricedCalls"] == (books.arrived[model] if by_hand is None else 0)
    (whole,) = await sums(server)
    known = [cost for model in MODELS if (cost := cost_by_hand(books.of_model(model), model)) is not None]
    assert to_the_cent(whole["cost"]) == round(sum(known, D(0)), 9)
    assert whole["unpricedCalls"] == sum(books.arrived[model] for model in ("unpriced", "half-priced"))


async def check_runs(busy: Busy) -> None:
    """A run shows the same of itself, and its records add up to it."""
    server = busy.server
    for run_id in busy.runs[::2]:
        shown = (
            await server.client.get(f"{RUNS}/by-id/{run_id}/usage", params={"limit": 200, "includeTree": True})
        ).json()
        details = (await server.client.get(f"{RUNS}/by-id/{run_id}/details")).json()
        (summed,) = await sums(server, process=run_id)
        assert {name: summed[name] for name in shown["total"]} == shown["total"] == shown["tree"]
        costs = [D(repr(call["cost"])) for call in shown["items"] if call["cost"] is not None]
        assert to_the_cent(shown["total"]["cost"]) == (round(sum(costs), 9) if costs else None)
        assert len(shown["items"]) == shown["total"]["calls"]
        recorded: Counter[str] = Counter()
        for record in details["tokenUsage"]:
            recorded.update(tokens_of(record))
            assert record["finished"] and not record["isOwnLicense"]
        assert {kind: recorded[kind] for kind in KINDS} == tokens_of(shown["total"])
        whole_cost = None if shown["total"]["unpricedCalls"] else shown["total"]["cost"]
        assert details["cost"] == whole_cost


async def check_groupings(busy: Busy) -> None:
    """Whatever calls are grouped by, in pages of five groups: nothing is lost, nothing is counted twice, groups are in order."""
    (whole,) = await sums(busy.server)
    for by in chain(*(combinations(UsageKey, count) for count in (1, 2))):
        groups = await grouped(busy.server, by)
        assert added(groups) == added([whole]), by
        wanted = {field for key in by for field in FIELDS[key]}
        shown = [{name: value for name, value in group["group"].items() if value is not None} for group in groups]
        assert all(set(each) <= wanted for each in shown)
        assert len({str(each) for each in shown}) == len(shown), by


async def check_filters(busy: Busy) -> None:
    """Filters take parts of the whole: those of one key add up to it."""
    (whole,) = await sums(busy.server)
    for name, values in {
        "agent": ["Ann", "Ben", "Nobody"],
        "model": list(MODELS),
        "process": busy.runs,
        "root": busy.runs,
        "namespace": [NAMESPACE, "nowhere"],
    }.items():
        parts = [group for value in values for group in await sums(busy.server, **{name: value})]
        assert added(parts) == added([whole]), name
    today = (await sums(busy.server, "day"))[0]["group"]["day"]
    assert added(await sums(busy.server, **{"from": f"{today}T00:00:00Z"})) == added([whole])
    assert await sums(busy.server, to=f"{today}T00:00:00Z") == []
    assert await sums(busy.server, **{"from": "2999-01-01T00:00:00Z"}) == []


async def check_refusals(busy: Busy) -> None:
    """What makes no sense is refused."""
    client = busy.server.client
    for query in (
        "groupBy=colour",
        "groupBy=day&thenBy=colour",
        "from=yesterday",
        "after=x",
        "run=7&process=7",
    ):
        problem_of(await client.get(f"/usage?{query}"), 422, "bad_input")
    problem_of(await client.get(f"{RUNS}/by-id/{busy.runs[0]}/usage?after=x"), 422, "bad_input")
    problem_of(await client.get(f"{RUNS}/by-id/{'0' * 8}-0000-7000-8000-{'0' * 12}/usage"), 404, "not_found")


async def check_commands(busy: Busy, shell: Shell) -> None:
    """The commands say the same as the API, as a table and as JSON."""
    groups = await sums(busy.server, "agent", "model", limit=200)
    told = await asyncio.to_thread(shell.run, "usage", "--by", "agent", "--by", "model", "--json")
    assert [json.loads(line) for line in told.out.splitlines()] == groups
    table = await asyncio.to_thread(shell.run, "usage", "--model", "openai-compatible/dear", "--from", "2026-01-01")
    head, row = (line.split() for line in table.out.splitlines())
    assert (head[:3], row[0]) == (["model", "calls", "input"], "openai-compatible/dear")
    assert row[1] == str(busy.books.arrived["dear"] + busy.books.refused["dear"])
    assert D(row[-1].removeprefix("$")) == cost_by_hand(busy.books.of_model("dear"), "dear")
    for words in (("--by", "colour"), ("--from", "yesterday"), ("--run", "7")):
        assert (await asyncio.to_thread(shell.run, "usage", *words)).code == 2
    budget = await asyncio.to_thread(
        shell.run, "budget", "set", "--tokens-per-day", "5", "--money-per-day", "0.10", "--json"
    )
    assert json.loads(budget.out) == (await busy.server.client.get("/budget")).json()
    assert (json.loads(budget.out)["tokensPerDay"], json.loads(budget.out)["moneyPerDay"]) == (5, 0.1)
    assert (await asyncio.to_thread(shell.run, "budget", "set", "--money-per-day", "none")).out.splitlines()[2].split()[
        1
    ] == "none"
    assert "tokens  5 " in (await asyncio.to_thread(shell.run, "budget", "show")).out
    for words in ((), ("--tokens-per-day", "-1"), ("--money-per-day", "NaN")):
        assert (await asyncio.to_thread(shell.run, "budget", "set", *words)).code == 2


async def test_lost_call_is_counted_estimated_and_priced_as_such(database: Database, new_id: NewId) -> None:
    """F02, B45: both calls are in the usage; the lost one has its guessed prompt, marked, in every sum and by itself."""
    used = {"input": 100, "cachedInput": 30, "cacheWrite": 7, "output": 20, "reasoning": 5}
    resolved = panels.interaction(new_id, {"rules": [{"reply": {"text": "Well.", "usage": used}}]})
    priced = replace(resolved.participants[0].model, prices={"input": 1.0, "output": 2.0, "cacheWrite": 10.0})
    resolved = replace(resolved, participants=tuple(replace(p, model=priced) for p in resolved.participants))
    started = await panels.start(database, new_id, resolved)
    model = Listening()
    model.held["Ann"] = asyncio.Event()
    async with crew(database, new_id, model=model, drain_seconds=0.1) as made:
        await until(lambda: model.asked == ["Ann"])
        made.worker.drain()
        await asyncio.wait({made.task}, timeout=20)
    async with crew(database, new_id):
        await until(lambda: panels.has_ended(database, started))
    async with database.reader() as reader:
        calls = await rows.calls(reader, started.tenant_id, run_id=started.run_id, after=None, limit=10)
        total = await rows.total(reader, started.tenant_id, wanted=UsageFilter(run_id=started.run_id))
    lost, *answered = calls
    assert (lost.error_class, lost.agent, [call.error_class for call in answered]) == ("Lost", "Ann", [None] * 3)
    assert lost.usage is not None and lost.usage.estimated and lost.usage.input > 0 == lost.usage.output
    assert lost.cost == D(lost.usage.input) / MILLION
    assert (total.calls, total.estimated_calls, total.failed_calls, total.unpriced_calls) == (4, 1, 1, 0)
    assert total.cost == lost.cost + 3 * D(100 + 30 + 70 + 2 * 25) / MILLION
    assert total.tokens == Usage(300 + lost.usage.input, 90, 21, 60, 15, estimated=True)
    shown = mapping.run_usage(RunUsage(started.run_id, total, None, None, tuple(calls)), calls=calls, following=None)
    assert [call.is_estimated for call in shown.items] == [True, False, False, False]
    assert shown.items[0].failure_reason == "Lost"


async def test_what_cannot_be_asked_for_is_refused_and_nothing_costs_nothing(
    database: Database, caller: Caller
) -> None:
    """Bad input: one key twice, a time that ends before it begins. A cost that is null is a price that is not known."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for wanted, by in (
        (UsageFilter(), [UsageKey.DAY, UsageKey.DAY]),
        (UsageFilter(since=now, before=now), []),
    ):
        with pytest.raises(BadInput):
            await usage.sums(database, caller, wanted=wanted, by=by, limit=10)
    async with database.reader() as reader:
        nothing = await rows.total(reader, caller.tenant_id, wanted=UsageFilter())
    assert (nothing.calls, nothing.unpriced_calls, nothing.cost) == (0, 0, Decimal(0))
