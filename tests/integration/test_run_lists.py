"""Runs as they are listed, spoken to and stopped (api.md, runs; B63)."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from definitions_at_hand import NAMESPACE, bench, other_tenant, publish_panel, shift_clock

from folkmoot.domain.definitions import AgentBinding, ChatMode, HumanSettings, Reference
from folkmoot.domain.items import HumanMessage
from folkmoot.domain.run_status import RunStatus
from folkmoot.domain.tenancy import Caller
from folkmoot.kernel.errors import BadInput, Conflict, NotFound, RunEnded
from folkmoot.kernel.ids import NewId
from folkmoot.services import runs, starting
from folkmoot.services.runs import RunCursor, RunFilter
from folkmoot.services.starting import StartFields
from folkmoot.store.database import Database, queries
from folkmoot.store.run_lists import is_found_outside, parameters
from folkmoot.store.walls import walled

OBSERVED = HumanSettings(ChatMode.OBSERVING)


def nobody(_: dict[str, Any]) -> None:
    """Tells nobody."""


async def start(
    database: Database, caller: Caller, new_id: NewId, *, name: str = "panel", tags: tuple[str, ...] = (), question: str = "cats?"
) -> UUID:  # fmt: skip
    request = StartFields(inputs=(("question", question),), tags=tags)
    return await starting.start(
        database, caller, interaction=Reference(name, NAMESPACE), request=request, bench=bench(), new_id=new_id, tell=nobody
    )  # fmt: skip


async def ids(
    database: Database, caller: Caller, wanted: RunFilter | None = None, *, namespace: str | None = None, limit: int = 50
) -> list[UUID]:  # fmt: skip
    found = await runs.page(
        database, caller, wanted=wanted or RunFilter(), namespace=namespace, after=None, limit=limit
    )
    return [view.run.run_id for view in found]


async def test_pages_hold_every_run_once_the_newest_first(database: Database, caller: Caller, new_id: NewId) -> None:
    """B63: lists use keyset pages; runs that were made at the same moment are told apart."""
    await publish_panel(database, caller, new_id)
    made = [await start(database, caller, new_id) for _ in range(7)]
    async with database.writer() as writer:
        await writer.connection.execute(
            "update process set created_at = $1", datetime.fromisoformat("2026-11-30T12:00:00Z")
        )
    seen: list[UUID] = []
    cursor: RunCursor | None = None
    while page := await runs.page(database, caller, wanted=RunFilter(), after=cursor, limit=3):
        seen += [view.run.run_id for view in page]
        cursor = RunCursor(page[-1].run.created_at, page[-1].run.run_id)
    assert seen == made[::-1]


async def test_each_filter_gives_its_runs_and_no_other(database: Database, caller: Caller, new_id: NewId) -> None:
    """api.md, runs: filters status, interaction, namespace, root, parent, tag, dates, text."""
    await publish_panel(database, caller, new_id)
    first = await start(database, caller, new_id, tags=("red", "big"), question="Shall we buy apples?")
    second = await start(database, caller, new_id, tags=("blue",), question="Pears, then.")
    await runs.request_stop(database, caller, run_id=second, tell=nobody)
    view = (await runs.get(database, caller, run_id=first)).view
    moment = view.run.created_at
    cases = [
        (RunFilter(status=RunStatus.STOPPED), [second]),
        (RunFilter(status=RunStatus.NEW), [first]),
        (RunFilter(interaction_id=view.run.interaction_id), [second, first]),
        (RunFilter(interaction_id=uuid4()), []),
        (RunFilter(root=first), [first]),
        (RunFilter(parent=first), []),
        (RunFilter(tag="red"), [first]),
        (RunFilter(tag="re"), []),
        (RunFilter(text="apples"), [first]),
        (RunFilter(text="panel -apples"), [second]),
        (RunFilter(text='"buy apples" red'), [first]),
        (RunFilter(text="'; drop table & | !"), []),
        (RunFilter(text="\x00\ud800"), []),
        (RunFilter(created_from=moment), [second, first]),
        (RunFilter(created_before=moment), []),
        (RunFilter(created_before=moment + timedelta(microseconds=1)), [first]),
        (RunFilter(status=RunStatus.NEW, tag="red", text="apples", root=first, created_from=moment), [first]),
        (RunFilter(status=RunStatus.NEW, tag="blue"), []),
    ]
    for wanted, expected in cases:
        assert await ids(database, caller, wanted) == expected, wanted
    assert await ids(database, caller, namespace=NAMESPACE) == [second, first]
    assert await ids(database, caller, namespace="default") == await ids(database, caller, namespace="nowhere") == []


async def test_a_row_shows_what_the_start_was_given(database: Database, caller: Caller, new_id: NewId) -> None:
    await publish_panel(database, caller, new_id)
    await start(database, caller, new_id)
    (view,) = await runs.page(database, caller, wanted=RunFilter(), after=None, limit=5)
    assert view.inputs == (("question", "cats?"),) and view.now >= view.run.created_at


async def test_another_tenants_runs_are_as_none(database: Database, caller: Caller, new_id: NewId) -> None:
    """B66; platform.md, Tenancy: an object of another tenant is a 404, the same as one that never was."""
    await publish_panel(database, caller, new_id, human_settings=OBSERVED)
    run_id = await start(database, caller, new_id)
    stranger = await other_tenant(database, new_id)
    assert await ids(database, stranger) == []
    for attempt in (
        ids(database, stranger, RunFilter(root=run_id)),
        runs.get(database, stranger, run_id=run_id),
        runs.details(database, stranger, run_id=run_id),
        runs.items(database, stranger, run_id=run_id, after=0, limit=5),
        runs.request_stop(database, stranger, run_id=run_id, tell=nobody),
        runs.post_message(database, stranger, run_id=run_id, message="hi", new_id=new_id, tell=nobody),
    ):
        with pytest.raises(NotFound):
            await attempt
    whole = await runs.get(database, caller, run_id=run_id)
    assert whole.items == () and whole.view.run.status is RunStatus.NEW


async def test_details_tell_names_and_the_trees_size(database: Database, caller: Caller, new_id: NewId) -> None:
    await publish_panel(database, caller, new_id)
    details = await runs.details(database, caller, run_id=await start(database, caller, new_id))
    assert (details.user_name, details.tree.total, details.tree.active) == ("owner", 1, 1)
    assert details.whole.resolved.interaction_name == "panel"


async def test_a_message_is_appended_at_once_and_told(database: Database, caller: Caller, new_id: NewId) -> None:
    """conversation.md, 8: a message that a person sends at any time is appended at once."""
    await publish_panel(database, caller, new_id, human_settings=OBSERVED)
    run_id = await start(database, caller, new_id)
    told: list[dict[str, Any]] = []
    for number, text in enumerate(("First.", "a\x00b"), start=1):
        stored = await runs.post_message(database, caller, run_id=run_id, message=text, new_id=new_id, tell=told.append)
        assert (stored.sequence, stored.item.author.name, stored.item.author.id) == (number, "owner", caller.user_id)
    found = await runs.items(database, caller, run_id=run_id, after=0, limit=5)
    assert [stored.item.body for stored in found] == [HumanMessage("First."), HumanMessage("a\u2400b")]
    assert [m["sequence"] for m in told] == [1, 2] and {m["run"] for m in told} == {str(run_id)}
    assert await runs.items(database, caller, run_id=run_id, after=1, limit=5) == found[1:]


@pytest.mark.parametrize("settings", [None, HumanSettings(ChatMode.EXCLUDED)])
async def test_where_no_person_may_speak_a_message_is_a_conflict(
    database: Database, caller: Caller, new_id: NewId, settings: HumanSettings | None
) -> None:
    """conversation.md, 8: humanSettings null, or Excluded, is a 409."""
    await publish_panel(database, caller, new_id, human_settings=settings)
    run_id = await start(database, caller, new_id)
    with pytest.raises(Conflict, match="examples/panel"):
        await runs.post_message(database, caller, run_id=run_id, message="hi", new_id=new_id, tell=nobody)
    with pytest.raises(BadInput):
        await runs.post_message(database, caller, run_id=run_id, message="", new_id=new_id, tell=nobody)


async def test_a_person_cannot_speak_under_a_participants_name(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """conversation.md, 3: no participant can speak as another; 8: the name `Human` is reserved."""
    agents = (AgentBinding(Reference("optimist"), "Оwner"),)  # its first letter is Cyrillic
    await publish_panel(database, caller, new_id, human_settings=OBSERVED, agents=agents)
    run_id = await start(database, caller, new_id)
    stored = await runs.post_message(database, caller, run_id=run_id, message="hi", new_id=new_id, tell=nobody)
    assert (stored.item.author.name, stored.item.author.id) == ("Human", caller.user_id)


async def test_a_run_that_nobody_began_is_stopped_at_once_and_takes_nothing_more(
    database: Database, caller: Caller, new_id: NewId
) -> None:
    """kernel.md, States: a stop; B30: nothing after the end."""
    await publish_panel(database, caller, new_id, human_settings=OBSERVED)
    run_id = await start(database, caller, new_id)
    told: list[dict[str, Any]] = []
    assert await runs.request_stop(database, caller, run_id=run_id, tell=told.append) is RunStatus.STOPPED
    assert told == [{"to": "run", "run": str(run_id)}]
    with pytest.raises(RunEnded, match="Stopped"):
        await runs.request_stop(database, caller, run_id=run_id, tell=told.append)
    with pytest.raises(RunEnded, match="Stopped"):
        await runs.post_message(database, caller, run_id=run_id, message="hi", new_id=new_id, tell=told.append)
    assert len(told) == 1


async def test_a_stop_of_a_run_that_is_not_there_is_not_found(database: Database, caller: Caller) -> None:
    with pytest.raises(NotFound):
        await runs.request_stop(database, caller, run_id=uuid4(), tell=nobody)


@dataclass(frozen=True, slots=True)
class Crowd:
    """20,000 runs of a tenant, and 5,000 newer ones of its apps, which no list has. `rare`: a definition with few of them; `parent`: a run with ten below it."""

    tenant_id: UUID
    rare: UUID
    namespace_id: UUID
    parent: UUID


@pytest.fixture
async def crowd(database: Database, caller: Caller) -> Crowd:
    made = Crowd(caller.tenant_id, uuid4(), uuid4(), uuid4())
    async with database.writer() as writer:
        await writer.connection.execute(
            """insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at,
                   updated_at, tree_root_id, swarm_root_id, state_version, tags, search, status, ended_at, parent_id)
               select $1::uuid, id, 'Interaction', case when n % 100 = 0 then $3::uuid else $5::uuid end,
                   case when n % 100 = 0 then $2::uuid else $5::uuid end, 1, $1::uuid,
                   moment, moment, case when n <= 10 then $4::uuid else id end, id, 1, case when n % 200 = 0 then '{rare}' else '{common}' end::text[],
                   'panel ' || case when n % 200 = 0 then 'zebra' else 'horse' end, s.status, case when s.status = 'Completed' then moment end,
                   case when n <= 10 then $4::uuid end
               from generate_series(1, 20000) n, lateral (select md5(n::text)::uuid as id) i,
                   lateral (select timestamptz '2026-01-01' + n * interval '1 minute' as moment) m,
                   lateral (select case when n % 100 = 7 then 'Running' else 'Completed' end::run_status as status) s""",
            made.tenant_id, made.rare, made.namespace_id, made.parent, uuid4(),
        )  # fmt: skip
        await writer.connection.execute(
            """insert into process (tenant_id, run_id, kind, app_name, app_inputs, ping_limit, created_by, created_at, updated_at, tree_root_id,
                   swarm_root_id, state_version, status, ended_at)
               select $1::uuid, id, 'App', 'nightly', '[]', '5 min', $1::uuid, moment, moment, id, id, 1, 'Completed', moment
               from generate_series(1, 5000) n, lateral (select md5('app ' || n)::uuid as id) i,
                   lateral (select timestamptz '2026-02-01' + n * interval '1 minute' as moment) m""",
            made.tenant_id,
        )  # fmt: skip
        await writer.connection.execute("analyze process")
    return made


async def plan(
    database: Database, crowd: Crowd, wanted: RunFilter, after: RunCursor | None = None, *, mode: str = "force_custom_plan",
    is_behind: bool | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The plan of a page as it was carried out, planned as `run_lists.page` has its runs found; `is_behind` the wall, or as it says."""
    values = parameters(crowd.tenant_id, wanted, after, 51).values()
    literals = ", ".join("null" if value is None else f"'{value}'" for value in values)
    if is_behind is None:
        is_behind = not is_found_outside(wanted)
    async with database.reader() as reader, reader.one_moment():
        await reader.connection.execute(f"set local plan_cache_mode = {mode}")
        async with nullcontext() if is_behind else reader.outside_the_wall():
            await reader.connection.execute("prepare page as " + queries("runs").page_ids.sql)
            rows = await reader.connection.fetch(f"explain (analyze, format json) execute page({literals})")
            await reader.connection.execute("deallocate page")
    found: dict[str, Any] = json.loads(rows[0][0])[0]
    return found


