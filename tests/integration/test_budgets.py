"""Budgets: what a call can use is set aside before it is sent, and none is ever overspent (platform.md, Rate limits and quotas; F58)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import panels
import pytest
import pytest_asyncio
from api_at_hand import NAMESPACE, RUNS, Served, problem_of, put, served
from crews import Asking, crew, until
from keeping_books import bookkeeper
from panels import Started

from folkmoot.domain.budgets import Amounts, Budget
from folkmoot.domain.definitions import ResolvedInteraction
from folkmoot.domain.model_calls import ModelChoice
from folkmoot.domain.run_status import RunStatus
from folkmoot.kernel.ids import NewId
from folkmoot.store import budgets
from folkmoot.store.database import Database, Writer

D = Decimal
PRICES = {"input": 1.0, "cachedInput": 0.1, "output": 4.0}
# the server has a database for each worker of the tests
LOCKED = (
    "select 1 from pg_locks where locktype = 'advisory' and not granted "
    "and database = (select oid from pg_database where datname = current_database())"
)


@pytest_asyncio.fixture
async def tenant(database: Database, new_id: NewId) -> Any:
    """A tenant's id."""
    tenant_id = new_id()
    await panels.execute(database, "insert into tenant values ($1, 'other', now())", tenant_id)
    return tenant_id


async def limit(database: Database, tenant_id: Any, **most: Any) -> None:
    async with database.writer() as writer:
        await budgets.save(writer, tenant_id, budget=Budget(**most))


async def begin_call(database: Database, new_id: NewId, tenant_id: Any) -> tuple[Started, Any]:
    """A run with a model call that was not sent yet."""
    started, call_id = await panels.start(database, new_id, tenant_id=tenant_id), new_id()
    await panels.execute(
        database,
        "insert into model_call (tenant_id, run_id, model_call_id, started_at, step_key, participant, provider, model) "
        "values ($1, $2, $3, folkmoot_now(), 'turn', 'Ann', 'scripted', 'rules')",
        started.tenant_id, started.run_id, call_id,
    )  # fmt: skip
    return started, call_id


# the lock


async def race(database: Database, new_id: NewId, tenant_id: Any) -> list[bool]:
    """Two calls of 60 tokens look at a budget of 100; the second one once the first has looked and not committed. Who got it?"""
    await limit(database, tenant_id, tokens=100)
    calls = [await begin_call(database, new_id, tenant_id) for _ in range(2)]
    has_looked, may_commit = asyncio.Event(), asyncio.Event()

    async def take(number: int) -> bool:
        started, call_id = calls[number]
        async with database.writer() as writer:
            await budgets.lock(writer, tenant_id)
            day = await budgets.day(writer, tenant_id)
            fits = day.spent.used.tokens + day.spent.reserved.tokens + 60 <= 100
            if fits:
                await budgets.reserve(
                    writer, tenant_id, run_id=started.run_id, model_call_id=call_id, amounts=Amounts(60)
                )
            if number == 0:
                has_looked.set()
                await may_commit.wait()
        return fits

    first = asyncio.create_task(take(0))
    await has_looked.wait()
    second = asyncio.create_task(take(1))

    async def second_has_looked_or_waits() -> bool:
        return second.done() or bool(await panels.fetch(database, LOCKED))

    await until(second_has_looked_or_waits)
    may_commit.set()
    return [await first, await second]


async def test_of_two_calls_that_do_not_both_fit_one_gets_the_budget(
    database: Database, new_id: NewId, tenant: Any
) -> None:
    assert await race(database, new_id, tenant) == [True, False]


