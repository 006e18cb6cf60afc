"""MCP servers that are commands: real processes, well behaved and not (B53, F53)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
import tracemalloc
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from mcp_at_hand import SERVERS, Caller, misbehaving

from folkmoot.domain.operations import McpDescriptor, Stdio
from folkmoot.kernel.errors import ConnectorFault
from folkmoot.tools.addresses import Guard
from folkmoot.tools.mcp.local import LocalServer, LocalServers
from folkmoot.tools.mcp.service import McpTools


@pytest_asyncio.fixture
async def tools() -> AsyncIterator[McpTools]:
    made = McpTools(Guard(), is_stdio_allowed=True)
    try:
        yield made
    finally:
        await made.close()


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


async def test_a_server_of_the_official_library_is_discovered_and_called(tools: McpTools, journal: Path) -> None:
    """B53: tools without properties, results with structure only, pictures and errors; its environment is a small one."""
    server = Stdio(sys.executable, (str(SERVERS / "workshop.py"), str(journal)), {"BENCH_TOKEN": "oak"})
    found = {entry.name: entry.descriptor for entry in await tools.discover(server, headers={}, limit_seconds=60)}
    assert isinstance(found["nothing_needed"], McpDescriptor)
    assert found["nothing_needed"].parameters["properties"] == {}
    call = Caller(tools, server)
    for tool, arguments, is_error, said in (
        ("add", {"first": 1, "second": 2}, False, "3"),
        ("weigh", {"thing": "lead"}, False, '"kilograms": 2.0'),
        ("only_structured", {}, False, '{"rows":[1,2],"none":null}'),
        ("nothing_needed", {}, False, '{"result":""}'),
        ("break_down", {}, True, "the blade is blunt"),
        ("ask", {}, True, "its server refused it"),
        (
            "surroundings",
            {},
            False,
            "BENCH_TOKEN\nHOME\nLANG\nPATH" if "LANG" in os.environ else "BENCH_TOKEN\nHOME\nPATH",
        ),
        ("nosuch", {}, True, "nosuch"),
    ):
        descriptor = found.get(tool)
        result = await call(
            descriptor if isinstance(descriptor, McpDescriptor) else tool, verify=tool == "add", **arguments
        )
        assert (result.is_error, result.unknown) == (is_error, False), result
        assert said in result.text
    pictures = (await call("pictures")).text
    assert "[picture: image/png, 6 bytes, not shown]" in pictures and "AAAA" not in pictures
    assert "[link to 'plan': file:///plan.pdf, application/pdf, 12 bytes]" in pictures and "inside" in pictures
    await call("note", text="once", idempotency_key="key-1")
    assert journal.read_text() == "once key-1\n"


async def test_a_cancelled_call_ends_neither_session_nor_server(tools: McpTools, journal: Path) -> None:
    """B53: the next call goes to the same process; so it does after a call that took too long."""
    call = Caller(tools, Stdio(sys.executable, (str(SERVERS / "workshop.py"), str(journal))))
    task = asyncio.create_task(call("note", text="first", seconds=60))
    await _until(lambda: journal.exists())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    late = await call("note", text="second", seconds=60, limit_seconds=1.0)
    assert late.unknown and "outcome is unknown" in late.text
    again = await call("note", text="third", seconds=60, limit_seconds=0.2, is_repeatable=True)
    assert again.is_error and not again.unknown
    assert (await call("add", first=2, second=2)).text == "4"
    assert len(_processes(str(journal))) == 1


async def test_calls_at_once_share_one_process(tools: McpTools, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is started by the first call and kept apart by connector; without the keeping each call starts one."""
    server = misbehaving("plain", journal)
    call = Caller(tools, server)
    results = await asyncio.gather(*(call("touch") for _ in range(5)))
    assert len({result.text for result in results}) == 1
    other = await Caller(tools, server)("touch")
    assert other.text != results[0].text
    monkeypatch.setattr(LocalServers, "server", lambda self, owner, server: LocalServer(server, idle_seconds=0.2))
    apart = await asyncio.gather(*(Caller(tools, server)("touch") for _ in range(2)))
    assert len({result.text for result in apart}) == 2
    await _until(lambda: len(_running(journal)) == 2)  # those that were kept; the idle ones are gone


