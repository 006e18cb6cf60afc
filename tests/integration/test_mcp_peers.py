"""MCP servers that others made: over standard input and output, and over HTTP. `make peers` sets them up.

Three libraries and two languages: what one of them says is not what ours would.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from mcp_at_hand import Caller

from folkmoot.domain.operations import Http, McpDescriptor, Server, Stdio, is_destructive
from folkmoot.tools.addresses import Guard
from folkmoot.tools.mcp.service import McpTools

PEERS = Path(__file__).parent.parent / "peers"
NODE_SERVERS = PEERS / "node_modules" / "@modelcontextprotocol"


@pytest_asyncio.fixture
async def tools() -> AsyncIterator[McpTools]:
    made = McpTools(Guard(allow=("127.0.0.1",)), is_stdio_allowed=True)
    try:
        yield made
    finally:
        await made.close()


def python_server(name: str) -> str:
    path = PEERS / "venv" / "bin" / name
    if not (PEERS / "venv" / ".done").exists():
        pytest.skip(f"'{name}' is not set up: make peers")
    return str(path)


def node_server(name: str) -> str:
    if shutil.which("node") is None:
        pytest.skip("Node is not installed, which the servers of this test run on; install it, then: make peers")
    if not (PEERS / "node_modules" / ".done").exists():
        pytest.skip(f"'{name}' is not set up: make peers")
    return str(NODE_SERVERS / name / "dist" / "index.js")


async def test_a_time_server_tells_the_time(tools: McpTools) -> None:
    server = Stdio(python_server("mcp-server-time"), ("--local-timezone", "Europe/Berlin"))
    found = await discovered(tools, server)
    assert set(found) == {"get_current_time", "convert_time"}
    call = Caller(tools, server)
    converted = await call(
        found["convert_time"], verify=True, source_timezone="Asia/Tokyo", time="12:00", target_timezone="UTC"
    )
    assert not converted.is_error and "03:00:00+00:00" in converted.text
    wrong = await call(found["get_current_time"], timezone="Nowhere/Land")
    assert wrong.is_error and "Nowhere/Land" in wrong.text and not wrong.unknown


async def test_a_git_server_reads_a_repository_and_commits(tools: McpTools, tmp_path: Path) -> None:
    program = python_server("mcp-server-git")
    repository = tmp_path / "repository"
    environment = {
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", "init", "--quiet", "-b", "main", str(repository)], check=True)
    (repository / "plan.txt").write_text("the plan")
    server = Stdio(program, ("--repository", str(repository)), environment)
    found = await discovered(tools, server)
    assert not is_destructive(found["git_status"]) and is_destructive(found["git_reset"])
    call = Caller(tools, server)
    for tool, arguments, said in (
        ("git_add", {"files": ["plan.txt"]}, "staged"),
        ("git_commit", {"message": "Keep the plan"}, "committed"),
        ("git_log", {"max_count": 1}, "Message: Keep the plan"),
    ):
        result = await call(found[tool], verify=True, repo_path=str(repository), **arguments)
        assert not result.is_error and said in result.text, result
    outside = await call(found["git_status"], repo_path="/")
    assert outside.is_error and "outside the allowed repository" in outside.text


async def test_a_file_server_reads_and_writes_in_its_folder_alone(tools: McpTools, tmp_path: Path) -> None:
    server = Stdio("node", (node_server("server-filesystem"), str(tmp_path)))
    found = await discovered(tools, server)
    assert not is_destructive(found["read_text_file"]) and is_destructive(found["write_file"])
    call = Caller(tools, server)
    written = await call(found["write_file"], verify=True, path=str(tmp_path / "a.txt"), content="from the panel")
    assert not written.is_error and (tmp_path / "a.txt").read_text() == "from the panel"
    assert (await call(found["read_text_file"], path=str(tmp_path / "a.txt"))).text == "from the panel"
    outside = await call(found["read_text_file"], path="/etc/passwd")
    assert outside.is_error and "Access denied" in outside.text


@pytest.mark.parametrize("way", ["stdio", "http"])
async def test_a_server_that_shows_all_of_the_protocol_is_called(tools: McpTools, way: str) -> None:
    program = node_server("server-everything")
    async with everything(program, way) as server:
        found = await discovered(tools, server)
        call = Caller(tools, server)
        for tool, arguments, said in (
            ("echo", {"message": "Größe 数"}, "Echo: Größe 数"),
            ("get-sum", {"a": 1, "b": 2}, "The sum of 1 and 2 is 3."),
            ("get-structured-content", {"location": "New York"}, '"temperature"'),
            ("get-tiny-image", {}, "[picture: image/png, "),
            ("get-resource-links", {"count": 2}, "[link to "),
            ("get-resource-reference", {}, "This is a plaintext resource"),
            ("trigger-long-running-operation", {"duration": 0.5, "steps": 2}, "completed"),
        ):
            result = await call(found[tool], verify=tool == "echo", **arguments)
            assert not result.is_error and said in result.text, result
        wrong = await call(found["get-sum"], a="one", b=2)
        assert wrong.is_error and not wrong.unknown
        late = await call(found["trigger-long-running-operation"], duration=60, steps=2, limit_seconds=1)
        assert late.unknown
        assert (await call(found["echo"], message="still there")).text == "Echo: still there"


async def discovered(tools: McpTools, server: Server) -> dict[str, McpDescriptor]:
    found = await tools.discover(server, headers={}, limit_seconds=60)
    return {entry.name: entry.descriptor for entry in found if isinstance(entry.descriptor, McpDescriptor)}


@asynccontextmanager
async def everything(program: str, way: str) -> AsyncIterator[Server]:
    if way == "stdio":
        yield Stdio("node", (program, "stdio"))
        return
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
    process = subprocess.Popen(
        ["node", program, "streamableHttp"],
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await _listening(port)
        yield Http(f"http://127.0.0.1:{port}/mcp")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


async def _listening(port: int) -> None:
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
