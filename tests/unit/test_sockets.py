"""A connection that is no HTTP passes the same guard (F50, F51)."""

from __future__ import annotations

import asyncio
import gc
import warnings

import pytest
from recording_server import RecordingServer

from folkmoot.tools.addresses import AddressRefused, Guard
from folkmoot.tools.sockets import guarded_socket

LOOPBACK = Guard(("127.0.0.0/8",))


def resolving(*addresses: str, allow: tuple[str, ...] = ("127.0.0.0/8",)) -> Guard:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return Guard(allow, resolve=resolve)


async def test_a_socket_is_connected_and_does_not_block() -> None:
    async with RecordingServer() as server:
        with await guarded_socket(LOOPBACK, "127.0.0.1", server.port, limit_seconds=5) as made:
            assert made.getpeername() == ("127.0.0.1", server.port) and made.getblocking() is False


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::1", "169.254.169.254", "127.1", "2130706433"])
async def test_an_address_inside_is_not_connected_to(host: str) -> None:
    async with RecordingServer() as server:
        with pytest.raises(AddressRefused):
            await guarded_socket(Guard(), host, server.port, limit_seconds=5)
        assert server.connections == 0


async def test_a_name_with_one_address_inside_is_refused_as_a_whole() -> None:
    async with RecordingServer() as server:
        with pytest.raises(AddressRefused):
            await guarded_socket(resolving("127.0.0.1", "10.0.0.1"), "mail.example.org", server.port, limit_seconds=5)
        assert server.connections == 0


async def test_the_next_address_of_a_name_is_tried() -> None:
    async with RecordingServer() as server:
        guard = resolving("127.0.0.2", "127.0.0.1")
        with await guarded_socket(guard, "mail.example.org", server.port, limit_seconds=5) as made:
            assert made.getpeername()[0] == "127.0.0.1"


async def test_what_cannot_be_reached_leaves_no_socket_behind() -> None:
    async with RecordingServer() as server:
        port = server.port
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with pytest.raises(ConnectionError):
            await guarded_socket(LOOPBACK, "127.0.0.1", port, limit_seconds=5)
        gc.collect()


async def test_a_limit_holds_for_names_that_take_long() -> None:
    never = asyncio.Event()

    async def resolve(host: str, port: int) -> list[str]:
        await never.wait()
        return []

    with pytest.raises(TimeoutError):
        await guarded_socket(Guard(resolve=resolve), "mail.example.org", 25, limit_seconds=0.01)
