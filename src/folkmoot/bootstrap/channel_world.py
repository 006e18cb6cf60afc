"""What apps of channels may use of the world: requests and connections through the guard, and nothing else."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache

import httpx2

from folkmoot.channels.channel import SLACK_API_URL, ChannelWorld, HttpReply
from folkmoot.tools.addresses import Guard
from folkmoot.tools.bodies import read_body
from folkmoot.tools.sockets import guarded_socket

_POST_SECONDS = 20.0  # for the whole of a request
_CONNECT_SECONDS = 15.0
_MOST_BODY_BYTES = 1_048_576


@lru_cache(maxsize=1)
def _public_tls() -> ssl.SSLContext:
    """Reading the certificates takes long: once for all connections."""
    return httpx2.create_ssl_context(trust_env=False)


def channel_world(
    guard: Guard,
    client: httpx2.AsyncClient,
    *,
    slack_api_url: str = SLACK_API_URL,
    tls: Callable[[], ssl.SSLContext] = _public_tls,
) -> ChannelWorld:
    """`client`: one whose connections pass the guard; good as long as it is open."""

    async def connect(host: str, port: int) -> socket.socket:
        return await guarded_socket(guard, host, port, limit_seconds=_CONNECT_SECONDS)

    async def post(url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        request = client.build_request(
            "POST", url, content=body, headers=dict(headers), extensions={"follows_redirects": False}
        )
        async with asyncio.timeout(_POST_SECONDS):
            answer = await client.send(request, stream=True)
            read = await read_body(answer, limit_bytes=_MOST_BODY_BYTES)
        return HttpReply(answer.status_code, dict(answer.headers), read.data)

    return ChannelWorld(connect=connect, post=post, tls=tls, slack_api_url=slack_api_url)