async def test_control_without_the_lock_both_get_it(
    database: Database, new_id: NewId, tenant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: each looks before the other commits, and the budget is overspent."""

    async def no_lock(writer: Writer, subject: Any) -> None: ...

    monkeypatch.setattr(budgets, "lock", no_lock)
    assert await race(database, new_id, tenant) == [True, True]


async def test_runs_beside_each_other_under_an_app_run_share_no_lock(
    database: Database, new_id: NewId, tenant: Any
) -> None:
    """They share no budget: only what is below one run of an interaction waits for each other."""
    calls = [await begin_call(database, new_id, tenant) for _ in range(2)]
    app = new_id()
    await panels.execute(database, "update process set tree_root_id = $2 where tenant_id = $1", tenant, app)
    async with database.reader() as reader:
        for started, call_id in calls:
            call = await budgets.call_at_hand(reader, tenant, run_id=started.run_id, model_call_id=call_id)
            assert call.root == started.run_id


# whole runs


def talk(
    new_id: NewId, url: str, *, budget: Budget | None = None, prices: Any = PRICES, rounds: int = 1
) -> ResolvedInteraction:
    """Two participants with a priced model behind a URL."""
    model = ModelChoice("openai-compatible", "m", base_url=url, prices=prices)
    resolved = panels.interaction(new_id, names=("Ann", "Ben"), maximum_rounds=rounds, budget=budget)
    return replace(resolved, participants=tuple(replace(p, model=model) for p in resolved.participants))


async def statuses(database: Database) -> dict[str, int]:
    rows = await panels.fetch(database, "select status, count(*) as n from process group by 1")
    return {row["status"]: row["n"] for row in rows}


async def none_left(database: Database) -> bool:
    return not await panels.fetch(database, "select from process where ended_at is null")


async def test_budget_of_a_day_is_never_overspent_under_fifty_runs_at_once(
    database: Database, new_id: NewId, tenant: Any, tmp_path: Path
) -> None:
    """Fifty runs of a tenant ask at the same moment, with a budget for some of them: by the provider's books it is kept."""
    most = 40_000
    await limit(database, tenant, tokens=most)
    with bookkeeper(refuses=False, most=(300, 900)) as (url, books):
        for _ in range(50):
            await panels.start(database, new_id, talk(new_id, url), tenant_id=tenant)
        async with crew(database, new_id, model=Asking(tmp_path), slots=50):
            await until(lambda: none_left(database), seconds=60)
    used = sum(books.tokens.values())
    assert most - 2 * (300 + 4096) < used <= most
    ended = await statuses(database)
    assert ended["Completed"] and ended["Failed"] and ended["Completed"] + ended["Failed"] == 50
    assert (
        books.arrived["m"]
        == len(books.seen)
        == len(await panels.fetch(database, "select from model_call where error_class is null"))
    )
    # under a budget every reply is bounded
    assert {body["max_tokens"] for body in books.seen} == {4096}
    row = (await panels.fetch(database, "select failure_details from process where status = 'Failed'"))[0]
    for part in (
        "BudgetSpent",
        "tenant's budget of the day is 40,000 tokens",
        "are used",
        "may take up to",
        "folkmoot budget set",
    ):
        assert part in row["failure_details"]
    # what was set aside is of no account once calls have ended
    async with database.reader() as reader:
        spent = (await budgets.day(reader, tenant)).spent
    assert (spent.used.tokens, spent.reserved) == (used, Amounts())


@pytest.mark.parametrize("most", [Budget(tokens=9_000), Budget(money=D("0.0300"))])
async def test_run_ends_where_a_call_could_exceed_its_budget(
    database: Database, new_id: NewId, tmp_path: Path, most: Budget
) -> None:
    """The call is not made and is no call in the usage; it is not tried again; the run says what, how much, and what to do."""
    with bookkeeper(refuses=False, most=(300, 900)) as (url, books):
        started = await panels.start(database, new_id, talk(new_id, url, budget=most, rounds=50))
        async with crew(database, new_id, model=Asking(tmp_path)):
            await until(lambda: panels.has_ended(database, started))
    row = await panels.row_of(database, started)
    kind = "tokens" if most.tokens else "$"
    assert (
        row["status"] == "Failed"
        and f"The run's budget is {'9,000 tokens' if most.tokens else '$0.03'}" in row["failure_details"]
    )
    assert kind in row["failure_details"] and "Start a run with a higher budget" in row["failure_details"]
    calls = await panels.rows_of(database, started, "model_call")
    made = [call for call in calls if call["error_class"] is None]
    assert len(made) == books.arrived["m"] >= 2 and [c["error_class"] for c in calls if c not in made] == [
        "BudgetSpent"
    ]
    used = sum(books.tokens.values()) if most.tokens else sum(call["cost"] for call in made)
    assert used <= (most.tokens or most.money)
    assert all(call["reserved_tokens"] and call["reserved_cost"] is not None for call in made)


async def test_lost_call_counts_with_what_was_set_aside_for_it(database: Database, new_id: NewId, tenant: Any) -> None:
    """Its reply may have come to be: a crash gives nothing back. Derived from the calls, there is nothing to drift."""
    await limit(database, tenant, tokens=1_000, money=D(1))
    started, call_id = await begin_call(database, new_id, tenant)
    async with database.writer() as writer:
        await budgets.reserve(
            writer, tenant, run_id=started.run_id, model_call_id=call_id, amounts=Amounts(700, D("0.7"))
        )
        reserved = (await budgets.day(writer, tenant)).spent
    assert (reserved.used, reserved.reserved) == (Amounts(), Amounts(700, D("0.7")))
    end = "update model_call set ended_at = now(), error_class = $2, usage = $3, cost = 0.01 where model_call_id = $1"
    guess = '{"input": 10, "cached_input": 0, "cache_write": 0, "output": 0, "reasoning": 0, "estimated": true}'
    await panels.execute(database, end, call_id, "Lost", guess)
    async with database.reader() as reader:
        lost = (await budgets.day(reader, tenant)).spent
        tree = await budgets.subtree(reader, tenant, top=started.run_id)
    assert (lost.used, lost.reserved) == (Amounts(700, D("0.7")), Amounts())
    assert (tree.used, tree.reserved) == (Amounts(700, D("0.7"), 1), Amounts())
    await panels.shift_clock(database, 86_400)
    async with database.reader() as reader:
        assert (await budgets.day(reader, tenant)).spent.used == Amounts()
        assert (await budgets.subtree(reader, tenant, top=started.run_id)).used == Amounts(700, D("0.7"), 1)


async def test_call_waits_where_only_what_is_set_aside_for_others_leaves_no_room(
    database: Database, new_id: NewId, tenant: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is sent once they have used less than they could have."""
    await limit(database, tenant, tokens=6_000)
    other, call_id = await begin_call(database, new_id, tenant)
    async with database.writer() as writer:
        await budgets.reserve(writer, tenant, run_id=other.run_id, model_call_id=call_id, amounts=Amounts(5_000))
    await panels.execute(database, "update process set ready_at = null where run_id = $1", other.run_id)
    with bookkeeper(refuses=False, most=(300, 900)) as (url, books):
        started = await panels.start(database, new_id, talk(new_id, url), tenant_id=tenant)
        looks: list[Any] = []
        look = budgets.call_at_hand

        async def noted(writer: Writer, tenant_id: Any, **call: Any) -> budgets.CallAtHand:
            looks.append(call)
            return await look(writer, tenant_id, **call)

        monkeypatch.setattr(budgets, "call_at_hand", noted)
        async with crew(database, new_id, model=Asking(tmp_path)):
            await until(lambda: len(looks) > 1)
            assert not books.seen
            end = "update model_call set ended_at = now(), usage = '{\"input\": 9}' where model_call_id = $1"
            await panels.execute(database, end, call_id)
            await until(lambda: panels.has_ended(database, started))
    assert RunStatus((await panels.row_of(database, started))["status"]) is RunStatus.COMPLETED
    assert books.arrived["m"] == 2


# doors


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker: what is started stays New."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        yield server


async def publish(server: Served, *, prices: Any = None, budget: Any = None) -> str:
    """The address of an interaction of one agent, which talks two rounds."""
    at = f"/namespaces/{NAMESPACE}"
    model = {
        "provider": "openai-compatible",
        "modelName": "m",
        "baseUrl": "http://127.0.0.1:9/v1",
        "prices": prices or {},
    }
    await put(server.client, f"{at}/ai-models/by-name/m", model)
    await put(server.client, f"{at}/agents/by-name/ann", {"model": "m"})
    body = {"agents": [{"agent": "ann"}], "prompt": "Talk.", "maximumRounds": 2, "budget": budget}
    await put(server.client, f"{at}/interactions/by-name/talk", body)
    return f"{at}/interactions/by-name/talk/start"


async def test_start_can_lower_a_budget_and_is_refused_what_cannot_be_held(server: Served) -> None:
    """interactions.md, Starting: everything is checked before the run exists."""
    client = server.client
    start = await publish(server, prices=PRICES, budget={"tokens": 1000, "money": 0.5})
    for budget, pointer, part in (
        ({"tokens": 1001}, "/budget/tokens", "1,000 tokens; a start can lower it"),
        ({"money": 0.51}, "/budget/money", "$0.50; a start can lower it"),
        ({"tokens": 0}, "/budget/tokens", "lets no call be made"),
    ):
        (fault,) = problem_of(await client.put(start, json={"budget": budget}), 422, "bad_input")["errors"]
        assert fault["pointer"] == pointer and part in fault["message"]
    run = (await client.put(start, json={"budget": {"tokens": 900}})).json()
    shown = (await client.get(f"{RUNS}/by-id/{run['id']}/usage")).json()
    assert shown["budget"] == {"tokens": 900, "money": 0.5, "calls": None}
    assert shown["total"]["calls"] == shown["total"]["cost"] == 0 and shown["tree"] is None

    # a price that is not known cannot be held to a budget of money: neither a run's nor the tenant's
    start = await publish(server, prices={"output": 1}, budget={"money": 0.5})
    told = problem_of(await client.put(start, json={}), 422, "bad_input")["detail"]
    assert "no price is known of model 'm' (agent 'ann')" in told and "The run's budget" in told
    start = await publish(server, budget={"tokens": 1000})
    assert (await client.put(start, json={})).status_code == 201
    await put(client, "/budget", {"moneyPerDay": 1})
    told = problem_of(await client.put(start, json={}), 422, "bad_input")["detail"]
    assert "The tenant's budget of the day limits money" in told


async def test_start_on_a_day_that_is_used_up_is_a_429_that_says_when_to_come_back(server: Served) -> None:
    """platform.md: tokens and money per day; a clear 429 with Retry-After."""
    client = server.client
    none = (await client.get("/budget")).json()
    assert (none["tokensPerDay"], none["moneyPerDay"], none["tokensUsed"], none["moneyUsed"]) == (None, None, 0, 0)
    start = await publish(server, prices=PRICES)
    run = (await client.put(start, json={})).json()
    await panels.execute(
        server.installation.database,
        "insert into model_call (tenant_id, run_id, model_call_id, started_at, ended_at, step_key, participant, provider, model, usage, "
        "cost) values ($1, $2, $2, folkmoot_now(), folkmoot_now(), 'turn', 'ann', 'x', 'm', '{\"input\": 700, \"output\": 300}', 0.25)",
        run["tenantId"], run["id"],
    )  # fmt: skip
    for limit, part in (
        ({"tokensPerDay": 1000, "moneyPerDay": 5}, "1,000 of 1,000 tokens, $0.25 of $5.00"),
        ({"moneyPerDay": 0.25}, "$0.25 of $0.25"),
    ):
        set_ = await put(client, "/budget", limit)
        assert (set_["tokensUsed"], set_["moneyUsed"], set_["dateReset"][10:]) == (1000, 0.25, "T00:00:00.0000000Z")
        answer = await client.put(start, json={})
        assert part in problem_of(answer, 429, "budget_spent")["detail"]
        assert 0 < int(answer.headers["retry-after"]) <= 86_400
    # the day is over, or the budget is raised
    await panels.shift_clock(server.installation.database, int(answer.headers["retry-after"]) + 1)
    assert (await client.put(start, json={})).status_code == 201
    await panels.execute(server.installation.database, "update clock_shift set shift = '0'")
    await put(client, "/budget", {"moneyPerDay": 0.26})
    assert (await client.put(start, json={})).status_code == 201
    await put(client, "/budget", {})
    assert (await client.put(start, json={})).status_code == 201

    # it is written down
    problem_of(await client.put("/budget", json={"tokensPerDay": -1}), 422, "bad_input")
    log = (await client.get("/audit?action=budget.set")).json()["items"]
    assert len(log) == 4 and log[-1]["detail"] == {"tokensPerDay": 1000, "moneyPerDay": "5"}
