"""A run's event stream over HTTP (api.md, Events; B64, B65, F02, F60)."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
import pytest_asyncio
from api_at_hand import (
    RUNS,
    EventReader,
    SentEvent,
    Served,
    ended,
    publish_panel,
    sequences_of,
    served,
    start_run,
    watching,
    whole_stream,
    working_beside,
)

from folkmoot.api import stream
from folkmoot.kernel import fault_points

SLOW = {
    "rules": [{"reply": {"text": "A reply that took a while.", "delay": "150ms", "usage": {"input": 7, "output": 5}}}]
}
TALKATIVE = {"maximumRounds": 4}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """Without a worker, and with few connections."""
    async with served(database_dsn, data_dir=tmp_path, connections=4) as server:
        await publish_panel(server.client, tmp_path)
        yield server


@pytest_asyncio.fixture
async def busy(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    """With a worker, and a panel of eight slow turns."""
    async with served(database_dsn, data_dir=tmp_path, works=True) as server:
        await publish_panel(server.client, tmp_path, SLOW, **TALKATIVE)
        yield server


async def message(server: Served, run_id: str, text: str) -> None:
    answer = await server.client.post(f"{RUNS}/by-id/{run_id}/messages", json={"message": text})
    assert answer.status_code == 201


async def all_items(server: Served, run_id: str) -> list[Any]:
    page = (await server.client.get(f"{RUNS}/by-id/{run_id}/items", params={"limit": 200})).json()
    assert page["next"] is None
    return list(page["items"])


class TestAWatchedRun:
    async def test_the_stream_has_every_item_once_and_then_the_end(self, busy: Served) -> None:
        """api.md, Events: names, ids, order."""
        run_id = (await start_run(busy.client))["id"]
        events = list(await ended(busy.client, run_id))
        items = await all_items(busy, run_id)
        assert [event.data for event in events if event.name == "item"] == items
        assert sequences_of(events) == list(range(1, len(items) + 1))
        assert all((event.id is not None) == (event.name == "item") for event in events)
        assert {event.name for event in events} == {"item", "delta", "status", "usage", "end"}
        assert events[0].name == "status" and [event.name for event in events].index("end") == len(events) - 1
        statuses = [event.data["status"] for event in events if event.name == "status"]
        assert [status for status, _ in groupby(statuses)][-2:] == ["Running", "Completed"]
        assert events[-1].data == {"status": "Completed", "output": None, "failureDetails": None}

    async def test_deltas_are_the_text_of_the_reply_that_follows(self, busy: Served) -> None:
        """state.md, Memory and streams: run, model call, attempt, offset, text."""
        run_id = (await start_run(busy.client))["id"]
        told: dict[str, str] = {}
        said = 0
        for event in await ended(busy.client, run_id):
            if event.name == "delta":
                assert event.data["attempt"] == 1
                assert event.data["offset"] == len(told.setdefault(event.data["participant"], ""))
                told[event.data["participant"]] += event.data["text"]
            elif event.name == "item" and event.data["kind"] == "agentMessage":
                text = told.pop(event.data["author"]["name"], None)
                said += text == event.data["message"]
        assert said >= 4  # the first turns may be over before it is known that somebody watches

    async def test_usage_is_told_on_change_and_before_the_end(
        self, busy: Served, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("folkmoot.services.events.USAGE_SECONDS", 0.0)
        run_id = (await start_run(busy.client))["id"]
        events = list(await ended(busy.client, run_id))
        usages = [event.data["tokenUsage"] for event in events if event.name == "usage"]
        assert len(usages) > 3
        assert [len(usage) for usage in usages] == sorted(len(usage) for usage in usages)
        whole = (await busy.client.get(f"{RUNS}/by-id/{run_id}")).json()["tokenUsage"]
        assert [u["turnId"] for u in usages[-1]] == [u["turnId"] for u in whole] and len(whole) == 8
        assert [u["usages"] for u in usages[-1]] == [u["usages"] for u in whole]

    async def test_a_client_that_goes_away_cancels_nothing(self, busy: Served) -> None:
        """B64."""
        run_id = (await start_run(busy.client))["id"]
        async with watching(busy.client, run_id) as events:
            async for event in events:
                if event.name == "item":
                    break
        assert (await ended(busy.client, run_id))[-1].data["status"] == "Completed"

    async def test_a_reader_that_comes_back_after_each_item_misses_none(self, busy: Served) -> None:
        """B65: while the run is at work, and never an end before the end."""
        run_id = (await start_run(busy.client))["id"]
        met: list[SentEvent] = []
        while not met or met[-1].name != "end":
            after = sequences_of(met)[-1] if met else None
            async with watching(busy.client, run_id, after=after) as events:
                async for event in events:
                    if event.name in ("item", "end"):
                        met.append(event)
                        break
        assert [event.data for event in met[:-1]] == await all_items(busy, run_id)

    async def test_a_new_attempt_voids_what_was_told_of_the_former(
        self, busy: Served, caplog: pytest.LogCaptureFixture
    ) -> None:
        """F02, the reader's part: the reply was lost before it was saved; one message, though its text was told twice."""
        caplog.set_level(logging.CRITICAL)
        run_id = (await start_run(busy.client))["id"]
        deltas: list[Any] = []
        try:
            async with watching(busy.client, run_id) as events:
                async for event in events:
                    if event.name == "delta" and not deltas:  # a reply has begun, and says nothing yet
                        fault_points.arm("after_model_call", _raise_once)
                    if event.name == "delta":
                        deltas.append(event.data)
        finally:
            fault_points.disarm_all()
        (step,) = {delta["step"] for delta in deltas if delta["attempt"] == 2}
        told = [(delta["attempt"], delta["offset"], delta["text"]) for delta in deltas if delta["step"] == step]
        text = SLOW["rules"][0]["reply"]["text"]
        assert told == [(1, 0, ""), (1, 0, text), (2, 0, ""), (2, 0, text)]
        assert len({delta["modelCallId"] for delta in deltas if delta["step"] == step}) == 2
        spoken = [item for item in await all_items(busy, run_id) if item["kind"] == "agentMessage"]
        assert len(spoken) == 8


