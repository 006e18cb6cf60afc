"""GitHub's own OpenAPI document (13 MB): read whole, some operations chosen, and called against a server that answers as documented.

The document is fetched by `make peers`; without it these tests are skipped.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import pytest
import pytest_asyncio
from recording_server import Received, RecordingServer, reply

from folkmoot.domain.calls import CallBounds
from folkmoot.domain.operations import Discovered, Http, OpenApiDescriptor, OperationTarget, is_destructive
from folkmoot.tools.addresses import Guard, guarded_client
from folkmoot.tools.openapi import call, discover, read_document

DOCUMENT = Path(__file__).parents[1] / "peers" / "documents" / "api.github.com.json"
TOKEN = "gho_canary0123456789"

pytestmark = [
    pytest.mark.skipif(not DOCUMENT.exists(), reason="GitHub's document is not here; `make peers` fetches it."),
]

# operation, arguments, the path as it is sent, whether a call may change something
CALLS: tuple[tuple[str, dict[str, Any], str, bool], ...] = (
    ("repos/get", {"owner": "octo", "repo": "a b/c?d"}, "/repos/octo/a%20b%2Fc%3Fd", False),
    ("issues/list-for-repo", {"owner": "octo", "repo": "r", "state": "open", "labels": "a,b"}, "/repos/octo/r/issues", False),
    ("issues/create", {"owner": "octo", "repo": "r", "title": "Broken", "labels": ["bug"]}, "/repos/octo/r/issues", True),
    ("issues/update", {"owner": "octo", "repo": "r", "issue_number": 7, "body": None}, "/repos/octo/r/issues/7", True),
    ("git/get-ref", {"owner": "octo", "repo": "r", "ref": "heads/main"}, "/repos/octo/r/git/ref/heads%2Fmain", False),
    ("search/code", {"q": "a+b repo:octo/r"}, "/search/code", False),
)  # fmt: skip


class Documented:
    """Answers a request with the example that the document has for its operation."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._paths = [
            (re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path))), entry)
            for path, entry in document["paths"].items()
        ]

    async def __call__(self, received: Received, writer: asyncio.StreamWriter) -> None:
        path = urlsplit(received.target).path
        found = next((entry for shape, entry in self._paths if shape.fullmatch(path)), {})
        operation = found.get(received.method.lower())
        if operation is None:
            writer.write(reply(b'{"message": "Not Found"}', status=404))
            return
        status, response = next((s, r) for s, r in operation["responses"].items() if s.startswith("2"))
        example = self._resolved(self._resolved(response)["content"]["application/json"])
        examples = [self._resolved(each)["value"] for each in example.get("examples", {}).values()]
        writer.write(reply(json.dumps(examples[0]).encode(), status=int(status)))

    def _resolved(self, part: Any) -> Any:
        while "$ref" in part:
            place: Any = self._document
            for name in part["$ref"].removeprefix("#/").split("/"):
                place = place[name]
            part = place
        return part


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return read_document(DOCUMENT.read_bytes(), source="GitHub's document")


@pytest.fixture(scope="module")
def offered(document: dict[str, Any]) -> dict[str, Discovered]:
    base_url, operations, left_out = discover(document)
    assert base_url == "https://api.github.com"
    assert [name for name, _ in left_out] == ["repos/upload-release-asset"], "it has a server of its own"
    return {found.name: found for found in operations}


@pytest_asyncio.fixture
async def github(document: dict[str, Any]) -> AsyncIterator[RecordingServer]:
    async with RecordingServer(Documented(document)) as server:
        yield server


async def test_operations_are_chosen_and_called_as_documented(
    offered: dict[str, Discovered], github: RecordingServer
) -> None:
    """Issue, Shown by 2; F51: whatever an argument holds stays one segment of the path."""
    assert len(offered) > 1_200
    async with guarded_client(Guard(("127.0.0.1",))) as client:
        for name, arguments, path, changes in CALLS:
            descriptor = offered[name].descriptor
            assert isinstance(descriptor, OpenApiDescriptor) and is_destructive(descriptor) is changes
            target = OperationTarget(UUID(int=1), "github", UUID(int=2), 1, Http(github.url), descriptor)
            result = await call(
                client, target, arguments, headers={"Authorization": f"Bearer {TOKEN}"}, bounds=CallBounds(10, 1_000_000, "call-1")
            )  # fmt: skip
            received = github.received.pop()
            assert urlsplit(received.target).path == path and received.method == descriptor.method
            assert received.header("Authorization") == f"Bearer {TOKEN}"
            assert not result.is_error and json.loads(result.text) and TOKEN not in result.text
            check_sent(received, arguments)


def check_sent(received: Received, arguments: dict[str, Any]) -> None:
    """What is not in the path is in the body, or in the query."""
    if received.body:
        sent = {key: value for key, value in arguments.items() if key not in ("owner", "repo", "issue_number")}
        assert json.loads(received.body) == sent
    else:
        query = unquote(urlsplit(received.target).query)
        assert all(str(value) in query for key, value in arguments.items() if key in ("state", "labels", "q"))
