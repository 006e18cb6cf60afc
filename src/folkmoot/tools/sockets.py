"""A TCP connection that passes the guard, for protocols that are not HTTP: mail, for one. Deliberately absent: encryption and what is said."""

from __future__ import annotations

import asyncio
import socket

from folkmoot.tools.addresses import Guard
from folkmoot.tools.networks import Address

_TRIED = 4  # addresses of one name


async def guarded_socket(guard: Guard, host: str, port: int, *, limit_seconds: float) -> socket.socket:
    """A socket, not blocking, connected to one of the host's checked addresses; the caller's to close.

    Raises AddressRefused, and OSError (TimeoutError included) or httpcore2.ConnectError where nothing is reached.
    """
    failure: OSError = ConnectionError("no address")
    async with asyncio.timeout(limit_seconds):
        for address in (await guard.addresses(host, port))[:_TRIED]:
            try:
                return await _connected(address, port)
            except TimeoutError:
                raise
            except OSError as error:
                failure = error
    raise failure


async def _connected(address: Address, port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        await asyncio.get_running_loop().sock_connect(made, (str(address), port))
    except BaseException:
        made.close()
        raise
    return made