def _raise_once() -> None:
    fault_points.disarm_all()
    raise RuntimeError("the reply is lost")


class TestResuming:
    async def test_from_any_id_comes_exactly_the_rest_and_the_end(self, server: Served) -> None:
        """B65."""
        run_id = (await start_run(server.client))["id"]
        await message(server, run_id, "First.\r\n\r\ndata: forged\nid: 99\n\n\u2028\u0085")
        async with working_beside(server.installation):
            await ended(server.client, run_id)
        items = await all_items(server, run_id)
        assert len(items) >= 7
        for after in range(len(items) + 2):
            events = await whole_stream(server.client, run_id, after=after)
            assert [event.data for event in events if event.name == "item"] == items[after:]
            assert [event.name for event in events if event.name != "item"] == ["status", "usage", "end"]
            assert events[-1].name == "end"

    async def test_a_run_stopped_before_it_began_has_an_end_without_items(self, server: Served) -> None:
        run_id = (await start_run(server.client))["id"]
        async with watching(server.client, run_id) as events:
            assert (await anext(events)).data["status"] == "New"
            await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
            rest = [event async for event in events]
        assert [event.name for event in rest if event.name != "usage"] == ["status", "end"]

    async def test_another_server_process_goes_on_where_the_first_was(self, server: Served, database_dsn: str) -> None:
        """B65: on any server."""
        run_id = (await start_run(server.client))["id"]
        async with watching(server.client, run_id) as first, _another_server(database_dsn, server) as url:
            for number in range(1, 4):
                await message(server, run_id, f"Message {number}.")
            met = [event async for event in _items(first, 2)]
            async with AsyncExitStack() as stack:
                other = httpx2.AsyncClient(base_url=url, headers=server.client.headers, trust_env=False)
                client = await stack.enter_async_context(other)
                second = await stack.enter_async_context(watching(client, run_id, after=met[-1].id))
                met += [event async for event in _items(second, 1)]
                await message(server, run_id, "Message 4.")
                met += [event async for event in _items(second, 1)]
                await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
                assert [event.name async for event in second if event.name in ("item", "end")] == ["end"]
        assert [event.data["message"] for event in met] == [f"Message {number}." for number in range(1, 5)]