async def test_secret_headers_are_variables_of_the_process(tools: McpTools, journal: Path) -> None:
    """platform.md: connector secrets are sealed, and so in no definition. A changed one starts another process."""
    call = Caller(tools, misbehaving("tells", journal))
    pids: dict[str, str] = {}
    for secret in ("hunter2hunter2", "hunter2hunter2", "another-of-ours"):
        call.headers = {"TOKEN": secret}
        digest, shown, pid = (await call("touch")).text.split()
        assert (digest, shown) == (hashlib.sha256(secret.encode()).hexdigest(), "[secret]")
        assert pids.setdefault(secret, pid) == pid
    assert len(set(pids.values())) == 2
    (found,) = await tools.discover(call.server, headers=call.headers, limit_seconds=20)
    assert found.name == "touch" and journal.read_text().count(digest) == 2
    call.headers = {"TOKEN": "hunter2\0hunter2"}
    refused = await call("touch")
    assert refused.is_error and "secret holds a NUL" in refused.text and "hunter2" not in refused.text


@pytest.mark.parametrize("mode", ["dies-at-start", "babbles", "prints"])
@pytest.mark.parametrize("secret", ["q7Zk-w9Xv-m2Lp", "q7Zk-w9Xv\nm2Lp-r4Tn\n"])
async def test_what_a_dying_process_says_of_its_secrets_is_masked(
    tools: McpTools, journal: Path, caplog: pytest.LogCaptureFixture, mode: str, secret: str
) -> None:
    """B52: in no error and no log, also where only the end of what it wrote was kept, and line by line."""
    caplog.set_level(logging.INFO, "folkmoot")
    server = misbehaving(mode, journal)
    with pytest.raises(ConnectorFault, match=r"ended with exit code 7 .* It wrote: '.*\[secret\]") as caught:
        await tools.discover(server, headers={"TOKEN": secret}, limit_seconds=20)
    result = await Caller(tools, server, headers={"TOKEN": secret})("touch")
    assert result.is_error and "did not start" in caplog.text
    told = f"{caught.value} {result.text} {caplog.text} {Stdio('x', (), {'TOKEN': secret})!r}"
    assert not [part for part in ("q7Zk", "w9Xv", "m2Lp", "r4Tn") if part in told]


@pytest.mark.parametrize(
    ("mode", "is_repeatable", "text", "unknown", "calls"),
    [
        ("dies-in-call", False, "broke off the connection", True, 1),
        ("dies-in-call", True, "broke off the connection", False, 2),
        ("dies-once", False, "broke off the connection", True, 1),
        ("dies-once", True, "done", False, 2),
    ],
)
async def test_a_session_that_dropped_is_opened_again_once(
    tools: McpTools, journal: Path, mode: str, is_repeatable: bool, text: str, unknown: bool, calls: int
) -> None:
    """B53: a call that had begun is sent again only if that does no harm, and once."""
    call = Caller(tools, misbehaving(mode, journal))
    result = await call("touch", is_repeatable=is_repeatable)
    assert text in result.text and result.unknown is unknown
    assert journal.read_text().splitlines().count("called") == calls