async def plan_of_views(database: Database, crowd: Crowd) -> str:
    """How the runs that were found are then read."""
    async with database.reader() as reader, reader.one_moment():
        await reader.plan_anew()
        ids = await reader.connection.fetch("select run_id from process where tenant_id = $1 limit 51", crowd.tenant_id)
        return "\n".join(
            row[0]
            for row in await reader.connection.fetch(
                "explain " + queries("runs").views.sql, crowd.tenant_id, [row["run_id"] for row in ids]
            )
        )


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan] + [node for below in plan.get("Plans", ()) for node in nodes(below)]


async def test_every_filter_of_a_list_is_read_from_an_index(database: Database, crowd: Crowd) -> None:
    """B63, by query plans at 20,000 runs: no list reads the table, whatever its filter, however far its page, wall or none."""
    for place in (database, walled(database, crowd.tenant_id)):
        await check_plans(place, crowd)


async def check_plans(database: Database, crowd: Crowd) -> None:
    middle = datetime.fromisoformat("2026-01-08T00:00:00Z")
    cases: list[tuple[RunFilter, set[str]]] = [
        (RunFilter(), {"process_by_date"}),
        (RunFilter(status=RunStatus.RUNNING), {"process_by_status"}),
        (RunFilter(status=RunStatus.COMPLETED), {"process_by_status", "process_by_date"}),
        (RunFilter(interaction_id=crowd.rare), {"process_by_definition"}),
        (RunFilter(namespace_id=crowd.namespace_id), {"process_by_namespace"}),
        (RunFilter(root=crowd.parent), {"process_by_root"}),
        (RunFilter(parent=crowd.parent), {"process_by_parent"}),
        (RunFilter(below=crowd.parent), {"process_by_parent"}),
        (RunFilter(tag="rare"), {"process_by_tag"}),
        (RunFilter(tag="common"), {"process_by_date"}),
        (RunFilter(text="zebra"), {"process_by_text"}),
        (RunFilter(text="horse"), {"process_by_date"}),
        (RunFilter(created_from=middle, created_before=middle + timedelta(days=1)), {"process_by_date"}),
    ]
    plans = [(wanted, indexes, await plan(database, crowd, wanted)) for wanted, indexes in cases]
    later = await plan(database, crowd, RunFilter(), RunCursor(middle, uuid4()))
    shown = await plan_of_views(database, crowd)
    assert "process_pkey" in shown and "Seq Scan on process" not in shown and "process_by" not in shown, shown
    for wanted, indexes, found in (*plans, ("a later page", {"process_by_date"}, later)):
        used = [node for node in nodes(found["Plan"]) if node.get("Relation Name") == "process" or "Index Name" in node]
        assert not [node for node in used if node["Node Type"] == "Seq Scan"], (wanted, used)
        names = {node["Index Name"] for node in used if node.get("Index Name", "").startswith("process_by")}
        assert names and names <= indexes, (wanted, names)
        read = sum(node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in used)
        assert read < 1500, (wanted, used)


async def test_with_one_plan_for_all_filters_the_table_would_be_read(database: Database, crowd: Crowd) -> None:
    """The control of the test above; and behind the wall, where its filters are found outside, it would be read for those."""
    plans = [await plan(database, crowd, RunFilter(parent=crowd.parent), mode="force_generic_plan")]
    for wanted in (RunFilter(status=RunStatus.NEW), RunFilter(tag="rare"), RunFilter(text="zebra")):
        plans.append(await plan(walled(database, crowd.tenant_id), crowd, wanted, is_behind=True))
    for found in plans:
        read = [node.get("Rows Removed by Filter", 0) * node["Actual Loops"] for node in nodes(found["Plan"])]
        assert sum(read) > 9_000, found


async def test_execution_time_is_told_by_the_databases_clock(database: Database, caller: Caller, new_id: NewId) -> None:
    """F22: the database's clock decides."""
    await publish_panel(database, caller, new_id)
    run_id = await start(database, caller, new_id)
    before = (await runs.get(database, caller, run_id=run_id)).view.now
    await shift_clock(database, timedelta(hours=1))
    assert (await runs.get(database, caller, run_id=run_id)).view.now - before > timedelta(minutes=59)
