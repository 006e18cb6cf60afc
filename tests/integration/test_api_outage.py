"""The database goes away and comes back: 503 with Retry-After meanwhile, and no internals told (F21, B67)."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from api_at_hand import RUNS, Served, problem_of, publish_panel, sequences_of, served, start_run, watching, whole_stream

from folkmoot.store.database import Database, upgrade
from folkmoot.store.embedded import open_server


@pytest_asyncio.fixture
async def data_dir() -> AsyncIterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="folkmoot-outage-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_an_outage_is_a_503_until_it_is_over(data_dir: Path, tmp_path: Path) -> None:
    database_server = await open_server(data_dir / "data")
    opened = await Database.open(database_server.dsn, connections=1)
    await upgrade(opened)
    await opened.close()
    async with served(database_server.dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        run_id = (await start_run(server.client))["id"]
        await server.client.post(f"{RUNS}/by-id/{run_id}/messages", json={"message": "Before."})
        async with watching(server.client, run_id) as events:
            met = [await anext(events) for _ in range(3)]
            await database_server.close()
            rest = [event async for event in events]
        assert "end" not in [event.name for event in rest]  # never an end before the end
        await _is_down(server, run_id)
        database_server = await open_server(data_dir / "data")
        try:
            answer = await server.client.get(f"{RUNS}/by-id/{run_id}")
            assert answer.status_code == 200 and answer.json()["status"] == "New"
            assert (await server.client.get("/readyz")).status_code == 200
            await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
            resumed = await whole_stream(server.client, run_id, after=sequences_of(met)[-1])
            assert sequences_of(resumed) == [] and resumed[-1].name == "end"
        finally:
            await server.installation.database.close()
            await database_server.close()


async def _is_down(server: Served, run_id: str) -> None:
    for method, path in (
        ("GET", f"{RUNS}/by-id/{run_id}"),
        ("GET", f"{RUNS}/by-id/{run_id}/events"),
        ("POST", "/keys"),
        ("GET", "/keys"),
    ):
        answer = await server.client.request(method, path, json={"name": "x"} if method == "POST" else None)
        problem = problem_of(answer, 503, "unreachable")
        assert answer.headers["retry-after"].isdigit()
        assert "/" not in problem["detail"] and "postgres" not in problem["detail"].lower()
    ready = await server.client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "NotReady")
    assert "/" not in ready.json()["checks"][0]["detail"]
    assert (await server.client.get("/healthz")).status_code == 200


async def test_cut_connections_cost_no_more_than_a_503(database_dsn: str, tmp_path: Path) -> None:
    """All at once, as a restart of the server or a proxy would: the next requests find new ones."""
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        run_id = (await start_run(server.client))["id"]
        async with server.installation.database.reader() as reader:
            await reader.connection.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
        answers = [await server.client.get(f"{RUNS}/by-id/{run_id}") for _ in range(8)]
        assert {answer.status_code for answer in answers} <= {200, 503}
        assert answers[-1].status_code == 200
        async with watching(server.client, run_id) as events:
            assert (await anext(events)).name == "status"
            await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
            assert [event.name async for event in events][-1] == "end"