async def test_a_server_that_ended_between_calls_is_started_again(
    tools: McpTools, journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B53: nothing had begun, so the call is made although it may not be repeated."""
    call = Caller(tools, misbehaving("dies-after-answer", journal))
    for number in range(1, 4):
        result = await call("touch")
        assert (result.text, result.is_error) == ("done", False)
        # gone, and known to be gone
        await _until(lambda number=number: len([m for m in caplog.messages if "ended with exit code" in m]) == number)
    assert not _running(journal)
    assert journal.read_text().splitlines().count("called") == 3


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        ("dies-at-start", r"ended with exit code 7 before .* It wrote: 'cannot log in with \[secret\]'\.$"),
        ("says-nothing", "did not answer within 1 seconds"),
        ("many", "more than 2,000 tools"),
        ("endless", "does not end"),
        ("twins", "Two tools are called 'alike'"),
        ("remote-ref", "tool 'far'.*fetched from nowhere"),
        ("deep", "tool 'deep'.*deeper than 64"),
        ("look-alike", "has a name that is not taken"),
    ],
)
async def test_what_cannot_be_used_is_refused(tools: McpTools, journal: Path, mode: str, reason: str) -> None:
    """F53, B52: each with a sentence that names it and holds no secret; its process is gone after it."""
    limit = 1.0 if mode == "says-nothing" else 60.0
    with pytest.raises(ConnectorFault, match=reason):
        await tools.discover(misbehaving(mode, journal, TOKEN="hunter2hunter2"), headers={}, limit_seconds=limit)
    await _until(lambda: not _running(journal))


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Stdio("/nowhere/at-all"), "the command '/nowhere/at-all' was not found"),
        (Stdio("/etc/passwd"), "'/etc/passwd' may not be executed"),
        (Stdio("true"), "ended with exit code 0 before it could be spoken to"),
        (Stdio("cat"), "refused it"),
    ],
)
async def test_a_command_that_is_no_server_is_named(tools: McpTools, server: Stdio, reason: str) -> None:
    with pytest.raises(ConnectorFault, match=reason):
        await tools.discover(server, headers={}, limit_seconds=20)
    result = await Caller(tools, server)("touch")
    assert result.is_error and not result.unknown and reason in result.text


async def test_commands_run_only_where_they_are_allowed(journal: Path) -> None:
    closed = McpTools(Guard(), is_stdio_allowed=False)
    server = misbehaving("plain", journal)
    with pytest.raises(ConnectorFault, match="does not allow"):
        await closed.discover(server, headers={}, limit_seconds=5)
    assert "does not allow" in (await Caller(closed, server)("touch")).text
    assert journal.read_text() == ""


async def test_lists_are_read_page_by_page_and_noise_is_left_out(tools: McpTools, journal: Path) -> None:
    """B53; a server that prints, logs, fills its standard error and asks our model for words works, and gets none."""
    found = await tools.discover(misbehaving("pages", journal), headers={}, limit_seconds=20)
    assert [entry.name for entry in found] == ["t0", "t1", "t2", "t3", "t4"]
    assert "was told: Sampling not supported" in (await Caller(tools, misbehaving("noisy", journal))("touch")).text


async def test_hostile_descriptions_are_bounded_and_shown(tools: McpTools, journal: Path) -> None:
    """F53: nothing in them hides, and what the annotations claim is kept as a claim."""
    veiled, long = await tools.discover(misbehaving("hostile", journal), headers={}, limit_seconds=20)
    assert isinstance(veiled.descriptor, McpDescriptor) and isinstance(long.descriptor, McpDescriptor)
    shown = "\\u202eneddih\\u200b \\U000e0041 \\u001b[31m"
    assert veiled.descriptor.description == shown
    assert veiled.descriptor.parameters["properties"]["description"]["description"] == shown
    assert len(long.descriptor.description.encode()) <= 16_384


async def test_a_tool_that_changed_is_not_called(tools: McpTools, journal: Path) -> None:
    """F32: what a run is pinned to is looked at before the call, where it matters; nothing is called then."""
    server = misbehaving("changes", journal)
    (found,) = await tools.discover(server, headers={}, limit_seconds=20)
    assert isinstance(found.descriptor, McpDescriptor)
    call = Caller(tools, server)
    result = await call(found.descriptor, verify=True)
    assert result.is_error and not result.unknown
    assert "'touch' of 'bench' was not called" in result.text and "refresh the connector" in result.text
    assert "called" not in journal.read_text().splitlines()
    assert "done" in (await call(found.descriptor)).text


@pytest.mark.parametrize("mode", ["huge", "huge-id-last"])
async def test_a_result_of_50_megabytes_is_not_kept(tools: McpTools, journal: Path, mode: str) -> None:
    """F52: memory stays under 64 MB, the session goes on."""
    call = Caller(tools, misbehaving(mode, journal))
    await call.tools.discover(misbehaving("plain", journal), headers={}, limit_seconds=20)
    tracemalloc.start()
    try:
        result = await call("touch", limit_bytes=10_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.is_error and not result.unknown and "too large" in result.text
    assert peak < 64_000_000
    await call("touch", limit_bytes=10_000_000)
    assert len([line for line in journal.read_text().splitlines() if line.startswith("started")]) == 2


async def test_nothing_is_left_behind(journal: Path) -> None:
    """A server that ignores its end and SIGTERM goes, with the process that it started."""
    tools = McpTools(Guard(), is_stdio_allowed=True)
    call = Caller(tools, misbehaving("leaves-a-child", journal))
    assert "done" in (await call("touch")).text
    assert len(_running(journal)) == 2
    await tools.close()
    await _until(lambda: not _running(journal))
    assert "is stopping" in (await call("touch")).text


def _running(journal: Path) -> list[int]:
    """The processes that the journal tells of and that are still there."""
    started = [line for line in journal.read_text().splitlines() if line.startswith("started ")]
    return [pid for pid in (int(line.split()[1]) for line in started) if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may end while its file is read
        return False


def _processes(argument: str) -> list[int]:
    """The processes that have this argument, other than this one."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                if argument.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.02)
