"""What hostile bodies, paths, queries and headers meet: a sentence or a normal form, never a fault of the server (F25, B25)."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from api_at_hand import (
    NAMESPACE,
    NEW_ID,
    PANEL,
    RUNS,
    Served,
    count_runs,
    document,
    ended,
    problem_of,
    publish_panel,
    served,
    start_run,
    working_beside,
)

JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture
async def server(database_dsn: str, tmp_path: Path) -> AsyncIterator[Served]:
    async with served(database_dsn, data_dir=tmp_path) as server:
        await publish_panel(server.client, tmp_path)
        yield server


class TestHostileBodies:
    """F25: a documented normal form or a clear refusal, never a 500, never a lost run."""

    NESTED = b"[" * 100_000 + b"]" * 100_000
    CASES: tuple[tuple[str, bytes, int], ...] = (
        ("empty", b"", 422),
        ("not JSON", b"hello", 400),
        ("half of it", b'{"tags": ["a"', 400),
        ("two values", b"{} {}", 400),
        ("no object", b"[]", 422),
        ("null", b"null", 422),
        ("an unknown field", b'{"nothing": 1}', 422),
        ("a field in another spelling", b'{"response_json_schema": "{}"}', 422),
        ("a wrong type", b'{"tags": "a"}', 422),
        ("a number as a text", b'{"priority": "1"}', 422),
        ("a number beyond", b'{"priority": 2147483648}', 422),
        ("a huge number", b'{"priority": 1e999}', 422),
        ("5,000 digits", b'{"priority": ' + b"9" * 5000 + b"}", 400),
        ("4,000 digits", b'{"priority": ' + b"9" * 4000 + b"}", 422),
        ("NaN", b'{"priority": NaN}', 400),
        ("infinity", b'{"priority": -Infinity}', 400),
        ("deep", b'{"tags": ' + NESTED + b"}", 400),
        ("deep, unclosed", b'{"a":' * 100_000, 400),
        ("a key twice", b'{"tags": ["a"], "tags": ["b"]}', 400),
        ("a key twice inside", b'{"inputs": [{"name": "question", "name": "question", "value": "x"}]}', 400),
        ("NUL in a name", b'{"inputs": [{"name": "que\\u0000stion", "value": "x"}]}', 422),
        ("a lone surrogate", b'{"inputs": [{"name": "question", "value": "\\ud800"}]}', 422),
        ("a lone surrogate in a key", b'{"\\udfff": 1}', 422),
        ("not UTF-8", b'{"tags": ["\xff\xfe"]}', 400),
        ("a surrogate in UTF-8", b'{"tags": ["\xed\xa0\x80"]}', 400),
        ("UTF-16", '{"tags": []}'.encode("utf-16"), 400),
        ("a thousand keys", json.dumps({f"k{n}": n for n in range(1000)}).encode(), 422),
        ("a negative time", b'{"durationAutoTermination": "-00:05:00"}', 422),
        ("a time beyond every calendar", b'{"durationAutoTermination": "9999999.00:00:00"}', 422),
        ("50 MB", b'{"tags": ["' + b"x" * 50_000_000 + b'"]}', 413),
        ("50 MB of blanks", b" " * 50_000_000 + b"{}", 413),
    )  # fmt: skip

    async def test_each_is_refused_with_a_sentence(self, server: Served) -> None:
        codes = {400: "unreadable", 413: "too_large", 422: "bad_input"}
        for title, body, status in self.CASES:
            answer = await server.client.put(f"{PANEL}/start", content=body, headers=JSON)
            assert answer.status_code == status, (title, answer.text[:300])
            problem = problem_of(answer, status, codes[status])
            if status == 422:
                assert problem["errors"] and problem["errors"][0]["message"], title
            assert len(answer.content) < 250_000, title
        assert await count_runs(server) == 0
        assert (await start_run(server.client))["status"] == "New"

    async def test_an_unknown_field_is_named(self, server: Served) -> None:
        """README.md, Wire conventions: unknown fields are refused, by name."""
        body = {"inputs": [{"name": "question", "value": "x", "extra~/": 1}]}
        problem = problem_of(await server.client.put(f"{PANEL}/start", json=body), 422, "bad_input")
        (error,) = problem["errors"]
        assert error["pointer"] == "/inputs/0/extra~0~1" and "'extra~/'" in error["message"]

    async def test_a_whole_number_may_be_written_as_any_other(self, server: Served) -> None:
        """JSON Schema, 6.1.1: 1.0 is an integer; 1.5 is none."""
        for number in (b"1.0", b"1e0", b"10e-1"):
            answer = await server.client.put(f"{PANEL}/start", content=b'{"version": ' + number + b"}", headers=JSON)
            assert answer.status_code == 201, answer.text
        answer = await server.client.put(f"{PANEL}/start", content=b'{"version": 1.5}', headers=JSON)
        problem_of(answer, 422, "bad_input")

    async def test_a_body_without_an_announced_length_is_bounded_too(self, server: Served) -> None:
        async def endless() -> AsyncIterator[bytes]:
            for _ in range(50):
                yield b" " * 1_000_000

        answer = await server.client.put(f"{PANEL}/start", content=endless(), headers=JSON)
        problem_of(answer, 413, "too_large")

    async def test_only_json_is_read(self, server: Served) -> None:
        for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "nonsense"):
            headers = {"Content-Type": kind} if kind else {}
            answer = await server.client.put(f"{PANEL}/start", content=b"{}", headers=headers)
            problem_of(answer, 415, "unsupported_media_type")
        for spelling in ("application/json; charset=utf-8", "Application/JSON", "application/merge-patch+json"):
            answer = await server.client.put(
                f"{PANEL}/start", content=b"\xef\xbb\xbf{}", headers={"Content-Type": spelling}
            )
            assert answer.status_code == 201

    async def test_what_can_be_stored_comes_back_in_its_normal_form(self, server: Served, tmp_path: Path) -> None:
        """B25: NUL becomes visible; a 1 MB word goes into no index whole, and loses no run."""
        client = server.client
        word = "w" * 1_000_000
        body = {"inputs": [{"name": "question", "value": word}], "tags": ["a\x00b", "\U0001f600\u202e"]}
        run = await start_run(client, body)
        assert run["inputs"] == body["inputs"]
        assert [r["id"] for r in (await client.get(RUNS, params={"tag": "a\x00b"})).json()["items"]] == [run["id"]]
        message = {"message": "\x00" + word[1:]}
        item = (await client.post(f"{RUNS}/by-id/{run['id']}/messages", json=message)).json()
        assert item["message"] == "\u2400" + word[1:]
        problem_of(await client.post(f"{RUNS}/by-id/{run['id']}/messages", json={"message": word + "w"}), 422)
        async with working_beside(server.installation):
            assert (await ended(client, run["id"]))[-1].data["status"] == "Completed"


class TestPathsAndQueries:
    NAMES = (
        "%00",
        "a%00b",
        "%ed%a0%80",
        "%ff",
        "%E2%80%AE",
        "x" * 5000,
        "..%2f..%2fetc",
        "%0d%0aX: y",
        "%F0%9F%98%80",
        "'%22;--",
    )

    async def test_no_name_leads_to_a_fault_of_the_server(self, server: Served) -> None:
        for name in self.NAMES:
            for path in (
                f"/namespaces/{name}/agents",
                f"/namespaces/{NAMESPACE}/agents/by-name/{name}",
                f"{RUNS}/by-id/{name}",
            ):
                answer = await server.client.get(path)
                assert answer.status_code in (404, 422), (path, answer.text)
                problem_of(answer, answer.status_code)
            answer = await server.client.put(f"/namespaces/{NAMESPACE}/agents/by-name/{name}", json={"model": "small"})
            assert answer.status_code in (200, 201, 404, 422), (name, answer.text)

    async def test_a_method_that_a_path_does_not_take_is_told_the_others(self, server: Served) -> None:
        """RFC 9110, 15.5.6."""
        for path, methods in document()["paths"].items():
            named = path.replace("{number}", "1").replace("{namespace_name}", "n").replace("{name}", "n")
            target = re.sub(r"\{\w+\}", lambda _: str(NEW_ID()), named)
            answer = await server.client.request("PATCH", target)
            problem_of(answer, 405, "method_not_allowed")
            assert answer.headers["allow"] == ", ".join(sorted(method.upper() for method in methods)), path

    async def test_header_garbage_is_refused(self, server: Served) -> None:
        run_id = (await start_run(server.client))["id"]
        for value in (b"x", b"-1", b"1.5", b"9007199254740993", b"9" * 5000, b"", "\u0661".encode()):
            answer = await server.client.get(f"{RUNS}/by-id/{run_id}/events", headers=[(b"Last-Event-ID", value)])
            problem_of(answer, 422, "bad_input")