async def _items(events: EventReader, count: int) -> AsyncIterator[SentEvent]:
    """The next items, so many."""
    while count:
        event = await anext(events)
        if event.name == "item":
            count -= 1
            yield event


@asynccontextmanager
async def _another_server(dsn: str, server: Served) -> AsyncIterator[str]:
    """`folkmoot api` on the same database; its address."""
    environment = {
        "FOLKMOOT_DATABASE_URL": dsn,
        "FOLKMOOT_DATA_DIR": str(server.installation.data_dir),
        "NO_COLOR": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "folkmoot", "api", "--port", "0", env=environment, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        while "http://" not in (line := (await process.stderr.readline()).decode()):
            assert line, "it ended without listening"
        yield line[line.index("http://") :].split()[0]
    finally:
        process.terminate()
        await process.wait()


class TestReaders:
    async def test_idle_streams_hold_no_connection(self, server: Served) -> None:
        """B64: 20 streams on a pool of 4, and requests are still served."""
        runs = [(await start_run(server.client))["id"] for _ in range(20)]
        async with AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(watching(server.client, run_id)) for run_id in runs]
            for reader in readers:
                assert [(await anext(reader)).name for _ in range(2)] == ["status", "usage"]
            pool = server.installation.database.pool
            while pool.get_idle_size() != pool.get_size():  # whatever was being read is read
                await asyncio.sleep(0.02)
            assert pool.get_size() <= 4
            answers = await asyncio.gather(*(server.client.get(f"{RUNS}/by-id/{run_id}") for run_id in runs))
            assert {answer.status_code for answer in answers} == {200}
            async with server.installation.database.reader() as reader_:
                states = await reader_.connection.fetch(
                    "select state from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
                )
            assert {row["state"] for row in states} <= {"idle", "active"}
            assert len(states) <= 4 + 1  # the pool, and the one that listens
            await message(server, runs[7], "Hello.")
            assert (await anext(readers[7])).data["message"] == "Hello."

    async def test_a_reader_that_takes_nothing_is_left_and_can_come_back(
        self, server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """F60."""
        monkeypatch.setattr(stream, "STALLED_SECONDS", 0.5)
        caplog.set_level(logging.INFO, logger="folkmoot.api.stream")
        run_id = (await start_run(server.client))["id"]
        for number in range(30):
            await message(server, run_id, str(number) * 500_000)
        await server.client.post(f"{RUNS}/by-id/{run_id}/stop")
        with _silent_reader(server, run_id) as reader:
            while not any("took nothing" in record.getMessage() for record in caplog.records):
                await asyncio.sleep(0.05)
            received = await _rest(reader)
        assert b"event: end" not in received
        complete = [part for part in received.split(b"\n\n") if part.startswith(b"event: item")][:-1]
        assert 0 < len(complete) < 30
        rest = await whole_stream(server.client, run_id, after=len(complete))
        assert sequences_of(rest) == list(range(len(complete) + 1, 31)) and rest[-1].name == "end"


def _silent_reader(server: Served, run_id: str) -> socket.socket:
    """A client that has asked, and reads nothing."""
    address = urlsplit(server.url)
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    connection.connect((address.hostname, address.port))
    request = f"GET {RUNS}/by-id/{run_id}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n\r\n"
    connection.sendall(request.encode())
    connection.setblocking(False)
    return connection


async def _rest(connection: socket.socket) -> bytes:
    """All that comes until the server has closed, without the marks of chunks."""
    loop = asyncio.get_running_loop()
    received = b""
    while data := await loop.sock_recv(connection, 1 << 20):
        received += data
    body = received.partition(b"\r\n\r\n")[2]
    text = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        text += body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]
    return text
